#include "SpecInput.h"
#include "gemmc/Plan/Fallback.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace gemmc::tool {

std::optional<Plan> planOf(const Spec &spec, FallbackChoice choice, const TuningInput &tuning, Diags &diags) {
  if (choice == FallbackChoice::none)
    return tune::choosePlan(spec, tuning.get(), diags);
  std::optional<Plan> other = choice == FallbackChoice::repack ? makeRepackPlan(spec)
                              : choice == FallbackChoice::bare ? makePlanWithoutWorkspace(spec)
                                                               : std::nullopt;
  return other ? other : makeFallbackPlan(spec, diags);
}

SpecInput::SpecInput(cl::SubCommand &sub)
    : file(cl::Positional, cl::desc("<spec.yaml>"), cl::Required, cl::sub(sub)),
      sets("set", cl::desc("Give one field of the spec a value, in place of the file's"), cl::value_desc("path=value"),
           cl::sub(sub)) {}

std::optional<Spec> SpecInput::read(Diags &diags) const { return read(file.getValue(), {}, diags); }

std::optional<Spec> SpecInput::readVariant(StringRef words, Diags &diags) const {
  SmallVector<StringRef> parts;
  words.split(parts, ' ', -1, /*KeepEmpty=*/false);
  StringRef path = file;
  if (!parts.empty() && !parts.front().contains('=')) {
    path = parts.front();
    parts.erase(parts.begin());
  }
  return read(path, std::vector<std::string>(parts.begin(), parts.end()), diags);
}

/// Begins as gemmc and nvcc begin PTX.
static bool looksLikePtx(StringRef text) {
  text = text.ltrim();
  while (text.consume_front("//") && !text.starts_with("! gemmc launch"))
    text = text.drop_until([](char c) { return c == '\n'; }).ltrim();
  return text.starts_with("! gemmc launch") || text.starts_with(".version");
}

/// The text of a spec or a suite; what has the name of something else is told apart before it is read as YAML.
static std::optional<StringRef> readText(StringRef path, Diags &diags) {
  if (path.ends_with(".ptx"))
    diags.report(Diag::spec_is_other, {}, path, "PTX: `gemmc run`, `check`, `bench` and `ptx` take it");
  else if (path.ends_with(".tile"))
    diags.report(Diag::spec_is_other, {}, path, "tile IR: `gemmc opt` takes it");
  else if (auto text = readFile(path, diags); !text || !looksLikePtx(*text))
    return text;
  else
    diags.report(Diag::spec_is_other, {}, path == "-" ? "standard input" : path,
                 "PTX: `gemmc run`, `check` and `bench` take it from a file whose name ends in .ptx");
  return std::nullopt;
}

std::optional<Spec> SpecInput::read(StringRef path, ArrayRef<std::string> more, Diags &diags) const {
  std::vector<Override> overrides = overridesOf(sets, diags);
  append_range(overrides, overridesOf(more, diags));
  auto text = readText(path, diags);
  if (!text)
    return std::nullopt;
  if (isSuite(*text)) {
    diags.report(Diag::suite_elsewhere, {}, path);
    return std::nullopt;
  }
  StringRef base = path == "-" ? "gemm" : sys::path::stem(path);
  auto spec = readSpec(*text, overrides, diags, base);
  return diags.hasErrors() ? std::nullopt : std::move(spec);
}

std::vector<Override> overridesOf(ArrayRef<std::string> words, Diags &diags) {
  std::vector<Override> overrides;
  for (const std::string &word : words)
    if (auto override = parseOverride(word, diags))
      overrides.push_back(std::move(*override));
  return overrides;
}

std::optional<std::vector<SuiteProblem>> readProblems(StringRef path, ArrayRef<Override> overrides, Diags &diags) {
  auto text = readText(path, diags);
  if (!text)
    return std::nullopt;
  if (isSuite(*text))
    return readSuite(*text, overrides, diags);
  auto spec = readSpec(*text, overrides, diags, path == "-" ? "gemm" : sys::path::stem(path));
  if (!spec || diags.hasErrors())
    return std::nullopt;
  return std::vector<SuiteProblem>{{std::move(*spec), ""}};
}

} // namespace gemmc::tool
