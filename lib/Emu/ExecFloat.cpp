// Floating-point arithmetic: f32, f64 (PTX ISA 9.7.3) and the half types (9.7.4).
//
// f32 and f64 without modifiers are plain vector loops. Whatever has a modifier, and the half types, go lane by lane:
// half values are computed in double and rounded once.
#include "Formats.h"
#include "Lanes.h"

namespace gemmc::emu {
namespace {

enum Flag : uint32_t { Ftz = 1, Sat = 2, Relu = 4, KeepNaN = 8, XorSign = 16 };

struct FAdd {
  template <typename T> static T of(T a, T b) { return a + b; }
};
struct FSub {
  template <typename T> static T of(T a, T b) { return a - b; }
};
struct FMul {
  template <typename T> static T of(T a, T b) { return a * b; }
};
struct FDiv {
  template <typename T> static T of(T a, T b) { return a / b; }
};
struct FFma {
  template <typename T> static T of(T a, T b, T c) { return std::fma(a, b, c); }
};
struct FRcp {
  template <typename T> static T of(T a) { return T(1) / a; }
};
struct FSqrt {
  template <typename T> static T of(T a) { return std::sqrt(a); }
};
struct FRsqrt {
  template <typename T> static T of(T a) { return T(1) / std::sqrt(a); }
};
struct FEx2 {
  template <typename T> static T of(T a) { return std::exp2(a); }
};
struct FLg2 {
  template <typename T> static T of(T a) { return std::log2(a); }
};
struct FTanh {
  template <typename T> static T of(T a) { return std::tanh(a); }
};
/// Turns: the product with 1/2pi is cut to f32 and loses its whole part, so that large angles are not what they seem.
double turns(double a) {
  double product = a * static_cast<double>(0x1.45f306p-3f);
  auto cut = static_cast<float>(product);
  if (std::fabs(static_cast<double>(cut)) > std::fabs(product))
    cut = std::nextafter(cut, 0.0f);
  return 6.283185307179586 * (cut - std::trunc(cut));
}
struct FSin {
  template <typename T> static T of(T a) { return static_cast<T>(std::sin(turns(a))); }
};
struct FCos {
  template <typename T> static T of(T a) { return static_cast<T>(std::cos(turns(a))); }
};
/// `div.approx` and `div.full` multiply by a reciprocal that is never subnormal; tiny divisors are scaled before, and
/// for `full` huge ones.
template <bool full> struct FDivFast {
  template <typename T> static T of(T a, T b) {
    T scale = full && std::fabs(b) > T(0x1p126) ? T(0.25) : std::fabs(b) < T(0x1p-126) ? T(0x1p24) : T(1);
    T reciprocal = T(1) / (b * scale);
    if (std::fabs(reciprocal) < T(0x1p-126))
      reciprocal = std::copysign(T(0), reciprocal);
    return a * scale * reciprocal;
  }
};

// --- One lane with all modifiers

template <typename Format> typename Format::Math load(const Code &code, typename Format::Bits bits) {
  return Format::get(code.flags & Ftz ? flushSubnormal<Format>(bits) : bits);
}
/// Rounds, saturates (NaN becomes +0), clamps negative values, flushes; NaN is canonical.
template <typename Format> typename Format::Bits finish(const Code &code, typename Format::Math value) {
  if (code.flags & Sat)
    value = value > 0 ? (value < 1 ? value : 1) : 0; // a NaN fails the first comparison
  if (code.flags & Relu && value <= 0)
    value = 0;
  auto rounding = static_cast<Rounding>(code.imm[0]);
  auto bits = Format::put(value, rounding);
  if (!(code.flags & Ftz))
    return bits;
  if constexpr (std::is_same_v<Format, F16>)
    if ((bits & 0x7fff) == 0x0400 && flushesF16(value, rounding))
      bits &= 0x8000;
  return flushSubnormal<Format>(bits);
}
/// a * b + c, rounded to odd, whatever the host's rounding is at the moment.
double fmaToOddAtNearest(double a, double b, double c) {
  volatile double x = a, y = b, z = c;
  int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  volatile double result = fmaToOdd(x, y, z);
  std::fesetround(mode);
  return result;
}
/// What decides about flushing: a sum or difference of this size is exact, and a quotient of f32 is never half way
/// between two numbers of 25 bits.
template <typename F, typename... T> double inDouble(T... x) {
  if constexpr (sizeof...(T) == 3)
    return fmaToOddAtNearest(x...);
  else
    return F::of(static_cast<double>(x)...);
}
/// The result of f32 and f64 from operands and the host's value. f64 passes the NaN of b, else that of c, else of a; a
/// quotient that of a, else of b, as the host does.
template <typename F, typename Format, typename... T>
typename Format::Bits result(const Code &code, const typename Format::Bits *in, typename Format::Math value, T... x) {
  auto bits = finish<Format>(code, value);
  if constexpr (std::is_same_v<Format, F32>)
    if (code.flags & Ftz && (bits & 0x7fffffff) == 0x00800000 && flushesF32(inDouble<F>(x...)))
      bits &= 0x80000000;
  if constexpr (std::is_same_v<Format, F64> && sizeof...(T) > 1 && !std::is_same_v<F, FDiv>)
    if (value != value)
      for (unsigned i : {1, 2, 0})
        if (i < sizeof...(T) && isNaN<F64>(in[i]))
          return passNaN<F64>(in[i]);
  return bits;
}

template <typename F, typename Format>
typename Format::Bits lane(const Code &code, const typename Format::Bits *in, unsigned count) {
  typename Format::Math x[3] = {};
  for (unsigned i = 0; i < count; ++i)
    x[i] = load<Format>(code, in[i]);
  if constexpr (requires { F::of(x[0]); })
    return result<F, Format>(code, in, F::of(x[0]), x[0]);
  else if constexpr (requires { F::of(x[0], x[1]); })
    return result<F, Format>(code, in, F::of(x[0], x[1]), x[0], x[1]);
  else if constexpr (Format::half)
    return finish<Format>(code, fmaToOdd(x[0], x[1], x[2]));
  else
    return result<F, Format>(code, in, F::of(x[0], x[1], x[2]), x[0], x[1], x[2]);
}

/// Applies `Of::lane` to each lane, and to both halves of a packed pair.
template <typename Of, typename Format, unsigned count, unsigned pack = 1>
Step lanewise(Warp &warp, const Code &code, Mask mask) {
  using Bits = typename Format::Bits;
  constexpr unsigned width = sizeof(Bits) * 8;
  RoundingScope rounding(Format::half ? Rounding::nearest : static_cast<Rounding>(code.imm[0]));
  forLanes(mask, [&](unsigned l) {
    uint64_t result = 0;
    for (unsigned p = 0; p < pack; ++p) {
      Bits in[count];
      for (unsigned i = 0; i < count; ++i)
        in[i] = static_cast<Bits>(warp.value(code.args[1 + i], l) >> p * (width & 63));
      result |= uint64_t(Of::template lane<Format>(code, in)) << p * (width & 63);
    }
    warp.set(code.args[0], l, result);
  });
  return Step::Next;
}
template <typename F, unsigned count> struct Computed {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
    return emu::lane<F, Format>(code, in, count);
  }
};

template <typename Of, unsigned count> Exec anyFormat(Type type) {
  switch (type) {
  case Type::f32:
    return lanewise<Of, F32, count>;
  case Type::f64:
    return lanewise<Of, F64, count>;
  case Type::f16:
    return lanewise<Of, F16, count>;
  case Type::bf16:
    return lanewise<Of, Bf16, count>;
  case Type::f16x2:
    return lanewise<Of, F16, count, 2>;
  case Type::bf16x2:
    return lanewise<Of, Bf16, count, 2>;
  default:
    return unmodelled;
  }
}

// --- The plain cases, vectorised

inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
template <typename F> struct Plain {
  template <typename... T> static auto of(T... x) { return canonical(F::of(x...)); }
};

void noteFlags(Decoder &d) {
  d.flag("ftz", Ftz);
  d.flag("sat", Sat);
  d.flag("relu", Relu);
  d.flag("NaN", KeepNaN);
  d.flag("xorsign", XorSign);
  Rounding rounding = d.has("rz")   ? Rounding::zero
                      : d.has("rm") ? Rounding::down
                      : d.has("rp") ? Rounding::up
                                    : Rounding::nearest;
  d.code->imm[0] = static_cast<int32_t>(rounding);
}
bool isPlain(const Decoder &d) { return !d.code->flags && !d.code->imm[0]; }

template <typename F> Exec unary(Decoder &d) {
  noteFlags(d);
  return anyFormat<Computed<F, 1>, 1>(d.type());
}
template <typename F> Exec binary(Decoder &d) {
  noteFlags(d);
  if (isPlain(d) && d.type() == Type::f32)
    return map2<Plain<F>, float, float, float>;
  return anyFormat<Computed<F, 2>, 2>(d.type());
}
Exec fused(Decoder &d) {
  noteFlags(d);
  if (isPlain(d) && d.type() == Type::f32)
    return map3<Plain<FFma>, float, float, float, float>;
  return anyFormat<Computed<FFma, 3>, 3>(d.type());
}

// --- Bit operations and selections

/// A NaN keeps its sign.
struct NegBits {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
    if (isNaN<Format>(in[0]))
      return passNaN<Format>(in[0]);
    auto bits = code.flags & Ftz ? flushSubnormal<Format>(in[0]) : in[0];
    return static_cast<typename Format::Bits>(bits ^ signOf<Format>);
  }
};
struct AbsBits {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
    if (isNaN<Format>(in[0]))
      return passNaN<Format>(in[0]);
    auto bits = code.flags & Ftz ? flushSubnormal<Format>(in[0]) : in[0];
    return static_cast<typename Format::Bits>(bits & ~signOf<Format>);
  }
};
/// A NaN loses against a number unless `.NaN` says otherwise; -0 is less than +0.
template <bool wantMax> struct Extreme {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
    using Bits = typename Format::Bits;
    Bits a = in[0], b = in[1];
    if (code.flags & Ftz)
      a = flushSubnormal<Format>(a), b = flushSubnormal<Format>(b);
    Bits sign = (a ^ b) & signOf<Format>;
    if (code.flags & XorSign)
      a &= ~signOf<Format>, b &= ~signOf<Format>;
    auto x = Format::get(a), y = Format::get(b);
    bool nanX = x != x, nanY = y != y;
    if ((nanX && nanY) || ((code.flags & KeepNaN) && (nanX || nanY)))
      return passNaN<Format>(b);
    bool less = x < y || (x == y && (a & signOf<Format>));
    Bits pick = nanX ? b : nanY ? a : less != wantMax ? a : b;
    return code.flags & XorSign ? static_cast<Bits>((pick & ~signOf<Format>) | sign) : pick;
  }
};
struct CopySign {
  template <typename Format> static auto lane(const Code &, const typename Format::Bits *in) {
    return static_cast<typename Format::Bits>((in[1] & ~signOf<Format>) | (in[0] & signOf<Format>));
  }
};

enum Property { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
bool hasProperty(Property property, double value, bool subnormal) {
  switch (property) {
  case Finite:
    return std::isfinite(value);
  case Infinite:
    return std::isinf(value);
  case Number:
    return !std::isnan(value);
  case NotANumber:
    return std::isnan(value);
  case Normal: // zero counts as normal
    return std::isfinite(value) && !subnormal;
  case Subnormal:
    return subnormal;
  }
  return false;
}
template <typename Format> Step testProperty(Warp &warp, const Code &code, Mask mask) {
  Mask result = 0;
  forLanes(mask, [&](unsigned l) {
    auto bits = static_cast<typename Format::Bits>(warp.value(code.args[1], l));
    bool subnormal = flushSubnormal<Format>(bits) != bits;
    if (hasProperty(static_cast<Property>(code.imm[0]), Format::get(bits), subnormal))
      result |= laneBits[l];
  });
  warp.setPred(code.args[0], result, mask);
  return Step::Next;
}
} // namespace

Exec execAddF(Decoder &d) { return binary<FAdd>(d); }
Exec execSubF(Decoder &d) { return binary<FSub>(d); }
Exec execMulF(Decoder &d) { return binary<FMul>(d); }
Exec execDivF(Decoder &d) {
  return d.has("approx") ? binary<FDivFast<false>>(d) : d.has("full") ? binary<FDivFast<true>>(d) : binary<FDiv>(d);
}
Exec execFma(Decoder &d) { return fused(d); }
Exec execMadF(Decoder &d) { return fused(d); }
Exec execRcp(Decoder &d) { return unary<FRcp>(d); }
Exec execSqrt(Decoder &d) { return unary<FSqrt>(d); }
Exec execRsqrt(Decoder &d) { return unary<FRsqrt>(d); }
Exec execEx2(Decoder &d) { return unary<FEx2>(d); }
Exec execLg2(Decoder &d) { return unary<FLg2>(d); }
Exec execTanh(Decoder &d) { return unary<FTanh>(d); }
Exec execSin(Decoder &d) { return unary<FSin>(d); }
Exec execCos(Decoder &d) { return unary<FCos>(d); }
Exec execNegF(Decoder &d) {
  noteFlags(d);
  return anyFormat<NegBits, 1>(d.type());
}
Exec execAbsF(Decoder &d) {
  noteFlags(d);
  return anyFormat<AbsBits, 1>(d.type());
}
Exec execMinF(Decoder &d) {
  noteFlags(d);
  return anyFormat<Extreme<false>, 2>(d.type());
}
Exec execMaxF(Decoder &d) {
  noteFlags(d);
  return anyFormat<Extreme<true>, 2>(d.type());
}
Exec execCopysign(Decoder &d) { return anyFormat<CopySign, 2>(d.type()); }
Exec execTestp(Decoder &d) {
  static constexpr const char *names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (unsigned i = 0; i < std::size(names); ++i)
    if (d.has(names[i]))
      d.code->imm[0] = i;
  return d.type() == Type::f64 ? testProperty<F64> : testProperty<F32>;
}

} // namespace gemmc::emu
