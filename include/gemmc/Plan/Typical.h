/// Sizes that are given at launch (`problem.m: dynamic`) and the ones that are planned for in their place
/// (`typical.m`): a kernel is right for every size, and as fast as its tile fits.
#pragma once
#include "gemmc/Plan/Plan.h"

namespace gemmc {

/// What a dynamic size is taken as where nobody says what is typical.
inline constexpr int64_t usualSize = 4096, usualBatch = 16;

/// A size of a spec, the typical one where it is dynamic (the usual one, if that is still open).
int64_t typicalSize(const Spec &spec, Field<Size> Spec::*size);
inline int64_t typicalSize(const Size &size, int64_t typical, int64_t usual) {
  return size.fixed ? *size.fixed : typical ? typical : usual;
}
inline int64_t typicalM(const Spec &spec) { return typicalSize(*spec.m, *spec.typicalM, usualSize); }
inline int64_t typicalN(const Spec &spec) { return typicalSize(*spec.n, *spec.typicalN, usualSize); }
inline int64_t typicalK(const Spec &spec) { return typicalSize(*spec.k, *spec.typicalK, usualSize); }
inline int64_t typicalBatch(const Spec &spec) { return typicalSize(*spec.batch, *spec.typicalBatch, usualBatch); }
bool hasDynamicSizes(const Spec &spec);
/// `m taken as 64, k as 4096`: of the dynamic sizes; empty where there are none.
std::string assumedSizes(const Spec &spec);

/// Gives dynamic sizes the usual one where no other is given as typical.
void decideTypicalSizes(Spec &spec);
/// The same problem with its typical sizes in place of dynamic ones.
Spec atTypicalSizes(const Spec &spec);
/// `spec` with what was decided for its typical sizes, for all sizes. Nullopt, without a report, where none is dynamic,
/// or where that plan needs what is not known before a launch.
std::optional<Plan> planForTypicalSizes(const Spec &spec);

/// The ranges of sizes that share a kernel: where the one ends that has `size` of m or n (of k), which is what its
/// kernel is planned for. From a power of two to the next there are eight (two), none shorter than 8. What is beyond
/// 16384 (262144) is of the last one: any tile fills the device then. An m or n of 1 is a range of its own
/// (`rangesOf`).
int64_t endOfRange(int64_t size);
int64_t endOfRangeOfK(int64_t size);

/// Whether a size is dynamic, and the spec does not say what is typical for it: then it has ranges.
bool hasRanges(const Spec &spec);
/// Ends of the ranges in which a launch of such m, n, k is; 0: of a size that has none, or that of the usual size.
std::array<int64_t, 3> rangesOf(const Spec &spec, const std::array<int64_t, 3> &sizes);
/// `spec` with `typical` m, n, k; 0: as it says itself. With m or n of 1 a matrix by a vector, where it is one then:
/// for launches of that size alone.
Spec plannedFor(const Spec &spec, const std::array<int64_t, 3> &typical);

/// `--set typical.m=64`: what would plan for a launch of m x n x k where dynamic sizes of it are in other ranges than
/// the typical ones of `spec`; empty where none is. A size that is not there is as typical.
std::string typicalFor(const Spec &spec, const std::array<std::optional<int64_t>, 3> &sizes);

/// The fields of `plan` that decide about speed, and those of `more`, but for what `spec` gives itself: what
/// applyChoice needs to make the same plan of it again.
std::string choiceOf(const Plan &plan, const Spec &spec, llvm::ArrayRef<std::string> more = {});

} // namespace gemmc
