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

std::optional<Spec> SpecInput::read(Diags &diags) const {
  std::vector<Override> overrides;
  for (const std::string &set : sets)
    if (auto override = parseOverride(set, diags))
      overrides.push_back(std::move(*override));
  auto text = readFile(file, diags);
  if (!text)
    return std::nullopt;
  StringRef base = file == "-" ? "gemm" : sys::path::stem(file);
  auto spec = readSpec(*text, overrides, diags, base);
  return diags.hasErrors() ? std::nullopt : std::move(spec);
}

} // namespace gemmc::tool
