/// Why something of the runtime did not happen, as a value: a row of the diagnostics table with its arguments. A caller
/// prints it, reports it into a sink, or chooses another way (the emulator, the fallback kernel).
#pragma once
#include "gemmc/Support/Diag.h"
#include <cassert>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gemmc {

struct Failure {
  Diag id{};
  std::vector<std::string> args;  ///< At most six.
  std::vector<std::string> hints; ///< Shown as notes: what to do, or what a log said.
  int code = 0;                   ///< CUresult or cublasStatus_t; 0 when no call failed.
  bool contextDead = false;       ///< A sticky error, with which every later call in this context fails, or a hang.

  template <typename... Args> static Failure make(Diag id, const Args &...args) {
    if (diagObserver)
      diagObserver(id);
    return Failure{id, {textOfArg(args)...}, {}, 0, false};
  }
  Failure &hint(std::string text) {
    hints.push_back(std::move(text));
    return *this;
  }
  /// The message, and each hint behind `; `.
  std::string str() const;
  /// Reports it, the hints as notes.
  void report(Diags &diags) const;

private:
  template <typename T> static std::string textOfArg(const T &value) { return llvm::formatv("{0}", value).str(); }
};

/// Nothing = it worked.
using MaybeFailure = std::optional<Failure>;

/// A value, or why there is none.
template <typename T> class Outcome {
public:
  Outcome(T value) : held(std::in_place_index<0>, std::move(value)) {}
  Outcome(Failure failure) : held(std::in_place_index<1>, std::move(failure)) {}
  explicit operator bool() const { return held.index() == 0; }
  T &operator*() { return value(); }
  const T &operator*() const { return const_cast<Outcome *>(this)->value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &**this; }
  const Failure &failure() const {
    assert(held.index() == 1 && "there is a value");
    return *std::get_if<1>(&held);
  }

private:
  T &value() {
    assert(held.index() == 0 && "a failure has no value");
    return *std::get_if<0>(&held);
  }
  std::variant<T, Failure> held;
};

} // namespace gemmc
