// What is wrong with the wait for an asynchronous operation: none, another thread's, of another kind, too early.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

/// A barrier of threads orders the issue of an operation, and not its completion. Of interest where nobody has waited.
std::optional<Check::Problem> Check::onlyBarrier(const Agent &agent, const Access &before) const {
  const WarpState &state = warps[agent.actor.warp.number()];
  const Warp &owner = *cluster.ctas[before.warp / cluster.warpsPerCta]->warps[before.warp % cluster.warpsPerCta];
  bool waited = before.kind == Access::wgmma && warps[before.warp].wgmmaWait > before.issued;
  forLanes(before.lanes, [&](unsigned l) {
    waited |= before.kind == Access::copy && warps[before.warp].copyWait.at[l] > before.issued;
    waited |= before.component < 5 * numWarps && before.kind == Access::bulk &&
              warps[before.warp].bulkWait.at[l] > before.issued;
  });
  auto orders = [&](const SharedClocks &barrier) {
    return barrier && (*barrier)[Sight::execution].highest(warpComponent(owner)) >= before.issued;
  };
  if (waited || &owner == &agent.actor.warp)
    return std::nullopt;
  const char *rule = owner.cta.rank == agent.actor.warp.cta.rank && orders(state.behindNamed) ? "NB-8"
                     : orders(state.behindCluster)                                            ? "CL-4"
                                                                                              : nullptr;
  if (!rule)
    return std::nullopt;
  return problem(agent, before, rule,
                 formatv("a barrier of threads stands between the {0} and this {1}, and nobody has waited for it: "
                         "barriers do not complete asynchronous operations",
                         before, agent.access));
}

Check::Problem Check::uncopied(const Agent &agent, const Access &before) const {
  Warp &owner = *cluster.ctas[before.warp / cluster.warpsPerCta]->warps[before.warp % cluster.warpsPerCta];
  const WarpState &state = warps[before.warp], &mine = warps[agent.actor.warp.number()];
  bool covered = true, waited = true, committed = true, bulkWaited = true;
  forLanes(before.lanes, [&](unsigned l) {
    covered &= state.own.copies[l] >= before.epoch;
    waited &= state.copyWait.at[l] > before.issued;
    committed &= state.copyWait.committed[l] >= before.epoch;
    bulkWaited &= state.bulkWait.at[l] > before.issued;
  });
  if (covered)
    return problem(agent, before, "CA-4",
                   formatv("only its own thread (warp {0}) has waited for this cp.async: no barrier between the wait "
                           "and this access",
                           owner.index));
  if (agent.access.kind == Access::copy)
    return problem(agent, before, "CA-10", "two cp.async of the same bytes, and no wait for the first between them");
  if (waited && !committed)
    return problem(agent, before, "CA-6",
                   "this cp.async was not committed when its thread waited: a wait_group covers committed groups");
  if (!waited && bulkWaited)
    return problem(agent, before, "CA-9", "its thread has waited for bulk groups, which are not those of cp.async");
  unsigned lane = agent.actor.lane;
  bool mineWaited = mine.copyWait.at[lane] != 0;
  if (!waited && mineWaited && !(before.lanes & laneBits[lane] && &owner == &agent.actor.warp))
    return problem(agent, before, "CA-3",
                   "another thread than the one that issued this cp.async has waited: groups are a thread's own");
  if (auto barrier = onlyBarrier(agent, before))
    return *barrier;
  return problem(agent, before, "CA-5",
                 "nobody has waited for this cp.async: no cp.async.wait_group between them that covers it");
}

/// A bulk store: the reading of its source, or its writes.
Check::Problem Check::unstored(const Agent &agent, const Access &before) const {
  const WarpState &state = warps[before.warp];
  const Cta &cta = *cluster.ctas[before.warp / cluster.warpsPerCta];
  bool waited = true, committed = true, copyWaited = true;
  forLanes(before.lanes, [&](unsigned l) {
    waited &= state.bulkWait.at[l] > before.issued;
    committed &= state.bulkWait.committed[l] >= before.epoch;
    copyWaited &= state.copyWait.at[l] > before.issued;
  });
  if (waited && !committed)
    return problem(agent, before, "BG-6",
                   "this bulk store was not committed when its thread waited: a wait_group covers committed groups");
  if (!waited && copyWaited)
    return problem(agent, before, "CA-9", "its thread has waited for groups of cp.async, which are not bulk groups");
  if (!waited && ctas[cta.rank].idleBulkWait)
    return problem(
        agent, before, "BG-3",
        "another thread than the one that issued this bulk store has waited: bulk groups are a thread's own");
  if (auto barrier = onlyBarrier(agent, before))
    return *barrier;
  if (!before.write)
    return problem(agent, before, "BG-1",
                   formatv("{0} of bytes that a bulk store may still read: no cp.async.bulk.wait_group(.read) "
                           "by the thread that issued it, then a barrier, between them",
                           agent.access));
  return problem(agent, before, agent.access.write ? "BG-5" : "BG-2",
                 formatv("{0} of global bytes that a bulk store may still write: no full cp.async.bulk.wait_group "
                         "between them",
                         agent.access));
}

// --- Tests of mbarriers that say False

void Check::mbarrierRefused(Warp &warp, const Code &code, Mask mask, Cta &cta, uint32_t offset, bool answered,
                            bool spurious) {
  WarpState &state = of(warp);
  Barrier &barrier = of(cta).barriers[offset];
  const uint32_t completed = barrier.completed;
  testedBy(barrier, warp, code, mask);
  forLanes(mask, [&](unsigned l) {
    Refused &refused = state.refused[l];
    bool same = refused.waiting && refused.offset == offset && refused.pc == pcOf(code) &&
                (completed - refused.completed) % 2 == 0;
    if (!spurious && same && completed - refused.completed >= 2)
      report(warp, code, l, "MB-16",
             formatv("the mbarrier at {0:x} has completed {1} phases while this thread waits for one of them: the next "
                     "phase of that parity is another",
                     offset, completed - refused.completed));
    if (!same)
      refused.completed = completed;
    refused.offset = offset;
    refused.pc = pcOf(code);
    refused.waiting |= !spurious;
    refused.unanswered |= answered;
  });
}

void Check::leavesUnanswered(Warp &warp, Mask mask) {
  forLanes(mask, [&](unsigned l) {
    if (const Refused &refused = of(warp).refused[l]; refused.unanswered)
      report(warp, cluster.program.code[refused.pc], l, "MB-17",
             "this wait has said False, and the thread has gone on without another: a wait is a loop");
  });
}

} // namespace gemmc::emu
