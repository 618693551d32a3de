#include "AsyncQueue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cstring>

namespace gemmc::emu {

AsyncPolicy::~AsyncPolicy() = default;

void AsyncQueue::issue(AsyncOp op) {
  if (policy->atIssue(op))
    complete(op);
  else
    pending.push_back(std::move(op));
}

void AsyncQueue::complete(AsyncOp &op) {
  if (!op.sourceRead && op.readSource)
    op.readSource();
  op.sourceRead = true;
  op.land();
}

bool AsyncQueue::completeOne() {
  if (pending.empty())
    return false;
  size_t index = policy->pick(pending);
  AsyncOp op = std::move(pending[index]);
  pending.erase(pending.begin() + index);
  complete(op);
  return true;
}

void AsyncQueue::waitGroups(const Warp &warp, unsigned lane, uint32_t committed, uint32_t keep, bool readOnly) {
  uint32_t due = committed > keep ? committed - keep : 0;
  for (size_t i = 0; i < pending.size();) {
    AsyncOp &op = pending[i];
    if (!op.inGroup || op.issuer != &warp || op.lane != lane || op.group >= due) {
      ++i;
      continue;
    }
    if (readOnly) {
      if (!op.sourceRead && op.readSource)
        op.readSource();
      op.sourceRead = true;
      ++i;
      continue;
    }
    complete(op);
    pending.erase(pending.begin() + i);
  }
}

void AsyncQueue::finish(const Warp &warp, unsigned lane) { waitGroups(warp, lane, ~0u, 0, false); }

void WarpAsync::commitCopies(Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    ++copyGroups[llvm::countr_zero(rest)];
}

static void copyLane(const CpAsync &copy, unsigned lane) {
  if (copy.srcBytes[lane])
    std::memcpy(copy.dst[lane], copy.src[lane], copy.srcBytes[lane]);
  std::memset(copy.dst[lane] + copy.srcBytes[lane], 0, copy.bytes - copy.srcBytes[lane]);
}

void WarpAsync::finish(Mask mask, std::function<bool(const CpAsync &, unsigned)> due) {
  for (CpAsync &copy : copies)
    for (Mask rest = copy.pending & mask; rest; rest &= rest - 1)
      if (unsigned lane = llvm::countr_zero(rest); due(copy, lane)) {
        copyLane(copy, lane);
        copy.pending &= ~(Mask(1) << lane);
      }
  llvm::erase_if(copies, [](const CpAsync &copy) { return !copy.pending; });
}

void WarpAsync::waitCopies(Mask mask, uint32_t keep) {
  finish(mask, [&](const CpAsync &copy, unsigned lane) { return copy.group[lane] + keep < copyGroups[lane]; });
}
void WarpAsync::finishCopies(Mask mask, uint64_t serial) {
  finish(mask, [=](const CpAsync &copy, unsigned) { return copy.serial <= serial; });
}

} // namespace gemmc::emu
