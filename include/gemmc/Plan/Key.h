/// What makes two specs the same problem: the text under which measurements are kept. Here and nowhere else it is made.
#pragma once
#include "gemmc/Spec/Spec.h"

namespace gemmc {

/// Canonical texts: what is left open is decided, what makes no difference (how it was written, the order of fields,
/// alignments beyond 16 bytes, C where it is not read, the value of a factor that is not 0 or 1) is left out.
struct ProblemKey {
  /// `sm_90a 4096x4096x4096 a=bf16:row:4096:16 b=... d=... sums=f32 alpha=1 beta=0`: the user's problem; whether the
  /// kernel swaps its operands is part of an answer.
  std::string problem;
  /// `pipeline.stages=4 tile.block=[128,256,64]`: what else the spec gives, which no answer may change.
  std::string given;
  /// Of a batch that is planned as one product, whose key it is: what was compared with the batch is not compared with
  /// that.
  bool folded = false;
  std::string text() const { return given.empty() ? problem : problem + " with " + given; }
};
/// Nullopt when the problem itself has an error (which makePlan reports).
std::optional<ProblemKey> problemKey(const Spec &spec);

/// Whether a field says what is computed, not how: no measured choice may set it.
bool isProblemField(llvm::StringRef path);

} // namespace gemmc
