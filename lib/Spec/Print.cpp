// A spec as YAML. A section whose fields have reasons is written a field a line, so that each can have its comment;
// any other is one line.
#include "Table.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace gemmc {
using namespace spec;
namespace {
struct Line {
  std::string text, comment;
};

/// A reason as the rest of a comment line.
std::string commentOf(StringRef reason) {
  std::string text;
  for (char c : reason)
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return text;
}

/// What is decided for dynamic sizes, or for batches, alone.
bool isOptional(const Row &row) {
  return row.section() == "typical" || row.path == "problem.batch" || row.key() == "batch_stride";
}

std::string keyAndValue(const Row &row, const Spec &spec) { return row.key().str() + ": " + row.print(spec); }

void addSection(StringRef section, const Spec &spec, bool reasons, std::vector<Line> &lines) {
  std::vector<Line> entries;
  bool commented = false;
  for (const Row &row : rows())
    if (row.section() == section && (!isOptional(row) || row.print(spec) != "auto")) {
      entries.push_back({keyAndValue(row, spec), reasons ? commentOf(row.reason(spec)) : ""});
      commented |= !entries.back().comment.empty();
    }
  if (entries.empty())
    return;
  if (!commented) {
    auto texts = llvm::map_range(entries, [](const Line &line) { return line.text; });
    lines.push_back({(section + ": {" + llvm::join(texts, ", ") + "}").str(), ""});
    return;
  }
  lines.push_back({(section + ":").str(), ""});
  for (Line &entry : entries)
    lines.push_back({"  " + entry.text, std::move(entry.comment)});
}
} // namespace

std::string printSpec(const Spec &spec, bool reasons) {
  std::vector<Line> lines;
  StringRef last;
  for (const Row &row : rows()) {
    StringRef section = row.section();
    if (section.empty())
      lines.push_back({keyAndValue(row, spec), reasons ? commentOf(row.reason(spec)) : ""});
    else if (section != last)
      addSection(section, spec, reasons, lines);
    last = section;
  }
  size_t width = 0;
  for (const Line &line : lines)
    if (!line.comment.empty())
      width = std::max(width, line.text.size());
  std::string result;
  for (const Line &line : lines) {
    result += line.text;
    if (!line.comment.empty())
      result += std::string(width - line.text.size() + 2, ' ') + "# " + line.comment;
    result += '\n';
  }
  return result;
}

} // namespace gemmc
