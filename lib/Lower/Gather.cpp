// Where the parts of a tile meet in the workspace (Parts.cpp has its slots and counters). Each CTA writes its part and
// counts itself; the sums are always added in the order of the parts.
//
// With one owner whoever comes last adds all parts and stores the tile, while the SMs of the others have nothing to do.
// With several each has a share of the tile's columns: CTAs of the first parts wait until all have been counted, and
// each adds and stores its own share. They wait for a while only: two kernels at a time may have CTAs that wait for
// others which find no SM until one of them leaves. Who leaves says so in the same word that counts, so that whoever
// comes last knows whose shares are left to it, and nobody ever waits for a CTA that has not started.
//
//     counter    bits 0..7    parts that have come
//                bits 8..15   owners that have seen all of them come (the first one takes back what all have counted)
//                bits 16..31  owners that have left before
//
// As long as parts are missing bits 0 to 15 are the number of those that have come; afterwards, until the last owner
// has seen it, no less than there are parts. Then the word is zero, as the next kernel must find it.
#include "Shares.h"

namespace gemmc {
namespace {
/// How often an owner looks whether all parts have come, some 0.6 us each time (H200). Slices of one wave end within a
/// few microseconds of each other; so long a loop is one that waits for the emulator, too, which lets others go on.
constexpr int64_t looks = 4096;
constexpr int64_t seen = 1 << 8, leftBit = 16, come = seen - 1;
} // namespace

/// The slot of part number `part` of this tile.
Val Lowering::slotOf(const Val &part, bool stream) {
  if (!stream)
    return add(parts.first, part, "slot");
  Val first = b.reg(Type::pred, "is_first"), odd = b.reg(Type::b32, "is_first");
  b("setp.eq.u32", first, part, 0);
  b("selp.b32", odd, 1, 0, first);
  return add(mul(add(parts.first, part, "part_cta"), 2, "slot"), odd, "slot");
}

/// A warpgroup of a role meets alone; without roles all threads of the CTA do.
int64_t Lowering::countersOfTile() const { return std::max<int64_t>(1, kernel.number("consumers")); }

/// Registers of a thread for sums, and for parts on their way to them: one warpgroup has what 256 threads leave,
/// several have what they were given; each holds other things besides.
int64_t Lowering::registersForParts() const {
  constexpr int64_t alone = 255 - 47, besideSums = 72;
  const int64_t room = kernel.root.has("consumer_regs") ? kernel.number("consumer_regs") - besideSums : alone;
  return function.maxnreg ? std::min(room, int64_t(function.maxnreg) - 40) : room; // of 252 as many as alone
}

/// Parts whose loads, and the addresses they come from, fit into these registers beside the sums; 0: not even one,
/// which ptxas must load piece by piece. Of few sums, or shares of them, more come at a time, as each round waits for
/// the L2.
int64_t Lowering::partsAtOnce(int64_t sums) const {
  constexpr int64_t address = 8, few = 8;
  const int64_t most = clusterK > 1 || sums <= few ? 16 : 3;
  return std::clamp<int64_t>((registersForParts() - sums) / (sums + address), 0, most);
}

struct Lowering::Gather {
  Gather(Lowering &l, const Op &op)
      : l(l), b(l.b), op(op), acc(l.accumulators.find(op.subject.name)->second), shares(acc, op.number("owners", 1)),
        words(sumWords(acc.type)), stream(!l.kernel.root.has("split_slices")), ofRole(l.kernel.number("consumers") > 0),
        meeting(ofRole ? groupThreads : l.kernel.number("threads")), holding(meeting / l.slices),
        width(shares.width(words.bytes == 8 ? 2 : 4)), stride(holding * width * words.bytes) {}

  void run() {
    b.blank();
    b.comment("the parts of a tile meet in the workspace, in their order");
    shares.owners() == 1 ? alone() : shared();
  }

private:
  std::string vectors(llvm::StringRef stem) const { return stem.str() + (width == 4 ? ".v4." : ".v2.") + words.type; }
  Val some(const std::vector<Val> &from, size_t at) const {
    return Val(std::vector<Val>(from.begin() + at, from.begin() + at + width));
  }
  /// Where register `i` of the tile lies in a slot, from the thread's place on.
  int64_t placeOf(int64_t i) const { return i / width * stride; }

  // What each CTA leaves, and its count -------------------------------------------------------------------------------

  void locate() {
    thread = ofRole ? l.binary("and.b32", l.tid, groupThreads - 1, "group_thread") : l.tid;
    wg = ofRole ? l.variables["wg"] : Val(0);
    noSums = b.label("no_sums");
    Val place = l.add(l.mul(thread, width * words.bytes, "thread_place"),
                      l.mul(wg, shares.registers() * groupThreads * words.bytes, "group_place"), "place");
    base = l.add64(l.wide(l.add(place, l.value(l.countersEnd()), "place"), 1, "place"), l.variables["workspace_ptr"],
                   "slots");
  }

  void leavePart() {
    const std::vector<Val> regs = shares.all();
    Val own = l.add64(l.wide(l.parts.slot, l.slotBytes(), "slot_offset"), base, "own_slot");
    without = b.reg(Type::pred, "without_sums");
    if (l.slices > 1) {
      b("setp.ge.u32", without, thread, holding);
      b.when(without)("bra", noSums);
    }
    for (size_t i = 0; i < regs.size(); i += width)
      b(vectors("st.global"), at(own, placeOf(int64_t(i))), some(regs, i));
    if (l.slices > 1)
      b.place(noSums);
  }

  /// All have written before the first thread counts, which releases what the barrier has ordered before it; what it
  /// then learns and acquires, the second barrier hands on to all.
  void meet() {
    barrier = ofRole ? l.add(wg, barriers::parts, "barrier") : Val(0), first = b.reg(Type::pred, "first_thread");
    b("bar.sync", barrier, meeting);
    b("setp.eq.u32", first, thread, 0);
    Val number = l.add(l.mul(l.parts.tile, l.countersOfTile(), "counter"), wg, "counter");
    counter = l.add64(l.wide(number, counterBytes, "counter"), l.variables["workspace_ptr"], "counter");
  }

  // One owner: whoever comes last -------------------------------------------------------------------------------------

  void alone() {
    Val ready = b.label("sums_ready"), end = b.label("not_last");
    Val single = b.reg(Type::pred, "single");
    b("setp.eq.u32", single, l.inRegister(l.parts.count, "parts"), 1);
    b.when(single)("bra", ready);
    locate();
    leavePart();
    meet();
    Val before = b.reg(Type::b32, "before"), last = b.reg(Type::pred, "last"), lastOfAll = b.reg(Type::pred, "last");
    b("mov.u32", before, 0);
    Val partsBefore = l.inRegister(l.add(l.parts.count, -1, "parts_before"), "parts_before");
    b.when(first)("atom.acq_rel.gpu.global.inc.u32", before, at(counter), partsBefore); // the last one zeroes it
    b("setp.eq.and.u32", last, before, partsBefore, first);
    b("bar.red.or.pred", lastOfAll, barrier, meeting, last);
    b.unless(lastOfAll)("bra", end);
    if (l.slices > 1)
      b.when(without)("bra", ready);
    addParts(shares.all());
    b.place(ready);
    l.ops(op.body);
    b.place(end);
  }

  // Several: each its share -------------------------------------------------------------------------------------------

  void shared() {
    locate();
    leavePart();
    meet();
    Val share = firstShare(), again = b.label("share"), next = b.label("next_share"), end = b.label("shares_done");
    Val todo = whatIsLeft(share);
    b.place(again);
    Val bit = b.reg(Type::b32, "share_bit"), mine = b.reg(Type::pred, "mine"), ours = b.reg(Type::pred, "ours");
    b("shl.b32", bit, 1, share);
    Val own = l.binary("and.b32", todo, bit, "own_share");
    b("setp.ne.u32", mine, own, 0);
    b("bar.red.or.pred", ours, barrier, meeting, mine);
    b.unless(ours)("bra", next);
    addShare(share);
    b.place(next);
    b("xor.b32", todo, todo, own);
    Val more = b.reg(Type::pred, "more_shares"), any = b.reg(Type::pred, "more_shares");
    b("setp.ne.u32", more, todo, 0);
    b("bar.red.or.pred", any, barrier, meeting, more);
    b.unless(any)("bra", end);
    Val wraps = b.reg(Type::pred, "wraps");
    b("add.u32", share, share, 1);
    b("setp.eq.u32", wraps, share, shares.owners());
    b.when(wraps)("mov.u32", share, 0);
    b("bra", again);
    b.place(end);
  }

  /// The number of this part; of one that owns nothing the first.
  Val firstShare() {
    part = l.inRegister(l.binary("sub.u32", l.parts.slot, l.parts.first, "part"), "part");
    owns = b.reg(Type::pred, "owns");
    b("setp.lt.u32", owns, part, shares.owners());
    Val share = b.reg(Type::b32, "share");
    b("selp.b32", share, part, 0, owns);
    return share;
  }

  /// One bit for each share that this CTA is to add, which the first thread alone knows.
  Val whatIsLeft(const Val &share) {
    Val todo = b.reg(Type::b32, "todo"), told = b.label("told"), waits = b.label("waits"), look = b.label("look"),
        all = b.label("all_have_come");
    b("mov.u32", todo, 0);
    b.unless(first)("bra", told);
    const bool known = l.parts.count.isImm();
    const Val count = l.inRegister(l.parts.count, "parts");
    // Of the owners those that there are, and what the first of them takes back.
    const Val there = known ? Val(std::min(shares.owners(), l.parts.count.op.imm))
                            : l.binary("min.u32", count, shares.owners(), "owners");
    const Val counted = l.add(l.mul(there, seen, "counted"), l.parts.count, "counted");
    Val own = b.reg(Type::b32, "own_bit"), before = b.reg(Type::b32, "before"), missing = b.reg(Type::pred, "missing");
    b("shl.b32", own, 1, share);
    b("selp.b32", own, own, 0, owns);
    b("atom.acq_rel.gpu.global.add.u32", before, at(counter), 1);
    Val parts = l.binary("and.b32", before, come, "parts_before");
    b("setp.ne.u32", missing, parts, l.add(l.parts.count, -1, "parts_before"));
    b.when(missing)("bra", waits);

    b.comment("the last part: its share, and those of owners that have left");
    Val gone = l.binary("shr.u32", before, leftBit, "gone"), number = b.reg(Type::b32, "number");
    b("or.b32", todo, gone, own);
    b("popc.b32", number, todo);
    Val firsts = l.binary("and.b32", todo, 1, "first_share");
    Val back = l.inRegister(l.mul(number, seen, "back"), "back"), taken = b.reg(Type::b32, "taken");
    b("mul.lo.u32", taken, firsts, l.inRegister(counted, "counted"));
    b("sub.u32", back, back, taken);
    b("sub.u32", back, back, l.binary("shl.b32", gone, leftBit, "gone"));
    b("red.relaxed.gpu.global.add.u32", at(counter), back);
    if (!known || l.parts.count.op.imm < shares.owners()) { // shares of parts that there are not
      Val those = b.reg(Type::b32, "those");
      b("mov.u32", those, (1 << shares.owners()) - 1);
      b("shl.b32", those, those, l.inRegister(there, "owners"));
      b("and.b32", those, those, (1 << shares.owners()) - 1);
      b("or.b32", todo, todo, those);
    }
    b("bra", told);

    b.place(waits);
    b.unless(owns)("bra", told);
    Val looked = b.reg(Type::b32, "looks"), word = b.reg(Type::b32, "counter"), again = b.reg(Type::pred, "again"),
        done = b.reg(Type::pred, "all_have_come");
    auto see = [&] {
      b("setp.ge.u32", done, l.binary("and.b32", word, seen * seen - 1, "come"), count);
      b.when(done)("bra", all);
    };
    b("mov.u32", looked, looks);
    b.place(look);
    b("ld.acquire.gpu.global.u32", word, at(counter));
    see();
    b("sub.u32", looked, looked, 1);
    b("setp.ne.u32", again, looked, 0);
    b.when(again)("bra", look);
    b.comment("leaves its share to the last part, unless that has come meanwhile");
    Val leaves = l.binary("shl.b32", own, leftBit, "leaves");
    b("atom.acq_rel.gpu.global.add.u32", word, at(counter), leaves);
    b("setp.ge.u32", done, l.binary("and.b32", word, seen * seen - 1, "come"), count);
    b.unless(done)("bra", told);
    Val stays = b.reg(Type::b32, "stays");
    b("neg.s32", stays, leaves);
    b("red.relaxed.gpu.global.add.u32", at(counter), stays);

    b.place(all);
    b("mov.u32", todo, own);
    Val isFirst = b.reg(Type::pred, "first_owner"), sees = b.reg(Type::b32, "sees"), takes = b.reg(Type::b32, "takes");
    b("setp.eq.u32", isFirst, part, 0);
    b("sub.u32", takes, seen, l.inRegister(counted, "counted"));
    b("selp.b32", sees, takes, seen, isFirst);
    b("red.relaxed.gpu.global.add.u32", at(counter), sees);
    b.place(told);
    return todo;
  }

  /// Adds the parts of a share and stores it. The last one may be narrower, by code of its own.
  void addShare(const Val &share) {
    const auto [owners, each, last] = shares.columns;
    Val from = l.add64(l.wide(share, placeOf(shares.registersOf(each) / shares.blocks()), "share"), base, "share");
    auto go = [&](int64_t columns) {
      // The first registers of the whole tile's sums, which nobody else gets where wgmma has written them.
      const std::vector<Val> own = shares.first(columns);
      addShareOfParts(own, columns, from);
      const AccumulatorView whole = acc;
      l.accumulators.insert_or_assign(op.subject.name, shares.with(own, columns));
      l.ownColumn = l.mul(share, each, "own_column");
      l.ops(op.body);
      l.ownColumn = 0;
      l.accumulators.insert_or_assign(op.subject.name, whole);
    };
    if (each == last)
      return go(each);
    Val narrow = b.label("narrow_share"), done = b.label("share_done"), isLast = b.reg(Type::pred, "last_share");
    b("setp.eq.u32", isLast, share, owners - 1);
    b.when(isLast)("bra", narrow);
    go(each);
    b("bra", done);
    b.place(narrow);
    go(last);
    b.place(done);
    if (op.body.back().word("via", "") == "tma") // what comes next takes the buffers in another order
      b("cp.async.bulk.wait_group.read", 0);
  }

  /// Adds the parts of a share, as many at a time as the registers of all other shares hold, and what else there is.
  void addShareOfParts(const std::vector<Val> &own, int64_t columns, const Val &from) {
    constexpr int64_t most = 16;
    const std::vector<Val> others = shares.behind(columns);
    const int64_t sums = int64_t(own.size()), free = std::max<int64_t>(0, l.registersForParts() - shares.registers()),
                  count = l.parts.count.isImm() ? l.parts.count.op.imm : 0,
                  each =
                      count ? std::clamp<int64_t>((int64_t(others.size()) + free) / sums, 1, std::min(most, count)) : 1;
    const int64_t begun = count ? 1 + (count - 1) % each : 0;
    auto addSome = [&](const Val &first, int64_t parts, bool begins) {
      Val slot = l.add64(l.wide(l.slotOf(first, false), l.slotBytes(), "slot_offset"), from, "slot");
      size_t used = 0;
      for (int64_t i = 0; i < sums; i += width)
        for (int64_t part = 0; part < parts; ++part) {
          const bool moves = begins && part == 0;
          std::vector<Val> added(own.begin() + i, own.begin() + i + width);
          if (!moves && used + width <= others.size()) {
            added.assign(others.begin() + used, others.begin() + used + width);
            used += width;
          } else if (!moves) {
            added = b.regs(words.reg, "added", width);
          }
          b(vectors("ld.global"), Val(added), at(slot, part * l.slotBytes() + placeOfShare(i, sums)));
          for (int64_t j = 0; !moves && j < width; ++j)
            b(words.add, own[i + j], own[i + j], added[j]);
        }
    };
    inRounds(own, begun, each, addSome);
  }
  /// Where register `i` of a share of so many lies, from the share's place on.
  int64_t placeOfShare(int64_t i, int64_t registers) const {
    const int64_t ofBlock = registers / shares.blocks(), blockOfTile = shares.registers() / shares.blocks();
    return placeOf(i / ofBlock * blockOfTile + i % ofBlock);
  }

  /// `begun` parts to begin with, or zero, then `each` at a time in a loop: else ptxas has the loads of later rounds
  /// under way, too, and spills.
  void inRounds(const std::vector<Val> &regs, int64_t begun, int64_t each,
                llvm::function_ref<void(const Val &first, int64_t count, bool begins)> addSome) {
    if (begun)
      addSome(0, begun, true);
    else
      for (const Val &reg : regs)
        b(words.move, reg, words.zero());
    if (l.parts.count.isImm() && begun >= l.parts.count.op.imm)
      return;
    Val part = b.reg(Type::b32, "part"), again = b.label("next_parts"), more = b.reg(Type::pred, "more");
    b("mov.u32", part, begun);
    b.place(again);
    b.pragma("nounroll");
    addSome(part, each, false);
    b("add.u32", part, part, each);
    b("setp.lt.u32", more, part, l.parts.count);
    b.when(more)("bra", again);
  }

  // The sum of the parts ----------------------------------------------------------------------------------------------

  void addParts(const std::vector<Val> &regs) {
    // ptxas has all loads of the parts that are added together under way before it adds the first one; where a CTA
    // without roles goes on to other tiles, or sizes come at launch, as many as it has no registers for, unless the
    // warp meets between them.
    constexpr int64_t others = 88, least = 4;
    const bool known = l.parts.count.isImm();
    const bool meets = !ofRole && (!known || !l.tileCount().isConst() || l.kernel.word("persistent") == "on");
    const int64_t registers = int64_t(regs.size()) * words.bytes / 4, pieceBytes = width * words.bytes;
    const int64_t free = meets ? int64_t(l.function.maxnreg) - registers - others : 0;
    auto addSome = [&](const Val &first, int64_t count, bool begins) {
      const int64_t together = std::max(least, free / (count * pieceBytes / 4)) * width;
      std::vector<Val> slots;
      for (int64_t part = 0; part < count; ++part)
        slots.push_back(
            l.add64(l.wide(l.slotOf(l.add(first, part, "part"), stream), l.slotBytes(), "slot_offset"), base, "slot"));
      for (size_t i = 0; i < regs.size(); i += width) {
        if (meets && i > 0 && int64_t(i) % together == 0)
          b("bar.warp.sync", -1);
        for (int64_t part = 0; part < count; ++part) {
          const bool moves = begins && part == 0;
          std::vector<Val> added =
              moves ? std::vector<Val>(regs.begin() + i, regs.begin() + i + width) : b.regs(words.reg, "added", width);
          b(vectors("ld.global"), Val(added), at(slots[part], placeOf(int64_t(i))));
          for (int64_t j = 0; !moves && j < width; ++j)
            b(words.add, regs[i + j], regs[i + j], added[j]);
        }
      }
    };
    const int64_t most = known ? std::min(l.partsAtOnce(registers), l.parts.count.op.imm - 1) : 0;
    const int64_t each = std::max<int64_t>(1, most), begun = most ? 1 + (l.parts.count.op.imm - 1) % each : 0;
    inRounds(regs, begun, each, addSome);
  }

  Lowering &l;
  ptx::Builder &b;
  const Op &op;
  const AccumulatorView acc;
  const SumShares shares;
  const SumWords words;
  const bool stream, ofRole;
  const int64_t meeting, holding; ///< Threads who meet, and those whose sums are parts: of warps in slices the first.
  const int64_t width, stride;    ///< Registers of a vector; bytes from one of a thread's vectors to its next.
  Val thread, wg, noSums, base, without, barrier, first, counter;
  Val part, owns; ///< The number of this CTA's part, and whether it has a share.
};

void Lowering::gather(const Op &op) { Gather(*this, op).run(); }

} // namespace gemmc
