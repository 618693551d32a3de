// Branches, divergence, exchange between lanes, special registers, limits and what is not modelled.
#include "core_harness.h"

namespace gemmc::emu::test {
namespace {
const std::string controlRegs =
    ".reg .b32 %r, %a, %b, %c, %i;\n.reg .b64 %w;\n.reg .pred %p, %q;\n.shared .b32 s[1];\n";

/// `%r` of each thread after `code`.
std::vector<uint32_t> results(const std::string &code, unsigned threads = 32, Trial *trial = nullptr) {
  Trial own, &r = trial ? *trial : own;
  uint64_t out = r.buffer(std::vector<uint32_t>(threads));
  r.param(out);
  r.params.block[0] = threads;
  r.body(controlRegs, "mov.u32 %r, 0;\n" + code + storeResult);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  return r.read<uint32_t>(out, threads);
}
Finding finding(const std::string &code, unsigned threads = 32) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(threads)));
  r.params.block[0] = threads;
  r.body(controlRegs, code);
  EXPECT_FALSE(r.result.findings.empty());
  return r.result.findings.empty() ? Finding() : r.result.findings[0];
}
} // namespace

TEST(EmuControl, Divergence) {
  auto got = results(R"(
and.b32 %a, %t, 3;
setp.eq.u32 %p, %a, 0;
@%p bra zero;
setp.eq.u32 %p, %a, 1;
@%p bra one;
mov.u32 %r, 20;
bra join;
zero:
mov.u32 %r, 5;
bra join;
one:
mov.u32 %r, 10;
join:
add.u32 %r, %r, 1;
)");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], (t & 3) == 0 ? 6u : (t & 3) == 1 ? 11u : 21u);
}

TEST(EmuControl, LoopsOfDifferentLength) {
  auto got = results(R"(
mov.u32 %i, 0;
loop:
setp.ge.u32 %p, %i, %t;
@%p bra done;
add.u32 %r, %r, %i;
add.u32 %i, %i, 1;
bra loop;
done:
vote.sync.ballot.b32 %a, 1, 0xffffffff;
popc.b32 %a, %a;
add.u32 %r, %r, %a;
)");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], t * (t ? t - 1 : 0) / 2 + 32); // all lanes meet again
}

// A block at the end of the kernel that jumps back: the lanes that stay must wait at the aligned barrier.
TEST(EmuControl, ReconvergenceBehindAColdBlock) {
  auto got = results(R"(
setp.eq.u32 %p, %t, 7;
@%p bra cold;
back:
bar.sync 0;
bra store;
cold:
mov.u32 %r, 9;
bra back;
store:
)");
  EXPECT_EQ(got[7], 9u);
  EXPECT_EQ(got[8], 0u);
}

TEST(EmuControl, GuardsAndExits) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(32, 77));
  r.param(out);
  r.body(controlRegs,
         "setp.gt.u32 %p, %t, 20;\n@%p exit;\nsetp.lt.u32 %p, %t, 10;\nmov.u32 %r, 1;\n@!%p mov.u32 %r, 2;\n" +
             storeResult);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out, 32);
  EXPECT_EQ(got[9], 1u);
  EXPECT_EQ(got[20], 2u);
  EXPECT_EQ(got[21], 77u);
}

TEST(EmuControl, PartialWarps) {
  auto got = results("vote.sync.ballot.b32 %r, 1, 0xff;\n", 8);
  EXPECT_EQ(got[7], 0xffu);
}

TEST(EmuControl, Shuffles) {
  auto shuffled = [](const std::string &code) { return results("add.u32 %a, %t, 100;\n" + code); };
  auto got = shuffled("shfl.sync.down.b32 %r|%p, %a, 4, 0x1f, 0xffffffff;\n@!%p add.u32 %r, %r, 1000;\n");
  EXPECT_EQ(got[3], 107u);
  EXPECT_EQ(got[30], 1130u);
  got = shuffled("shfl.sync.up.b32 %r|%p, %a, 4, 0, 0xffffffff;\n@!%p add.u32 %r, %r, 1000;\n");
  EXPECT_EQ(got[3], 1103u);
  EXPECT_EQ(got[30], 126u);
  got = shuffled("shfl.sync.bfly.b32 %r, %a, 5, 0x1f, 0xffffffff;\n");
  EXPECT_EQ(got[6], 103u);
  got = shuffled("shfl.sync.idx.b32 %r, %a, 3, 0x181f, 0xffffffff;\n"); // segments of 8 lanes
  EXPECT_EQ(got[6], 103u);
  EXPECT_EQ(got[30], 127u);
}

TEST(EmuControl, VotesMatchesAndReductions) {
  EXPECT_EQ(results("setp.lt.u32 %p, %t, 5;\nvote.sync.ballot.b32 %r, %p, 0xffffffff;\n")[9], 0x1fu);
  EXPECT_EQ(results("setp.lt.u32 %p, %t, 5;\nvote.sync.any.pred %p, %p, 0xffffffff;\nselp.b32 %r, 1, 0, %p;\n")[9], 1u);
  EXPECT_EQ(results("setp.lt.u32 %p, %t, 5;\nvote.sync.all.pred %p, !%p, 0xffffffff;\nselp.b32 %r, 1, 0, %p;\n")[9],
            0u);
  EXPECT_EQ(results("setp.lt.u32 %p, %t, 5;\nvote.sync.uni.pred %p, %p, 0xffffffff;\nselp.b32 %r, 1, 0, %p;\n")[9], 0u);
  EXPECT_EQ(results("and.b32 %a, %t, 3;\nmatch.any.sync.b32 %r, %a, 0xffffffff;\n")[5], 0x22222222u);
  EXPECT_EQ(results("match.all.sync.b32 %r|%p, 5, 0xffffffff;\n")[5], 0xffffffffu);
  EXPECT_EQ(results("redux.sync.add.u32 %r, %t, 0xffffffff;\n")[5], 496u);
  EXPECT_EQ(results("sub.u32 %a, %t, 9;\nredux.sync.min.s32 %r, %a, 0xffffffff;\n")[5], uint32_t(-9));
  EXPECT_EQ(results("sub.u32 %a, %t, 9;\nredux.sync.max.u32 %r, %a, 0xffffffff;\n")[5], uint32_t(-1));
  EXPECT_EQ(results("redux.sync.xor.b32 %r, %t, 0xffffffff;\n")[5], 0u);
  EXPECT_EQ(results("setp.lt.u32 %p, %t, 5;\n@%p activemask.b32 %r;\n")[3], 0x1fu);
  auto elected = results("elect.sync %a|%p, 0xffffffff;\nselp.b32 %r, 1, 0, %p;\nmad.lo.u32 %r, %a, 100, %r;\n");
  EXPECT_EQ(std::count(elected.begin(), elected.end(), elected[31]), 31);
  EXPECT_EQ(elected[elected[31] / 100], elected[31] + 1); // just the lane that it names
}

TEST(EmuControl, BarWarpSyncAcrossBranches) {
  auto got = results(R"(
setp.lt.u32 %p, %t, 16;
@%p bra low;
st.shared.b32 [s], 5;
bar.warp.sync 0xffffffff;
bra done;
low:
bar.warp.sync 0xffffffff;
ld.shared.b32 %r, [s];
done:
)");
  EXPECT_EQ(got[3], 5u);
}

/// Tiles of eight lanes, each with a mask of its own, in one instruction; one tile comes in two parts, one has a guard.
TEST(EmuControl, BarWarpSyncOfTiles) {
  auto got = results(R"(
and.b32 %a, %t, 24;
mov.u32 %b, 255;
shl.b32 %b, %b, %a;
mov.u32 %c, s;
setp.ge.u32 %p, %t, 4;
@%p bra meet;
add.u32 %r, %r, 1;
meet:
setp.lt.u32 %q, %t, 24;
@%q bar.warp.sync %b;
@!%q mov.u32 %r, 9;
add.u32 %r, %r, 100;
bar.warp.sync 0xffffffff;
)");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], t < 4 ? 101u : t < 24 ? 100u : 109u) << t;
  EXPECT_EQ(finding("and.b32 %a, %t, 16; mov.u32 %b, 0xffff; shl.b32 %b, %b, %a; shr.u32 %b, %b, 1;"
                    "bar.warp.sync %b;")
                .code,
            "NB-9");
}

TEST(EmuControl, MemberMaskWithoutTheLane) { EXPECT_EQ(finding("vote.sync.ballot.b32 %r, 1, 0xfe;").code, "WS-1"); }

TEST(EmuControl, AlignedInADivergentWarp) {
  EXPECT_EQ(finding("setp.lt.u32 %p, %t, 16;\n@%p bar.sync 0;").code, "NB-2");
  // Who has exited does not count, before the others come or while they wait.
  results("setp.lt.u32 %p, %t, 16;\n@!%p bra away;\nbar.sync 0;\nbra met;\naway:\nexit;\nmet:\n");
  results("setp.lt.u32 %p, %t, 16;\n@%p bra stay;\nexit;\nstay:\nbar.sync 0;\n");
}

TEST(EmuControl, SpecialRegisters) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(8 * 2 * 12));
  r.param(out);
  r.params.grid = {4, 2, 1};
  r.params.cluster = {2, 1, 1};
  r.params.block = {4, 2, 1};
  r.body(".reg .b32 %a, %b, %c, %d;\n.reg .b64 %w;\n.reg .pred %p;\n", R"(
setp.ne.u32 %p, %t, 6;
@%p exit;
mov.u32 %a, %ctaid.x;
mov.u32 %b, %ctaid.y;
mad.lo.u32 %a, %b, 4, %a;
mul.wide.u32 %w, %a, 48;
add.u64 %out, %out, %w;
mov.u32 %a, %tid.x;
mov.u32 %b, %tid.y;
mov.u32 %c, %ntid.y;
mov.u32 %d, %nctaid.x;
st.global.v4.b32 [%out], {%a, %b, %c, %d};
mov.u32 %a, %cluster_ctarank;
mov.u32 %b, %clusterid.x;
mov.u32 %c, %cluster_nctarank;
mov.u32 %d, %nclusterid.x;
st.global.v4.b32 [%out+16], {%a, %b, %c, %d};
mov.u32 %a, %laneid;
mov.u32 %b, %lanemask_lt;
mov.u32 %c, %cluster_ctaid.x;
mov.u32 %d, %ctaid.y;
st.global.v4.b32 [%out+32], {%a, %b, %c, %d};
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out + 7 * 48, 12); // CTA (3, 1)
  EXPECT_EQ(got, (std::vector<uint32_t>{2, 1, 2, 4, 1, 1, 2, 2, 6, 63, 1, 1}));
}

TEST(EmuControl, ClocksGrow) {
  auto got = results("mov.u32 %a, %clock;\nmov.u32 %b, %clock;\nsetp.lt.u32 %p, %a, %b;\nselp.b32 %r, 1, 0, %p;\n");
  EXPECT_EQ(got[0], 1u);
}

TEST(EmuControl, GridOnManyThreads) {
  Trial r;
  std::vector<uint32_t> zeros(4096);
  uint64_t out = r.buffer(zeros);
  r.param(out);
  r.params.grid = {64, 2, 1};
  r.options.threads = 4;
  r.body(controlRegs, R"(
mov.u32 %a, %ctaid.x;
mov.u32 %b, %ctaid.y;
mad.lo.u32 %a, %b, 64, %a;
mad.lo.u32 %a, %a, 32, %t;
red.global.add.u32 [%out+16380], 1;
setp.eq.u32 %p, %a, 4095;
mul.wide.u32 %w, %a, 4;
add.u64 %w, %w, %out;
@!%p st.global.b32 [%w], %a;
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.read<uint32_t>(out, 4096);
  for (unsigned i = 0; i < 4095; ++i)
    ASSERT_EQ(got[i], i);
  EXPECT_EQ(got[4095], 4096u);
}

TEST(EmuControl, SampledClusters) {
  Trial r;
  uint64_t out = r.buffer(std::vector<uint32_t>(8));
  r.param(out);
  r.params.grid = {8, 1, 1};
  r.params.cluster = {2, 1, 1};
  r.options.clusters = {1, 3};
  r.params.block = {1, 1, 1};
  r.body(controlRegs,
         "mov.u32 %a, %ctaid.x;\nmul.wide.u32 %w, %a, 4;\nadd.u64 %w, %w, %out;\nst.global.b32 [%w], 1;\n");
  EXPECT_EQ(r.read<uint32_t>(out, 8), (std::vector<uint32_t>{0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(EmuControl, StepLimit) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.options.maxSteps = 1000;
  r.params.grid = {4, 1, 1};
  r.body(controlRegs, "forever:\nadd.u32 %r, %r, 1;\nst.global.u32 [%out], %r;\nbra forever;\n");
  ASSERT_EQ(r.result.findings.size(), 1u) << "and the other clusters are not run to their limit";
  EXPECT_EQ(r.result.verdict, Verdict::incomplete);
  EXPECT_EQ(r.result.findings[0].code, "limit");
}

// Waiting is no work: what one cluster waits for may take another one long.
TEST(EmuControl, StepLimitWithoutWaiting) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(2)));
  r.params.grid = {2, 1, 1};
  r.options.threads = 2;
  r.options.maxSteps = 2000000;
  r.body(controlRegs, "mov.u32 %r, %ctaid.x;\nsetp.eq.u32 %p, %r, 0;\n@%p bra wait;\nmov.u32 %r, 0;\nmore:\n"
                      "st.global.b32 [%out], %r;\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %p, %r, 400000;\n@%p bra more;\n"
                      "st.release.gpu.global.b32 [%out+4], 1;\nbra done;\nwait:\n"
                      "ld.acquire.gpu.global.b32 %r, [%out+4];\nsetp.eq.u32 %p, %r, 0;\n@%p bra wait;\ndone:\n");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
}

// What nobody else can see changes nothing, for as long as it likes: reads, tests, atomics and stores that leave what
// is there.
TEST(EmuControl, QuietLoopsHaveAnEnd) {
  for (const char *loop : {"ld.relaxed.gpu.global.u32 %r, [%out];", "atom.global.or.b32 %r, [%out], 0;",
                           "atom.global.cas.b32 %r, [%out], 7, 8;", "st.volatile.global.u32 [%out], 7;",
                           "st.global.v2.b64 [%out], {7, 8};", "add.u32 %r, %r, 1;"}) {
    Trial r;
    r.param(r.buffer(std::vector<uint32_t>(4)));
    r.params.grid = {2, 1, 1};
    r.options.threads = 1;
    r.options.maxQuiet = 1 << 16;
    r.body(controlRegs, std::string("forever:\n") + loop + "\nbra forever;\n");
    ASSERT_EQ(r.result.findings.size(), 1u) << loop;
    EXPECT_EQ(r.result.verdict, Verdict::incomplete);
    EXPECT_EQ(r.result.findings[0].code, "limit");
    EXPECT_NE(r.result.findings[0].message.find("a loop that never ends"), std::string::npos);
  }
  Trial r; // who writes something else goes on
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.options.maxQuiet = 1 << 16;
  r.body(controlRegs,
         "mov.u32 %r, 0;\nmore:\nst.global.b32 [%out], %r;\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %p, %r, 100000;\n"
         "@%p bra more;\n");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
}

// CTAs may wait for those behind them: which ones run is nobody's promise.
TEST(EmuControl, ClustersWaitForLaterOnes) {
  for (ScheduleKind kind : {ScheduleKind::lazy, ScheduleKind::reversed, ScheduleKind::random})
    for (unsigned threads : {1u, 2u}) {
      Trial r;
      uint64_t out = r.buffer(std::vector<uint32_t>(8));
      r.param(out);
      r.params.grid = {5, 1, 1};
      r.params.block = {1, 1, 1};
      r.options.threads = threads;
      r.options.check.enabled = true;
      r.options.check.schedule = kind;
      r.options.check.seed = 3;
      r.body(controlRegs, R"(
mov.u32 %a, %ctaid.x;
mul.wide.u32 %w, %a, 4;
add.u64 %w, %w, %out;
setp.eq.u32 %p, %a, 4;
@%p bra first;
wait:
ld.acquire.gpu.global.u32 %r, [%w+4];
setp.eq.u32 %p, %r, 0;
@%p bra wait;
first:
add.u32 %a, %a, 1;
st.release.gpu.global.u32 [%w], %a;
)");
      EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
      EXPECT_EQ(r.read<uint32_t>(out, 5), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
    }
}

TEST(EmuControl, SchedulesBeginClustersInOrdersOfTheirOwn) {
  auto order = [](ScheduleKind kind, uint64_t seed) {
    Trial r;
    uint64_t out = r.buffer(std::vector<uint32_t>(8));
    r.param(out);
    r.params.grid = {7, 1, 1};
    r.params.block = {1, 1, 1};
    r.options.threads = 1;
    r.options.check.enabled = true;
    r.options.check.schedule = kind;
    r.options.check.seed = seed;
    r.body(controlRegs, "mov.u32 %a, %ctaid.x;\nmul.wide.u32 %w, %a, 4;\nadd.u64 %w, %w, %out;\n"
                        "atom.global.add.u32 %r, [%out+28], 1;\nst.global.b32 [%w], %r;\n");
    EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
    return r.read<uint32_t>(out, 7);
  };
  const std::vector<uint32_t> up{0, 1, 2, 3, 4, 5, 6}, down{6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(order(ScheduleKind::lazy, 1), up);
  EXPECT_EQ(order(ScheduleKind::eager, 1), up);
  EXPECT_EQ(order(ScheduleKind::reversed, 1), down);
  std::set<std::vector<uint32_t>> seen;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    std::vector<uint32_t> one = order(ScheduleKind::random, seed);
    EXPECT_EQ(order(ScheduleKind::random, seed), one);
    seen.insert(one);
    std::sort(one.begin(), one.end());
    EXPECT_EQ(one, up);
  }
  EXPECT_GT(seen.size(), 4u);
}

TEST(EmuControl, UnmodelledIsNeverSuccess) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.body(controlRegs, "tensormap.replace.tile.fill_mode.global.b1024.b32 [%out], 1;\n");
  ASSERT_EQ(r.result.findings.size(), 1u);
  EXPECT_EQ(r.result.verdict, Verdict::incomplete);
  EXPECT_EQ(r.result.findings[0].code, "unmodelled");
  EXPECT_EQ(r.result.findings[0].line, 19u);
}
TEST(EmuControl, UnmodelledThatIsNotReached) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.body(controlRegs, "setp.gt.u32 %p, %t, 100;\n@%p tensormap.replace.tile.rank.global.b1024.b32 [%out], 2;\n");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
}

TEST(EmuControl, Trap) { EXPECT_EQ(finding("trap;").code, "trap"); }

TEST(EmuControl, JumpTable) {
  auto got = results(R"(
ways: .branchtargets a, b, b, c;
and.b32 %i, %t, 3;
setp.eq.u32 %p, %t, 31;
mov.u32 %r, 7;
@!%p brx.idx %i, ways;
bra over;
c: add.u32 %r, %r, 1;
b: add.u32 %r, %r, 10;
bra over;
a: mov.u32 %r, 1;
over:
vote.sync.ballot.b32 %a, 1, 0xffffffff;
)");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], t == 31 ? 7u : t % 4 == 0 ? 1u : t % 4 == 3 ? 18u : 17u) << t;
  EXPECT_EQ(finding("ways: .branchtargets a;\nbrx.idx %t, ways;\na:").code, "brx");
}

/// A function with a loop, an early return in some lanes, a variable of its own, called twice by some lanes and once by
/// others; one that exists only as a declaration.
const char functions[] = R"(
.global .align 1 .b8 text[4] = {104, 105, 33, 0};
.extern .func (.param .b32 n) vprintf(.param .b64 format, .param .b64 values);
.extern .func __assertfail(.param .b64 what, .param .b64 file, .param .b32 line, .param .b64 in, .param .b64 size);
.extern .func unknown();
.func (.param .b32 result) sumUpTo(.param .b32 n) {
  .reg .b32 %n, %s; .reg .pred %p; .local .b32 kept;
  ld.param.b32 %n, [n];
  mov.u32 %s, 0;
  st.local.b32 [kept], %n;
  setp.eq.u32 %p, %n, 0;
  st.param.b32 [result], %s;
  @%p ret;
again:
  add.u32 %s, %s, %n;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra again;
  ld.local.b32 %n, [kept];
  add.u32 %s, %s, %n;
  st.param.b32 [result], %s;
}
.func (.param .b32 r) down(.param .b32 n) {
  .param .b32 x, y;
  call (x), down, (y);
}
)";

TEST(EmuControl, Calls) {
  Trial trial;
  uint64_t out = trial.buffer(std::vector<uint32_t>(32));
  trial.param(out);
  trial.body(controlRegs, R"(
.param .b32 x, y;
st.param.b32 [x], %t;
call (y), sumUpTo, (x);
ld.param.b32 %r, [y];
setp.lt.u32 %p, %t, 4;
@%p call (y), sumUpTo, (y);
@%p ld.param.b32 %r, [y];
.param .b64 format;
call (x), vprintf, (format, format);
ld.param.b32 %a, [x];
add.u32 %r, %r, %a;
vote.sync.ballot.b32 %a, 1, 0xffffffff;
)" + storeResult,
             functions);
  ASSERT_EQ(trial.result.verdict, Verdict::clean) << trial.text();
  auto got = trial.read<uint32_t>(out, 32);
  auto sum = [](uint32_t n) { return n * (n + 1) / 2 + n; };
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], t < 4 ? sum(sum(t)) : sum(t)) << t;
}

TEST(EmuControl, CallsThatCannotBeMade) {
  auto run = [](const std::string &code) {
    Trial trial;
    trial.param(trial.buffer(std::vector<uint32_t>(32)));
    trial.body(controlRegs, code, functions);
    return trial.result.findings.empty() ? Finding() : trial.result.findings[0];
  };
  EXPECT_EQ(run("call unknown;").verdict, Verdict::incomplete);
  EXPECT_NE(run(".param .b32 x; call (x), down, (x);").message.find("`down`"), std::string::npos);
  Finding assertion = run(".param .b64 q8; .param .b32 line; mov.b64 %w, text; st.param.b64 [q8], %w; "
                          "st.param.b32 [line], 42; call __assertfail, (q8, q8, line, q8, q8);");
  EXPECT_EQ(assertion.code, "assert");
  EXPECT_EQ(assertion.message, "assertion `hi!` failed (hi!:42)");
}

TEST(EmuControl, SharedVariablesOfOtherKernels) {
  Trial trial;
  trial.param(trial.buffer(std::vector<uint32_t>(32)));
  trial.params.dynamicShared = 200 * 1024;
  trial.body(controlRegs, "st.shared.b32 [mine], %t;",
             ".shared .align 16 .b8 others[65536];\n.shared .align 16 .b8 mine[128];\n");
  EXPECT_EQ(trial.result.verdict, Verdict::clean) << trial.text();
}

TEST(EmuControl, RefusedLaunches) {
  auto refused = [](auto change) {
    Trial r;
    r.param(r.buffer(std::vector<uint32_t>(1)));
    change(r);
    r.body("", "", "", ".reqntid 32\n");
    EXPECT_EQ(r.result.verdict, Verdict::error);
    return r.result.findings.empty() ? "" : r.result.findings[0].code;
  };
  EXPECT_EQ(refused([](Trial &r) { r.params.block = {64, 1, 1}; }), "launch");
  EXPECT_EQ(refused([](Trial &r) { r.params.block = {0, 1, 1}; }), "launch");
  EXPECT_EQ(refused([](Trial &r) { r.params.grid = {3, 1, 1}, r.params.cluster = {2, 1, 1}; }), "launch");
  EXPECT_EQ(refused([](Trial &r) { r.params.params.clear(); }), "launch");
  EXPECT_EQ(refused([](Trial &r) { r.params.dynamicShared = 300000; }), "launch");
  EXPECT_EQ(refused([](Trial &r) { r.options.clusters = {1}; }), "launch");
}

TEST(EmuControl, EmptyGrid) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(1)));
  r.params.grid = {0, 1, 1};
  EXPECT_EQ(r.body("", "trap;").verdict, Verdict::clean);
}

} // namespace gemmc::emu::test
