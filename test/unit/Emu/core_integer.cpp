// Integer and bit instructions against plain C++ on edge values: all pairs (triples) of the list below.
#include "core_harness.h"
#include <functional>

namespace gemmc::emu::test {
namespace {

const std::vector<uint64_t> edges = {0,
                                     1,
                                     2,
                                     3,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x100,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x12345678,
                                     0x7fffffff,
                                     0x80000000,
                                     0xfffffffe,
                                     0xffffffff,
                                     0x123456789abcdef0,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff};

/// All pairs, in chunks of a block; the third operand takes turns.
void checkPairs(const std::string &code, unsigned outBits, unsigned aBits, unsigned bBits, unsigned cBits,
                const std::function<uint64_t(uint64_t, uint64_t, uint64_t)> &expected) {
  LaneTest test;
  for (size_t i = 0; i < edges.size(); ++i)
    for (size_t j = 0; j < edges.size(); ++j) {
      test.a.push_back(edges[i]);
      test.b.push_back(edges[j]);
      test.c.push_back(edges[(i * 7 + j * 3) % edges.size()]);
    }
  auto cut = [](uint64_t value, unsigned bits) { return bits == 64 ? value : value & ((uint64_t(1) << bits) - 1); };
  std::vector<uint64_t> got = test.run(code, outBits, aBits, bBits, cBits);
  for (size_t i = 0; i < got.size(); ++i) {
    uint64_t want = cut(expected(test.a[i], test.b[i], test.c[i]), outBits);
    ASSERT_EQ(got[i], want) << code << std::hex << " a=" << test.a[i] << " b=" << test.b[i] << " c=" << test.c[i];
  }
}

template <typename T> void checkArithmetic(const std::string &type) {
  using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  constexpr unsigned n = sizeof(T) * 8;
  auto two = [&](const std::string &op, std::function<T(T, T)> f) {
    checkPairs(op + "." + type + " %d, %a, %b;", n, n, n, 32, [&](uint64_t a, uint64_t b, uint64_t) {
      return static_cast<uint64_t>(f(static_cast<T>(a), static_cast<T>(b)));
    });
  };
  two("add", [](T a, T b) { return static_cast<T>(uint64_t(a) + uint64_t(b)); });
  two("sub", [](T a, T b) { return static_cast<T>(uint64_t(a) - uint64_t(b)); });
  two("mul.lo", [](T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); });
  two("mul.hi", [](T a, T b) { return static_cast<T>(W(a) * W(b) >> n); });
  two("min", [](T a, T b) { return std::min(a, b); });
  two("max", [](T a, T b) { return std::max(a, b); });
  checkPairs("mad.lo." + type + " %d, %a, %b, %c;", n, n, n, n,
             [](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; });
  checkPairs("mad.hi." + type + " %d, %a, %b, %c;", n, n, n, n, [](uint64_t a, uint64_t b, uint64_t c) {
    return static_cast<uint64_t>(W(static_cast<T>(a)) * W(static_cast<T>(b)) >> n) + c;
  });
  // Division where it is defined.
  auto quotient = [&](const std::string &op, std::function<W(W, W)> f) {
    checkPairs("or.b" + std::to_string(n) + " %b, %b, 1;\n" + op + "." + type + " %d, %a, %b;", n, n, n, 32,
               [&](uint64_t a, uint64_t b, uint64_t) {
                 return static_cast<uint64_t>(f(W(static_cast<T>(a)), W(static_cast<T>(b | 1))));
               });
  };
  quotient("div", [](W a, W b) { return a / b; });
  quotient("rem", [](W a, W b) { return a % b; });
}

template <typename T> void checkSigned(const std::string &type) {
  constexpr unsigned n = sizeof(T) * 8;
  checkPairs("neg." + type + " %d, %a;", n, n, 32, 32, [](uint64_t a, uint64_t, uint64_t) { return 0 - a; });
  checkPairs("abs." + type + " %d, %a;", n, n, 32, 32,
             [](uint64_t a, uint64_t, uint64_t) { return static_cast<T>(a) < 0 ? 0 - a : a; });
}

template <typename T, typename D> void checkWide(const std::string &type) {
  constexpr unsigned n = sizeof(T) * 8;
  auto product = [](uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(D(static_cast<T>(a)) * D(static_cast<T>(b)));
  };
  checkPairs("mul.wide." + type + " %d, %a, %b;", 2 * n, n, n, 32,
             [&](uint64_t a, uint64_t b, uint64_t) { return product(a, b); });
  checkPairs("mad.wide." + type + " %d, %a, %b, %c;", 2 * n, n, n, 2 * n,
             [&](uint64_t a, uint64_t b, uint64_t c) { return product(a, b) + c; });
}
} // namespace

TEST(EmuInteger, ArithmeticU16) { checkArithmetic<uint16_t>("u16"); }
TEST(EmuInteger, ArithmeticS16) { checkArithmetic<int16_t>("s16"); }
TEST(EmuInteger, ArithmeticU32) { checkArithmetic<uint32_t>("u32"); }
TEST(EmuInteger, ArithmeticS32) { checkArithmetic<int32_t>("s32"); }
TEST(EmuInteger, ArithmeticU64) { checkArithmetic<uint64_t>("u64"); }
TEST(EmuInteger, ArithmeticS64) { checkArithmetic<int64_t>("s64"); }
TEST(EmuInteger, Signs) {
  checkSigned<int16_t>("s16");
  checkSigned<int32_t>("s32");
  checkSigned<int64_t>("s64");
}
TEST(EmuInteger, Wide) {
  checkWide<uint16_t, uint32_t>("u16");
  checkWide<int16_t, int32_t>("s16");
  checkWide<uint32_t, uint64_t>("u32");
  checkWide<int32_t, int64_t>("s32");
}

TEST(EmuInteger, Saturation) {
  auto clamp = [](int64_t value) { return static_cast<uint64_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX)); };
  checkPairs("add.sat.s32 %d, %a, %b;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t) { return clamp(int64_t(int32_t(a)) + int32_t(b)); });
  checkPairs("sub.sat.s32 %d, %a, %b;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t) { return clamp(int64_t(int32_t(a)) - int32_t(b)); });
  checkPairs("mad.hi.sat.s32 %d, %a, %b, %c;", 32, 32, 32, 32, [&](uint64_t a, uint64_t b, uint64_t c) {
    return clamp((int64_t(int32_t(a)) * int32_t(b) >> 32) + int32_t(c));
  });
}

TEST(EmuInteger, DifferencesAndShortProducts) {
  checkPairs("sad.u32 %d, %a, %b, %c;", 32, 32, 32, 32, [](uint64_t a, uint64_t b, uint64_t c) {
    uint32_t x = a, y = b;
    return c + (x < y ? y - x : x - y);
  });
  checkPairs("sad.s64 %d, %a, %b, %c;", 64, 64, 64, 64,
             [](uint64_t a, uint64_t b, uint64_t c) { return c + (int64_t(a) < int64_t(b) ? b - a : a - b); });
  auto low = [](uint64_t x) { return int64_t(x << 40) >> 40; };
  checkPairs("mul24.lo.u32 %d, %a, %b;", 32, 32, 32, 32,
             [](uint64_t a, uint64_t b, uint64_t) { return (a & 0xffffff) * (b & 0xffffff); });
  checkPairs("mul24.hi.s32 %d, %a, %b;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t) { return uint64_t(low(a) * low(b) >> 16); });
  checkPairs("mad24.hi.u32 %d, %a, %b, %c;", 32, 32, 32, 32,
             [](uint64_t a, uint64_t b, uint64_t c) { return ((a & 0xffffff) * (b & 0xffffff) >> 16) + c; });
  checkPairs("mad24.hi.sat.s32 %d, %a, %b, %c;", 32, 32, 32, 32, [&](uint64_t a, uint64_t b, uint64_t c) {
    int64_t sum = int32_t(low(a) * low(b) >> 16) + int64_t(int32_t(c));
    return uint64_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  });
}

TEST(EmuInteger, DotProduct) {
  checkPairs("dp4a.s32.u32 %d, %a, %b, %c;", 32, 32, 32, 32, [](uint64_t a, uint64_t b, uint64_t c) {
    for (int i = 0; i < 4; ++i)
      c += int64_t(int8_t(a >> 8 * i)) * uint8_t(b >> 8 * i);
    return c;
  });
  checkPairs("dp4a.u32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, [](uint64_t a, uint64_t b, uint64_t c) {
    for (int i = 0; i < 4; ++i)
      c += int64_t(uint8_t(a >> 8 * i)) * int8_t(b >> 8 * i);
    return c;
  });
}

TEST(EmuInteger, Logic) {
  for (unsigned n : {16u, 32u, 64u}) {
    std::string type = ".b" + std::to_string(n) + " %d, %a, %b;";
    checkPairs("and" + type, n, n, n, 32, [](uint64_t a, uint64_t b, uint64_t) { return a & b; });
    checkPairs("or" + type, n, n, n, 32, [](uint64_t a, uint64_t b, uint64_t) { return a | b; });
    checkPairs("xor" + type, n, n, n, 32, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; });
    checkPairs("not.b" + std::to_string(n) + " %d, %a;", n, n, n, 32,
               [](uint64_t a, uint64_t, uint64_t) { return ~a; });
  }
  checkPairs("and.pred %d, %a, %b;", 1, 1, 1, 32, [](uint64_t a, uint64_t b, uint64_t) { return a && b; });
  checkPairs("or.pred %d, %a, %b;", 1, 1, 1, 32, [](uint64_t a, uint64_t b, uint64_t) { return a || b; });
  checkPairs("xor.pred %d, %a, %b;", 1, 1, 1, 32, [](uint64_t a, uint64_t b, uint64_t) { return !a != !b; });
  checkPairs("not.pred %d, %a;", 1, 1, 1, 32, [](uint64_t a, uint64_t, uint64_t) { return !a; });
}

TEST(EmuInteger, Shifts) {
  auto checkShift = [&](const std::string &op, unsigned n, auto value) {
    using T = decltype(value);
    checkPairs(op + " %d, %a, %b;", n, n, 32, 32, [n, op](uint64_t a, uint64_t b, uint64_t) {
      auto amount = static_cast<uint32_t>(b);
      auto x = static_cast<T>(a);
      if (op.starts_with("shl"))
        return amount >= n ? 0 : uint64_t(x) << amount;
      return static_cast<uint64_t>(amount >= n ? (x < 0 ? -1 : 0) : static_cast<int64_t>(x >> amount));
    });
  };
  checkShift("shl.b16", 16, uint16_t());
  checkShift("shl.b32", 32, uint32_t());
  checkShift("shl.b64", 64, uint64_t());
  checkShift("shr.u16", 16, uint16_t());
  checkShift("shr.s16", 16, int16_t());
  checkShift("shr.u32", 32, uint32_t());
  checkShift("shr.s32", 32, int32_t());
  checkShift("shr.u64", 64, uint64_t());
  checkShift("shr.s64", 64, int64_t());
  auto both = [](uint64_t a, uint64_t b) { return b << 32 | (a & 0xffffffff); };
  auto clamped = [](uint64_t c) { return std::min<uint32_t>(c, 32); };
  checkPairs("shf.l.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t c) { return both(a, b) << clamped(c) >> 32; });
  checkPairs("shf.r.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t c) { return both(a, b) >> clamped(c); });
  checkPairs("shf.l.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t c) { return both(a, b) << (c & 31) >> 32; });
  checkPairs("shf.r.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32,
             [&](uint64_t a, uint64_t b, uint64_t c) { return both(a, b) >> (c & 31); });
}

TEST(EmuInteger, BitFields) {
  // The manual's own loop (9.7.1.19), bit by bit.
  auto extract = [](unsigned n, bool isSigned) {
    return [=](uint64_t a, uint64_t b, uint64_t c) {
      unsigned pos = b & 0xff, len = c & 0xff;
      bool sign = isSigned && len && (a >> std::min(pos + len - 1, n - 1) & 1);
      uint64_t d = 0;
      for (unsigned i = 0; i < n; ++i)
        d |= uint64_t(i < len && pos + i < n ? a >> (pos + i) & 1 : sign) << i;
      return d;
    };
  };
  checkPairs("bfe.u32 %d, %a, %b, %c;", 32, 32, 32, 32, extract(32, false));
  checkPairs("bfe.s32 %d, %a, %b, %c;", 32, 32, 32, 32, extract(32, true));
  checkPairs("bfe.u64 %d, %a, %b, %c;", 64, 64, 32, 32, extract(64, false));
  checkPairs("bfe.s64 %d, %a, %b, %c;", 64, 64, 32, 32, extract(64, true));
  for (unsigned n : {32u, 64u})
    for (unsigned len : {0u, 1u, 7u, 32u, 255u})
      checkPairs("bfi.b" + std::to_string(n) + " %d, %a, %b, %c, " + std::to_string(len) + ";", n, n, n, 32,
                 [=](uint64_t a, uint64_t b, uint64_t c) {
                   for (unsigned i = 0, pos = c & 0xff; i < len && pos + i < n; ++i)
                     b = (b & ~(uint64_t(1) << (pos + i))) | (a >> i & 1) << (pos + i);
                   return b;
                 });
  for (bool clamp : {false, true})
    checkPairs(clamp ? "bmsk.clamp.b32 %d, %a, %b;" : "bmsk.wrap.b32 %d, %a, %b;", 32, 32, 32, 32,
               [=](uint64_t a, uint64_t b, uint64_t) {
                 uint64_t pos = uint32_t(a), len = uint32_t(b), d = 0;
                 if (!clamp)
                   pos %= 32, len %= 32;
                 for (uint64_t i = 0; i < 32; ++i)
                   d |= uint64_t(i >= pos && i - pos < len) << i;
                 return d;
               });
}

TEST(EmuInteger, Counting) {
  checkPairs("popc.b32 %d, %a;", 32, 32, 32, 32, [](uint64_t a, uint64_t, uint64_t) { return __builtin_popcount(a); });
  checkPairs("popc.b64 %d, %a;", 32, 64, 32, 32,
             [](uint64_t a, uint64_t, uint64_t) { return __builtin_popcountll(a); });
  checkPairs("clz.b32 %d, %a;", 32, 32, 32, 32,
             [](uint64_t a, uint64_t, uint64_t) { return uint32_t(a) ? __builtin_clz(a) : 32; });
  checkPairs("clz.b64 %d, %a;", 32, 64, 32, 32,
             [](uint64_t a, uint64_t, uint64_t) { return a ? __builtin_clzll(a) : 64; });
  auto reversed = [](unsigned n) {
    return [=](uint64_t a, uint64_t, uint64_t) {
      uint64_t d = 0;
      for (unsigned i = 0; i < n; ++i)
        d |= (a >> i & 1) << (n - 1 - i);
      return d;
    };
  };
  checkPairs("brev.b32 %d, %a;", 32, 32, 32, 32, reversed(32));
  checkPairs("brev.b64 %d, %a;", 64, 64, 32, 32, reversed(64));
  auto top = [](unsigned n, bool isSigned, bool shift) {
    return [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
      bool sign = isSigned && (a >> (n - 1) & 1);
      for (unsigned i = n; i-- > 0;)
        if ((a >> i & 1) != sign)
          return shift ? n - 1 - i : i;
      return ~uint64_t(0);
    };
  };
  checkPairs("bfind.u32 %d, %a;", 32, 32, 32, 32, top(32, false, false));
  checkPairs("bfind.s32 %d, %a;", 32, 32, 32, 32, top(32, true, false));
  checkPairs("bfind.shiftamt.u64 %d, %a;", 32, 64, 32, 32, top(64, false, true));
  checkPairs("bfind.shiftamt.s64 %d, %a;", 32, 64, 32, 32, top(64, true, true));
}

TEST(EmuInteger, Lop3) {
  for (unsigned table : {0x00u, 0xc0u, 0xe8u, 0x96u, 0xf8u, 0x1bu, 0xffu}) {
    auto bitwise = [=](uint64_t a, uint64_t b, uint64_t c) {
      uint64_t d = 0;
      for (unsigned i = 0; i < 32; ++i)
        d |= uint64_t(table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
      return d;
    };
    std::string number = std::to_string(table);
    checkPairs("lop3.b32 %d, %a, %b, %c, " + number + ";", 32, 32, 32, 32, bitwise);
    checkPairs("setp.ne.u32 %q, %t, %t;\nlop3.or.b32 %f|%d, %a, %b, %c, " + number + ", %q;", 1, 32, 32, 32,
               [=](uint64_t a, uint64_t b, uint64_t c) { return bitwise(a, b, c) != 0; });
  }
}

TEST(EmuInteger, Prmt) {
  checkPairs("prmt.b32 %d, %a, %b, %c;", 32, 32, 32, 32, [](uint64_t a, uint64_t b, uint64_t c) {
    uint64_t bytes = b << 32 | (a & 0xffffffff), d = 0;
    for (int i = 0; i < 4; ++i) {
      uint64_t byte = bytes >> (c >> 4 * i & 7) * 8 & 0xff;
      d |= (c >> 4 * i & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * i;
    }
    return d;
  });
  // The manual's table (9.7.9.7): for each mode and c & 3, the source byte of d's bytes 3, 2, 1, 0.
  const std::pair<const char *, std::array<unsigned, 4>> modes[] = {
      {"f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
      {"rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
      {"ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {"rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
  for (auto [mode, table] : modes)
    checkPairs(std::string("prmt.b32.") + mode + " %d, %a, %b, %c;", 32, 32, 32, 32,
               [table = table](uint64_t a, uint64_t b, uint64_t c) {
                 uint64_t bytes = b << 32 | (a & 0xffffffff), d = 0;
                 for (int i = 0; i < 4; ++i)
                   d |= (bytes >> (table[c & 3] >> 4 * i & 7) * 8 & 0xff) << 8 * i;
                 return d;
               });
}

} // namespace gemmc::emu::test
