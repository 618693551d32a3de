/// What every subcommand shares. A subcommand is one file: its options, `static Command x(sub, run);`, and a function
/// that calls a room and prints. Exit codes: 0 done, 1 the answer is "no" (a verification failed), 2 bad input or use,
/// 3 not possible here (no GPU, no ptxas), 70 an internal error.
#pragma once
#include "gemmc/Support/Diag.h"
#include "llvm/Support/CommandLine.h"

namespace gemmc::tool {

/// Registers `run` for a subcommand.
struct Command {
  Command(llvm::cl::SubCommand &sub, int (*run)());
};

enum ExitCode { Ok = 0, No = 1, BadInput = 2, NotHere = 3, Internal = 70 };

/// More of an input is not read: every text that gemmc takes is far smaller, and `/dev/zero` has no end.
constexpr size_t maxFileBytes = 32 << 20;
/// The text of `path` ("-" = standard input) as a source of `diags`; reports and gives nullopt when it is unreadable or
/// larger than `maxFileBytes`.
std::optional<llvm::StringRef> readFile(llvm::StringRef path, Diags &diags);
/// The same for PTX and tile IR, without the byte order mark that an editor may have put in front.
std::optional<llvm::StringRef> readCode(llvm::StringRef path, Diags &diags);
/// Whether `readFile` has read that file: an input, which a timeline must not replace.
bool wasRead(llvm::StringRef path);
/// Writes whole or not at all (temporary file and rename), where `path` or what it links to is a file or is not there;
/// what is neither (a device, a pipe) is written into. "-" and "" are standard output.
bool writeFile(llvm::StringRef path, llvm::StringRef text, Diags &diags);
/// Behind all output: prints to standard error (JSON when --json-diagnostics is given), also that standard output did
/// not take all. BadInput when there is an error, else `otherwise`.
int finish(Diags &diags, int otherwise = Ok);

} // namespace gemmc::tool
