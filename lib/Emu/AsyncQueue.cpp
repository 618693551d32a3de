#include "AsyncQueue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cstring>

namespace gemmc::emu {

AsyncPolicy::~AsyncPolicy() = default;

void AsyncQueue::issue(AsyncOp op) {
  if (policy->atIssue(op))
    return complete(op);
  pending.push_back(std::move(op));
  if (pending.size() > most)
    completeAt(0);
}

void AsyncQueue::completeAt(size_t index) {
  AsyncOp op = std::move(pending[index]);
  pending.erase(pending.begin() + index);
  complete(op);
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
  completeAt(policy->pick(pending));
  return true;
}

void AsyncQueue::readOne(size_t from) {
  for (size_t i = 0; i < pending.size(); ++i)
    if (AsyncOp &op = pending[(from + i) % pending.size()]; !op.sourceRead) {
      if (op.readSource)
        op.readSource();
      op.sourceRead = true;
      return;
    }
}

const AsyncOp *AsyncQueue::find(llvm::function_ref<bool(const AsyncOp &)> match) const {
  for (const AsyncOp &op : pending)
    if (match(op))
      return &op;
  return nullptr;
}

void AsyncQueue::waitGroups(const Warp &warp, unsigned lane, uint32_t due, bool readOnly) {
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

void AsyncQueue::finish(const Warp &warp, unsigned lane) { waitGroups(warp, lane, ~0u, false); }

/// The older half completes at once, so that what remains is seldom moved.
void WarpAsync::issue(const CpAsync &copy) {
  if (copies.size() >= most)
    finishCopies(~Mask(0), copies[most / 2].serial);
  copies.push_back(copy);
}

void WarpAsync::commitCopies(Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    step(copyGroups[llvm::countr_zero(rest)], {sem::GroupsCommand::commit, 0});
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

void WarpAsync::waitCopies(Mask mask, sem::GroupsCommand command) {
  std::array<uint32_t, numLanes> due{};
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    due[lane] = step(copyGroups[lane], command).due;
  }
  finish(mask, [&](const CpAsync &copy, unsigned lane) { return copy.group[lane] < due[lane]; });
}
void WarpAsync::finishCopies(Mask mask, uint64_t serial) {
  finish(mask, [=](const CpAsync &copy, unsigned) { return copy.serial <= serial; });
}
bool WarpAsync::completeOneCopy(bool newest) {
  if (copies.empty())
    return false;
  uint64_t serial = newest ? copies.back().serial : copies.front().serial;
  finish(~Mask(0), [=](const CpAsync &copy, unsigned) { return copy.serial == serial; });
  return true;
}

} // namespace gemmc::emu
