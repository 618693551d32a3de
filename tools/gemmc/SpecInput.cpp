#include "SpecInput.h"
#include "gemmc/Plan/Fallback.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace gemmc::tool {

std::optional<Plan> planOf(const Spec &spec, FallbackChoice choice, Diags &diags) {
  if (choice == FallbackChoice::none)
    return makePlan(spec, diags);
  auto repacked = choice == FallbackChoice::repack ? makeRepackPlan(spec) : std::nullopt;
  return repacked ? repacked : makeFallbackPlan(spec, diags);
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

std::optional<Spec> SpecInput::read(StringRef path, ArrayRef<std::string> more, Diags &diags) const {
  std::vector<Override> overrides;
  for (ArrayRef<std::string> list : {ArrayRef<std::string>(sets), more})
    for (const std::string &set : list)
      if (auto override = parseOverride(set, diags))
        overrides.push_back(std::move(*override));
  auto text = readFile(path, diags);
  if (!text)
    return std::nullopt;
  StringRef base = path == "-" ? "gemm" : sys::path::stem(path);
  auto spec = readSpec(*text, overrides, diags, base);
  return diags.hasErrors() ? std::nullopt : std::move(spec);
}

} // namespace gemmc::tool
