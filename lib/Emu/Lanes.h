/// Plain loops over the 32 lanes of a warp, written so that the compiler turns them into vector code: operands are
/// arrays, results go to an array of their own first (a destination may be a source too), and lanes that do not take
/// part are blended away at the end. Functions applied here must be harmless for the garbage of such lanes.
#pragma once
#include "Decoder.h"
#include <bit>
#include <cmath>
#include <type_traits>

namespace gemmc::emu {

constexpr std::array<Mask, numLanes> laneBits = [] {
  std::array<Mask, numLanes> bits{};
  for (unsigned i = 0; i < numLanes; ++i)
    bits[i] = Mask(1) << i;
  return bits;
}();

/// What a lane of type T is stored as.
template <typename T> using Stored = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <typename T> T fromStored(Stored<T> bits) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return std::bit_cast<T>(bits);
  else
    return static_cast<T>(bits);
}
template <typename T> Stored<T> toStored(T value) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return std::bit_cast<Stored<T>>(value);
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}

/// Writes the lanes of `mask`.
template <typename S> inline void blend(S *__restrict to, const S *__restrict from, Mask mask) {
  if (mask == allLanes) {
    for (unsigned l = 0; l < numLanes; ++l)
      to[l] = from[l];
    return;
  }
  for (unsigned l = 0; l < numLanes; ++l)
    to[l] = mask & laneBits[l] ? from[l] : to[l];
}

/// d = F(a), lane by lane; `F::of`.
template <typename F, typename D, typename A> Step map1(Warp &warp, const Code &code, Mask mask) {
  const auto *a = warp.read<Stored<A>>(code.args[1]);
  alignas(64) Stored<D> out[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    out[l] = toStored<D>(F::of(fromStored<A>(a[l])));
  blend(warp.write<Stored<D>>(code.args[0]), out, mask);
  return Step::Next;
}
template <typename F, typename D, typename A, typename B> Step map2(Warp &warp, const Code &code, Mask mask) {
  const auto *a = warp.read<Stored<A>>(code.args[1]);
  const auto *b = warp.read<Stored<B>>(code.args[2]);
  alignas(64) Stored<D> out[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    out[l] = toStored<D>(F::of(fromStored<A>(a[l]), fromStored<B>(b[l])));
  blend(warp.write<Stored<D>>(code.args[0]), out, mask);
  return Step::Next;
}
template <typename F, typename D, typename A, typename B, typename C>
Step map3(Warp &warp, const Code &code, Mask mask) {
  const auto *a = warp.read<Stored<A>>(code.args[1]);
  const auto *b = warp.read<Stored<B>>(code.args[2]);
  const auto *c = warp.read<Stored<C>>(code.args[3]);
  alignas(64) Stored<D> out[numLanes];
  for (unsigned l = 0; l < numLanes; ++l)
    out[l] = toStored<D>(F::of(fromStored<A>(a[l]), fromStored<B>(b[l]), fromStored<C>(c[l])));
  blend(warp.write<Stored<D>>(code.args[0]), out, mask);
  return Step::Next;
}

/// Lanes for which `F::of(a, b)` is true.
template <typename F, typename A> Mask testLanes(const Stored<A> *a, const Stored<A> *b) {
  Mask bits = 0;
  for (unsigned l = 0; l < numLanes; ++l)
    bits |= F::of(fromStored<A>(a[l]), fromStored<A>(b[l])) ? laneBits[l] : 0;
  return bits;
}

template <typename Visit> inline void forLanes(Mask mask, Visit visit) {
  for (; mask; mask &= mask - 1)
    visit(static_cast<unsigned>(std::countr_zero(mask)));
}
inline unsigned firstLane(Mask mask) { return std::countr_zero(mask); }

/// `F` for each integer type: d, a, b of one type.
template <typename F> Exec intMap2(Type type) {
  switch (type) {
  case Type::u16:
  case Type::b16:
    return map2<F, uint16_t, uint16_t, uint16_t>;
  case Type::s16:
    return map2<F, int16_t, int16_t, int16_t>;
  case Type::u32:
  case Type::b32:
    return map2<F, uint32_t, uint32_t, uint32_t>;
  case Type::s32:
    return map2<F, int32_t, int32_t, int32_t>;
  case Type::u64:
  case Type::b64:
    return map2<F, uint64_t, uint64_t, uint64_t>;
  case Type::s64:
    return map2<F, int64_t, int64_t, int64_t>;
  default:
    return unmodelled;
  }
}

} // namespace gemmc::emu
