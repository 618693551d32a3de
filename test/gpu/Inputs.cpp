#include "Inputs.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace gemmc::microtests {

using ptx::Type;

Random::Random(uint64_t seed) {
  for (uint64_t &word : state) { // splitmix64
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    word = z ^ z >> 31;
  }
}
uint64_t Random::bits() {
  uint64_t result = std::rotl(state[1] * 5, 7) * 9, t = state[1] << 17;
  state[2] ^= state[0], state[3] ^= state[1], state[1] ^= state[2], state[0] ^= state[3];
  state[2] ^= t;
  state[3] = std::rotl(state[3], 45);
  return result;
}
double Random::normal() {
  double u = uniform(), v = uniform();
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
}

const Fields *fieldsOf(Type type) {
  static constexpr Fields f16{5, 10, 0}, bf16{8, 7, 0}, tf32{8, 10, 13}, f32{8, 23, 0}, f64{11, 52, 0}, e4m3{4, 3, 0},
      e5m2{5, 2, 0};
  switch (type) {
  case Type::f16:
    return &f16;
  case Type::bf16:
    return &bf16;
  case Type::tf32:
    return &tf32;
  case Type::f32:
    return &f32;
  case Type::f64:
    return &f64;
  case Type::e4m3:
    return &e4m3;
  case Type::e5m2:
    return &e5m2;
  default:
    return nullptr;
  }
}
unsigned widthOf(Type type) {
  if (const Fields *fields = fieldsOf(type))
    return fields->width();
  switch (type) {
  case Type::b1:
    return 1;
  case Type::s4:
  case Type::u4:
    return 4;
  default:
    return ptx::bitsOf(type);
  }
}

namespace {

uint64_t maskOf(unsigned width) { return width >= 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1; }

uint64_t pack(const Fields &f, bool negative, int exponentField, uint64_t fraction, uint64_t padding = 0) {
  int top = (1 << f.exponent) - 1;
  uint64_t e = std::clamp(exponentField, 0, top);
  uint64_t code = uint64_t(negative) << (f.exponent + f.fraction) | e << f.fraction | (fraction & maskOf(f.fraction));
  return code << f.padding | (padding & maskOf(f.padding));
}
/// A value of the host, cut to the format: what the tests want is a plausible number, not a rounded one.
uint64_t fromHost(const Fields &f, double value, uint64_t padding) {
  if (value == 0)
    return 0;
  int exponent = std::ilogb(value);
  double fraction = std::ldexp(std::fabs(value), static_cast<int>(f.fraction) - exponent);
  int field = exponent + f.bias();
  if (field < 1)
    return pack(f, value < 0, 0, static_cast<uint64_t>(std::ldexp(fraction, field - 1)), padding);
  return pack(f, value < 0, std::min(field, (1 << f.exponent) - 2), static_cast<uint64_t>(fraction), padding);
}

uint64_t edgeOf(Random &random, const Fields &f) {
  int top = (1 << f.exponent) - 1;
  uint64_t all = maskOf(f.fraction);
  bool negative = random.bits() & 1;
  switch (random.below(10)) {
  case 0:
    return pack(f, negative, 0, 0);
  case 1: // the smallest subnormal number
    return pack(f, negative, 0, 1);
  case 2: // the largest one
    return pack(f, negative, 0, all);
  case 3:
    return pack(f, negative, 0, random.bits());
  case 4:
    return pack(f, negative, 1, random.chance(2) ? 0 : random.bits());
  case 5: // the largest number
    return pack(f, negative, top - 1, all);
  case 6:
    return pack(f, negative, top - 1, random.bits());
  case 7:
    return pack(f, negative, f.bias(), 0);
  case 8:
    return pack(f, negative, f.bias() - 1, random.chance(2) ? 0 : all);
  default:
    return pack(f, negative, f.bias() + 1, random.chance(2) ? 1 : 0);
  }
}
uint64_t infinityOrNaN(Random &random, const Fields &f) {
  int top = (1 << f.exponent) - 1;
  return pack(f, random.bits() & 1, top, random.chance(2) ? 0 : random.bits(), random.bits());
}

} // namespace

Style::Style(Random &random, Type type, int exponent) : type(type), base(exponent) {
  kind = static_cast<Kind>(random.below(kinds));
  if (const Fields *f = fieldsOf(type))
    for (uint64_t &value : pool)
      value = pack(*f, false, base + f->bias() + random.between(-1, 1), random.chance(3) ? 0 : random.bits(),
                   random.bits());
  else
    for (uint64_t &value : pool)
      value = random.bits() & maskOf(widthOf(type));
}
Style Style::addend(Random &random, Type type, int exponent) {
  static constexpr int offsets[] = {0, 0, 1, 2, 4, -4, -12, 12, -23, 23, -24, 24, -25, 25, -26, 26};
  return Style(random, type, exponent + offsets[random.below(std::size(offsets))]);
}

uint64_t Style::drawFloat(Random &random, Kind of) const {
  const Fields &f = *fieldsOf(type);
  uint64_t any = random.bits(), padding = random.bits();
  int top = (1 << f.exponent) - 1;
  bool negative = any >> 63;
  switch (of) {
  case bits:
    return any & maskOf(f.width());
  case finite:
    return pack(f, negative, random.below(top), any, padding);
  case normal:
    return fromHost(f, random.normal(), padding);
  case near:
    return pack(f, negative, std::clamp(base + f.bias() + random.between(-3, 3), 0, top - 1), any, padding);
  case window:
    return pack(f, negative, std::clamp(base + f.bias() + random.between(-14, 14), 0, top - 1), any, padding);
  case cancel:
    return pool[random.below(2)] | uint64_t(negative) << (f.width() - 1);
  case edges:
    return edgeOf(random, f);
  case sprinkled:
    return random.chance(40)   ? infinityOrNaN(random, f)
           : random.chance(10) ? edgeOf(random, f)
                               : fromHost(f, random.normal(), padding);
  case large:
    return pack(f, negative, top - 1 - static_cast<int>(random.below(4)), any, padding);
  case tiny:
    return pack(f, negative, random.below(4), any, padding);
  case zeros:
    return random.chance(8) ? pack(f, negative, base + f.bias(), any & 1, padding) : pack(f, negative, 0, 0);
  default: // one bit below the leading one
    return pack(f, negative, std::clamp(base + f.bias() + random.between(-14, 14), 0, top - 1),
                uint64_t(random.chance(2)) << random.below(f.fraction), 0);
  }
}
uint64_t Style::drawInteger(Random &random) const {
  uint64_t mask = maskOf(widthOf(type)), any = random.bits() & mask;
  switch (kind) {
  case near:
  case window: // near the ends of the signed range
    return ((random.chance(2) ? mask >> 1 : (mask >> 1) + 1) + random.between(-3, 3)) & mask;
  case cancel:
    return pool[random.below(2)];
  case edges:
  case large: {
    const uint64_t values[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1};
    return values[random.below(5)];
  }
  case tiny:
  case zeros:
    return static_cast<uint64_t>(random.between(-2, 2)) & mask;
  default:
    return any;
  }
}
uint64_t Style::draw(Random &random) const { return fieldsOf(type) ? drawFloat(random, kind) : drawInteger(random); }

namespace {
uint64_t drawScalarFloat(Random &random, const Fields &f) {
  uint64_t any = random.bits();
  bool negative = any >> 63;
  int top = (1 << f.exponent) - 1;
  switch (random.below(10)) {
  case 0:
  case 1:
    return any & maskOf(f.width());
  case 2:
    return random.chance(3) ? infinityOrNaN(random, f) : edgeOf(random, f);
  case 3:
  case 4:
    return fromHost(f, random.normal(), any);
  case 5: // integers and halves
    return fromHost(f, random.between(-600, 600) * 0.5, 0);
  case 6: // around the ranges of the narrow formats and of the integers
    return pack(f, negative, std::clamp(f.bias() + random.between(-30, 66), 0, top), any, any);
  case 7: // few bits, then long runs: ties of a later rounding
    return pack(f, negative, std::clamp(f.bias() + random.between(-26, 20), 0, top),
                (any & maskOf(12) << (f.fraction > 12 ? f.fraction - 12 : 0)) + random.between(-1, 1), any);
  case 8:
    return pack(f, negative, random.below(top), random.chance(2) ? 0 : maskOf(f.fraction), any);
  default:
    return pack(f, negative, f.bias() + random.between(-4, 4), any, any);
  }
}
uint64_t drawScalarInteger(Random &random, unsigned width) {
  uint64_t mask = maskOf(width), any = random.bits() & mask;
  switch (random.below(6)) {
  case 0: {
    const uint64_t values[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, 2};
    return values[random.below(6)];
  }
  case 1:
    return static_cast<uint64_t>(random.between(-70, 70)) & mask;
  case 2: // any magnitude
    return any >> random.below(width);
  case 3:
    return ~(any >> random.below(width)) & mask;
  default:
    return any;
  }
}
/// Halves of packed types.
Type partOf(Type type) {
  switch (type) {
  case Type::f16x2:
    return Type::f16;
  case Type::bf16x2:
    return Type::bf16;
  case Type::e4m3x2:
    return Type::e4m3;
  case Type::e5m2x2:
    return Type::e5m2;
  default:
    return type;
  }
}
} // namespace

uint64_t drawScalar(Random &random, Type type) {
  if (Type part = partOf(type); part != type) {
    uint64_t low = drawScalar(random, part), high = drawScalar(random, part);
    return low | high << widthOf(part);
  }
  if (const Fields *fields = fieldsOf(type))
    return drawScalarFloat(random, *fields);
  return drawScalarInteger(random, widthOf(type));
}

uint64_t drawNear(Random &random, Type type, uint64_t other) {
  if (Type part = partOf(type); part != type) {
    unsigned width = widthOf(part);
    return drawNear(random, part, other & maskOf(width)) | drawNear(random, part, other >> width) << width;
  }
  unsigned width = widthOf(type);
  if (random.chance(2))
    other ^= uint64_t(1) << (width - 1);
  return (other + random.between(-2, 2)) & maskOf(width);
}

} // namespace gemmc::microtests
