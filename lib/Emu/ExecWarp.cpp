// Exchange between the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.9 to 9.7.13.14).
#include "Check.h"
#include "Lanes.h"

namespace gemmc::emu {
namespace {

Step notAMember(Warp &warp, const Code &code, unsigned lane, Mask members) {
  const char *rule = code.inst->op == ptx::Op::Elect ? "EL-1" : code.inst->op == ptx::Op::BarWarpSync ? "NB-9" : "WS-1";
  return warp.fail(code, lane, rule,
                   llvm::Twine("lane ") + llvm::Twine(lane) + " executes with member mask 0x" +
                       llvm::Twine::utohexstr(members) + ", which does not contain it");
}

/// Calls `part(lanes)` for each set of lanes that named the same member mask, when all lanes of that mask are here.
/// `args[maskIndex]` holds the member masks.
template <typename Part> Step together(Warp &warp, const Code &code, Mask mask, unsigned maskIndex, Part part) {
  const uint32_t *members = warp.read<uint32_t>(code.args[maskIndex]);
  for (Mask rest = mask; rest;) {
    Mask wanted = members[firstLane(rest)], lanes = 0;
    forLanes(rest, [&](unsigned l) { lanes |= members[l] == wanted ? laneBits[l] : 0; });
    if (Mask outside = lanes & ~wanted)
      return notAMember(warp, code, firstLane(outside), wanted);
    if (auto wait = warp.converge(code, lanes, wanted & warp.alive))
      return *wait;
    rest &= ~lanes;
  }
  for (Mask rest = mask; rest;) {
    Mask lanes = members[firstLane(rest)] & mask;
    part(lanes);
    rest &= ~lanes;
  }
  return Step::Next;
}

enum ShflMode { Up, Down, Bfly, Idx };

/// Operands: d, p, a, b, c, mask. c: bits 0-4 clamp, bits 8-12 the bits of the lane that segments keep.
Step shfl(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 5, [&](Mask lanes) {
    const uint32_t *a = warp.read<uint32_t>(code.args[2]), *b = warp.read<uint32_t>(code.args[3]),
                   *c = warp.read<uint32_t>(code.args[4]);
    uint32_t out[numLanes] = {};
    Mask inRange = 0, absent = 0;
    forLanes(lanes, [&](unsigned l) {
      int lane = static_cast<int>(l), offset = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
      int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment, from = lane;
      bool good = false;
      switch (static_cast<ShflMode>(code.imm[0])) {
      case Up:
        from = lane - offset, good = from >= highest;
        break;
      case Down:
        from = lane + offset, good = from <= highest;
        break;
      case Bfly:
        from = lane ^ offset, good = from <= highest;
        break;
      case Idx:
        from = lowest | (offset & ~segment), good = from <= highest;
        break;
      }
      out[l] = a[good ? from : lane];
      inRange |= good ? laneBits[l] : 0;
      absent |= good && !(lanes >> from & 1) ? laneBits[l] : 0;
    });
    if (absent && warp.cluster.check)
      warp.cluster.check->report(warp, code, firstLane(absent), "WS-3",
                                 "a lane reads from a lane that does not execute this `shfl` with it");
    blend(warp.write<uint32_t>(code.args[0]), out, lanes);
    if (code.args[1].kind == Arg::Pred)
      warp.setPred(code.args[1], inRange, lanes);
  });
}

enum VoteMode { All, Any, Uni };

/// Operands: p, a, mask.
Step vote(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 2, [&](Mask lanes) {
    Mask yes = warp.pred(code.args[1]) & lanes;
    bool result = code.imm[0] == All ? yes == lanes : code.imm[0] == Any ? yes != 0 : yes == lanes || !yes;
    warp.setPred(code.args[0], result ? allLanes : 0, lanes);
  });
}
Step ballot(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 2, [&](Mask lanes) {
    Mask yes = warp.pred(code.args[1]) & lanes;
    forLanes(lanes, [&](unsigned l) { warp.set(code.args[0], l, yes); });
  });
}

/// Operands: d, p, a, mask.
Step match(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 3, [&](Mask lanes) {
    uint64_t values[numLanes];
    forLanes(lanes, [&](unsigned l) { values[l] = warp.value(code.args[2], l); });
    forLanes(lanes, [&](unsigned l) {
      Mask same = 0;
      forLanes(lanes, [&](unsigned other) { same |= values[other] == values[l] ? laneBits[other] : 0; });
      bool all = same == lanes;
      warp.set(code.args[0], l, code.flags ? (all ? lanes : 0) : same);
      if (code.args[1].kind == Arg::Pred)
        warp.setPred(code.args[1], all ? allLanes : 0, laneBits[l]);
    });
  });
}

/// Operands: d, a, mask.
template <typename T, typename F> Step reduce(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 2, [&](Mask lanes) {
    const uint32_t *a = warp.read<uint32_t>(code.args[1]);
    auto sum = static_cast<T>(a[firstLane(lanes)]);
    forLanes(lanes & (lanes - 1), [&](unsigned l) { sum = F::of(sum, static_cast<T>(a[l])); });
    forLanes(lanes, [&](unsigned l) { warp.set(code.args[0], l, static_cast<uint32_t>(sum)); });
  });
}
struct Plus {
  template <typename T> static T of(T a, T b) { return static_cast<T>(uint32_t(a) + uint32_t(b)); }
};
struct Least {
  template <typename T> static T of(T a, T b) { return a < b ? a : b; }
};
struct Most {
  template <typename T> static T of(T a, T b) { return a > b ? a : b; }
};
struct Both {
  template <typename T> static T of(T a, T b) { return a & b; }
};
struct Either {
  template <typename T> static T of(T a, T b) { return a | b; }
};
struct Differ {
  template <typename T> static T of(T a, T b) { return a ^ b; }
};

Step activemask(Warp &warp, const Code &code, Mask mask) {
  forLanes(mask, [&](unsigned l) { warp.set(code.args[0], l, mask); });
  return Step::Next;
}

/// Operands: d, p, mask. Which lane is elected is not specified (the hardware always elects the same one of a mask).
Step elect(Warp &warp, const Code &code, Mask mask) {
  return together(warp, code, mask, 2, [&](Mask lanes) {
    unsigned leader = warp.elected(lanes);
    warp.lastElected = laneBits[leader];
    if (code.args[0].kind != Arg::None)
      forLanes(lanes, [&](unsigned l) { warp.set(code.args[0], l, leader); });
    warp.setPred(code.args[1], laneBits[leader], lanes);
  });
}

/// Lanes of one instruction name several masks (tiles of a warp, each with its own): each set waits by itself, and
/// those whose guard is false go on.
Step splitWarpSync(Warp &warp, const Code &code, Mask mask) {
  const uint32_t *members = warp.read<uint32_t>(code.args[0]);
  Group &here = warp.group();
  llvm::SmallVector<Group, 4> sets;
  for (Mask rest = mask; rest;) {
    Group set;
    set.pc = here.pc;
    set.wait.what = Wait::WarpSync;
    set.wait.arrived = true;
    set.wait.lanes = members[firstLane(rest)];
    forLanes(rest, [&](unsigned l) { set.mask |= members[l] == set.wait.lanes ? laneBits[l] : 0; });
    if (Mask outside = set.mask & ~set.wait.lanes)
      return notAMember(warp, code, firstLane(outside), set.wait.lanes);
    rest &= ~set.mask;
    sets.push_back(set);
  }
  Group others;
  others.pc = here.pc + 1;
  others.mask = here.mask & ~mask;
  here = sets.front();
  warp.groups.append(std::next(sets.begin()), sets.end());
  if (others.mask)
    warp.groups.push_back(others);
  warp.warpSyncArrived |= mask;
  return Step::Regroup;
}

/// The lanes that wait at a bar.warp.sync with these members.
Mask waitingWith(Warp &warp, Mask members) {
  Mask lanes = 0;
  for (const Group &group : warp.groups)
    if (group.wait.what == Wait::WarpSync && group.wait.arrived && group.wait.lanes == members)
      lanes |= group.mask & warp.warpSyncArrived;
  return lanes;
}

/// Lanes may stand at different instructions: they meet by their mask (9.7.13.2), and only those with the same one do.
/// A lane's bit in `warpSyncArrived` is cleared when all lanes of its mask have arrived.
Step warpSync(Warp &warp, const Code &code, Mask mask) {
  Wait &wait = warp.group().wait;
  if (wait.what == Wait::WarpSync && wait.arrived) {
    if (!(warp.warpSyncArrived & mask))
      return Step::Next;
  } else {
    const uint32_t *members = warp.read<uint32_t>(code.args[0]);
    Mask wanted = members[firstLane(mask)];
    bool several = false;
    forLanes(mask, [&](unsigned l) { several |= members[l] != wanted; });
    if (several || warp.group().mask & ~mask)
      return splitWarpSync(warp, code, mask);
    if (Mask outside = mask & ~wanted)
      return notAMember(warp, code, firstLane(outside), wanted);
    wait = Wait();
    wait.what = Wait::WarpSync;
    wait.arrived = true;
    wait.lanes = wanted;
    warp.warpSyncArrived |= mask;
  }
  if (wait.lanes & warp.alive & ~waitingWith(warp, wait.lanes))
    return Step::Block;
  warp.warpSyncArrived &= ~wait.lanes;
  if (warp.cluster.check)
    warp.cluster.check->warpSync(warp, wait.lanes & warp.alive);
  return Step::Next;
}
} // namespace

Exec execShfl(Decoder &d) {
  d.code->imm[0] = d.has("up") ? Up : d.has("down") ? Down : d.has("bfly") ? Bfly : Idx;
  return shfl;
}
Exec execVote(Decoder &d) {
  d.code->imm[0] = d.has("all") ? All : d.has("any") ? Any : Uni;
  return vote;
}
Exec execVoteBallot(Decoder &) { return ballot; }
Exec execMatch(Decoder &d) {
  d.code->flags = d.has("all");
  return match;
}
Exec execRedux(Decoder &d) {
  bool isSigned = d.type() == Type::s32;
  if (d.has("add"))
    return reduce<uint32_t, Plus>;
  if (d.has("min"))
    return isSigned ? reduce<int32_t, Least> : reduce<uint32_t, Least>;
  if (d.has("max"))
    return isSigned ? reduce<int32_t, Most> : reduce<uint32_t, Most>;
  return d.has("and") ? reduce<uint32_t, Both> : d.has("or") ? reduce<uint32_t, Either> : reduce<uint32_t, Differ>;
}
Exec execActivemask(Decoder &) { return activemask; }
Exec execElect(Decoder &) { return elect; }
Exec execBarWarpSync(Decoder &) { return warpSync; }

} // namespace gemmc::emu
