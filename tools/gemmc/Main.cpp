#include "Tool.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool {
namespace {
cl::opt<bool> jsonDiagnostics("json-diagnostics", cl::desc("Print problems as JSON"), cl::sub(cl::SubCommand::getAll()));

struct Entry {
  cl::SubCommand *sub;
  int (*run)();
};
std::vector<Entry> &commands() {
  static std::vector<Entry> list;
  return list;
}
} // namespace

Command::Command(cl::SubCommand &sub, int (*run)()) { commands().push_back({&sub, run}); }

std::optional<StringRef> readFile(StringRef path, Diags &diags) {
  // A directory or device would be read without end or fail late.
  if (path != "-" && sys::fs::is_directory(path)) {
    diags.report(Diag::file_unreadable, {}, path, "is a directory");
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer) {
    diags.report(Diag::file_unreadable, {}, path, buffer.getError().message());
    return std::nullopt;
  }
  return diags.addSource(path == "-" ? "<stdin>" : path, (*buffer)->getBuffer());
}

bool writeFile(StringRef path, StringRef text, Diags &diags) {
  if (path.empty() || path == "-") {
    outs() << text;
    outs().flush();
    return true;
  }
  Error error = writeToOutput(path, [&](raw_ostream &os) {
    os << text;
    return Error::success();
  });
  if (!error)
    return true;
  diags.report(Diag::file_unwritable, {}, path, toString(std::move(error)));
  return false;
}

int finish(const Diags &diags, int otherwise) {
  if (jsonDiagnostics)
    diags.printJson(errs());
  else
    diags.print(errs(), WithColor(errs()).colorsEnabled());
  return diags.hasErrors() ? BadInput : otherwise;
}
} // namespace gemmc::tool

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "gemmc: GEMM specs to PTX, run and verified with or without a GPU\n");
  for (const auto &entry : gemmc::tool::commands())
    if (*entry.sub)
      return entry.run();
  cl::PrintHelpMessage();
  return gemmc::tool::BadInput;
}
