#include "gemmc/Run/Numbers.h"
#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

namespace gemmc::run {

double FloatFormat::maxFinite() const {
  return noInfinity ? std::ldexp(2 - std::ldexp(2.0, -fractionBits), bias() + 1)
                    : std::ldexp(2 - std::ldexp(1.0, -fractionBits), bias());
}

std::optional<FloatFormat> formatOf(Elem type) {
  switch (type) {
  case Elem::f16:
    return FloatFormat{5, 10};
  case Elem::bf16:
    return FloatFormat{8, 7};
  case Elem::f32:
    return FloatFormat{8, 23};
  case Elem::tf32:
    return FloatFormat{8, 10};
  case Elem::e4m3:
    return FloatFormat{4, 3, true};
  case Elem::e5m2:
    return FloatFormat{5, 2};
  case Elem::f64:
    return FloatFormat{11, 52};
  default:
    return std::nullopt;
  }
}

bool isKnown(Elem type) { return isInteger(type) || formatOf(type); }

static bool isSigned(Elem type) { return type == Elem::s8 || type == Elem::s4 || type == Elem::s32; }

int64_t lowestOf(Elem type) { return isSigned(type) ? -(int64_t(1) << (bitsOf(type) - 1)) : 0; }
int64_t highestOf(Elem type) { return lowestOf(type) + (int64_t(1) << bitsOf(type)) - 1; }

static double decodeInteger(Elem type, uint64_t bits) {
  int64_t value = static_cast<int64_t>(bits & ((uint64_t(1) << bitsOf(type)) - 1));
  return static_cast<double>(value > highestOf(type) ? value - (int64_t(1) << bitsOf(type)) : value);
}

double decode(Elem type, uint64_t bits) {
  if (isInteger(type))
    return decodeInteger(type, bits);
  if (type == Elem::f64)
    return std::bit_cast<double>(bits);
  if (type == Elem::tf32)
    bits >>= 13;
  FloatFormat format = *formatOf(type);
  uint32_t fraction = bits & ((1u << format.fractionBits) - 1);
  int exponent = (bits >> format.fractionBits) & ((1 << format.exponentBits) - 1);
  double sign = (bits >> (format.fractionBits + format.exponentBits)) & 1 ? -1.0 : 1.0;
  const bool last = exponent == (1 << format.exponentBits) - 1;
  if (last && format.noInfinity && fraction == (1u << format.fractionBits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  if (last && !format.noInfinity)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0)
    return sign * std::ldexp(fraction, format.minExponent() - format.fractionBits);
  return sign * std::ldexp((1u << format.fractionBits) + fraction, exponent - format.bias() - format.fractionBits);
}

Decoder::Decoder(Elem type) : type(type) {
  if (bitsOf(type) > 16)
    return;
  table.resize(size_t(1) << bitsOf(type));
  for (size_t bits = 0; bits < table.size(); ++bits)
    table[bits] = decode(type, bits);
}

uint64_t encode(Elem type, double value) {
  if (isInteger(type))
    return static_cast<uint64_t>(std::llrint(value)) & ((uint64_t(1) << bitsOf(type)) - 1);
  if (type == Elem::f64)
    return std::bit_cast<uint64_t>(std::isnan(value) ? std::bit_cast<double>(~uint64_t(0) >> 1) : value);
  FloatFormat format = *formatOf(type == Elem::tf32 ? Elem::f32 : type);
  const int signShift = format.fractionBits + format.exponentBits;
  const uint32_t nan = (1u << signShift) - 1;
  const uint32_t infinity = format.noInfinity ? nan : ((1u << format.exponentBits) - 1) << format.fractionBits;
  if (std::isnan(value))
    return nan;
  uint32_t sign = std::signbit(value) ? 1u << signShift : 0;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  // The value in units of its last place: an integer after rounding, exact before (scaling by a power of two).
  int exponent = std::max(std::ilogb(magnitude), format.minExponent());
  double units = std::nearbyint(std::ldexp(magnitude, format.fractionBits - exponent)); // ties to even
  // Fraction and exponent run into each other: a carry out of the fraction raises the exponent by itself.
  uint64_t biased = static_cast<uint64_t>(exponent - format.minExponent());
  uint64_t bits = (biased << format.fractionBits) + static_cast<uint64_t>(units);
  return sign | static_cast<uint32_t>(std::min<uint64_t>(bits, infinity));
}

uint64_t poisonOf(Elem type) {
  constexpr uint64_t all = poison * 0x0001000100010001u;
  return bitsOf(type) == 64 ? all : all & ((uint64_t(1) << bitsOf(type)) - 1);
}

Random::Random(uint64_t seed) {
  for (uint64_t &word : state) { // splitmix64
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::next() {
  uint64_t result = std::rotl(state[0] + state[3], 23) + state[0];
  uint64_t t = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= t;
  state[3] = std::rotl(state[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  // The high half of the product: biased by less than bound / 2^64.
  return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  double u = 1 - unit(); // not 0
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * unit());
}

void parallelFor(int64_t count, unsigned threads, llvm::function_ref<void(int64_t)> body) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<int64_t>(threads, count));
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t i = next++; i < count; i = next++)
      body(i);
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

} // namespace gemmc::run
