// Barriers of threads, clusters, mbarriers; what is said when nobody can go on.
#include "Pace.h"
#include "core_harness.h"
#include <algorithm>

namespace gemmc::emu::test {
namespace {
const std::string syncRegs = ".reg .b32 %r, %a, %b, %c, %i, %ph;\n.reg .b64 %w, %st;\n.reg .pred %p, %q;\n"
                             ".shared .align 16 .b32 s[256];\n.shared .align 8 .b64 bar[4];\n";

struct Outcome {
  Result result;
  std::vector<uint32_t> out;
  std::string text;
  bool says(const std::string &part) const { return text.find(part) != std::string::npos; }
};
Outcome run(const std::string &code, unsigned threads, unsigned cluster = 1) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(threads * cluster));
  r.param(out);
  r.params.block = {threads, 1, 1};
  r.params.grid = r.params.cluster = {cluster, 1, 1};
  r.options.maxSteps = 100000;
  r.body(syncRegs, "mov.u32 %r, 0;\n" + code);
  return {r.result, r.read<uint32_t>(out, threads * cluster), r.text()};
}
} // namespace

TEST(EmuSync, BarSync) {
  Outcome got = run(R"(
mov.u32 %a, s;
shl.b32 %b, %t, 2;
add.u32 %b, %a, %b;
st.shared.b32 [%b], %t;
bar.sync 0;
xor.b32 %b, %t, 64;
shl.b32 %b, %b, 2;
add.u32 %b, %a, %b;
ld.shared.b32 %r, [%b];
)" + storeResult,
                    128);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  for (unsigned t = 0; t < 128; ++t)
    EXPECT_EQ(got.out[t], t ^ 64);
}

TEST(EmuSync, NamedBarriersProducerConsumer) {
  // Warp 0 produces and only arrives at barrier 1; warp 1 waits there, and tells on barrier 2 that it is done.
  Outcome got = run(R"(
setp.ge.u32 %p, %t, 32;
mov.u32 %i, 0;
@%p bra consumer;
producer:
mov.u32 %a, s;
shl.b32 %b, %t, 2;
add.u32 %a, %a, %b;
add.u32 %b, %t, %i;
st.shared.b32 [%a], %b;
bar.arrive 1, 64;
bar.sync 2, 64;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 3;
@%p bra producer;
exit;
consumer:
mov.u32 %a, s;
and.b32 %b, %t, 31;
shl.b32 %b, %b, 2;
add.u32 %a, %a, %b;
bar.sync 1, 64;
ld.shared.b32 %b, [%a];
add.u32 %r, %r, %b;
bar.arrive 2, 64;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 3;
@%p bra consumer;
)" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  for (unsigned t = 32; t < 64; ++t)
    EXPECT_EQ(got.out[t], 3 * (t - 32) + 3);
}

TEST(EmuSync, BarrierReductions) {
  Outcome got = run(R"(
setp.lt.u32 %p, %t, 40;
bar.red.popc.u32 %r, 0, %p;
bar.red.and.pred %q, 1, %p;
@%q add.u32 %r, %r, 100;
bar.red.or.pred %q, 2, 64, !%p;
@%q add.u32 %r, %r, 1000;
)" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[0], 1040u);
  EXPECT_EQ(got.out[63], 1040u);
}

TEST(EmuSync, NonAlignedBarrierInDivergentCode) {
  Outcome got = run(R"(
setp.lt.u32 %p, %t, 7;
@%p bra few;
barrier.sync 3;
bra join;
few:
barrier.sync 3;
join:
mov.u32 %r, 1;
)" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
}

TEST(EmuSync, ExitedWarpsDoNotHoldABarrier) {
  Outcome got = run("setp.ge.u32 %p, %t, 32;\n@%p exit;\nbar.sync 0;\nmov.u32 %r, 1;\n" + storeResult, 96);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[0], 1u);
}

TEST(EmuSync, BarrierMisuse) {
  auto code = [](const std::string &text) {
    Outcome got = run(text, 64);
    return got.result.findings.empty() ? "clean" : got.result.findings[0].code;
  };
  EXPECT_EQ(code("mov.u32 %a, 16;\nbar.sync %a;"), "NB-1");
  EXPECT_EQ(code("bar.sync 0, 48;"), "NB-11");
  EXPECT_EQ(code("setp.lt.u32 %p, %t, 32;\n@%p bra first;\nbar.sync 1, 64;\nbra end;\nfirst:\nbar.sync 1, 32;\nend:"),
            "deadlock"); // the first warp opens it for itself and exits: that is no arrival at the second one's
  EXPECT_EQ(code("setp.lt.u32 %p, %t, 32;\n@%p bra first;\nbar.sync 1, 64;\nbra end;\nfirst:\nbar.sync 1, 96;\nend:"),
            "NB-3");
  EXPECT_EQ(code("setp.lt.u32 %p, %t, 32;\n@!%p exit;\nbar.arrive 1, 96;\nbar.arrive 1, 96;"), "NB-4");
}

TEST(EmuSync, DeadlockAtANamedBarrier) {
  Outcome got = run("setp.lt.u32 %p, %t, 32;\n@%p bra wait;\nbar.sync 2, 64;\nwait:\nbar.sync 1, 64;", 64);
  ASSERT_EQ(got.result.verdict, Verdict::error);
  EXPECT_EQ(got.result.findings[0].code, "deadlock");
  EXPECT_TRUE(got.says("barrier 1: 32 of 64 threads have arrived")) << got.text;
  EXPECT_TRUE(got.says("barrier 2: 32 of 64 threads have arrived")) << got.text;
}

// --- Clusters

const std::string clusterBarrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

TEST(EmuSync, ClusterSharedMemory) {
  Outcome got = run(R"(
mov.u32 %a, %cluster_ctarank;
mad.lo.u32 %b, %a, 1000, %t;
mov.u32 %c, s;
shl.b32 %i, %t, 2;
add.u32 %c, %c, %i;
st.shared.b32 [%c], %b;
)" + clusterBarrier + R"(
xor.b32 %b, %a, 1;
mapa.shared::cluster.u32 %c, %c, %b;
ld.shared::cluster.b32 %r, [%c];
getctarank.shared::cluster.u32 %b, %c;
mad.lo.u32 %r, %b, 10000, %r;
mad.lo.u32 %t, %a, 32, %t;
)" + clusterBarrier + storeResult,
                    32, 2);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[3], 11003u);
  EXPECT_EQ(got.out[35], 3u);
}

TEST(EmuSync, ForeignSharedMemoryNeedsTheClusterSpace) {
  Outcome got =
      run("mov.u32 %c, s;\nmapa.shared::cluster.u32 %c, %c, 1;\nld.shared.b32 %r, [%c];\n" + clusterBarrier, 32, 2);
  ASSERT_EQ(got.result.verdict, Verdict::error);
  EXPECT_EQ(got.result.findings[0].code, "AD-6");
}

TEST(EmuSync, ClusterBarrierMisuse) {
  Outcome got = run("barrier.cluster.wait.aligned;\n", 32, 2);
  EXPECT_EQ(got.result.findings.at(0).code, "CL-2");
  got = run("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n", 32, 2);
  EXPECT_EQ(got.result.findings.at(0).code, "CL-1");
  got = run("mapa.shared::cluster.u32 %c, %c, 2;\n", 32, 2);
  EXPECT_EQ(got.result.findings.at(0).code, "CL-8");
}

TEST(EmuSync, DeadlockAtTheClusterBarrier) {
  Outcome got = run("mov.u32 %a, %cluster_ctarank;\nsetp.eq.u32 %p, %a, 0;\n@%p bra wait;\nforever:\nbar.sync 1, 64;\n"
                    "wait:\n" +
                        clusterBarrier,
                    32, 2);
  ASSERT_EQ(got.result.verdict, Verdict::error);
  EXPECT_EQ(got.result.findings[0].code, "deadlock");
  EXPECT_TRUE(got.says("cluster barrier: 32 of 64 threads have arrived")) << got.text;
}

TEST(EmuSync, ExitedThreadsDoNotHoldTheClusterBarrier) {
  Outcome got = run("mov.u32 %a, %cluster_ctarank;\nsetp.eq.u32 %p, %a, 0;\n@%p exit;\n" + clusterBarrier, 32, 2);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
}

// --- mbarriers

const std::string initBarrier = R"(
setp.ne.u32 %p, %t, 0;
@%p bra initialised;
mbarrier.init.shared::cta.b64 [bar], 64;
initialised:
bar.sync 0;
)";

TEST(EmuSync, MbarrierPhases) {
  Outcome got = run(initBarrier + R"(
mov.u32 %a, s;
shl.b32 %b, %t, 2;
add.u32 %b, %a, %b;
mov.u32 %i, 0;
mov.u32 %ph, 0;
again:
add.u32 %c, %t, %i;
st.shared.b32 [%b], %c;
mbarrier.arrive.shared::cta.b64 _, [bar];
)" + waitLoop("wait", "bar", "%ph") +
                        R"(
ld.shared.b32 %c, [s];
add.u32 %r, %r, %c;
xor.b32 %ph, %ph, 1;
bar.sync 0;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 4;
@%p bra again;
)" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[63], 0u + 1 + 2 + 3);
}

TEST(EmuSync, MbarrierTokens) {
  Outcome got = run(initBarrier + R"(
mbarrier.arrive.shared::cta.b64 %st, [bar];
wait:
mbarrier.test_wait.shared::cta.b64 %p, [bar], %st;
@!%p bra wait;
mbarrier.pending_count.b64 %r, %st;
bar.sync 0;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.inval.shared::cta.b64 [bar];
)" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  std::sort(got.out.begin(), got.out.end()); // the order of arrivals is free
  for (unsigned t = 0; t < 64; ++t)
    EXPECT_EQ(got.out[t], t + 1);
}

TEST(EmuSync, MbarrierTransactions) {
  // One thread completes the bytes that another expects; arrive_drop and expect_tx take part.
  Outcome got = run(R"(
setp.ne.u32 %p, %t, 0;
@%p bra initialised;
mbarrier.init.shared::cta.b64 [bar], 2;
initialised:
bar.sync 0;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 48;
setp.eq.u32 %p, %t, 32;
@%p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
@%p mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;
@%p mbarrier.arrive_drop.shared::cta.b64 %st, [bar];
)" + waitLoop("wait", "bar", "0") +
                        R"(
bar.sync 0;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.arrive.shared::cta.b64 _, [bar];
)" + waitLoop("wait2", "bar", "1") +
                        "mov.u32 %r, 1;\n" + storeResult,
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[63], 1u);
}

TEST(EmuSync, MbarrierVariants) {
  Outcome got = run(R"(
setp.ne.u32 %p, %t, 0;
@%p bra end;
mbarrier.init.shared::cta.b64 [bar], 4;
mbarrier.arrive.noComplete.shared::cta.b64 %st, [bar], 2;
mbarrier.arrive_drop.noComplete.shared::cta.b64 %st, [bar], 1;
mbarrier.pending_count.b64 %a, %st;
mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;
selp.b32 %b, 1000, 0, %p;
mbarrier.arrive_drop.expect_tx.shared::cta.b64 %st, [bar], 16;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
wait:
mbarrier.try_wait.shared::cta.b64 %p, [bar], %st;
@!%p bra wait;
mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;
selp.b32 %c, 10000, 0, %p;
mbarrier.arrive.shared::cta.b64 _, [bar], 2;
mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 1;
selp.b32 %i, 100000, 0, %p;
add.u32 %r, %a, %b;
add.u32 %r, %r, %c;
add.u32 %r, %r, %i;
st.global.b32 [%out], %r;
end:
)",
                    32);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[0],
            110002u); // 2 pending before the drop; not yet complete; complete; complete with the 2 that are left
}

TEST(EmuSync, FencesAndHints) { // without effect on one thread, but executed
  Outcome got = run(R"(
membar.gl;
fence.acq_rel.gpu;
fence.proxy.alias;
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.proxy.tensormap::generic.acquire.gpu [%out], 128;
griddepcontrol.launch_dependents;
griddepcontrol.wait;
nanosleep.u32 20;
brkpt;
setp.ge.u32 %p, %t, 32;
@%p bra second;
barrier.arrive 3, 64;
bra end;
second:
barrier.sync 3, 64;
end:
)",
                    64);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
}

// What pairs of clusters hand over is ordered by the address, whichever host thread is faster: an acquire takes the
// releases whose values it has seen. Many rounds on two host threads, which meet after each: the mistake needs the
// right moment.
static void handOver(const std::string &code) {
  constexpr unsigned rounds = gemmc::test::cases(200), ctas = 4;
  Trial r;
  r.params.grid = {ctas, 1, 1};
  r.options.threads = 2;
  r.options.check.enabled = true;
  uint64_t out = r.buffer(std::vector<uint32_t>(rounds * 16, 0));
  r.param(out); // by round: a word of data for each CTA, of signals for each pair, to meet
  r.body(".reg .b64 %data, %other, %flag;\n.reg .b32 %round, %cta, %x, %pair;\n.reg .pred %p, %odd;\n",
         R"(
setp.ne.u32 %p, %t, 0;
@%p bra END;
mov.u32 %cta, %ctaid.x;
and.b32 %x, %cta, 1;
setp.eq.u32 %odd, %x, 1;
shr.u32 %pair, %cta, 1;
mad.wide.u32 %data, %cta, 4, %out;
xor.b32 %x, %cta, 1;
mad.wide.u32 %other, %x, 4, %out;
add.u32 %pair, %pair, 8;
mad.wide.u32 %flag, %pair, 4, %out;
mov.u32 %round, 0;
LOOP:
)" + code + R"(
NEXT:
red.relaxed.gpu.global.add.u32 [%flag+16], 1;
MEET:
ld.relaxed.gpu.global.b32 %x, [%flag+16];
setp.lt.u32 %p, %x, 2;
@%p bra MEET;
add.u64 %data, %data, 64;
add.u64 %other, %other, 64;
add.u64 %flag, %flag, 64;
add.u32 %round, %round, 1;
setp.lt.u32 %p, %round, )" +
             std::to_string(rounds) + R"(;
@%p bra LOOP;
END:
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
}

TEST(EmuSync, AtomicsHandOverInOneStep) {
  handOver(R"(
st.global.b32 [%data], %round;
atom.acq_rel.gpu.global.add.u32 %x, [%flag], 1;
setp.ne.u32 %p, %x, 1;
@%p bra NEXT;
ld.global.b32 %x, [%other];
)");
}

TEST(EmuSync, CompareAndSwapHandsOverInOneStep) {
  handOver(R"(
st.global.b32 [%data], %round;
atom.acq_rel.gpu.global.cas.b32 %x, [%flag], 0, 1;
setp.ne.u32 %p, %x, 1;
@%p bra NEXT;
ld.global.b32 %x, [%other];
)");
}

TEST(EmuSync, AcquiringLoadsTakeWhatTheySee) { // CTA 2i writes for CTA 2i + 1
  handOver(R"(
@%odd bra TAKE;
st.global.b32 [%data], %round;
mov.u32 %x, 1;
st.release.gpu.global.b32 [%flag], %x;
bra NEXT;
TAKE:
ld.acquire.gpu.global.b32 %x, [%flag];
setp.ne.u32 %p, %x, 1;
@%p bra TAKE;
ld.global.b32 %x, [%other];
)");
}

TEST(EmuSync, RemoteArrival) {
  Outcome got = run(R"(
mov.u32 %a, %cluster_ctarank;
setp.ne.u32 %p, %t, 0;
@%p bra initialised;
mbarrier.init.shared::cta.b64 [bar], 64;
fence.mbarrier_init.release.cluster;
initialised:
)" + clusterBarrier + R"(
mov.u32 %b, bar;
mapa.shared::cluster.u32 %b, %b, 0;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%b];
setp.ne.u32 %p, %a, 0;
@%p bra done;
)" + waitLoop("wait", "bar", "0") +
                        R"(
mov.u32 %r, 5;
done:
mad.lo.u32 %t, %a, 32, %t;
)" + clusterBarrier + storeResult,
                    32, 2);
  EXPECT_EQ(got.result.verdict, Verdict::clean) << got.text;
  EXPECT_EQ(got.out[31], 5u);
}

TEST(EmuSync, MissingArrivalIsADeadlock) {
  Outcome got = run(initBarrier + "setp.lt.u32 %p, %t, 60;\n@%p mbarrier.arrive.shared::cta.b64 _, [bar];\n" +
                        waitLoop("wait", "bar", "0"),
                    64);
  ASSERT_EQ(got.result.verdict, Verdict::error);
  EXPECT_EQ(got.result.findings[0].code, "deadlock");
  EXPECT_TRUE(got.says("phase of parity 0")) << got.text;
  EXPECT_TRUE(got.says("4 of 64 arrivals pending")) << got.text;
}

TEST(EmuSync, SpinningTestWaitIsADeadlockToo) {
  Outcome got = run(initBarrier + "mbarrier.arrive.shared::cta.b64 %st, [bar], 0;\n"
                                  "spin:\nmbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;\n@!%p bra spin;\n",
                    32);
  ASSERT_FALSE(got.result.findings.empty());
  EXPECT_NE(got.result.verdict, Verdict::clean);
  Outcome other =
      run(initBarrier + "spin:\nmbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;\n@!%p bra spin;\n", 32);
  EXPECT_EQ(other.result.findings.at(0).code, "deadlock") << other.text;
}

TEST(EmuSync, TooManyArrivals) {
  Outcome got = run(initBarrier + "mbarrier.arrive.shared::cta.b64 _, [bar], 3;\n", 64);
  EXPECT_EQ(got.result.findings.at(0).code, "MB-5") << got.text;
}

TEST(EmuSync, MbarrierThatWasNeverInitialised) {
  Outcome got = run("mbarrier.arrive.shared::cta.b64 _, [bar+8];\n", 32);
  EXPECT_EQ(got.result.findings.at(0).code, "MB-1") << got.text;
}

TEST(EmuSync, WaitingForAForeignMbarrier) {
  Outcome got = run(initBarrier + clusterBarrier + R"(
mov.u64 %w, bar;
cvta.shared.u64 %w, %w;
mapa.u64 %w, %w, 1;
mov.u32 %a, %cluster_ctarank;
setp.eq.u32 %p, %a, 0;
@%p mbarrier.try_wait.parity.b64 %q, [%w], 1;
)" + clusterBarrier,
                    32, 2);
  EXPECT_EQ(got.result.findings.at(0).code, "MB-12") << got.text;
}

TEST(EmuSync, RegistersMoveBetweenWarps) {
  const char *text = R"(.visible .entry k(.param .u64 out)
.maxnreg 96
{
.reg .b32 %t; .reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 128;
@%p bra give;
setmaxnreg.inc.sync.aligned.u32 152;
ret;
give:
setmaxnreg.dec.sync.aligned.u32 40;
ret;
})";
  auto verdict = [&](uint32_t threads) {
    Trial r;
    r.param(uint64_t(0));
    r.params.block = {threads, 1, 1};
    r.module(text);
    return r.result.findings.empty() ? "clean" : r.result.findings[0].code;
  };
  EXPECT_EQ(verdict(256), "clean");
  EXPECT_EQ(verdict(384), "deadlock"); // two warpgroups want what one gives
}

} // namespace gemmc::emu::test
