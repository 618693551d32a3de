// Missing and misplaced proxy fences, many times over (5.14: 15). A count above 0 proves that the fence is needed; 0
// proves nothing.
#include "Protocol.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

constexpr unsigned boxBytes = 8192, rounds = 64, ctas = 264;

/// Threads write shared memory, one thread has it copied to global memory, all look there.
std::string storeText(bool byWriters, bool byIssuer) {
  std::string text = begin(false, boxBytes) + prepare(boxBytes, 0);
  text += formatv("mad.wide.u32 %x3, %cta, {0}, %in;\nmov.u32 %u10, 0;\nmov.u32 %u11, 0;\nROUND:\n", boxBytes);
  text += "mad.lo.u32 %u1, %t, 16, %img;\nmad.lo.u32 %u2, %u10, 4096, %t;\n";
  for (unsigned at = 0; at < boxBytes; at += 2048)
    text += "st.shared.v4.b32 [%u1+" + std::to_string(at) + "], {%u2, %u2, %u2, %u2};\n";
  text += byWriters ? "fence.proxy.async.shared::cta;\n" : "";
  text += "bar.sync 0;\n@!%p7 bra ISSUED;\n";
  text += byIssuer ? "fence.proxy.async.shared::cta;\n" : "";
  text += formatv("cp.async.bulk.global.shared::cta.bulk_group [%x3], [%img], {0};\n", boxBytes);
  text += "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nISSUED:\nbar.sync 0;\nmad.wide.u32 %x4, %t, 16, "
          "%x3;\n";
  for (unsigned at = 0; at < boxBytes; at += 2048)
    text += "ld.volatile.global.b32 %u4, [%x4+" + std::to_string(at) + "];\nld.volatile.global.b32 %u5, [%x4+" +
            std::to_string(at + 12) +
            "];\nsetp.ne.u32 %p1, %u4, %u2;\nsetp.ne.or.u32 %p1, %u5, %u2, %p1;\n@%p1 add.u32 %u11, %u11, 1;\n";
  text += formatv("bar.sync 0;\nadd.u32 %u10, %u10, 1;\nsetp.lt.u32 %p2, %u10, {0};\n@%p2 bra ROUND;\n", rounds);
  return text + "mov.u64 %x5, %out;\nred.global.add.u32 [%x5], %u11;\nret;\n}\n";
}

/// Threads read shared memory, then one thread has it overwritten from global memory: who got the new bytes?
std::string overwriteText(bool fence) {
  std::string text = begin(false, boxBytes) + prepare(boxBytes, 0xffffffff);
  text += formatv("mov.u32 %u10, 0;\nmov.u32 %u11, 0;\nmov.u32 %u12, 0xffffffff;\nmov.u32 %u13, 0;\nROUND:\n");
  text += "mad.lo.u32 %u1, %t, 16, %img;\n";
  for (unsigned i = 0; i < 4; ++i)
    text += formatv("ld.shared.b32 %u{0}, [%u1+{1}];\n", 2 + i, i * 2048);
  text += fence ? "fence.proxy.async.shared::cta;\n" : "";
  text += "bar.sync 0;\n@!%p7 bra ISSUED;\n";
  text += formatv(
      "mbarrier.arrive.expect_tx.shared.b64 %x0, [%bar], {0};\nmul.lo.u32 %u8, %u10, {0};\n"
      "cvt.u64.u32 %x3, %u8;\nadd.u64 %x3, %in, %x3;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%img], [%x3], {0}, [%bar];\nISSUED:\n",
      boxBytes);
  for (unsigned i = 0; i < 4; ++i)
    text += formatv("setp.ne.u32 %p1, %u{0}, %u12;\n@%p1 add.u32 %u11, %u11, 1;\n", 2 + i);
  text += "mov.u32 %u0, 0;\nWAIT:\nmbarrier.test_wait.parity.shared.b64 %p0, [%bar], %u13;\n@%p0 bra DONE;\n"
          "add.u32 %u0, %u0, 1;\nsetp.lt.u32 %p1, %u0, 200000;\n@%p1 bra WAIT;\nDONE:\nxor.b32 %u13, %u13, 1;\n"
          "mov.u32 %u12, %u10;\n";
  text += formatv("bar.sync 0;\nadd.u32 %u10, %u10, 1;\nsetp.lt.u32 %p2, %u10, {0};\n@%p2 bra ROUND;\n", rounds);
  return text + "red.global.add.u32 [%out], %u11;\nret;\n}\n";
}

Question::Answer count(Card &card, const std::string &text, uint64_t checks, bool needed) {
  Words in(size_t(boxBytes) / 4 * std::max(rounds, ctas)), out(64);
  for (unsigned round = 0; round < rounds; ++round)
    std::fill_n(in.data.begin() + size_t(round) * boxBytes / 4, boxBytes / 4, round);
  Trouble error = card.run("" + text, {ctas, 128, 1, 0}, in.bytes(), out.bytes());
  if (!error.empty())
    return unsettled(error);
  uint32_t wrong = out[0] - 0xfefefefe; // outputs start as 0xfe bytes
  std::string got = formatv("{0} of {1} values were wrong", wrong, checks).str();
  return !needed ? verdict(!wrong, got) : wrong ? verdict(true, got) : unsettled(got);
}
} // namespace

void addRaceQuestions(std::vector<Question> &questions) {
  auto add = [&](std::string name, std::string asks, std::string rule, std::string text, bool needed) {
    questions.push_back({"protocol/" + name, std::move(asks), std::move(rule),
                         [=](Card &card) { return count(card, text, uint64_t(ctas) * 128 * 4 * rounds, needed); }});
  };
  add("15 store, no fence", "st.shared, barrier, bulk store without a proxy fence", "PX-1: an error",
      storeText(false, false), true);
  add("15 store, writers' fence", "the same, each writer fences before the barrier", "PX-1: fine",
      storeText(true, false), false);
  add("15 store, issuer's fence", "the same, only the issuing thread fences, behind the barrier", "PX-2: review",
      storeText(false, true), false);
  add("15 overwrite, no fence", "ld.shared, barrier, bulk load over the same bytes without a fence",
      "PX-4: an error, review in PTX from elsewhere", overwriteText(false), true);
  add("15 overwrite, fence", "the same with the readers' fence", "PX-4: fine", overwriteText(true), false);
}

} // namespace gemmc::microtests
