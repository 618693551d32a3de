/// All values of a spec and a plan as one text, without places and reasons: equal texts are equal kernels.
#pragma once
#include "gemmc/Plan/Plan.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc::test {

/// Calls `visit(field)` for every field but what is typical, which only dynamic sizes have.
template <typename S, typename F> void forEachField(S &s, F visit) {
  auto each = [&](auto &...fields) { (visit(fields), ...); };
  each(s.name, s.target, s.m, s.n, s.k);
  for (auto *operand : {&s.a, &s.b, &s.c, &s.d})
    each(operand->type, operand->layout, operand->ld, operand->align);
  for (auto *operand : {&s.a, &s.b})
    each(operand->negate, operand->cache, operand->repack);
  each(s.accumulator, s.alpha, s.beta, s.block, s.warp, s.cluster, s.instruction, s.copy, s.stages, s.schedule,
       s.swizzle, s.rasterOrder, s.rasterGroup, s.persistent, s.store, s.swapOperands, s.matrixShape, s.fragmentsA,
       s.fragmentsB, s.fragmentBuffers, s.fragmentOrder, s.bitOperation, s.fastAccumulation, s.copyBytes, s.padding,
       s.inFlight, s.scheduler, s.split, s.splitSlices, s.splitThrough, s.loadC, s.storeBuffers, s.storeOverlap,
       s.dependent, s.trigger, s.prefetch);
}

inline void put(llvm::raw_ostream &os, const std::string &value) { os << value; }
inline void put(llvm::raw_ostream &os, const Size &value) { os << (value.fixed ? *value.fixed : -1); }
inline void put(llvm::raw_ostream &os, const Scale &value) { os << (value.fixed ? *value.fixed : -12345.0); }
inline void put(llvm::raw_ostream &os, const std::array<int64_t, 3> &value) {
  os << value[0] << ',' << value[1] << ',' << value[2];
}
template <typename T> void put(llvm::raw_ostream &os, const T &value) { os << int64_t(value); }

inline std::string describe(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  forEachField(plan.spec, [&](const auto &field) { put(os, *field), os << ' '; });
  for (const PlanOperand *o : {&plan.a, &plan.b, &plan.c, &plan.d})
    os << '\n'
       << o->buffer << ' ' << nameOf(o->type) << ' ' << nameOf(o->order) << ' ' << o->ld.str() << ' ' << o->align;
  os << '\n' << plan.swapped << ' ' << plan.m.str() << ' ' << plan.n.str() << ' ' << plan.k.str();
  for (int64_t value : {plan.blockM, plan.blockN, plan.blockK, plan.warpM, plan.warpN, plan.clusterM, plan.clusterN,
                        int64_t(plan.rasterOrder), int64_t(plan.threads), int64_t(plan.consumerWarpgroups),
                        int64_t(plan.producerRegs), int64_t(plan.consumerRegs), plan.sharedBytes,
                        int64_t(plan.copyBytesA), int64_t(plan.copyBytesB), int64_t(plan.loadA), int64_t(plan.loadB)})
    os << ' ' << value;
  for (const Expr &requirement : plan.requirements)
    os << '\n' << requirement.str();
  return text;
}

} // namespace gemmc::test
