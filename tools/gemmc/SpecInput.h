/// The input of every subcommand that begins with a spec: a file and any number of `--set path=value`.
///
///     static cl::SubCommand plan("plan", "Print the complete spec");
///     static SpecInput input(plan);                 // registers the options
///     ... auto spec = input.read(diags); if (!spec) return finish(diags);
#pragma once
#include "Tuning.h"
#include "gemmc/Plan/Plan.h"
#include "gemmc/Spec/Suite.h"

namespace gemmc::tool {

/// Which kernel of a spec: the first, or one for launches that its requirements exclude.
enum class FallbackChoice { none, repack, plain, bare };
/// The first is planned by what was measured for it, if anything was. Nullopt after a reported error.
std::optional<Plan> planOf(const Spec &spec, FallbackChoice choice, const TuningInput &tuning, Diags &diags);

class SpecInput {
public:
  explicit SpecInput(llvm::cl::SubCommand &sub);

  /// The file with the overrides applied; nullopt after a reported error.
  std::optional<Spec> read(Diags &diags) const;
  /// `words`: overrides after those of the command line, before them perhaps another file in place of this one.
  std::optional<Spec> readVariant(llvm::StringRef words, Diags &diags) const;
  llvm::ArrayRef<std::string> words() const { return sets; } ///< Of `--set`.
  /// As given on the command line ("-" = standard input).
  llvm::StringRef path() const { return file; }
  /// The same; empty for what is no file.
  std::string source() const { return file == "-" ? std::string() : file.getValue(); }

private:
  std::optional<Spec> read(llvm::StringRef path, llvm::ArrayRef<std::string> more, Diags &diags) const;
  llvm::cl::opt<std::string> file;
  llvm::cl::list<std::string> sets;
};

/// A file that is a spec or a suite, as a list of problems.
std::optional<std::vector<SuiteProblem>> readProblems(llvm::StringRef path, llvm::ArrayRef<Override> overrides,
                                                      Diags &diags);
/// `--set` words as overrides; what is wrong is reported.
std::vector<Override> overridesOf(llvm::ArrayRef<std::string> words, Diags &diags);

} // namespace gemmc::tool
