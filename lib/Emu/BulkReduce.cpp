// cp.reduce.async.bulk: the element operations (PTX ISA 9.7.9.25.4.2).
#include "Formats.h"
#include "gemmc/Emu/Numerics.h"
#include "gemmc/Emu/TensorMap.h"
#include <cmath>

namespace gemmc::emu::sem {

namespace {

template <typename T, typename Op> void each(std::byte *dst, const std::byte *src, uint32_t bytes, Op op) {
  for (uint32_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, dst + i, sizeof(T));
    std::memcpy(&b, src + i, sizeof(T));
    a = op(a, b);
    std::memcpy(dst + i, &a, sizeof(T));
  }
}

template <typename T> void integer(ReduceOp op, std::byte *dst, const std::byte *src, uint32_t bytes) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case ReduceOp::add:
    each<U>(dst, src, bytes, [](U a, U b) { return static_cast<U>(a + b); });
    return;
  case ReduceOp::min:
    each<T>(dst, src, bytes, [](T a, T b) { return std::min(a, b); });
    return;
  case ReduceOp::max:
    each<T>(dst, src, bytes, [](T a, T b) { return std::max(a, b); });
    return;
  case ReduceOp::inc:
    each<U>(dst, src, bytes, [](U a, U b) { return a >= b ? U(0) : static_cast<U>(a + 1); });
    return;
  case ReduceOp::dec:
    each<U>(dst, src, bytes, [](U a, U b) { return a == 0 || a > b ? b : static_cast<U>(a - 1); });
    return;
  default:
    return;
  }
}

template <typename U> void logic(ReduceOp op, std::byte *dst, const std::byte *src, uint32_t bytes) {
  switch (op) {
  case ReduceOp::bitAnd:
    each<U>(dst, src, bytes, [](U a, U b) { return a & b; });
    return;
  case ReduceOp::bitOr:
    each<U>(dst, src, bytes, [](U a, U b) { return a | b; });
    return;
  case ReduceOp::bitXor:
    each<U>(dst, src, bytes, [](U a, U b) { return a ^ b; });
    return;
  default:
    return;
  }
}

/// The smaller (larger) one; a NaN gives way to a number, and -0 is below +0.
template <bool larger> double extreme(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? b : a;
  if (a == b)
    return std::signbit(a) == larger ? b : a;
  return (a < b) == larger ? b : a;
}

void half(const Format &format, ReduceOp op, std::byte *dst, const std::byte *src, uint32_t bytes) {
  double (*combine)(double, double);
  if (op == ReduceOp::add)
    combine = [](double a, double b) { return a + b; }; // bf16 too: two roundings, the first to 53 bits (see below)
  else if (op == ReduceOp::min)
    combine = extreme<false>;
  else
    combine = extreme<true>;
  each<uint16_t>(dst, src, bytes, [&](uint16_t a, uint16_t b) {
    double x = decode(format, a), y = decode(format, b), sum = combine(x, y);
    if (op == ReduceOp::add && std::isfinite(sum)) {
      // bf16 exponents lie too far apart for an exact sum; an odd last bit keeps the second rounding right.
      double back = sum - x, error = (x - (sum - back)) + (y - back);
      auto bits = std::bit_cast<uint64_t>(sum);
      if (error != 0 && !(bits & 1))
        sum = std::bit_cast<double>(bits + ((error > 0) == (sum > 0) ? 1 : -1));
    }
    return static_cast<uint16_t>(encode(format, sum));
  });
}

void addF32(std::byte *dst, const std::byte *src, uint32_t bytes) {
  each<float>(dst, src, bytes, [](float a, float b) {
    float sum = a + b; // subnormals are kept, whatever the manual says of atomics (H200)
    return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : sum;
  });
}

} // namespace

bool isReduce(ReduceOp op, ptx::Type type) {
  using enum ptx::Type;
  bool integers = type == u32 || type == s32 || type == u64 || type == s64, halves = type == f16 || type == bf16;
  switch (op) {
  case ReduceOp::add:
    return (integers && type != s64) || halves || type == f32 || type == f64;
  case ReduceOp::min:
  case ReduceOp::max:
    return integers || halves;
  case ReduceOp::inc:
  case ReduceOp::dec:
    return type == u32;
  default:
    return type == b32 || type == b64;
  }
}

void reduceBytes(ReduceOp op, ptx::Type type, std::byte *dst, const std::byte *src, uint32_t bytes) {
  switch (type) {
  case ptx::Type::u32:
    integer<uint32_t>(op, dst, src, bytes);
    return;
  case ptx::Type::s32:
    integer<int32_t>(op, dst, src, bytes);
    return;
  case ptx::Type::u64:
    integer<uint64_t>(op, dst, src, bytes);
    return;
  case ptx::Type::s64:
    integer<int64_t>(op, dst, src, bytes);
    return;
  case ptx::Type::b32:
    logic<uint32_t>(op, dst, src, bytes);
    return;
  case ptx::Type::b64:
    logic<uint64_t>(op, dst, src, bytes);
    return;
  case ptx::Type::f16:
    half(formatF16, op, dst, src, bytes);
    return;
  case ptx::Type::bf16:
    half(formatBf16, op, dst, src, bytes);
    return;
  case ptx::Type::f32:
    addF32(dst, src, bytes);
    return;
  case ptx::Type::f64:
    each<uint64_t>(dst, src, bytes, addF64InMemory);
    return;
  default:
    return;
  }
}

} // namespace gemmc::emu::sem
