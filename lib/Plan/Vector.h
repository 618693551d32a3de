/// A matrix by a vector (Vector.cpp): cuts, and what they take.
#pragma once
#include "Draft.h"
#include "gemmc/Layout/VectorLanes.h"

namespace gemmc::plan {

/// Tiles of a CTA and of a warp, in the kernel's view, and slices of k.
struct VectorCut {
  int64_t m = 0, k = 0, warpM = 0, warpK = 0, slices = 1;
  int64_t warpsAlongK() const { return k / warpK; }
  int64_t warps() const { return m / warpM * warpsAlongK(); }
  int64_t threads() const { return 32 * warps(); }
};

/// What holds for all cuts of a product.
struct VectorPremises {
  explicit VectorPremises(const Draft &draft);
  int64_t m, k, element, width; ///< `element`: bytes; `width`: elements of a load.
  bool alongK;                  ///< k is contiguous in the matrix.
  double batch;
  std::array<int64_t, 9> sms; ///< In clusters of so many CTAs.
};

/// What a thread has of a step of a cut.
struct VectorTile : VectorLanes {
  VectorTile(const VectorPremises &on, const VectorCut &cut);
  /// Why there is no such kernel; empty: there is.
  std::string whyNone(const VectorPremises &on) const;
  int64_t rawRegisters() const; ///< What is on its way to them.
  int64_t registers() const;    ///< Of a thread, by estimate.

  VectorCut cut;
  int64_t element, width;
  bool alongK;
};

struct VectorTime {
  double nanoseconds = 0, tiles = 0, waves = 0;
  double launch = 0;     ///< Of the nanoseconds.
  int64_t residents = 1; ///< CTAs of an SM.
};
VectorTime timeOf(const VectorPremises &on, const VectorCut &cut);

/// Whether a spec says `instruction: fma`, and the plan of such a one.
bool asksForVector(const Spec &spec);
std::optional<Plan> planVector(const Spec &spec, Diags &diags);
/// Whether these kernels multiply what a spec asks for, which leaves open what does.
bool isVector(const Spec &spec);
struct ByVector {
  Plan plan;
  double times; ///< What the other plan takes of its time.
};
/// The plan by multiply-adds of a spec that leaves open what multiplies; nullopt where it is no matrix by a vector, or
/// says what these kernels do not have.
std::optional<ByVector> planByVector(const Spec &spec, const Plan &byFamily);
/// The cuts of such a product, the fastest first, at most `most` (0: all), their cost in nanoseconds.
std::vector<Alternative> vectorAlternatives(const Spec &spec, size_t most);

} // namespace gemmc::plan
