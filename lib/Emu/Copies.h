/// What asynchronous copies share: places in the shared memory of a cluster, and mbarriers that count bytes.
#pragma once
#include "Decoder.h"
#include "gemmc/Emu/Mbarrier.h"

namespace gemmc::emu {

/// Applies a command to the object at `at` and stores its new state; nullopt after a finding. `byThread`: the thread
/// executes it; else it is the late effect of an operation that the thread issued.
std::optional<sem::MbarrierOutcome> commandMbarrier(Warp &warp, const Code &code, unsigned lane, std::byte *at,
                                                    const sem::MbarrierCommand &command, bool byThread = true);
/// Whether a generic address of an mbarrier is in the executing CTA's shared memory (another space is not refused
/// here); else there is a finding of that rule, about what is done there.
bool isOwnObject(Warp &warp, const Code &code, const Arg &arg, unsigned lane, const char *rule, const char *what);

/// A range in the shared memory of one CTA of the cluster.
struct SharedRange {
  Cta *cta = nullptr;
  uint32_t offset = 0;
};
/// Checks a range of shared addresses (`where`: Shared or SharedCluster); nullopt after a finding.
std::optional<SharedRange> sharedRange(Warp &warp, const Code &code, Where where, uint64_t address, uint64_t bytes,
                                       unsigned align, unsigned lane);

/// Where a bulk copy into shared memory goes.
struct BulkPlace {
  Where where = Where::SharedCluster;
  uint64_t address = 0, bytes = 0;
  unsigned align = 16;
  uint64_t mbarrier = 0;
  std::optional<uint32_t> multicast; ///< CTAs by rank; each gets the copy at the same offset, and its bytes counted.
};
/// One CTA that receives it: offsets in its window.
struct BulkTarget {
  Cta *cta = nullptr;
  uint32_t offset = 0, mbarrier = 0;
  uint32_t phase = 0; ///< Of the mbarrier when the copy was issued; kept by the check.
};
/// The receivers; nullopt after a finding (TM-1, TM-3, TM-4, AD-2...).
std::optional<std::vector<BulkTarget>> bulkTargets(Warp &warp, const Code &code, const BulkPlace &place, unsigned lane);

/// Two lanes that ask for the same copy (operands: destination and mbarrier) are TM-8: it comes, and is counted, twice.
bool checkOnce(Warp &warp, const Code &code, Mask mask, unsigned dst, unsigned mbarrier);

/// Whether a lane of `mask` in front of `lane` issues the same bulk store, as `same` knows (BG-7, which is reported).
bool repeatsStore(Warp &warp, const Code &code, Mask mask, unsigned lane, llvm::function_ref<bool(unsigned)> same);

/// complete-tx on the target's mbarrier; false after a finding (MB-22 when the CTA is gone).
bool arriveBytes(Warp &warp, const Code &code, unsigned lane, const BulkTarget &target, uint32_t bytes);

/// Puts a lane's operation on `bytes` in flight; `inGroup`: it belongs to the thread's bulk group.
void issueBulk(Warp &warp, const Code &code, unsigned lane, uint64_t bytes, bool inGroup, std::function<void()> read,
               std::function<void()> land);

/// The reduction among the modifiers as `sem::ReduceOp` plus 1; 0 when there is none.
int reductionOf(Decoder &d);

} // namespace gemmc::emu
