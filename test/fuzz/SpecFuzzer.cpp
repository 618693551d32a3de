// Whatever the bytes: the reader neither crashes nor hangs, problems and values come together, every problem has a
// place in the text, and what was read prints and reads back to the same.
#include "gemmc/Spec/Spec.h"
#include "gemmc/Support/Yaml.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace gemmc;

static void require(bool condition) {
  if (!condition)
    std::abort();
}

/// A range lies in its source, and a child's range in its parent's.
static void checkRanges(const YamlNode &node, const char *begin, const char *end) {
  const char *first = node.range.Start.getPointer(), *last = node.range.End.getPointer();
  require(begin <= first && first <= last && last <= end);
  for (const YamlNode &item : node.items)
    checkRanges(item, first, last);
  for (const YamlEntry &entry : node.entries) {
    checkRanges(entry.key, first, last);
    checkRanges(entry.value, first, last);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  Diags diags;
  llvm::StringRef text = diags.addSource("spec.yaml", input);
  auto root = parseYaml(text, diags);
  require(root.has_value() != diags.hasErrors());
  if (root)
    checkRanges(*root, text.begin(), text.end());

  Diags specDiags;
  auto spec = readSpec(specDiags.addSource("spec.yaml", input), {}, specDiags);
  require(spec.has_value() != specDiags.hasErrors());
  for (const Problem &problem : specDiags.all())
    require(problem.range.isValid() && !specDiags.place(problem.range.Start).empty());
  specDiags.print(llvm::nulls());
  specDiags.printJson(llvm::nulls());
  if (spec) {
    std::string printed = printSpec(*spec, true);
    Diags again;
    auto second = readSpec(again.addSource("printed", printed), {}, again);
    require(second && printSpec(*second, false) == printSpec(*spec, false));
  }

  // The same bytes as an override.
  Diags setDiags;
  if (auto override = parseOverride(input, setDiags))
    readSpec(setDiags.addSource("spec.yaml", "problem: {m: 1, n: 1, k: 1}"), {*override}, setDiags);
  setDiags.print(llvm::nulls());
  return 0;
}
