/// The input of every subcommand that begins with a spec: a file and any number of `--set path=value`.
///
///     static cl::SubCommand plan("plan", "Print the complete spec");
///     static SpecInput input(plan);                 // registers the options
///     ... auto spec = input.read(diags); if (!spec) return finish(diags);
#pragma once
#include "Tool.h"
#include "gemmc/Spec/Spec.h"

namespace gemmc::tool {

class SpecInput {
public:
  explicit SpecInput(llvm::cl::SubCommand &sub);

  /// The file with the overrides applied; nullopt after a reported error.
  std::optional<Spec> read(Diags &diags) const;
  /// `words`: overrides after those of the command line, before them perhaps another file in place of this one.
  std::optional<Spec> readVariant(llvm::StringRef words, Diags &diags) const;
  /// As given on the command line ("-" = standard input).
  llvm::StringRef path() const { return file; }
  /// The same; empty for what is no file.
  std::string source() const { return file == "-" ? std::string() : file.getValue(); }

private:
  std::optional<Spec> read(llvm::StringRef path, llvm::ArrayRef<std::string> more, Diags &diags) const;
  llvm::cl::opt<std::string> file;
  llvm::cl::list<std::string> sets;
};

} // namespace gemmc::tool
