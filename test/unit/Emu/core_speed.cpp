// Pace. The limits are far below what an idle machine does, so that only a real loss of speed fails.
#include "Pace.h"
#include "core_harness.h"
#include <functional>

namespace gemmc::emu::test {
namespace {
double seconds(const std::function<void()> &work) {
  double start = gemmc::test::processorSeconds();
  work();
  return (gemmc::test::processorSeconds() - start) / gemmc::test::allowance;
}
std::string list(const std::string &stem, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + ("%" + stem + std::to_string(i));
  return text + "}";
}
} // namespace

TEST(EmuSpeed, SimpleInstructions) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(256)));
  r.params.block = {256, 1, 1};
  double time = seconds([&] {
    r.body(".reg .b32 %i, %x, %y;\n.reg .f32 %f;\n.reg .pred %p;\n", R"(
mov.u32 %i, 0;
mov.u32 %x, %t;
mov.f32 %f, 0f3F800000;
loop:
add.u32 %x, %x, %i;
xor.b32 %y, %x, 12345;
mad.lo.u32 %x, %y, 3, %x;
shl.b32 %y, %x, 3;
fma.rn.f32 %f, %f, 0f3F000000, 0f3F800000;
add.u32 %x, %x, %y;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 5000;
@%p bra loop;
)");
  });
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  double rate = r.result.stats.warpInstructions * 32 / time / 1e6;
  RecordProperty("mega_lane_operations_per_second", static_cast<int>(rate));
  std::printf("[ pace     ] %.0f million lane operations a second\n", rate);
  EXPECT_GT(rate, 20);
}

TEST(EmuSpeed, SharedMemory) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(256)));
  r.params.block = {256, 1, 1};
  double time = seconds([&] {
    r.body(".reg .b32 %i, %x, %y, %a, %b, %c, %s;\n.reg .pred %p;\n.shared .align 16 .b8 buffer[4096];\n", R"(
mov.u32 %i, 0;
mov.u32 %s, buffer;
shl.b32 %x, %t, 4;
add.u32 %s, %s, %x;
st.shared.v4.b32 [%s], {%x, %x, %x, %x};
loop:
ld.shared.v4.b32 {%x, %y, %a, %b}, [%s];
st.shared.b32 [%s+4], %y;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 2000;
@%p bra loop;
)");
  });
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  double rate = 2000 * 2 * 256 / time / 1e6;
  std::printf("[ pace     ] %.0f million lane accesses of shared memory a second\n", rate);
  EXPECT_GT(rate, 2);
}

// A block tile of 128x256 with K = 512: two warpgroups of 64x256, 32 steps of K = 16.
TEST(EmuSpeed, WgmmaTile) {
  Trial r;
  r.param(r.buffer(std::vector<uint32_t>(256)));
  r.params.block = {256, 1, 1};
  std::string regs = ".reg .b32 %i, %s, %z, %x;\n.reg .b64 %da, %db;\n.reg .pred %p;\n.reg .f32 %d<128>;\n"
                     ".shared .align 1024 .b8 tile[16384];\n";
  std::string code = R"(
mov.u32 %s, tile;
shl.b32 %x, %t, 6;
add.u32 %x, %x, %s;
mov.u32 %z, 0x3c003c00;
)";
  for (unsigned i = 0; i < 64; i += 16)
    code += "st.shared.v4.b32 [%x+" + std::to_string(i) + "], {%z, %z, %z, %z};\n";
  for (unsigned i = 0; i < 128; ++i)
    code += "mov.f32 %d" + std::to_string(i) + ", 0f00000000;\n";
  code += R"(
fence.proxy.async;
bar.sync 0;
shr.u32 %x, %s, 4;
cvt.u64.u32 %da, %x;
or.b64 %da, %da, 0x0000000800010000; // SBO 128 bytes, LBO 16 bytes, no swizzle
mov.u64 %db, %da;
mov.u32 %i, 0;
loop:
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 )" +
          list("d", 128) + R"(, %da, %db, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 32;
@%p bra loop;
shl.b32 %x, %t, 2;
cvt.u64.u32 %da, %x;
add.u64 %out, %out, %da;
st.global.f32 [%out], %d5;
)";
  double time = seconds([&] { r.body(regs, code); });
  EXPECT_EQ(r.result.verdict, Verdict::clean) << r.text();
  std::printf("[ pace     ] 128x256x512 by wgmma: %.3f s, %.0f million multiply-adds a second\n", time, 16.777 / time);
  EXPECT_LT(time, 4);
}

} // namespace gemmc::emu::test
