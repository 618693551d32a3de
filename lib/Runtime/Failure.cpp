#include "gemmc/Runtime/Failure.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc {

/// The table's text with the arguments filled in. formatv's argument count is static, ours is not.
static std::string filled(Diag id, llvm::ArrayRef<std::string> args) {
  llvm::StringRef text = textOf(id);
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    bool hole = text[at] == '{' && at + 2 < text.size() && text[at + 2] == '}';
    if (!hole) {
      out += text[at];
      continue;
    }
    size_t index = static_cast<size_t>(text[at + 1] - '0');
    assert(index < args.size() && "the row has more holes than the failure arguments");
    out += args[index];
    at += 2;
  }
  return out;
}

std::string Failure::str() const {
  std::string out = filled(id, args);
  for (const std::string &text : hints)
    out += "; " + text;
  return out;
}

void Failure::report(Diags &diags) const {
  auto raise = [&](const auto &...values) -> Problem & { return diags.report(id, llvm::SMRange(), values...); };
  auto report = [&]() -> Problem & {
    const auto &a = args;
    switch (a.size()) {
    case 0:
      return raise();
    case 1:
      return raise(a[0]);
    case 2:
      return raise(a[0], a[1]);
    case 3:
      return raise(a[0], a[1], a[2]);
    case 4:
      return raise(a[0], a[1], a[2], a[3]);
    case 5:
      return raise(a[0], a[1], a[2], a[3], a[4]);
    default:
      return raise(a[0], a[1], a[2], a[3], a[4], a[5]);
    }
  };
  Problem &problem = report();
  for (const std::string &text : hints)
    problem.note(Diag::runtime_hint, llvm::SMRange(), text);
}

} // namespace gemmc
