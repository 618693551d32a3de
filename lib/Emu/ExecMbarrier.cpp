// mbarriers (PTX ISA 9.7.13.15): addresses and lanes; what a command does to an object is `sem::stepMbarrier`.
#include "Check.h"
#include "Copies.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using llvm::formatv;

namespace gemmc::emu {

using sem::MbarrierCommand;
using sem::MbarrierOutcome;

static uint64_t loadWord(const std::byte *at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

std::optional<MbarrierOutcome> commandMbarrier(Warp &warp, const Code &code, unsigned lane, std::byte *at,
                                               const MbarrierCommand &wanted, bool byThread) {
  uint64_t before = loadWord(at);
  Check *const check = warp.cluster.check.get();
  MbarrierCommand command = wanted;
  uint32_t offset = 0;
  Cta *const cta = check ? warp.cluster.ctaOf(at, offset) : nullptr;
  if (cta && command.op != MbarrierCommand::testParity) // which asks for no token
    check->identify(*cta, offset, command);
  MbarrierOutcome outcome = sem::stepMbarrier(before, command);
  if (outcome.broken) {
    Cluster &cluster = warp.cluster;
    Cta *cta = cluster.ctaOf(at, offset);
    uint64_t address = cta ? (uint64_t(cta->rank) << window::rankShift) + offset : 0;
    cluster.note(Verdict::error, outcome.broken.rule, outcome.broken.text + ": " + describeObject(cluster, address),
                 warp, code, lane, offset);
    cluster.failed = true;
    return std::nullopt;
  }
  if (command.op != MbarrierCommand::testToken && command.op != MbarrierCommand::testParity) {
    std::memcpy(at, &outcome.word, 8);
    ++warp.cluster.version;
  }
  if (cta)
    check->mbarrier({warp, code, lane}, *cta, offset, command, before, outcome, byThread);
  return outcome;
}

bool isOwnObject(Warp &warp, const Code &code, const Arg &arg, unsigned lane, const char *rule, const char *what) {
  const uint64_t shared = warp.address(arg, lane) - window::shared;
  if (code.where != Where::Generic || shared >= window::size || shared >> window::rankShift == warp.cta.rank)
    return true;
  warp.fail(code, lane, rule,
            formatv("{0} an mbarrier of CTA {1} of the cluster{2}", what, shared >> window::rankShift,
                    llvm::StringRef(rule) == "MB-12" ? ": only the CTA's own can be tested"
                                                     : " by a generic address, which must be in the CTA's own shared "
                                                       "memory (.shared::cluster reaches others)")
                .str());
  return false;
}

namespace {

std::byte *objectAt(Warp &warp, const Code &code, const Arg &arg, unsigned lane) {
  return warp.memory(code.where, warp.address(arg, lane), 8, 8, lane, code);
}

/// `imm[0]`: index of the address; `imm[1]`: of a count (-1: one arrival); `imm[2]`: of a number of bytes (-1: none).
/// The token, if the row has one, is operand 0; `flags`: there must be none, and it is not `_`.
template <MbarrierCommand::Op op, bool noComplete = false> Step command(Warp &warp, const Code &code, Mask mask) {
  Step step = Step::Next;
  if (code.flags)
    return warp.fail(code, firstLane(mask), "MB-13", "an arrive at `.shared::cluster` returns no state: `_` is wanted");
  forLanes(mask, [&](unsigned l) {
    if (step == Step::Stop)
      return;
    MbarrierCommand command;
    command.op = op;
    command.noComplete = noComplete;
    if (code.imm[1] >= 0)
      command.count = warp.value(code.args[code.imm[1]], l);
    if (code.imm[2] >= 0)
      command.tx = warp.value(code.args[code.imm[2]], l);
    command.hasExpect = code.imm[2] >= 0 && (op == MbarrierCommand::arrive || op == MbarrierCommand::drop);
    const Arg &object = code.args[code.imm[0]];
    constexpr bool isOwn = op == MbarrierCommand::init || op == MbarrierCommand::inval || op == MbarrierCommand::arrive;
    const bool good = !isOwn || isOwnObject(warp, code, object, l, "MB-24", "works on");
    std::byte *at = good ? objectAt(warp, code, object, l) : nullptr;
    auto outcome = at ? commandMbarrier(warp, code, l, at, command) : std::nullopt;
    if (!outcome)
      step = Step::Stop;
    else if (code.imm[0] == 1)
      warp.set(code.args[0], l, outcome->token);
  });
  return step;
}
template <MbarrierCommand::Op op, bool noComplete = false>
Exec commandExec(Decoder &d, int address, int count, int bytes) {
  d.code->where = d.where();
  d.code->imm[0] = address;
  d.code->imm[1] = count >= 0 && d.present(count) ? count : -1;
  d.code->imm[2] = bytes;
  d.code->flags = address == 1 && d.has("shared::cluster") && d.inst->ops[0].kind != ptx::Operand::Sink;
  return command<op, noComplete>;
}

// --- Waiting

enum Flag : uint32_t { Parity = 1, Try = 2 };

/// Only a thread of the object's own CTA may wait for it.
std::byte *ownObjectAt(Warp &warp, const Code &code, unsigned lane) {
  const bool good = code.where != Where::Generic || isOwnObject(warp, code, code.args[1], lane, "MB-12", "waits for");
  return good ? objectAt(warp, code, code.args[1], lane) : nullptr;
}

/// The lanes whose phase is complete; nullopt after a finding. Neighbours mostly ask the same.
std::optional<Mask> passedLanes(Warp &warp, const Code &code, Mask mask) {
  Mask passed = 0;
  std::byte *lastAt = nullptr;
  uint64_t lastAsked = 0;
  bool last = false, good = true;
  forLanes(mask, [&](unsigned l) {
    std::byte *at = good ? ownObjectAt(warp, code, l) : nullptr;
    if (!at) {
      good = false;
      return;
    }
    uint64_t asked = warp.value(code.args[2], l);
    if (at != lastAt || asked != lastAsked) {
      MbarrierCommand command;
      command.op = code.flags & Parity ? MbarrierCommand::testParity : MbarrierCommand::testToken;
      command.parity = static_cast<uint32_t>(asked);
      command.token = asked;
      auto outcome = commandMbarrier(warp, code, l, at, command);
      good = outcome.has_value();
      last = outcome && outcome->passed;
      lastAt = at, lastAsked = asked;
    }
    passed |= last ? laneBits[l] : 0;
  });
  return good ? std::optional(passed) : std::nullopt;
}

void noteWait(Warp &warp, const Code &code, Mask mask) {
  Wait &wait = warp.group().wait;
  unsigned lane = firstLane(mask);
  wait = Wait();
  wait.what = Wait::Mbarrier;
  wait.address = warp.address(code.args[1], lane) & 0xffffffff;
  wait.id = code.flags & Parity;
  wait.phase = static_cast<uint32_t>(warp.value(code.args[2], lane));
}

/// Calls `visit(lanes, object)` for lanes that name the same mbarrier.
template <typename Visit> void forEachObject(Warp &warp, const Code &code, Mask mask, Visit visit) {
  while (mask) {
    uint64_t address = warp.address(code.args[1], firstLane(mask));
    Mask lanes = 0;
    forLanes(mask, [&](unsigned l) { lanes |= warp.address(code.args[1], l) == address ? laneBits[l] : 0; });
    if (std::byte *at = objectAt(warp, code, code.args[1], firstLane(mask)))
      visit(lanes, at);
    mask &= ~lanes;
  }
}

/// What a check adds: the first try_wait that finds its phase incomplete says False at once, as the hardware may after
/// a time, and one that finds it complete may say False too.
bool saysFalse(Warp &warp, const Code &code, Mask passed) {
  Group &group = warp.group();
  if (!warp.cluster.check || !(code.flags & Try) || group.triedPc == group.pc)
    return false;
  if (passed && !warp.cluster.schedule.spuriousFailure())
    return false;
  group.triedPc = group.pc;
  return true;
}

/// Tells the check of lanes that were told False (`answered`), or that wait.
void noteRefused(Warp &warp, const Code &code, Mask mask, bool answered, bool spurious = false) {
  if (!warp.cluster.check)
    return;
  forEachObject(warp, code, mask, [&](Mask lanes, std::byte *at) {
    uint32_t offset = 0;
    if (Cta *cta = warp.cluster.ctaOf(at, offset))
      warp.cluster.check->mbarrierRefused(warp, code, lanes, *cta, offset, answered && code.flags & Try, spurious);
  });
}

/// try_wait blocks while no lane can pass. test_wait does not, so a loop around it spins: when nothing has happened in
/// the cluster since the same test failed before, it waits as well, or a deadlock would never be seen.
Step test(Warp &warp, const Code &code, Mask mask) {
  std::optional<Mask> passed = passedLanes(warp, code, mask);
  if (!passed)
    return Step::Stop;
  Group &group = warp.group();
  if (saysFalse(warp, code, *passed)) {
    warp.setPred(code.args[0], 0, mask);
    noteRefused(warp, code, *passed, true, true);
    noteRefused(warp, code, mask & ~*passed, true);
    return Step::Yield;
  }
  bool spinning = group.spinPc == group.pc && group.spinVersion == warp.cluster.version;
  if (!*passed && (code.flags & Try || spinning)) {
    noteWait(warp, code, mask);
    noteRefused(warp, code, mask, false);
    return Step::Block;
  }
  warp.setPred(code.args[0], *passed, mask);
  noteRefused(warp, code, mask & ~*passed, true);
  if (*passed && warp.cluster.check) {
    group.triedPc = ~0u;
    forEachObject(warp, code, *passed, [&](Mask lanes, std::byte *at) {
      uint32_t offset = 0;
      if (Cta *cta = warp.cluster.ctaOf(at, offset))
        warp.cluster.check->mbarrierPassed(warp, code, lanes, *cta, offset);
    });
  }
  if (*passed == mask)
    return Step::Next;
  group.spinPc = group.pc;
  group.spinVersion = warp.cluster.version;
  return Step::Yield;
}
Exec testExec(Decoder &d, uint32_t flags) {
  d.code->where = d.where();
  d.code->flags = flags;
  return test;
}

Step pendingCount(Warp &warp, const Code &code, Mask mask) {
  Step step = Step::Next;
  forLanes(mask, [&](unsigned l) {
    auto pending = sem::pendingOfToken(warp.value(code.args[1], l));
    if (pending)
      warp.set(code.args[0], l, *pending);
    else if (step == Step::Next)
      step = warp.fail(code, l, "MB-14", "`mbarrier.pending_count` of a value that is no token of an arrive");
  });
  return step;
}
} // namespace

std::string describeMbarrier(const Warp &warp, const Wait &wait) {
  uint32_t offset = wait.address & ((1u << window::rankShift) - 1);
  std::string asked = wait.id ? formatv("for the phase of parity {0}", wait.phase & 1).str() : "for its token's phase";
  const Check *check = warp.cluster.check.get();
  auto kStep = check ? check->kStepOf(warp, wait) : std::nullopt;
  return formatv("waits {0} of {1}{2}: {3}", asked, describeObject(warp.cluster, wait.address),
                 kStep ? formatv(", k step {0}", *kStep).str() : "",
                 sem::describeMbarrier(loadWord(warp.cta.shared.data() + offset)));
}

Exec execMbarrierInit(Decoder &d) { return commandExec<MbarrierCommand::init>(d, 0, 1, -1); }
Exec execMbarrierInval(Decoder &d) { return commandExec<MbarrierCommand::inval>(d, 0, -1, -1); }
Exec execMbarrierExpectTx(Decoder &d) { return commandExec<MbarrierCommand::expectTx>(d, 0, -1, 1); }
Exec execMbarrierCompleteTx(Decoder &d) { return commandExec<MbarrierCommand::completeTx>(d, 0, -1, 1); }
Exec execMbarrierArrive(Decoder &d) { return commandExec<MbarrierCommand::arrive>(d, 1, 2, -1); }
Exec execMbarrierArriveExpectTx(Decoder &d) { return commandExec<MbarrierCommand::arrive>(d, 1, -1, 2); }
Exec execMbarrierArriveNoComplete(Decoder &d) { return commandExec<MbarrierCommand::arrive, true>(d, 1, 2, -1); }
Exec execMbarrierDrop(Decoder &d) { return commandExec<MbarrierCommand::drop>(d, 1, 2, -1); }
Exec execMbarrierDropExpectTx(Decoder &d) { return commandExec<MbarrierCommand::drop>(d, 1, -1, 2); }
Exec execMbarrierDropNoComplete(Decoder &d) { return commandExec<MbarrierCommand::drop, true>(d, 1, 2, -1); }
Exec execMbarrierTestWait(Decoder &d) { return testExec(d, 0); }
Exec execMbarrierTestWaitParity(Decoder &d) { return testExec(d, Parity); }
Exec execMbarrierTryWait(Decoder &d) { return testExec(d, Try); }
Exec execMbarrierTryWaitParity(Decoder &d) { return testExec(d, Try | Parity); }
Exec execMbarrierPendingCount(Decoder &) { return pendingCount; }

} // namespace gemmc::emu
