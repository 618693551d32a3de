// cp.async (PTX ISA 9.7.9.25.3) and bulk copies without tensor maps (9.7.9.25.4), st.async (9.7.9.12).
#include "Banks.h"
#include "Check.h"
#include "Copies.h"
#include "Lanes.h"
#include "gemmc/Emu/TensorMap.h"
#include "gemmc/Emu/Timeline.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using llvm::formatv;

namespace gemmc::emu {

std::optional<SharedRange> sharedRange(Warp &warp, const Code &code, Where where, uint64_t address, uint64_t bytes,
                                       unsigned align, unsigned lane) {
  if (!warp.memory(where, address, bytes, align, lane, code))
    return std::nullopt;
  return SharedRange{warp.cluster.ctas[address >> window::rankShift].get(),
                     static_cast<uint32_t>(address & ((1u << window::rankShift) - 1))};
}

std::optional<std::vector<BulkTarget>> bulkTargets(Warp &warp, const Code &code, const BulkPlace &place,
                                                   unsigned lane) {
  if (uint64_t rank = place.address >> window::rankShift;
      place.where == Where::Shared && rank != warp.cta.rank && rank < warp.cluster.ctas.size()) {
    warp.fail(
        code, lane, "TM-1",
        formatv("the destination is in CTA {0} of the cluster: `.shared::cta` is the executing CTA's own", rank).str());
    return std::nullopt;
  }
  auto range = sharedRange(warp, code, place.where, place.address, place.bytes, place.align, lane);
  auto barrier = range ? sharedRange(warp, code, Where::SharedCluster, place.mbarrier, 8, 8, lane) : std::nullopt;
  if (!barrier)
    return std::nullopt;
  if (!place.multicast) {
    if (barrier->cta == range->cta)
      return std::vector{BulkTarget{range->cta, range->offset, barrier->offset}};
    warp.fail(code, lane, "TM-3",
              formatv("the mbarrier is in CTA {0} of the cluster and the destination in CTA {1}: both must be in one",
                      barrier->cta->rank, range->cta->rank)
                  .str());
    return std::nullopt;
  }
  uint32_t mask = *place.multicast, numCtas = warp.cluster.ctas.size();
  if (!mask || mask >> numCtas) {
    warp.fail(code, lane, "TM-4",
              formatv("multicast to the CTAs {0:x} of a cluster of {1}: the mask must name some of them and no others",
                      mask, numCtas)
                  .str());
    return std::nullopt;
  }
  std::vector<BulkTarget> targets;
  for (uint32_t rank = 0; rank < numCtas; ++rank)
    if (mask >> rank & 1)
      targets.push_back({warp.cluster.ctas[rank].get(), range->offset, barrier->offset});
  return targets;
}

bool checkOnce(Warp &warp, const Code &code, Mask mask, unsigned dst, unsigned mbarrier) {
  for (Mask rest = mask & (mask - 1); rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest), first = firstLane(mask);
    if (warp.address(code.args[dst], lane) != warp.address(code.args[dst], first) ||
        warp.address(code.args[mbarrier], lane) != warp.address(code.args[mbarrier], first))
      continue;
    warp.fail(
        code, lane, "TM-8",
        formatv("lanes {0} and {1} issue the same copy: it is done, and counted at the mbarrier, twice", first, lane)
            .str());
    return false;
  }
  return true;
}

bool repeatsStore(Warp &warp, const Code &code, Mask mask, unsigned lane, llvm::function_ref<bool(unsigned)> same) {
  for (Mask rest = mask & (laneBits[lane] - 1); rest; rest &= rest - 1)
    if (same(firstLane(rest))) {
      warp.cluster.check->repeated({warp, code, lane}, firstLane(rest));
      return true;
    }
  return false;
}

bool arriveBytes(Warp &warp, const Code &code, unsigned lane, const BulkTarget &target, uint32_t bytes) {
  if (target.cta->done()) {
    warp.fail(code, lane, "MB-22",
              formatv("CTA {0} of the cluster has exited while this copy into its shared memory was in flight",
                      target.cta->rank)
                  .str());
    return false;
  }
  sem::MbarrierCommand command;
  command.op = sem::MbarrierCommand::completeTx;
  command.tx = bytes;
  if (warp.cluster.check)
    warp.cluster.check->delivered({warp, code, lane}, target);
  return commandMbarrier(warp, code, lane, target.cta->shared.data() + target.mbarrier, command, false).has_value();
}

void issueBulk(Warp &warp, const Code &code, unsigned lane, uint64_t bytes, bool inGroup, std::function<void()> read,
               std::function<void()> land) {
  warp.cluster.copied += bytes;
  AsyncOp op;
  op.code = &code;
  op.issuer = &warp;
  op.lane = lane;
  op.inGroup = inGroup;
  if (inGroup)
    op.group = WarpAsync::step(warp.async.bulkGroups[lane], {sem::GroupsCommand::issue, 0}).group;
  op.readSource = std::move(read);
  op.land = std::move(land);
  if (Timeline *timeline = warp.cluster.timeline)
    op.land = [&cluster = warp.cluster, timeline, span = timeline->copyIssued(warp, code, lane),
               land = std::move(op.land)] {
      land();
      timeline->end(cluster, span);
    };
  warp.cluster.async.issue(std::move(op));
}

namespace {

// --- cp.async

/// Operands: [dst], [src], size, srcsize or ignore. `flags`: the last is a predicate.
Step cpAsync(Warp &warp, const Code &code, Mask mask) {
  CpAsync copy;
  copy.code = &code;
  copy.bytes = code.imm[0];
  copy.pending = mask;
  copy.serial = ++warp.async.lastSerial;
  std::array<uint64_t, numLanes> addresses{}, sources{};
  Mask reading = 0;
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    uint64_t from = copy.bytes;
    const Arg &extra = code.args[3];
    if (extra.kind == Arg::Pred)
      from = warp.pred(extra) >> l & 1 ? 0 : copy.bytes;
    else if (extra.kind == Arg::Value)
      from = static_cast<uint32_t>(warp.value(extra, l));
    if (from > copy.bytes) {
      step = warp.fail(code, l, "CA-1",
                       formatv("`cp.async` of {0} bytes with a source size of {1}", copy.bytes, from).str());
      return;
    }
    addresses[l] = warp.address(code.args[0], l);
    copy.dst[l] = warp.memory(Where::Shared, addresses[l], copy.bytes, copy.bytes, l, code);
    sources[l] = warp.address(code.args[1], l);
    reading |= from ? Mask(1) << l : 0;
    copy.src[l] = nullptr; // nothing is read where nothing is copied: the address may be anywhere
    if (copy.dst[l] && from)
      copy.src[l] = warp.memory(Where::Global, sources[l], from, 1, l, code);
    if (uint64_t address = sources[l]; copy.src[l] && address % copy.bytes)
      step = warp.fail(
          code, l, "CA-2",
          formatv("`cp.async` of {0} bytes from address {1:x}, which is not aligned to them", copy.bytes, address)
              .str());
    copy.srcBytes[l] = from;
    copy.group[l] = WarpAsync::step(warp.async.copyGroups[l], {sem::GroupsCommand::issue, 0}).group;
    if (!copy.dst[l] || (from && !copy.src[l]))
      step = Step::Stop;
  });
  if (step == Step::Stop)
    return step;
  Traffic traffic = trafficOf(Where::Shared, addresses, copy.bytes, mask);
  traffic += trafficOf(Where::Global, sources, copy.bytes, reading);
  warp.cluster.stats.count(&Stats::copies, code.line, traffic);
  if (warp.cluster.check) {
    warp.cluster.check->copyIssued(warp, code, copy, sources);
    warp.cluster.check->compareLanes(warp, code, mask, copy.dst.data(), copy.bytes, [&](unsigned l) {
      LaneBytes value{};
      std::copy_n(copy.src[l], copy.srcBytes[l], value.data());
      return value;
    });
    forLanes(mask, [&](unsigned l) { std::memset(copy.dst[l], 0xff, copy.bytes); }); // poison until it completes
  }
  if (warp.cluster.timeline)
    warp.cluster.timeline->groupIssued(warp, copy.group[firstLane(mask)], addresses[firstLane(mask)]);
  warp.async.issue(copy);
  if (warp.cluster.schedule.eager())
    warp.async.completeOneCopy(true);
  return Step::Next;
}
Exec cpAsyncExec(Decoder &d) {
  int64_t size = d.immediate(2);
  d.code->imm[0] = size;
  bool good = size == 16 || (!d.has("cg") && (size == 4 || size == 8));
  return good ? cpAsync : unmodelled;
}

Step cpCommit(Warp &warp, const Code &, Mask mask) {
  warp.async.commitCopies(mask);
  if (warp.cluster.check)
    warp.cluster.check->copiesCommitted(warp, mask);
  return Step::Next;
}
Step waitFor(Warp &warp, Mask mask, sem::GroupsCommand command) {
  warp.async.waitCopies(mask, command);
  if (warp.cluster.timeline)
    warp.cluster.timeline->groupsWaited(warp, warp.async.copyGroups[firstLane(mask)].done);
  if (warp.cluster.check)
    warp.cluster.check->copiesWaited(warp, mask);
  return Step::Next;
}
Step cpWait(Warp &warp, const Code &code, Mask mask) {
  return waitFor(warp, mask, {sem::GroupsCommand::wait, static_cast<uint32_t>(code.imm[0])});
}
Step cpWaitAll(Warp &warp, const Code &, Mask mask) { return waitFor(warp, mask, {sem::GroupsCommand::waitAll, 0}); }

/// The arrival comes when the copies that the thread has issued so far are complete; without `.noinc` (`flags`) it is
/// one that the barrier did not expect, so it is made to.
Step cpArrive(Warp &warp, const Code &code, Mask mask) {
  std::array<std::byte *, numLanes> objects{};
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    if (isOwnObject(warp, code, code.args[0], l, "MB-24", "arrives at"))
      objects[l] = warp.memory(code.where, warp.address(code.args[0], l), 8, 8, l, code);
    sem::MbarrierCommand pend;
    pend.op = sem::MbarrierCommand::pend;
    if (!objects[l] || (!code.flags && !commandMbarrier(warp, code, l, objects[l], pend)))
      step = Step::Stop;
  });
  if (step == Step::Stop)
    return step;
  uint64_t serial = warp.async.lastSerial;
  if (Check *check = warp.cluster.check.get())
    forLanes(mask, [&](unsigned l) { check->copiesPromised(warp, code, l, objects[l]); });
  issueBulk(warp, code, firstLane(mask), 0, false, nullptr, [&warp, &code, mask, objects, serial] {
    warp.async.finishCopies(mask, serial);
    sem::MbarrierCommand arrive;
    arrive.op = sem::MbarrierCommand::arrive;
    forLanes(mask, [&](unsigned l) {
      if (warp.cluster.failed)
        return;
      if (warp.cluster.check)
        warp.cluster.check->copiesArrived(warp, l, serial, objects[l]);
      commandMbarrier(warp, code, l, objects[l], arrive, false);
    });
  });
  return Step::Next;
}

// --- Bulk copies

bool checkSize(Warp &warp, const Code &code, unsigned lane, uint32_t bytes) {
  if (bytes % 16 == 0)
    return true;
  warp.fail(code, lane, "TM-7", formatv("a bulk copy of {0} bytes: a multiple of 16 is wanted", bytes).str());
  return false;
}
/// Runs `issue(lane)` for each lane until it returns false.
template <typename Issue> Step eachLane(Mask mask, Issue issue) {
  bool good = true;
  forLanes(mask, [&](unsigned l) { good = good && issue(l); });
  return good ? Step::Next : Step::Stop;
}

using Buffer = std::shared_ptr<std::vector<std::byte>>;
Buffer newBuffer(uint32_t bytes) { return std::make_shared<std::vector<std::byte>>(bytes); }
std::function<void()> readInto(Buffer buffer, const std::byte *from) {
  return [buffer, from] { std::copy_n(from, buffer->size(), buffer->data()); };
}

/// Tells the check of a copy into shared memory; until it completes there is poison.
void checkLoad(Warp &warp, const Code &code, unsigned lane, std::vector<BulkTarget> &targets, uint32_t bytes) {
  for (BulkTarget &target : targets) {
    Check::Agent agent = warp.cluster.check->loadAgent({warp, code, lane}, target);
    agent.access.strong = code.imm[1] != 0; // reductions are atomic
    warp.cluster.check->shared(agent, *target.cta, target.offset, bytes, true);
    if (!code.imm[1])
      std::memset(target.cta->shared.data() + target.offset, 0xff, bytes);
  }
}

/// From shared::cta to shared::cluster, copies go to another CTA: strictly remote (9.7.9.25.4.1). Of reductions the
/// manual is silent. The H200 does both in the CTA's own memory, too, but calls them illegal instructions where the
/// cluster has one CTA (`protocol/23`): so reductions need only a cluster.
bool checkOther(Warp &warp, const Code &code, unsigned lane, const BulkTarget &target) {
  if (target.cta != &warp.cta || (code.imm[1] && warp.cluster.ctas.size() > 1))
    return true;
  warp.fail(code, lane, "TM-16",
            formatv("the destination is in the executing CTA, {0} of the cluster: from `.shared::cta` to "
                    "`.shared::cluster` data go to another CTA",
                    warp.cta.rank)
                .str());
  return false;
}

/// Operands: [dst], [src], size, [mbar], mask. `imm[0]`: the source is global (else shared::cta); `imm[1]`: a reduction
/// plus 1.
Step bulkLoad(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->bulkBegins(warp);
  if (warp.cluster.check && !code.imm[1] && !checkOnce(warp, code, mask, 0, 3))
    return Step::Stop;
  return eachLane(mask, [&](unsigned l) {
    auto bytes = static_cast<uint32_t>(warp.value(code.args[2], l));
    BulkPlace place{code.where, warp.address(code.args[0], l), bytes, 16, warp.address(code.args[3], l), {}};
    if (code.flags)
      place.multicast = static_cast<uint32_t>(warp.value(code.args[4], l)) & 0xffff;
    const std::byte *from = nullptr;
    if (checkSize(warp, code, l, bytes))
      from =
          warp.memory(code.imm[0] ? Where::Global : Where::Shared, warp.address(code.args[1], l), bytes, 16, l, code);
    auto targets = from ? bulkTargets(warp, code, place, l) : std::nullopt;
    if (!targets || (!code.imm[0] && !checkOther(warp, code, l, targets->front())))
      return false;
    Buffer buffer = newBuffer(bytes);
    if (Check *check = warp.cluster.check.get()) {
      checkLoad(warp, code, l, *targets, bytes);
      uint32_t offset = 0;
      Check::Agent agent = check->loadAgent({warp, code, l}, targets->front());
      if (Cta *cta = warp.cluster.ctaOf(from, offset))
        check->shared(agent, *cta, offset, bytes, false);
      else
        check->global(agent, {{warp.address(code.args[1], l), bytes}}, false);
    }
    issueBulk(warp, code, l, bytes, false, readInto(buffer, from), [&warp, &code, l, buffer, targets = *targets] {
      for (const BulkTarget &target : targets) {
        std::byte *to = target.cta->shared.data() + target.offset;
        if (code.imm[1])
          sem::reduceBytes(static_cast<sem::ReduceOp>(code.imm[1] - 1), code.type, to, buffer->data(), buffer->size());
        else
          std::copy(buffer->begin(), buffer->end(), to);
        if (!arriveBytes(warp, code, l, target, buffer->size()))
          return;
      }
    });
    return true;
  });
}

/// Operands: [dst], [src], size. `imm[1]`: a reduction plus 1.
Step bulkStore(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.check)
    warp.cluster.check->bulkBegins(warp);
  return eachLane(mask, [&](unsigned l) {
    auto bytes = static_cast<uint32_t>(warp.value(code.args[2], l));
    if (!checkSize(warp, code, l, bytes))
      return false;
    std::byte *to = warp.memory(Where::Global, warp.address(code.args[0], l), bytes, 16, l, code);
    std::byte *from = to ? warp.memory(Where::Shared, warp.address(code.args[1], l), bytes, 16, l, code) : nullptr;
    if (!from)
      return false;
    Buffer buffer = newBuffer(bytes);
    if (Check *check = warp.cluster.check.get()) {
      uint32_t offset = 0;
      Check::Agent reads = check->storeAgent({warp, code, l}, true), writes = check->storeAgent({warp, code, l}, false);
      if (Cta *cta = warp.cluster.ctaOf(from, offset))
        check->shared(reads, *cta, offset, bytes, false);
      writes.access.strong = code.imm[1] != 0; // reductions are atomic
      writes.repeats = !code.imm[1] && repeatsStore(warp, code, mask, l, [&](unsigned other) {
        return warp.address(code.args[0], l) == warp.address(code.args[0], other) &&
               warp.address(code.args[1], l) == warp.address(code.args[1], other) &&
               warp.value(code.args[2], other) == bytes;
      });
      check->global(writes, {{warp.address(code.args[0], l), bytes}}, true);
    }
    issueBulk(warp, code, l, bytes, true, readInto(buffer, from), [&warp, &code, to, buffer] {
      if (!code.imm[1]) {
        std::copy(buffer->begin(), buffer->end(), to);
        return;
      }
      warp.cluster.launch.reduceGlobal(to, buffer->size(), [&](std::byte *at, uint32_t offset, uint32_t bytes) {
        sem::reduceBytes(static_cast<sem::ReduceOp>(code.imm[1] - 1), code.type, at, buffer->data() + offset, bytes);
      });
    });
    return true;
  });
}

Step bulkPrefetch(Warp &warp, const Code &code, Mask mask) {
  return eachLane(mask, [&](unsigned l) {
    auto bytes = static_cast<uint32_t>(warp.value(code.args[1], l));
    return checkSize(warp, code, l, bytes) &&
           warp.memory(Where::Global, warp.address(code.args[0], l), bytes, 16, l, code) != nullptr;
  });
}

/// Operands: [a], b, [mbar].
Step stAsync(Warp &warp, const Code &code, Mask mask) {
  if (warp.cluster.ctas.size() == 1)
    return warp.fail(code, firstLane(mask), "TM-17", "`st.async` in a cluster of one CTA: it wants several");
  const Arg &from = code.args[1];
  const unsigned count = from.kind == Arg::Vector ? from.count : 1;
  const uint32_t bytes = code.bytes * count;
  auto stored = [&](unsigned lane) {
    LaneBytes value{};
    for (unsigned i = 0; i < count; ++i) {
      uint64_t element = warp.value(from.kind == Arg::Vector ? warp.element(from, i) : from, lane);
      std::memcpy(value.data() + i * code.bytes, &element, code.bytes);
    }
    return value;
  };
  if (warp.cluster.check)
    warp.cluster.check->bulkBegins(warp);
  std::array<std::byte *, numLanes> places{};
  Step step = eachLane(mask, [&](unsigned l) {
    auto targets = bulkTargets(
        warp, code,
        {Where::SharedCluster, warp.address(code.args[0], l), bytes, bytes, warp.address(code.args[2], l), {}}, l);
    if (!targets)
      return false;
    if (warp.cluster.check)
      checkLoad(warp, code, l, *targets, bytes);
    const BulkTarget &target = targets->front();
    places[l] = target.cta->shared.data() + target.offset;
    issueBulk(warp, code, l, bytes, false, nullptr,
              [&warp, &code, l, bytes, target, to = places[l], value = stored(l)] {
                std::copy_n(value.begin(), bytes, to);
                arriveBytes(warp, code, l, target, bytes);
              });
    return true;
  });
  if (warp.cluster.check && step == Step::Next)
    warp.cluster.check->compareLanes(warp, code, mask, places.data(), bytes, stored);
  return step;
}

Step bulkCommit(Warp &warp, const Code &, Mask mask) {
  forLanes(mask, [&](unsigned l) { WarpAsync::step(warp.async.bulkGroups[l], {sem::GroupsCommand::commit, 0}); });
  return Step::Next;
}
/// `imm[0]`: groups that may stay; `flags`: only their sources must have been read.
Step bulkWait(Warp &warp, const Code &code, Mask mask) {
  using Command = sem::GroupsCommand;
  forLanes(mask, [&](unsigned l) {
    Command command{code.flags ? Command::waitRead : Command::wait, static_cast<uint32_t>(code.imm[0])};
    uint32_t due = WarpAsync::step(warp.async.bulkGroups[l], command).due;
    warp.cluster.async.waitGroups(warp, l, due, code.flags);
    if (warp.cluster.check)
      warp.cluster.check->bulkWaited(warp, l, code.flags);
  });
  ++warp.cluster.version;
  return warp.cluster.failed ? Step::Stop : Step::Next;
}
} // namespace

int reductionOf(Decoder &d) {
  for (unsigned i = 0; i < d.inst->mods.size(); ++i) {
    int op = llvm::StringSwitch<int>(d.inst->mod(i))
                 .Case("add", static_cast<int>(sem::ReduceOp::add))
                 .Case("min", static_cast<int>(sem::ReduceOp::min))
                 .Case("max", static_cast<int>(sem::ReduceOp::max))
                 .Case("inc", static_cast<int>(sem::ReduceOp::inc))
                 .Case("dec", static_cast<int>(sem::ReduceOp::dec))
                 .Case("and", static_cast<int>(sem::ReduceOp::bitAnd))
                 .Case("or", static_cast<int>(sem::ReduceOp::bitOr))
                 .Case("xor", static_cast<int>(sem::ReduceOp::bitXor))
                 .Default(-1);
    if (op >= 0)
      return op + 1;
  }
  return 0;
}

Exec execCpAsync(Decoder &d) { return cpAsyncExec(d); }
Exec execCpAsyncIgnore(Decoder &d) { return cpAsyncExec(d); }
Exec execCpAsyncCommit(Decoder &) { return cpCommit; }
Exec execCpAsyncWait(Decoder &d) {
  d.code->imm[0] = d.immediate(0);
  return cpWait;
}
Exec execCpAsyncWaitAll(Decoder &) { return cpWaitAll; }
Exec execCpAsyncMbarrier(Decoder &d) {
  d.code->where = d.where();
  d.flag("noinc", 1);
  return cpArrive;
}
Exec execCpBulkLoad(Decoder &d) {
  d.code->where = d.where();
  d.flag("multicast::cluster", 1);
  d.code->imm[0] = 1;
  return bulkLoad;
}
Exec execCpBulkCluster(Decoder &d) {
  d.code->where = Where::SharedCluster;
  return bulkLoad;
}
Exec execCpReduceCluster(Decoder &d) {
  d.code->where = Where::SharedCluster;
  d.code->imm[1] = reductionOf(d);
  return bulkLoad;
}
Exec execCpBulkStore(Decoder &) { return bulkStore; }
Exec execCpReduceGlobal(Decoder &d) {
  d.code->imm[1] = reductionOf(d);
  return bulkStore;
}
Exec execCpBulkPrefetch(Decoder &) { return bulkPrefetch; }
Exec execCpBulkCommit(Decoder &) { return bulkCommit; }
Exec execCpBulkWait(Decoder &d) {
  d.code->imm[0] = d.immediate(0);
  d.flag("read", 1);
  return bulkWait;
}
Exec execStAsync(Decoder &) { return stAsync; }

} // namespace gemmc::emu
