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
struct FSin {
  template <typename T> static T of(T a) { return std::sin(a); }
};
struct FCos {
  template <typename T> static T of(T a) { return std::cos(a); }
};

// --- One lane with all modifiers

template <typename Format> typename Format::Math load(const Code &code, typename Format::Bits bits) {
  return Format::get(code.flags & Ftz ? flushSubnormal<Format>(bits) : bits);
}
/// Rounds, saturates (NaN becomes +0), clamps negative values, flushes; NaN is canonical.
template <typename Format> typename Format::Bits finish(const Code &code, typename Format::Math value) {
  if (code.flags & Sat)
    value = value > 0 ? (value < 1 ? value : 1) : 0; // a NaN fails the first comparison
  if (code.flags & Relu && value < 0)
    value = 0;
  auto bits = Format::put(value, static_cast<Rounding>(code.imm[0]));
  return code.flags & Ftz ? flushSubnormal<Format>(bits) : bits;
}

template <typename F, typename Format>
typename Format::Bits lane(const Code &code, const typename Format::Bits *in, unsigned count) {
  typename Format::Math x[3] = {};
  for (unsigned i = 0; i < count; ++i)
    x[i] = load<Format>(code, in[i]);
  if constexpr (requires { F::of(x[0]); })
    return finish<Format>(code, F::of(x[0]));
  else if constexpr (requires { F::of(x[0], x[1]); })
    return finish<Format>(code, F::of(x[0], x[1]));
  else if constexpr (Format::half)
    return finish<Format>(code, fmaToOdd(x[0], x[1], x[2]));
  else
    return finish<Format>(code, F::of(x[0], x[1], x[2]));
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
inline double canonical(double value) { return value; }
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
  if (isPlain(d) && d.type() == Type::f64)
    return map2<Plain<F>, double, double, double>;
  return anyFormat<Computed<F, 2>, 2>(d.type());
}
Exec fused(Decoder &d) {
  noteFlags(d);
  if (isPlain(d) && d.type() == Type::f32)
    return map3<Plain<FFma>, float, float, float, float>;
  return anyFormat<Computed<FFma, 3>, 3>(d.type());
}

// --- Bit operations and selections

template <typename Format>
constexpr typename Format::Bits signOf = typename Format::Bits(1) << (sizeof(typename Format::Bits) * 8 - 1);
struct NegBits {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
    auto bits = code.flags & Ftz ? flushSubnormal<Format>(in[0]) : in[0];
    return static_cast<typename Format::Bits>(bits ^ signOf<Format>);
  }
};
struct AbsBits {
  template <typename Format> static auto lane(const Code &code, const typename Format::Bits *in) {
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
      return Format::canonicalNaN;
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
Exec execDivF(Decoder &d) { return binary<FDiv>(d); }
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
