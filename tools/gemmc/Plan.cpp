// gemmc plan: the complete spec, every decision with its reason.
#include "gemmc/Plan/Plan.h"
#include "SpecInput.h"
#include "Tuning.h"

using namespace llvm;

namespace gemmc::tool::plan_cpp {
namespace {
cl::SubCommand plan("plan", "Print the complete spec with a reason behind every decision");
SpecInput input(plan);
TuningInput tuning(plan);
cl::opt<std::string> output("o", cl::desc("Write to a file"), cl::value_desc("file"), cl::sub(plan));
cl::opt<bool> asJson("json", cl::desc("Print JSON: fields, the kernel's view, requirements"), cl::sub(plan));
cl::opt<bool> bare("no-reasons", cl::desc("Leave the comments out"), cl::sub(plan));
cl::opt<FallbackChoice>
    fallback("fallback",
             cl::desc("Take the kernel for launches that the first one's requirements, or no workspace, exclude:"),
             cl::ValueOptional, cl::init(FallbackChoice::none), cl::sub(plan),
             cl::values(clEnumValN(FallbackChoice::plain, "", "the last one, which is right for all launches"),
                        clEnumValN(FallbackChoice::plain, "plain", "the same"),
                        clEnumValN(FallbackChoice::repack, "repack",
                                   "the first one, which copies operands at odd pitches, if there is one"),
                        clEnumValN(FallbackChoice::bare, "no-workspace",
                                   "the one that needs no workspace but for what the spec gives")));

int run() {
  Diags diags;
  std::optional<Spec> spec = input.read(diags);
  if (!spec)
    return finish(diags);
  std::optional<Plan> plan = planOf(*spec, fallback, tuning, diags);
  if (plan)
    writeFile(output, asJson ? printPlanJson(*plan) : printSpec(plan->spec, !bare), diags);
  return finish(diags);
}
Command command(plan, run);
} // namespace
} // namespace gemmc::tool::plan_cpp
