#include "Tool.h"
#include "gemmc/Support/UniqueFile.h"
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <new>
#include <unistd.h>

using namespace llvm;

namespace gemmc::tool {
namespace {
cl::opt<bool> jsonDiagnostics("json-diagnostics", cl::desc("Print problems as JSON"),
                              cl::sub(cl::SubCommand::getAll()));

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

/// At most `maxFileBytes` of a file, a pipe or a device; an empty optional after an error in `error`.
static std::optional<std::string> readBounded(StringRef path, std::string &error) {
  Expected<sys::fs::file_t> file = path == "-" ? sys::fs::getStdinHandle() : sys::fs::openNativeFileForRead(path);
  if (!file) {
    error = toString(file.takeError());
    return std::nullopt;
  }
  std::string text;
  Expected<size_t> count = 0;
  do {
    constexpr size_t step = 1 << 16;
    size_t size = text.size();
    text.resize(size + step);
    count = sys::fs::readNativeFile(*file, MutableArrayRef(text.data() + size, step));
    text.resize(size + (count ? *count : 0));
  } while (count && *count && text.size() <= maxFileBytes);
  if (path != "-")
    sys::fs::closeFile(*file);
  if (count)
    return text;
  error = toString(count.takeError());
  return std::nullopt;
}

static std::vector<std::string> &filesRead() {
  static std::vector<std::string> files;
  return files;
}

std::optional<StringRef> readFile(StringRef path, Diags &diags) {
  std::string error;
  std::optional<std::string> text = readBounded(path, error);
  if (!text) {
    diags.report(Diag::file_unreadable, {}, path, error);
    return std::nullopt;
  }
  if (path != "-")
    filesRead().push_back(path.str());
  StringRef source = diags.addSource(path == "-" ? "<stdin>" : path, StringRef(*text).take_front(maxFileBytes));
  if (text->size() <= maxFileBytes)
    return source;
  SMLoc begin = SMLoc::getFromPointer(source.begin());
  diags.report(Diag::file_too_large, {begin, begin}, maxFileBytes);
  return std::nullopt;
}

bool wasRead(StringRef path) {
  return any_of(filesRead(), [&](const std::string &file) { return sys::fs::equivalent(file, path); });
}

std::optional<StringRef> readCode(StringRef path, Diags &diags) {
  auto text = readFile(path, diags);
  return text ? std::optional(withoutMark(*text)) : std::nullopt;
}

/// A file as a whole, by a temporary one beside it and a rename, if all of it could be written.
static Error writeWhole(StringRef path, StringRef text) {
  int handle = -1;
  std::string temporary;
  const unsigned mode = sys::fs::all_read | sys::fs::all_write;
  if (std::error_code error = createUniqueFile(path + ".temp-stream-", "", mode, handle, temporary))
    return errorCodeToError(error);
  sys::RemoveFileOnSignal(temporary);
  raw_fd_ostream os(handle, /*shouldClose=*/true);
  os << text;
  os.close();
  std::error_code error = os.error();
  os.clear_error();
  if (!error && sys::fs::rename(temporary, path))
    error = sys::fs::copy_file(temporary, path); // a mounted file cannot be replaced
  sys::fs::remove(temporary);
  sys::DontRemoveFileOnSignal(temporary);
  return errorCodeToError(error);
}

/// Into what there is: a device, a pipe, a link that leads nowhere yet.
static Error writeInto(StringRef path, StringRef text) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (!error) {
    os << text;
    os.close();
    error = os.error();
    os.clear_error();
  }
  return errorCodeToError(error);
}

bool writeFile(StringRef path, StringRef text, Diags &diags) {
  if (path.empty() || path == "-") {
    outs() << text;
    outs().flush();
    return true;
  }
  SmallString<128> file; // behind links, which stay
  const bool exists = !sys::fs::real_path(path, file);
  const bool replaced = exists ? sys::fs::is_regular_file(file) : !sys::fs::is_symlink_file(path);
  Error error = replaced ? writeWhole(exists ? file.str() : path, text) : writeInto(path, text);
  if (!error)
    return true;
  std::string why; // an error of a file names it, and so does the diagnostic
  handleAllErrors(
      std::move(error), [&](const FileError &one) { why = one.messageWithoutFileInfo(); },
      [&](const ErrorInfoBase &one) { why = one.message(); });
  diags.report(Diag::file_unwritable, {}, path, why);
  return false;
}

/// Reports, once, that standard output did not take all.
static void flushOutput(Diags &diags) {
  outs().flush();
  std::error_code error = outs().error();
  outs().clear_error(); // of either stream: else its destructor ends the process
  if (error)
    diags.report(Diag::file_unwritable, {}, "standard output", error.message());
}

/// At exit, LLVM's --help among the ways to it: the end is BadInput where standard output did not take all.
static void endOutput() {
  Diags diags;
  flushOutput(diags);
  if (diags.hasErrors())
    ::_exit(finish(diags));
  errs().clear_error(); // nobody is left to tell
}

int finish(Diags &diags, int otherwise) {
  flushOutput(diags); // what is wrong with it is one of the problems, not a second list of them
  if (jsonDiagnostics)
    diags.printJson(errs());
  else
    diags.print(errs(), WithColor(errs()).colorsEnabled());
  return diags.hasErrors() ? BadInput : otherwise;
}
} // namespace gemmc::tool

/// No memory is left for a word of the library, either.
[[noreturn]] static void endWithoutMemory() {
  constexpr char text[] = "error: this machine, or `ulimit -v`, has too little memory for this\n";
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(gemmc::tool::NotHere);
}

int main(int argc, char **argv) {
  std::set_new_handler(endWithoutMemory);
  outs(), errs(); // streams outlive what is registered after they are made
  std::atexit(gemmc::tool::endOutput);
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "gemmc " GEMMC_VERSION " (LLVM Support " LLVM_VERSION_STRING ")\n"; });
  // With a stream of ours, wrong options are a return value and not LLVM's exit(1), which here means "no".
  if (!cl::ParseCommandLineOptions(argc, argv, "gemmc: GEMM specs to PTX, run and verified with or without a GPU\n",
                                   &errs()))
    return gemmc::tool::BadInput;
  for (const auto &entry : gemmc::tool::commands())
    if (*entry.sub)
      return entry.run();
  cl::PrintHelpMessage();
  return gemmc::tool::BadInput;
}
