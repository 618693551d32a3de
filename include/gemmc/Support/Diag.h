/// Diagnostics: named, located, with notes and fix-its, collected instead of printed.
///
/// Each message has one row in a `Diags/*.def` table (name, severity, text with {0}, {1}... holes); nothing else in the
/// project prints an error text. A function that can find problems takes a `Diags &` and goes on where it can, so that
/// a user sees all problems of an input at once. The user's fault is a diagnostic, ours is an assert.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SMLoc.h"
#include "llvm/Support/SourceMgr.h"
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace gemmc {

/// Where a piece of a file's text lies.
inline llvm::SMRange rangeOf(llvm::StringRef text) {
  return {llvm::SMLoc::getFromPointer(text.begin()), llvm::SMLoc::getFromPointer(text.end())};
}

enum class Severity : uint8_t { error, warning, note };

/// One name for each row of the tables.
enum class Diag : uint16_t {
#define GEMMC_DIAG(Name, Sev, Text) Name,
#include "gemmc/Support/Diags.def"
#undef GEMMC_DIAG
};

/// The row's name, as `--json` and the coverage test spell it.
llvm::StringRef nameOf(Diag id);
Severity severityOf(Diag id);
llvm::StringRef textOf(Diag id);
/// Number of rows.
unsigned numDiags();
/// For the test that asks whether every row is produced by some test (test/RecordDiags.cpp): called with each reported
/// row, from any thread. Null, and never set, outside of tests.
extern void (*diagObserver)(Diag);

/// One reported problem with its notes and fix-its.
struct Problem {
  Diag id;
  Severity severity;
  llvm::SMRange range; ///< Invalid when the problem has no place in a file.
  std::string message;
  std::vector<llvm::SMFixIt> fixes;
  std::vector<Problem> notes;
  bool wordless = false; ///< Nobody reads it: no message, no fixes, no notes.

  /// Proposes `text` for the source in `where`.
  Problem &fix(llvm::SMRange where, const llvm::Twine &text);
  /// Adds a note (a row of severity note) that explains the problem.
  template <typename... Args> Problem &note(Diag noteId, llvm::SMRange where, Args &&...args) {
    if (diagObserver)
      diagObserver(noteId);
    if (wordless)
      return *this;
    notes.push_back(Problem{noteId,
                            severityOf(noteId),
                            where,
                            llvm::formatv(textOf(noteId).data(), std::forward<Args>(args)...).str(),
                            {},
                            {}});
    return *this;
  }
};

/// The sink. Owns the source texts that ranges point into.
class Diags {
public:
  Diags() = default;
  /// A sink that is only asked which problems there are, and where: to put them into words takes much longer.
  static Diags wordless() {
    Diags diags;
    diags.keepsWords = false;
    return diags;
  }

  /// Takes a copy of `text` under `name` (a file name, shown in messages); the returned reference to the copy stays
  /// valid as long as this object, and every SMRange must point into such a copy.
  llvm::StringRef addSource(llvm::StringRef name, llvm::StringRef text);

  template <typename... Args> Problem &report(Diag id, llvm::SMRange range, Args &&...args) {
    Problem problem{id, severityOf(id), range, {}, {}, {}, !keepsWords};
    if (keepsWords)
      problem.message = llvm::formatv(textOf(id).data(), std::forward<Args>(args)...).str();
    return add(std::move(problem));
  }

  bool hasErrors() const { return errors != 0; }
  unsigned numErrors() const { return errors; }
  const std::deque<Problem> &all() const { return problems; }

  /// Prints all problems in the order of their places, the way compilers do; colour is the caller's decision.
  void print(llvm::raw_ostream &os, bool color = false) const;
  /// A JSON array of {name, severity, file, line, column, message, notes, fixes}.
  void printJson(llvm::raw_ostream &os) const;
  /// `file:line:col`, or an empty string for an invalid place.
  std::string place(llvm::SMLoc loc) const;

private:
  Problem &add(Problem problem);
  std::vector<const Problem *> sorted() const;

  llvm::SourceMgr sources;
  std::deque<Problem> problems; // a deque: report() hands out references
  unsigned errors = 0;
  bool keepsWords = true;
};

} // namespace gemmc
