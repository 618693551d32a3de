// Elections, waiting times, register counts, barriers (5.14: 10, 11, 12, 18, 19).
#include "Protocol.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

Question::Answer electedLanes(Card &card) {
  const uint32_t masks[] = {0xffffffff, 0xfffffff0, 0x80000000, 0x00010100, 0xaaaaaaaa, 0xffff0000};
  std::string text = begin(false, 1024) + "mov.u32 %u1, %laneid;\nmov.u32 %u2, 1;\nshl.b32 %u2, %u2, %u1;\n";
  for (size_t i = 0; i < std::size(masks); ++i)
    text += formatv("and.b32 %u3, %u2, {1};\nsetp.eq.u32 %p1, %u3, 0;\n@%p1 bra S{0};\nelect.sync %u4|%p2, {1};\n"
                    "@%p2 st.global.b32 [%out+{2}], %u1;\n@%p2 st.global.b32 [%out+{3}], %u4;\nS{0}:\n"
                    "bar.warp.sync 0xffffffff;\n",
                    i, masks[i], i * 8, i * 8 + 4);
  Words in(64), out(64);
  Trouble error = card.run(text + "ret;\n}\n", {1, 32, 1, 0}, in.bytes(), out.bytes());
  if (!error.empty())
    return unsettled(error);
  std::string got;
  bool lowest = true;
  for (size_t i = 0; i < std::size(masks); ++i) {
    got += formatv("{0:x}: lane {1}; ", masks[i], out[2 * i]);
    lowest &= out[2 * i] == unsigned(__builtin_ctz(masks[i])) && out[2 * i + 1] == out[2 * i];
  }
  return verdict(true, got + (lowest ? "always the lowest" : "not always the lowest"));
}

Question::Answer waitingTimes(Card &card) {
  const unsigned hints[] = {0, 100, 1000, 20000, 1000000, 20000000}; // 0: no hint
  std::string text = begin(false, 1024) + prepare(1024, 0) + "@!%p7 bra END;\n";
  unsigned at = 0;
  for (unsigned hint : hints)
    for (unsigned i = 0; i < 4; ++i, at += 16)
      text += formatv("mov.u64 %x1, %globaltimer;\nmbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0{0};\n"
                      "mov.u64 %x2, %globaltimer;\nsub.u64 %x1, %x2, %x1;\nselp.b64 %x3, 1, 0, %p1;\n"
                      "st.global.b64 [%out+{1}], %x1;\nst.global.b64 [%out+{2}], %x3;\n",
                      hint ? ", " + std::to_string(hint) : "", at, at + 8);
  Words in(64), out(256);
  Trouble error = card.run(text + "END:\nret;\n}\n", {1, 128, 1, 0}, in.bytes(), out.bytes());
  if (!error.empty())
    return unsettled(error);
  std::string got;
  bool returned = false;
  for (size_t i = 0; i < std::size(hints); ++i) {
    got += formatv("hint {0}:", hints[i] ? std::to_string(hints[i]) + " ns" : "none");
    for (unsigned j = 0; j < 4; ++j) {
      got += formatv(" {0}", loadBits(out.bytes(), (i * 4 + j) * 16, 8));
      returned |= loadBits(out.bytes(), (i * 4 + j) * 16 + 8, 8) != 0;
    }
    got += " ns; ";
  }
  return verdict(!returned, got + (returned ? "one came back True" : "all came back False"));
}

Question::Answer equalRegisters(Card &card, bool increase) {
  std::string text = begin(false, 1024, ".maxnreg 128\n");
  text += "setp.lt.u32 %p1, %t, 128;\n@%p1 bra FIRST;\n";
  text += increase ? "setmaxnreg.dec.sync.aligned.u32 64;\nbar.arrive 1, 256;\nbra END;\nFIRST:\nbar.sync 1, 256;\n"
                     "setmaxnreg.inc.sync.aligned.u32 128;\n"
                   : "bra END;\nFIRST:\nsetmaxnreg.dec.sync.aligned.u32 128;\n";
  text += "mad.wide.u32 %x1, %t, 4, %out;\nmov.u32 %u1, 7;\nst.global.b32 [%x1], %u1;\nEND:\nret;\n}\n";
  Words in(64), out(128);
  Trouble error = card.run(text, {1, 256, 1, 0}, in.bytes(), out.bytes());
  bool all = error.empty();
  for (uint32_t word : out.data)
    all &= word == 7;
  return verdict(all, all ? "goes on as if nothing were" : "no: " + error);
}

/// CTA 1 watches: a barrier that is never released becomes a trap there, not a hang.
Question::Answer exitedWarps(Card &card, unsigned leavers, const std::string &barrier) {
  std::string text = begin(false, 1024) + "setp.eq.u32 %p1, %cta, 1;\n@%p1 bra WATCH;\n";
  text += formatv("setp.ge.u32 %p2, %t, {0};\n@%p2 bra END;\n{1};\nsetp.ne.u32 %p3, %t, 0;\n@%p3 bra END;\n"
                  "mov.u32 %u1, 1;\nmembar.gl;\nst.volatile.global.b32 [%out], %u1;\nbra END;\n",
                  128 - 32 * leavers, barrier);
  text +=
      "WATCH:\nsetp.ne.u32 %p3, %t, 0;\n@%p3 bra END;\nmov.u32 %u2, 0;\nPOLL:\nld.volatile.global.b32 %u3, [%out];\n"
      "setp.eq.u32 %p4, %u3, 1;\n@%p4 bra END;\nnanosleep.u32 100;\nadd.u32 %u2, %u2, 1;\nsetp.lt.u32 %p5, %u2, "
      "200000;\n@%p5 bra POLL;\ntrap;\nEND:\nret;\n}\n";
  Words in(64), out(64);
  Trouble error = card.run(text, {2, 128, 1, 0}, in.bytes(), out.bytes());
  return verdict(error.empty() && out[0] == 1,
                 error.empty() ? "released" : "NOT released: the watcher's trap, " + error);
}

/// Pairs of CTAs: rank 1 arrives at rank 0's mbarrier behind a cluster barrier that orders nothing.
Question::Answer unfencedInit(Card &card, bool fence) {
  std::string text = begin(false, 1024) + "mov.u32 %u6, %cluster_ctarank;\nsetp.eq.u32 %p6, %u6, 0;\n"
                                          "setp.eq.u32 %p7, %t, 0;\nand.pred %p5, %p6, %p7;\n@!%p5 bra MADE;\n"
                                          "mbarrier.init.shared.b64 [%bar], 1;\n";
  text += fence ? "fence.mbarrier_init.release.cluster;\n" : "";
  text +=
      "MADE:\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n@%p6 bra WAIT;\n@!%p7 bra OVER;\n"
      "mov.u32 %u7, 0;\nmapa.shared::cluster.u32 %u8, %bar, %u7;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%u8];\nbra OVER;\nWAIT:\n@!%p7 bra OVER;\n" +
      boundedWait("A") +
      "selp.u32 %u1, 1, 0, %p0;\nshr.u32 %u9, %cta, 1;\nmad.wide.u32 %x1, %u9, 4, %out;\nst.global.b32 [%x1], %u1;\n"
      "OVER:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n";
  constexpr unsigned clusters = 20000;
  Words in(64), out(clusters);
  Trouble error = card.run(text, {clusters * 2, 64, 2, 0}, in.bytes(), out.bytes());
  if (!error.empty())
    return unsettled(error);
  unsigned lost = 0;
  for (uint32_t word : out.data)
    lost += word != 1;
  return unsettled(formatv("{0} of {1} arrivals came too early", lost, clusters));
}
} // namespace

void addSyncQuestions(std::vector<Question> &questions) {
  auto add = [&](std::string name, std::string asks, std::string rule, std::function<Question::Answer(Card &)> ask) {
    questions.push_back({"protocol/" + name, std::move(asks), std::move(rule), std::move(ask)});
  };
  add("10 elect", "which lane elect.sync chooses", "EL-1: any; the emulator tries lowest, highest and seeded",
      electedLanes);
  add("11 try_wait", "how long try_wait waits for a phase that does not end, and that it comes back False",
      "MB-17: it may come back False", waitingTimes);
  add("12 setmaxnreg dec", "setmaxnreg.dec to the count that the warps already have", "SR-3: legal",
      [](Card &card) { return equalRegisters(card, false); });
  add("12 setmaxnreg inc", "setmaxnreg.inc to the count that the warps already have, others having given some back",
      "SR-3: legal", [](Card &card) { return equalRegisters(card, true); });
  add("18 init without fence", "a remote arrive at an mbarrier whose init no fence ordered", "MB-20: an error",
      [](Card &card) { return unfencedInit(card, false); });
  add("18 init with fence", "the same with fence.mbarrier_init", "MB-20: fine",
      [](Card &card) { return unfencedInit(card, true); });
  add("19 exited warps 3", "bar.sync 1, 128 of one warp whose three others have exited",
      "NB-7: barriers that wait only for exited threads are released",
      [](Card &card) { return exitedWarps(card, 3, "bar.sync 1, 128"); });
  add("19 exited warps all", "bar.sync 0 of two warps whose two others have exited", "NB-7: released",
      [](Card &card) { return exitedWarps(card, 2, "bar.sync 0"); });
}

} // namespace gemmc::microtests
