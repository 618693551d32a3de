#include "gemmc/Passes/Passes.h"
#include "llvm/ADT/ArrayRef.h"

namespace gemmc::tile {

llvm::ArrayRef<Pass> passes() {
  static constexpr Pass list[] = {
      {"swizzle-shared", swizzleShared},     //
      {"select-copies", selectCopies},       //
      {"split-multiply", splitMultiply},     //
      {"pipeline-loop", pipelineLoop},       //
      {"specialize-warps", specializeWarps}, //
      {"place-barriers", placeBarriers},     //
      {"buffer-fragments", bufferFragments}, //
      {"peel-first", peelFirst},             //
      {"allocate-shared", allocateShared},
  };
  return list;
}

const Pass *findPass(llvm::StringRef name) {
  for (const Pass &pass : passes())
    if (pass.name == name)
      return &pass;
  return nullptr;
}
} // namespace gemmc::tile
