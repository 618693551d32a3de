#include "gemmc/Support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>

namespace gemmc {
namespace {
struct Row {
  const char *name;
  Severity severity;
  const char *text;
};
constexpr Row rows[] = {
#define GEMMC_DIAG(Name, Sev, Text) {#Name, Severity::Sev, Text},
#include "gemmc/Support/Diags.def"
#undef GEMMC_DIAG
};
const Row &rowOf(Diag id) { return rows[static_cast<unsigned>(id)]; }

llvm::SourceMgr::DiagKind kindOf(Severity severity) {
  switch (severity) {
  case Severity::error:
    return llvm::SourceMgr::DK_Error;
  case Severity::warning:
    return llvm::SourceMgr::DK_Warning;
  case Severity::note:
    return llvm::SourceMgr::DK_Note;
  }
  llvm_unreachable("unknown severity");
}

llvm::StringRef nameOf(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}
} // namespace

llvm::StringRef nameOf(Diag id) { return rowOf(id).name; }
Severity severityOf(Diag id) { return rowOf(id).severity; }
llvm::StringRef textOf(Diag id) { return rowOf(id).text; }
unsigned numDiags() { return std::size(rows); }

void (*diagObserver)(Diag) = nullptr;

Problem &Problem::fix(llvm::SMRange where, const llvm::Twine &text) {
  if (where.isValid() && !wordless)
    fixes.emplace_back(where, text);
  return *this;
}

llvm::StringRef Diags::addSource(llvm::StringRef name, llvm::StringRef text) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  llvm::StringRef copy = buffer->getBuffer();
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  return copy;
}

Problem &Diags::add(Problem problem) {
  if (diagObserver)
    diagObserver(problem.id);
  errors += problem.severity == Severity::error;
  constexpr size_t most = 16 << 10; // a word of a file may be all of it
  if (problem.message.size() > most)
    problem.message.replace(most, std::string::npos, "...");
  problems.push_back(std::move(problem));
  return problems.back();
}

std::vector<const Problem *> Diags::sorted() const {
  std::vector<const Problem *> order;
  for (const Problem &problem : problems)
    order.push_back(&problem);
  auto key = [&](const Problem *problem) -> std::pair<unsigned, const char *> {
    if (!problem->range.isValid())
      return {0, nullptr};
    return {sources.FindBufferContainingLoc(problem->range.Start), problem->range.Start.getPointer()};
  };
  std::stable_sort(order.begin(), order.end(), [&](auto *a, auto *b) { return key(a) < key(b); });
  return order;
}

/// `text` without what a terminal would obey or choke on; every byte keeps its column.
static std::string printable(llvm::StringRef text) {
  std::string result = text.str();
  for (size_t at = 0; at < result.size();) {
    unsigned char c = result[at];
    size_t length = llvm::getNumBytesForUTF8(c);
    auto *bytes = reinterpret_cast<const llvm::UTF8 *>(result.data()) + at;
    bool legal = at + length <= result.size() && llvm::isLegalUTF8Sequence(bytes, bytes + length);
    bool control = (c < 0x20 && c != '\t') || c == 0x7f || (c == 0xc2 && legal && bytes[1] < 0xa0);
    if (!legal || control)
      result[at] = '?', length = 1;
    at += length;
  }
  return result;
}

/// A problem as LLVM shows it, and how many columns of its line are left out in front.
struct Rendered {
  llvm::SMDiagnostic message;
  int skipped = 0;
};

/// Of lines that may be a megabyte long and hold anything: at most `most` columns around the place are shown.
static Rendered rendered(const llvm::SourceMgr &sources, const Problem &problem) {
  constexpr int most = 160, before = 60;
  llvm::SmallVector<llvm::SMRange, 1> marked;
  if (problem.range.isValid())
    marked.push_back(problem.range);
  llvm::SMDiagnostic whole =
      sources.GetMessage(problem.range.Start, kindOf(problem.severity), problem.message, marked, problem.fixes);
  llvm::StringRef line = whole.getLineContents();
  int column = whole.getColumnNo(), begin = 0;
  if (line.size() > size_t(most) && column > before)
    begin = column - before;
  line = line.substr(begin, most);
  std::vector<std::pair<unsigned, unsigned>> ranges;
  for (auto [first, last] : whole.getRanges())
    ranges.push_back({std::max<int>(first - begin, 0), std::min<int>(last - begin, line.size())});
  if (!problem.range.isValid()) // no place: the message alone, not LLVM's "<unknown>:0"
    return {llvm::SMDiagnostic("", whole.getKind(), printable(whole.getMessage()))};
  return {llvm::SMDiagnostic(sources, problem.range.Start, printable(whole.getFilename()), whole.getLineNo(),
                             column < 0 ? column : column - begin, whole.getKind(), printable(whole.getMessage()),
                             printable(line), ranges, whole.getFixIts()),
          begin};
}

/// LLVM takes the column of the line that is shown for that of the file.
static void printShortened(const Rendered &problem, llvm::raw_ostream &os) {
  const llvm::SMDiagnostic &message = problem.message;
  std::string text;
  llvm::raw_string_ostream stream(text);
  message.print(nullptr, stream, false);
  auto place = [&](int column) { return llvm::formatv(":{0}:{1}: ", message.getLineNo(), column + 1).str(); };
  const std::string shown = place(message.getColumnNo());
  if (size_t at = text.find(shown); at != std::string::npos)
    text.replace(at, shown.size(), place(message.getColumnNo() + problem.skipped));
  os << text;
}

static void printOne(const llvm::SourceMgr &sources, const Problem &problem, llvm::raw_ostream &os, bool color) {
  const Rendered shown = rendered(sources, problem);
  shown.skipped ? printShortened(shown, os) : shown.message.print(nullptr, os, color);
  for (const Problem &note : problem.notes)
    printOne(sources, note, os, color);
}

void Diags::print(llvm::raw_ostream &os, bool color) const {
  for (const Problem *problem : sorted())
    printOne(sources, *problem, os, color);
}

std::string Diags::place(llvm::SMLoc loc) const {
  unsigned buffer = loc.isValid() ? sources.FindBufferContainingLoc(loc) : 0;
  if (!buffer)
    return "";
  auto [line, column] = sources.getLineAndColumn(loc, buffer);
  return llvm::formatv("{0}:{1}:{2}", sources.getMemoryBuffer(buffer)->getBufferIdentifier(), line, column).str();
}

static llvm::json::Object toJson(const llvm::SourceMgr &sources, const Problem &problem) {
  llvm::json::Object object{{"name", nameOf(problem.id)},
                            {"severity", nameOf(problem.severity)},
                            {"message", llvm::json::fixUTF8(problem.message)}};
  auto locate = [&](llvm::SMRange range, llvm::json::Object &into) {
    unsigned buffer = range.isValid() ? sources.FindBufferContainingLoc(range.Start) : 0;
    if (!buffer)
      return;
    auto [line, column] = sources.getLineAndColumn(range.Start, buffer);
    into["file"] = llvm::json::fixUTF8(sources.getMemoryBuffer(buffer)->getBufferIdentifier());
    into["line"] = line;
    into["column"] = column;
    into["length"] = int64_t(range.End.getPointer() - range.Start.getPointer());
  };
  locate(problem.range, object);
  llvm::json::Array notes, fixes;
  for (const Problem &note : problem.notes)
    notes.push_back(toJson(sources, note));
  for (const llvm::SMFixIt &fix : problem.fixes) {
    llvm::json::Object entry{{"text", llvm::json::fixUTF8(fix.getText())}};
    locate(fix.getRange(), entry);
    fixes.push_back(std::move(entry));
  }
  if (!notes.empty())
    object["notes"] = std::move(notes);
  if (!fixes.empty())
    object["fixes"] = std::move(fixes);
  return object;
}

void Diags::printJson(llvm::raw_ostream &os) const {
  llvm::json::Array array;
  for (const Problem *problem : sorted())
    array.push_back(toJson(sources, *problem));
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(array)));
}

} // namespace gemmc
