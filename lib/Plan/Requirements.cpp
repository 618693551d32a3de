// What a launch must fulfil for the plan to be right, beyond the GEMM contract itself.
#include "Draft.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace gemmc::plan {
namespace {
/// Rows start at multiples of `bytes`: of the pointer always, of the pitch when it is given at launch.
void requireAlignment(Plan &plan, const PlanOperand &operand, unsigned bytes) {
  unsigned element = bytesOf(operand.type);
  if (bytes <= element || operand.repacked)
    return; // every pointer to an element has that; a copy lies as it should
  plan.requirements.push_back(equal(Expr::var(operand.buffer + "_ptr") % Expr(bytes), 0));
  unsigned elements = bytes * perByte(operand.type) / std::gcd(bytes, element);
  for (const Expr &distance : {operand.ld, operand.batchStride})
    if (!distance.isConst() && elements > 1)
      plan.requirements.push_back(equal(distance % Expr(elements), 0));
}

/// Packed elements: lines of k are whole bytes.
void requirePacking(Plan &plan) {
  int64_t each = perByte(plan.a.type);
  if (each == 1)
    return;
  for (const Expr &size : {plan.k, plan.a.ld, plan.b.ld, plan.a.batchStride, plan.b.batchStride})
    if (!size.isConst())
      plan.requirements.push_back(equal(size % Expr(each), 0));
}
/// stream-k numbers the k steps of all tiles, and up to one CTA's more, in 32 bits.
void requireCountableSteps(Plan &plan) {
  if (*plan.spec.split != SplitMode::stream_k)
    return;
  constexpr int64_t most = 2147483647;
  Expr steps = ceilDiv(plan.m, plan.blockM) * ceilDiv(plan.n, plan.blockN) * plan.batch * ceilDiv(plan.k, plan.blockK);
  if (!steps.isConst() || steps.constant() > most)
    plan.requirements.push_back(lessEqual(steps, most));
}

constexpr int64_t mostTiles = 2147483647; ///< Of all products.
} // namespace

void checkTiles(Draft &draft) {
  const Spec &s = draft.spec();
  const Plan &plan = draft.plan;
  if (plan.blockM == 0 || !plan.m.isConst() || !plan.n.isConst() || !plan.batch.isConst() || plan.batch.isConst(1))
    return;
  auto along = [](const Expr &extent, int64_t tile) { return double(llvm::divideCeil(extent.constant(), tile)); };
  const double tiles = along(plan.m, plan.blockM * plan.clusterM) * along(plan.n, plan.blockN * plan.clusterN) *
                       double(plan.batch.constant());
  if (tiles > double(mostTiles))
    draft.diags.report(Diag::plan_batch_tiles, s.batch.range, plan.batch.constant(),
                       llvm::formatv("{0:f0}", tiles).str(), (*s.block)[0], (*s.block)[1], mostTiles);
}

/// Tiles of all products have numbers, and a CTA's next one lies up to a grid further, in 32 bits; copies have one row
/// of CTAs for each product.
void requireCountableProducts(Plan &plan) {
  constexpr int64_t mostRows = 65535;
  if (plan.batch.isConst(1))
    return;
  Expr tiles = ceilDiv(plan.m, plan.blockM * plan.clusterM) * ceilDiv(plan.n, plan.blockN * plan.clusterN) * plan.batch;
  if (!tiles.isConst()) // else checked
    plan.requirements.push_back(lessEqual(tiles, mostTiles));
  if ((plan.a.repacked || plan.b.repacked) && (!plan.batch.isConst() || plan.batch.constant() > mostRows))
    plan.requirements.push_back(lessEqual(plan.batch, mostRows));
}

void addRequirements(Draft &draft) {
  Plan &plan = draft.plan;
  requirePacking(plan);
  requireCountableSteps(plan);
  requireCountableProducts(plan);
  requireAlignment(plan, plan.a, std::min(plan.a.align, plan.copyBytesA));
  requireAlignment(plan, plan.b, std::min(plan.b.align, plan.copyBytesB));
  if (plan.spec.beta.value != Scale{0.0})
    requireAlignment(plan, plan.c, std::min(plan.c.align, 16u));
  requireAlignment(plan, plan.d, std::min(plan.d.align, 16u));
  if (*plan.spec.copy != CopyKind::tma)
    return;
  for (const PlanOperand *operand : {&plan.a, &plan.b})
    if (operand->shifted &&
        operand->align % 16 != 0) // else required above; how far a line is off is known where the first one is not
      plan.requirements.push_back(equal(Expr::var(operand->buffer + "_ptr") % Expr(16), 0));
  for (const PlanOperand *operand : {&plan.a, &plan.b})
    if (operand->shifted && !plan.batch.isConst())
      if (const int64_t most = mostShiftedProducts(operand->batchStride.constant()); most < 2147483647) // else below
        plan.requirements.push_back(lessEqual(plan.batch, most));
  // A tensor map is never empty, counts in 31 bits, and a TMA pipeline always reads a and b.
  if (!plan.k.isConst())
    plan.requirements.push_back(less(0, plan.k));
  for (const Expr &extent : {plan.m, plan.n, plan.k})
    if (!extent.isConst())
      plan.requirements.push_back(lessEqual(extent, int64_t(2147483647)));
  if (!plan.batch.isConst())
    plan.requirements.push_back(lessEqual(plan.batch, int64_t(2147483647)));
  auto requireStrides = [&](const PlanOperand &operand) {
    for (const Expr &distance : {operand.ld, operand.batchStride})
      if (!distance.isConst())
        plan.requirements.push_back(less(distance, (int64_t(1) << 40) / bytesOf(operand.type)));
  };
  for (const PlanOperand *operand : {&plan.a, &plan.b, &plan.d})
    if (!operand->repacked && (operand != &plan.d || *plan.spec.store == StoreKind::tma))
      requireStrides(*operand);
  if (*plan.spec.loadC == StoreKind::tma)
    requireStrides(plan.c);
  const Expr &line = plan.d.order == Order::row ? plan.n : plan.m;
  if (*plan.spec.store == StoreKind::tma && !line.isConst()) // it writes whole 16 bytes
    plan.requirements.push_back(equal(line % Expr(16 / bytesOf(plan.d.type)), 0));
  if (plan.spec.alpha.value.dynamic())
    plan.requirements.push_back(equal(Expr::var("alpha_is_zero"), 0));
}

} // namespace gemmc::plan
