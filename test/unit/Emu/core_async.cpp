// Asynchronous copies: cp.async, bulk copies, TMA; data must not be there before it was waited for.
#include "core_harness.h"

namespace gemmc::emu::test {
namespace {
const std::string asyncRegs =
    ".reg .b32 %r, %a, %b, %c, %d, %i, %ph, %s;\n.reg .b16 %m;\n.reg .b64 %w, %in, %map;\n.reg .pred %p, %q;\n"
    ".shared .align 1024 .b8 s[8192];\n.shared .align 8 .b64 full[4];\n.shared .align 8 .b64 empty[4];\n";

/// A kernel with the parameters out, in and a tensor map.
struct CopyTrial : Trial {
  uint64_t out = 0, in = 0;
  std::vector<uint32_t> data = counting(4096, 1);
  unsigned threads = 32;

  explicit CopyTrial(unsigned threads = 32, unsigned cluster = 1) : threads(threads) {
    params.block = {threads, 1, 1};
    params.grid = params.cluster = {cluster, 1, 1};
    options.maxSteps = 1000000;
    out = buffer(std::vector<uint32_t>(4096));
    in = buffer(data);
  }
  Result &go(const std::string &code, const TensorMapValues *map = nullptr) {
    param(out);
    param(in);
    params.params.resize(192);
    if (map) {
      EncodedMap encoded = encodeTensorMap(*map);
      EXPECT_EQ(encoded.error, "");
      std::memcpy(params.params.data() + 64, encoded.bytes.data(), 128);
    }
    return module(".visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128]) {\n"
                  ".reg .b64 %out;\n.reg .b32 %t;\n" +
                  asyncRegs + R"(
ld.param.u64 %out, [out];
ld.param.u64 %in, [in];
mov.b64 %map, map;
mov.u32 %t, %tid.x;
mov.u32 %s, s;
mov.u32 %r, 0;
)" + code + "\nret;\n}\n");
  }
  std::vector<uint32_t> got(size_t count) { return read<uint32_t>(out, count); }
};
const std::string laneAddresses =
    "shl.b32 %a, %t, 4;\nadd.u32 %a, %a, %s;\nmul.wide.u32 %w, %t, 16;\nadd.u64 %in, %in, %w;\n";
const std::string copy16 = "cp.async.cg.shared.global [%a], [%in], 16;\n";
const std::string initFull = R"(
setp.ne.u32 %p, %t, 0;
@%p bra ready;
mbarrier.init.shared::cta.b64 [full], 1;
fence.mbarrier_init.release.cluster;
ready:
bar.sync 0;
)";
} // namespace

TEST(EmuAsync, CpAsyncWaitsForItsGroup) {
  CopyTrial r;
  r.go(laneAddresses + copy16 + R"(
cp.async.commit_group;
add.u64 %in, %in, 512;
cp.async.cg.shared.global [%a+512], [%in], 16;
cp.async.commit_group;
cp.async.wait_group 1;
ld.shared.b32 %b, [%a+4];
ld.shared.b32 %c, [%a+516];
cp.async.wait_group 0;
ld.shared.b32 %d, [%a+516];
mul.wide.u32 %w, %t, 16;
add.u64 %w, %w, %out;
st.global.v4.b32 [%w], {%b, %c, %d, %d};
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(128);
  EXPECT_EQ(got[4 * 5], 4 * 5 + 1 + 1u);
  EXPECT_EQ(got[4 * 5 + 1], 0xffffffffu); // the second group had not been waited for
  EXPECT_EQ(got[4 * 5 + 2], 128 + 4 * 5 + 1 + 1u);
}

TEST(EmuAsync, CpAsyncFillsWithZeros) {
  CopyTrial r;
  r.go(laneAddresses + R"(
mov.u32 %b, 8;
cp.async.ca.shared.global [%a], [%in], 16, %b;
setp.gt.u32 %p, %t, 15;
cp.async.ca.shared.global [%a+1024], [%in], 4, %p;
mov.u64 %w, 0;
cp.async.ca.shared.global [%a+1028], [%w], 4, 0; // nothing is read from address 0
cp.async.wait_all;
ld.shared.b32 %b, [%a+4];
ld.shared.b32 %c, [%a+8];
ld.shared.v2.b32 {%d, %i}, [%a+1024];
mul.wide.u32 %w, %t, 16;
add.u64 %w, %w, %out;
st.global.v4.b32 [%w], {%b, %c, %d, %i};
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(128);
  EXPECT_EQ(got[12], 14u);
  EXPECT_EQ(got[13], 0u);
  EXPECT_EQ(got[14], 13u);
  EXPECT_EQ(got[15], 0u);
  EXPECT_EQ(got[16 * 4 + 2], 0u);
}

TEST(EmuAsync, CpAsyncMistakes) {
  auto code = [](const std::string &text) {
    CopyTrial r;
    r.go(laneAddresses + text);
    return r.result.findings.empty() ? "clean" : r.result.findings[0].code;
  };
  EXPECT_EQ(code("add.u64 %in, %in, 4;\ncp.async.cg.shared.global [%a], [%in], 16;"), "CA-2");
  EXPECT_EQ(code("add.u32 %a, %a, 4;\ncp.async.cg.shared.global [%a], [%in], 16;"), "CA-2");
  EXPECT_EQ(code("mov.u32 %b, 17;\ncp.async.cg.shared.global [%a], [%in], 16, %b;"), "CA-1");
  EXPECT_EQ(code("cp.async.cg.shared.global [%a], [%in+65536], 16;"), "AD-3");
}

TEST(EmuAsync, CpAsyncArrivesAtAnMbarrier) {
  for (bool noinc : {false, true}) {
    CopyTrial r(64);
    r.go(R"(
setp.ne.u32 %p, %t, 0;
@%p bra ready;
mbarrier.init.shared::cta.b64 [full], 64;
ready:
bar.sync 0;
)" + laneAddresses +
         copy16 + "cp.async.mbarrier.arrive" + (noinc ? ".noinc" : "") + ".shared::cta.b64 [full];\n" +
         (noinc ? "" : "mbarrier.arrive.shared::cta.b64 _, [full];\n") + waitLoop("wait", "full", "0") + R"(
xor.b32 %a, %t, 32;
shl.b32 %a, %a, 4;
add.u32 %a, %a, %s;
ld.shared.b32 %r, [%a];
)" + storeResult);
    EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
    EXPECT_EQ(r.got(64)[3], 35 * 4 + 1u);
  }
}

// A ring of two stages: warp 0 produces with cp.async, warp 1 consumes, full and empty mbarriers between them.
TEST(EmuAsync, MbarrierRing) {
  CopyTrial r(64);
  r.go(R"(
setp.ne.u32 %p, %t, 0;
@%p bra ready;
mbarrier.init.shared::cta.b64 [full], 32;
mbarrier.init.shared::cta.b64 [full+8], 32;
mbarrier.init.shared::cta.b64 [empty], 32;
mbarrier.init.shared::cta.b64 [empty+8], 32;
ready:
bar.sync 0;
mov.u32 %i, 0;
mov.u32 %ph, 0;
and.b32 %c, %t, 31;
shl.b32 %c, %c, 4;
add.u32 %s, %s, %c;
cvt.u64.u32 %w, %c;
add.u64 %in, %in, %w;
setp.ge.u32 %p, %t, 32;
@%p bra consumer;
producer:
and.b32 %a, %i, 1;
mov.u32 %b, empty;
mad.lo.u32 %b, %a, 8, %b;
xor.b32 %c, %ph, 1;
)" + waitLoop("free", "%b", "%c") +
       R"(
mov.u32 %b, full;
mad.lo.u32 %b, %a, 8, %b;
mad.lo.u32 %c, %a, 512, %s;
cp.async.cg.shared.global [%c], [%in], 16;
add.u64 %in, %in, 512;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%b];
xor.b32 %ph, %ph, %a;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 10;
@%p bra producer;
exit;
consumer:
and.b32 %a, %i, 1;
mov.u32 %b, full;
mad.lo.u32 %b, %a, 8, %b;
)" + waitLoop("filled", "%b", "%ph") +
       R"(
mad.lo.u32 %c, %a, 512, %s;
ld.shared.b32 %d, [%c];
add.u32 %r, %r, %d;
mov.u32 %b, empty;
mad.lo.u32 %b, %a, 8, %b;
mbarrier.arrive.shared::cta.b64 _, [%b];
xor.b32 %ph, %ph, %a;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 10;
@%p bra consumer;
)" + storeResult);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(64);
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(got[32 + lane], 10 * (4 * lane + 1) + 128 * 45);
}

TEST(EmuAsync, BulkCopyAndStore) {
  CopyTrial r;
  r.go(initFull + R"(
setp.ne.u32 %p, %t, 0;
@%p bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 512, [full];
)" + waitLoop("wait", "full", "0") +
       R"(
mad.lo.u32 %a, %t, 4, %s;
ld.shared.b32 %r, [%a];
add.u32 %r, %r, 1000;
st.shared.b32 [%a], %r;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra end;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
st.shared.b32 [%s], %t;
cp.async.bulk.wait_group 0;
end:
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(128);
  EXPECT_EQ(got[0], 1001u); // read before it was overwritten
  EXPECT_EQ(got[31], 1032u);
  EXPECT_EQ(got[127], 128u);
}

TEST(EmuAsync, BulkStoreReadsLateWithoutAWait) {
  CopyTrial r;
  r.go(R"(
mad.lo.u32 %a, %t, 4, %s;
st.shared.b32 [%a], 7;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra end;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 128;
cp.async.bulk.commit_group;
st.shared.b32 [%s], 9;
cp.async.bulk.wait_group 0;
end:
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(r.got(2), (std::vector<uint32_t>{9, 7})); // the overwriting shows
}

// wait_group.read 1 covers the older of two groups and leaves the newer one: what overwrites its source shows.
TEST(EmuAsync, BulkWaitLeavesTheNewestGroup) {
  CopyTrial r;
  r.go(R"(
mad.lo.u32 %a, %t, 4, %s;
st.shared.b32 [%a], 7;
st.shared.b32 [%a+128], 7;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra end;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 128;
cp.async.bulk.commit_group;
cp.async.bulk.global.shared::cta.bulk_group [%out+128], [%s+128], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 1;
st.shared.b32 [%s], 9;
st.shared.b32 [%s+128], 9;
cp.async.bulk.wait_group 0;
end:
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(34);
  EXPECT_EQ(got[0], 7u);
  EXPECT_EQ(got[32], 9u);
  EXPECT_EQ(got[33], 7u);
}

TEST(EmuAsync, BulkReduction) {
  CopyTrial r;
  r.go(R"(
mad.lo.u32 %a, %t, 4, %s;
st.shared.b32 [%a], %t;
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra end;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 128;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
end:
)");
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(r.got(32)[31], 62u);
}

// --- TMA

/// The input as a matrix of 64 columns and 64 rows of u32, without padding.
TensorMapValues matrixMap(const CopyTrial &r, uint32_t boxX, uint32_t boxY, ptx::TmaSwizzle swizzle) {
  TensorMapValues map;
  map.type = Elem::f32;
  map.address = r.in;
  map.dims = {64, 60};
  map.strides = {256};
  map.box = {boxX, boxY};
  map.swizzle = swizzle;
  return map;
}
std::string tensorLoad(const std::string &coords, unsigned bytes) {
  return initFull + "setp.ne.u32 %p, %t, 0;\n@%p bra wait;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [full], " +
         std::to_string(bytes) +
         ";\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, " + coords +
         "], [full];\n" + waitLoop("wait", "full", "0");
}
/// Copies what is in shared memory to `out`.
const std::string dump = R"(
mov.u32 %i, %t;
dumping:
shl.b32 %a, %i, 2;
add.u32 %b, %a, %s;
ld.shared.b32 %r, [%b];
cvt.u64.u32 %w, %a;
add.u64 %w, %w, %out;
st.global.b32 [%w], %r;
add.u32 %i, %i, 32;
setp.lt.u32 %p, %i, 512;
@%p bra dumping;
)";

TEST(EmuAsync, TensorLoadOutOfBounds) {
  CopyTrial r;
  TensorMapValues map = matrixMap(r, 16, 8, ptx::TmaSwizzle::none);
  r.go(tensorLoad("{56, 56}", 512) + dump, &map);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(128);
  for (unsigned y = 0; y < 8; ++y)
    for (unsigned x = 0; x < 16; ++x)
      EXPECT_EQ(got[16 * y + x], x < 8 && y < 4 ? 1 + 64 * (56 + y) + 56 + x : 0u);
}

TEST(EmuAsync, TensorLoadSwizzled) {
  CopyTrial r;
  TensorMapValues map = matrixMap(r, 32, 16, ptx::TmaSwizzle::b128);
  r.go(tensorLoad("{32, 3}", 2048) + dump, &map);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(512);
  for (unsigned y = 0; y < 16; ++y)
    for (unsigned x = 0; x < 32; ++x) // 16-byte chunk c of row y lies at chunk c ^ (y % 8)
      EXPECT_EQ(got[32 * y + (x / 4 ^ y % 8) * 4 + x % 4], 1 + 64 * (3 + y) + 32 + x);
}

TEST(EmuAsync, TensorStore) {
  CopyTrial r;
  TensorMapValues map = matrixMap(r, 8, 4, ptx::TmaSwizzle::none);
  map.address = r.out;
  r.go(R"(
mad.lo.u32 %a, %t, 4, %s;
st.shared.b32 [%a], %t;
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra end;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {60, 58}], [%s];
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {0, 0}], [%s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
end:
)",
       &map);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(4096);
  EXPECT_EQ(got[58 * 64 + 60], 0u);
  EXPECT_EQ(got[58 * 64 + 63], 3u);
  EXPECT_EQ(got[59 * 64 + 62], 10u);
  EXPECT_EQ(got[59 * 64 + 0], 0u); // beyond the edge: not written
  EXPECT_EQ(got[60 * 64 + 60], 0u);
}

/// A copy of the map gets another address, box and extent; its 16 words are rows 5 and 6 from column 8 on.
TEST(EmuAsync, TensorMapChangedByTheKernel) {
  CopyTrial r;
  TensorMapValues map = matrixMap(r, 8, 4, ptx::TmaSwizzle::none);
  map.address = r.out;
  r.go(R"(
mad.lo.u32 %a, %t, 4, %s;
mul.wide.u32 %w, %t, 4;
add.u64 %map, %map, %w;
ld.param.b32 %r, [%map];
st.shared.b32 [%a], %r;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@!%p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %in;
@!%p tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 1, 2;
@!%p tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [s], 0, 512; // every other row
@!%p tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s], 1, 30;
@!%p tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], 1;
bar.sync 0;
add.u64 %map, %out, 8192;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [s], 128;
bar.sync 0;
fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
fence.proxy.async;
bar.sync 0;
)" + tensorLoad("{8, 2}", 64) +
           R"(
setp.gt.u32 %p, %t, 15;
@%p bra end;
mad.lo.u32 %a, %t, 4, %s;
ld.shared.b32 %r, [%a];
)" + storeResult +
           "end:",
       &map);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(16);
  EXPECT_EQ(got[0], 1 + 64 * 4 + 8u);
  EXPECT_EQ(got[9], 1 + 64 * 6 + 9u);
}

TEST(EmuAsync, Multicast) {
  CopyTrial r(32, 2);
  TensorMapValues map = matrixMap(r, 16, 2, ptx::TmaSwizzle::none);
  const std::string sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  r.go(initFull + R"(
setp.eq.u32 %p, %t, 0;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
)" + sync + R"(
mov.u32 %c, %cluster_ctarank;
add.u32 %i, %t, %c;
setp.ne.u32 %p, %i, 0; // thread 0 of CTA 0
@%p bra wait;
mov.b16 %m, 3;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%map, {0, 5}], [full], %m;
)" + waitLoop("wait", "full", "0") +
           R"(
mad.lo.u32 %a, %t, 4, %s;
ld.shared.b32 %r, [%a];
mad.lo.u32 %t, %c, 32, %t;
)" + storeResult +
           sync,
       &map);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(64);
  EXPECT_EQ(got[0], 321u);
  EXPECT_EQ(got[16], 385u);
  EXPECT_EQ(got[32 + 17], 386u);
}

TEST(EmuAsync, TensorMistakes) {
  auto finding = [](const std::string &code, const TensorMapValues *values = nullptr) {
    CopyTrial r;
    TensorMapValues map = matrixMap(r, 16, 8, ptx::TmaSwizzle::none);
    r.go(code, values ? values : &map);
    return r.result.findings.empty() ? "clean" : r.result.findings[0].code;
  };
  std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes ";
  std::string one = "setp.ne.u32 %p, %t, 0;\n@%p bra end;\n";
  EXPECT_EQ(finding(tensorLoad("{0, 0}", 512)), "clean");
  EXPECT_EQ(finding(tensorLoad("{0, 0}", 528)), "deadlock"); // 16 bytes never come
  EXPECT_EQ(finding(tensorLoad("{1, 0}", 512)), "TM-12");
  EXPECT_EQ(finding(initFull + one + load + "[%s+16], [%map, {0, 0}], [full];\nend:"), "TM-14");
  EXPECT_EQ(finding(initFull + one + load + "[%s+8064], [%map, {0, 0}], [full];\nend:"), "TM-11");
  EXPECT_EQ(finding(initFull + one + "add.u64 %map, %in, 0;\n" + load + "[%s], [%map, {0, 0}], [full];\nend:"),
            "TM-10");
  EXPECT_EQ(finding(initFull + one + load + "[%s], [%map, {0, 0}], [full];\nend:"), "MB-22"); // nobody waits
}

TEST(EmuAsync, TensorMapOutsideOfAllMemory) {
  CopyTrial r;
  TensorMapValues map = matrixMap(r, 16, 8, ptx::TmaSwizzle::none);
  map.dims = {64, 70}; // the buffer has 64 rows
  r.go(tensorLoad("{0, 60}", 512), &map);
  ASSERT_FALSE(r.result.findings.empty());
  EXPECT_EQ(r.result.findings[0].code, "AD-3");
}

TEST(EmuAsync, CopiesBetweenCtas) {
  CopyTrial r(32, 2);
  const std::string sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  r.go(initFull + R"(
mov.u32 %c, %cluster_ctarank;
xor.b32 %d, %c, 1;
mad.lo.u32 %a, %t, 4, %s;
mad.lo.u32 %i, %c, 100, %t;
st.shared.b32 [%a], %i;
st.shared.b32 [%a+256], %i;
fence.proxy.async;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
)" + sync +
       R"(
setp.ne.u32 %p, %t, 0;
@%p bra wait;
mapa.shared::cluster.u32 %a, %s, %d;
mov.u32 %b, full;
mapa.shared::cluster.u32 %b, %b, %d;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a+128], [%s], 128, [%b];
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%a+256], [%s], 128, [%b];
)" + waitLoop("wait", "full", "0") +
       R"(
mad.lo.u32 %a, %t, 4, %s;
ld.shared.b32 %r, [%a+128];
ld.shared.b32 %b, [%a+256];
mad.lo.u32 %r, %b, 1000, %r;
mad.lo.u32 %t, %c, 32, %t;
)" + storeResult +
       sync);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  auto got = r.got(64);
  EXPECT_EQ(got[5], 110105u); // from CTA 1: 105; and 5 + 105
  EXPECT_EQ(got[37], 110005u);
}

TEST(EmuAsync, PrefetchesAreChecked) {
  auto finding = [](const std::string &code) {
    CopyTrial r;
    TensorMapValues map = matrixMap(r, 16, 8, ptx::TmaSwizzle::none);
    r.go(code, &map);
    return r.result.findings.empty() ? "clean" : r.result.findings[0].code;
  };
  EXPECT_EQ(finding("prefetch.tensormap [%map];\nprefetch.param.tensormap [map];\n"
                    "cp.async.bulk.prefetch.L2.global [%in], 256;\n"
                    "cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {4, 0}];\n"
                    "createpolicy.range.L2::evict_last.b64 %w, [%in], 64, 128;\n"),
            "clean");
  EXPECT_EQ(finding("cp.async.bulk.prefetch.L2.global [%in], 65536;"), "AD-3");
  EXPECT_EQ(finding("cp.async.bulk.prefetch.L2.global [%in], 20;"), "TM-7");
  EXPECT_EQ(finding("cp.async.bulk.prefetch.tensor.2d.L2.global [%in, {0, 0}];"), "TM-10");
  EXPECT_EQ(finding("prefetch.tensormap [%map+64];"), "AD-5");
}

TEST(EmuAsync, StAsync) {
  CopyTrial r(32, 2);
  const std::string sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  r.go(initFull + R"(
setp.eq.u32 %p, %t, 0;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
)" + sync +
       R"(
mov.u32 %c, %cluster_ctarank;
xor.b32 %d, %c, 1;
mad.lo.u32 %a, %t, 4, %s;
mapa.shared::cluster.u32 %a, %a, %d;
mov.u32 %b, full;
mapa.shared::cluster.u32 %b, %b, %d;
mad.lo.u32 %i, %c, 100, %t;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%a], %i, [%b];
)" + waitLoop("wait", "full", "0") +
       R"(
mad.lo.u32 %a, %t, 4, %s;
ld.shared.b32 %r, [%a];
mad.lo.u32 %t, %c, 32, %t;
)" + storeResult +
       sync);
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  EXPECT_EQ(r.got(64)[5], 105u);
  EXPECT_EQ(r.got(64)[37], 5u);
}

} // namespace gemmc::emu::test
