#include "gemmc/Plan/Plan.h"

namespace gemmc {

TargetLimits limitsOf(Target target) {
  switch (target) {
  case Target::sm_80:
    return {166912, 167936, 108};
  case Target::sm_86:
    return {101376, 102400, 84};
  case Target::sm_89:
    return {101376, 102400, 142};
  case Target::sm_90a:
    return {232448, 233472, 132};
  }
  llvm_unreachable("unknown target");
}

} // namespace gemmc
