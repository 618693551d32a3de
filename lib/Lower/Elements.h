/// Elements of C and D on their way between memory and a thread's sums, one by one.
#pragma once
#include "Lowering.h"

namespace gemmc {

struct Lowering::Elements {
  /// An address: a register and bytes from there on.
  struct Place {
    Val base;
    int64_t offset = 0;
  };

  /// What `store`, an operation on sums of `sums`, says.
  Elements(Lowering &l, const Op &store, Elem sums);

  Lowering &l;
  ptx::Builder &b;
  Elem sums;
  const TensorView *d, *c; ///< c: nullptr when it is not read.
  std::optional<double> fixedAlpha, fixedBeta;

  static const char *loadOf(Elem type);
  static Type registerOf(Elem type);
  // Sums are scaled in their own type; those in f16 as f32.
  bool isF64() const { return sums == Elem::f64; }
  bool isS32() const { return sums == Elem::s32; }
  Type sumType() const { return isF64() ? Type::f64 : isS32() ? Type::b32 : Type::f32; }

  Val scaled(const Val &sum); ///< alpha times it.
  /// A register for an element of C; 0 where a guard may leave it alone.
  Val rawC(const Val &guard);
  Val loadC(const Place &place, const Val &guard);
  /// beta times an element of C is added.
  Val plusC(const Val &x, const Val &raw);
  void put(const Place &place, const Val &x, const Val &guard); ///< As an element of D.

private:
  Val widened(const Val &raw); ///< An element of C as the sums are.
};

} // namespace gemmc
