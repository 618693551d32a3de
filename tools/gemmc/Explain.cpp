// gemmc explain: why this plan, and what bounds it.
#include "gemmc/Tune/Explain.h"
#include "Ranged.h"
#include "SpecInput.h"
#include "Tuning.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool::explain_cpp {
namespace {
cl::SubCommand explain("explain", "Say why a spec gets this plan, what bounds it, and what else was near");
SpecInput input(explain);
TuningInput tuning(explain);
Count<0, 1000> next("next", cl::desc("Alternatives to show (default: 5)"), cl::init(5), cl::sub(explain));
cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::sub(explain));

int run() {
  Diags diags;
  auto spec = input.read(diags);
  auto chosen = spec ? tune::choose(*spec, tuning.get(), diags) : std::nullopt;
  if (!chosen)
    return finish(diags);
  Analysis analysis = analyse(chosen->plan, next);
  if (asJson)
    outs() << tune::explanationJson(*chosen, analysis);
  else
    tune::printExplanation(outs(), *chosen, analysis);
  return finish(diags);
}
Command command(explain, run);
} // namespace
} // namespace gemmc::tool::explain_cpp
