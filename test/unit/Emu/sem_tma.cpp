// Tensor maps and boxes against one loop over elements; swizzles from the tables of PTX ISA 5.5.7.
#include "gemmc/Emu/Numerics.h"
#include "gemmc/Emu/TensorMap.h"
#include "gtest/gtest.h"
#include <random>

using namespace gemmc;
using namespace gemmc::emu;
using namespace gemmc::emu::sem;
using ptx::TmaSwizzle;

namespace {

/// The manual's table: chunk `column` of row `row` (rows of 8 chunks of 16 bytes) is stored in the place of
/// `table[row % rows][column]`.
uint32_t placeByTable(TmaSwizzle swizzle, uint32_t address) {
  static const uint8_t table[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5},
                                      {3, 2, 1, 0, 7, 6, 5, 4}, {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                      {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
  unsigned rows = swizzle == TmaSwizzle::b128 ? 8 : swizzle == TmaSwizzle::b64 ? 4 : swizzle == TmaSwizzle::b32 ? 2 : 1;
  unsigned row = address / 128 % rows, column = address / 16 % 8;
  return address / 128 * 128 + table[row][column] * 16 + address % 16;
}

struct Case {
  TensorMapValues values;
  std::vector<int32_t> coords;
  uint32_t shared;
  std::string name() const {
    std::string text = "rank " + std::to_string(values.dims.size()) + " " + nameOf(values.type).str() + " swizzle " +
                       std::to_string(int(values.swizzle)) + " at";
    for (int32_t c : coords)
      text += " " + std::to_string(c);
    return text;
  }
};

constexpr uint64_t base = 0x1000;

Case randomCase(std::mt19937 &rng, bool store) {
  static const Elem types[] = {Elem::f16, Elem::bf16, Elem::f32, Elem::u8, Elem::f64, Elem::tf32};
  Case c;
  c.values.type = types[rng() % (std::size(types) - !store)]; // loads of tf32 are not modelled
  c.values.swizzle = static_cast<TmaSwizzle>(rng() % 4);
  unsigned bytes = bytesOf(c.values.type), rank = 1 + rng() % 5, span = 16u << unsigned(c.values.swizzle);
  c.values.address = base;
  uint64_t stride = 0;
  for (unsigned d = 0; d < rank; ++d) {
    uint64_t extent = d == 0 ? 1 + rng() % 60 : 1 + rng() % 7;
    if (d == 0 && store) // TM-15
      extent = (extent * bytes + 15) / 16 * 16 / bytes;
    if (d)
      c.values.strides.push_back(stride);
    c.values.dims.push_back(extent);
    stride = d == 0 ? (extent * bytes + 15) / 16 * 16 + 16 * (rng() % 2) : stride * (extent + rng() % 2);
    unsigned row = c.values.swizzle == TmaSwizzle::none ? 16 * (1 + rng() % 8) : span;
    unsigned box = d == 0 ? std::min(row / bytes, 256u) : 1 + rng() % 4;
    c.values.box.push_back(box);
    int32_t coord = static_cast<int32_t>(rng() % (extent + 4)) - 3;
    if (d == 0)
      coord = coord * 16 / static_cast<int>(bytes);
    if (d == 0 && store)
      coord = static_cast<int32_t>(rng() % (extent + 4)); // any element will do
    c.coords.push_back(store ? std::max(coord, 0) : coord);
  }
  c.shared = 128 * (rng() % 16);
  return c;
}

/// Calls visit(shared byte, global byte or nothing) for each byte of the box.
template <typename Visit> void eachByte(const Case &c, Visit visit) {
  std::vector<int64_t> at(c.coords.size(), 0);
  unsigned bytes = bytesOf(c.values.type);
  uint64_t total = bytes;
  for (uint32_t extent : c.values.box)
    total *= extent;
  for (uint64_t linear = 0; linear < total; ++linear) {
    uint64_t rest = linear / bytes, global = c.values.address + linear % bytes;
    bool inside = true;
    for (unsigned d = 0; d < at.size(); ++d) {
      int64_t x = int64_t(c.coords[d]) + int64_t(rest % c.values.box[d]);
      rest /= c.values.box[d];
      inside = inside && x >= 0 && x < int64_t(c.values.dims[d]);
      global += x * (d ? c.values.strides[d - 1] : bytes);
    }
    visit(placeByTable(c.values.swizzle, c.shared + linear), inside ? std::optional(global) : std::nullopt);
  }
}

constexpr uint32_t sharedBytes = 1 << 20, globalBytes = 1 << 20;
std::vector<std::byte> noise(std::mt19937 &rng, size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::byte &b : data)
    b = static_cast<std::byte>(rng());
  return data;
}

} // namespace

TEST(SemTma, LoadsLikeALoop) {
  std::mt19937 rng(2);
  std::vector<std::byte> global = noise(rng, globalBytes), before = noise(rng, sharedBytes), got, want;
  unsigned cases = 0;
  for (unsigned i = 0; i < 400; ++i) {
    Case c = randomCase(rng, false);
    EncodedMap encoded = encodeTensorMap(c.values);
    ASSERT_EQ(encoded.error, "") << c.name();
    auto map = decodeTensorMap(encoded.bytes.data());
    ASSERT_TRUE(map);
    if (uint64_t(map->boxBytes()) + c.shared > sharedBytes)
      continue;
    ASSERT_FALSE(checkAccess(*map, TmaAccess::load, c.coords, c.shared)) << c.name();
    got = want = before;
    uint64_t bytes = 0;
    eachByte(c, [&](uint32_t to, std::optional<uint64_t> from) {
      want[to] = from ? global[*from - base] : std::byte(0);
      ++bytes;
    });
    auto refused = loadBox(*map, c.coords, c.shared, got.data(), [&](uint64_t address, uint32_t n) {
      return address >= base && address + n <= base + globalBytes ? &global[address - base] : nullptr;
    });
    ASSERT_FALSE(refused) << c.name();
    ASSERT_EQ(bytes, map->boxBytes());
    ASSERT_TRUE(got == want) << c.name();
    ++cases;
  }
  EXPECT_GT(cases, 300u);
}

// An H200 rounds what it loads through a map of TF32 (docs/emulator.md); a map of F32 copies bits.
TEST(SemTma, LoadsOfTf32AreNotModelled) {
  for (auto [type, rule] : {std::pair(Elem::tf32, "unmodelled"), std::pair(Elem::f32, "")}) {
    TensorMapValues values;
    values.type = type, values.address = base, values.dims = {8, 4}, values.strides = {32}, values.box = {8, 4};
    auto map = decodeTensorMap(encodeTensorMap(values).bytes.data());
    ASSERT_TRUE(map);
    Broken load = checkAccess(*map, TmaAccess::load, {0, 0}, 0);
    EXPECT_EQ(load ? std::string(load.rule) : "", rule);
    EXPECT_FALSE(checkAccess(*map, TmaAccess::store, {0, 0}, 0));
  }
}

TEST(SemTma, StoresLikeALoop) {
  std::mt19937 rng(3);
  std::vector<std::byte> shared = noise(rng, sharedBytes), before = noise(rng, globalBytes), got, want;
  for (unsigned i = 0; i < 400; ++i) {
    Case c = randomCase(rng, true);
    auto map = decodeTensorMap(encodeTensorMap(c.values).bytes.data());
    ASSERT_TRUE(map);
    if (uint64_t(map->boxBytes()) + c.shared > sharedBytes)
      continue;
    ASSERT_FALSE(checkAccess(*map, TmaAccess::store, c.coords, c.shared)) << c.name();
    got = want = before;
    eachByte(c, [&](uint32_t from, std::optional<uint64_t> to) {
      if (to)
        want[*to - base] = shared[from];
    });
    auto refused = storeBox(*map, c.coords, c.shared, shared.data(),
                            [&](uint64_t address, uint32_t n) { return &got[address - base]; });
    ASSERT_FALSE(refused);
    ASSERT_TRUE(got == want) << c.name();
  }
}

TEST(SemTma, RefusedMemoryIsNamed) {
  TensorMapValues values{Elem::f16, base, {64, 4}, {128}, {64, 4}, TmaSwizzle::none};
  auto map = decodeTensorMap(encodeTensorMap(values).bytes.data());
  std::vector<std::byte> shared(4096), global(128 * 2);
  auto refused = loadBox(*map, {0, 0}, 0, shared.data(), [&](uint64_t address, uint32_t n) {
    return address + n <= base + global.size() ? &global[address - base] : nullptr;
  });
  EXPECT_EQ(refused, base + 256);
}

TEST(SemTma, AccessRules) {
  TensorMapValues values{Elem::f16, base, {64, 4}, {128}, {64, 4}, TmaSwizzle::b128};
  TensorMap map = *decodeTensorMap(encodeTensorMap(values).bytes.data());
  auto rule = [&](TmaAccess access, std::vector<int32_t> coords, uint32_t shared) {
    Broken broken = checkAccess(map, access, coords, shared);
    return std::string(broken ? broken.rule : "");
  };
  EXPECT_EQ(rule(TmaAccess::load, {8, 1}, 1024), "");
  EXPECT_EQ(rule(TmaAccess::load, {-8, -1}, 1024), "");
  EXPECT_EQ(rule(TmaAccess::load, {4, 1}, 1024), "TM-12");
  EXPECT_EQ(rule(TmaAccess::store, {4, 1}, 1024), "");
  EXPECT_EQ(rule(TmaAccess::store, {0, -1}, 1024), "TM-9");
  map.dims[0] = 61; // 122 bytes
  EXPECT_EQ(rule(TmaAccess::load, {0, 0}, 1024), "");
  EXPECT_EQ(rule(TmaAccess::store, {0, 0}, 1024), "TM-15");
  EXPECT_EQ(rule(TmaAccess::store, {0, 4}, 1024), ""); // wholly below the tensor
  map.dims[0] = 80;                                    // the box ends before the row does
  EXPECT_EQ(rule(TmaAccess::store, {0, 0}, 1024), "");
  map.dims[0] = 64;
  EXPECT_EQ(rule(TmaAccess::load, {8, 1}, 64), "TM-14");
  EXPECT_EQ(rule(TmaAccess::load, {8}, 1024), "TM-13");
  map.box[0] = 32;
  EXPECT_EQ(rule(TmaAccess::load, {8, 1}, 1024), "unmodelled");
}

TEST(SemTma, HostRules) {
  const TensorMapValues good{Elem::f16, base, {64, 64, 2}, {128, 8192}, {64, 8, 1}, TmaSwizzle::b128};
  EXPECT_EQ(encodeTensorMap(good).error, "");
  auto error = [&](auto change) {
    TensorMapValues values = good;
    change(values);
    EncodedMap map = encodeTensorMap(values);
    EXPECT_FALSE(decodeTensorMap(map.bytes.data()));
    return map.error;
  };
  using V = TensorMapValues;
  EXPECT_EQ(error([](V &v) { v.dims = {}; }), "the rank is 1 to 5, not 0");
  EXPECT_EQ(error([](V &v) { v.dims.resize(6, 1); }), "the rank is 1 to 5, not 6");
  EXPECT_EQ(error([](V &v) { v.strides.pop_back(); }), "rank 3 needs 2 strides, not 1");
  EXPECT_EQ(error([](V &v) { v.box.pop_back(); }), "rank 3 needs 3 box extents, not 2");
  EXPECT_EQ(error([](V &v) { v.address = 0x1008; }), "the global address must be a multiple of 16, not 0x1008");
  EXPECT_EQ(error([](V &v) { v.dims[1] = 0; }), "the extent of dimension 1 is 1 to 2^32, not 0");
  EXPECT_EQ(error([](V &v) { v.dims[1] = (1ull << 32) + 1; }),
            "the extent of dimension 1 is 1 to 2^32, not 4294967297");
  EXPECT_EQ(error([](V &v) { v.strides[1] = 8200; }),
            "the stride of dimension 2 must be a multiple of 16 bytes, not 8200");
  EXPECT_EQ(error([](V &v) { v.strides[1] = 1ull << 40; }),
            "the stride of dimension 2 must be below 2^40 bytes, not 1099511627776");
  EXPECT_EQ(error([](V &v) { v.box[1] = 257; }), "the box extent of dimension 1 is 1 to 256, not 257");
  EXPECT_EQ(error([](V &v) { v.box[0] = 12; }), "the box's rows must be a multiple of 16 bytes, not 12 x 2");
  EXPECT_EQ(error([](V &v) { v.box[0] = 72; }),
            "a 128-byte swizzle allows box rows of at most 128 bytes, not 72 x 2 = 144");
  TensorMapValues widest = good;
  widest.dims[2] = 1ull << 32;
  EXPECT_EQ(decodeTensorMap(encodeTensorMap(widest).bytes.data())->dims[2], 1ull << 32);
}

TEST(SemTma, DamagedMapsAreNoMaps) {
  TensorMapValues values{Elem::f16, base, {64}, {}, {64}, TmaSwizzle::none};
  EncodedMap map = encodeTensorMap(values);
  for (std::byte &b : map.bytes) {
    b ^= std::byte(0x10);
    EXPECT_FALSE(decodeTensorMap(map.bytes.data()));
    b ^= std::byte(0x10);
  }
  EXPECT_TRUE(decodeTensorMap(map.bytes.data()));
}

namespace {
template <typename T> T reduced(ReduceOp op, ptx::Type type, T dst, T src) {
  EXPECT_TRUE(isReduce(op, type));
  reduceBytes(op, type, reinterpret_cast<std::byte *>(&dst), reinterpret_cast<const std::byte *>(&src), sizeof(T));
  return dst;
}
} // namespace

TEST(SemTma, Reductions) {
  using enum ptx::Type;
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::add, u32, ~0u, 2), 1u);
  EXPECT_EQ(reduced<int32_t>(ReduceOp::min, s32, -1, 1), -1);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::min, u32, ~0u, 1), 1u);
  EXPECT_EQ(reduced<int64_t>(ReduceOp::max, s64, -5, 3), 3);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::inc, u32, 7, 7), 0u);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::inc, u32, 6, 7), 7u);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::dec, u32, 0, 7), 7u);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::dec, u32, 9, 7), 7u);
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::dec, u32, 5, 7), 4u);
  EXPECT_EQ(reduced<uint64_t>(ReduceOp::bitXor, b64, 6, 3), 5u);
  EXPECT_EQ(reduced<float>(ReduceOp::add, f32, 1.5f, 2.0f), 3.5f);
  EXPECT_EQ(reduced<float>(ReduceOp::add, f32, 0x1p-127f, 0x1p-127f), 0x1p-126f); // kept (H200)
  EXPECT_EQ(reduced<uint32_t>(ReduceOp::add, f32, 0x007fffff, 0x00800000), 0x00ffffffu);
  EXPECT_EQ(reduced<uint64_t>(ReduceOp::add, f64, 0x7ff71ce7efa3b1ae, 0xbe742f0000000000), 0x7ff71ce7efa3b1aeu);
  EXPECT_EQ(reduced<uint64_t>(ReduceOp::add, f64, 0xfff630b6009f66f8, 0xfff630b6009f66fa), 0xfff630b6009f66fau); // H200
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::add, f16, 0x0001, 0x0001), 0x0002); // not flushed
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::add, f16, 0x7bff, 0x7bff), 0x7c00);
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::add, bf16, 0x3f80, 0x3b80), 0x3f80); // 1 + 2^-8: a tie, to even
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::add, bf16, 0x3f81, 0x3b80), 0x3f82);
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::max, f16, 0x8000, 0x0000), 0x0000);
  EXPECT_EQ(reduced<uint16_t>(ReduceOp::min, bf16, 0x7fc0, 0x3f80), 0x3f80);
  EXPECT_FALSE(isReduce(ReduceOp::add, s64));
  EXPECT_FALSE(isReduce(ReduceOp::inc, s32));
  EXPECT_FALSE(isReduce(ReduceOp::bitAnd, u32));
}
