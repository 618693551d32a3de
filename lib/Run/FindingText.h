/// The emulator's findings as text and as JSON, with the way back to the spec.
#pragma once
#include "gemmc/Emu/Emulator.h"
#include "llvm/Support/JSON.h"

namespace gemmc::run {

/// Where the spec decides what a finding is about: the field behind the region of shared memory that it names.
struct SpecPlace {
  std::string file, field; ///< Empty: not known.
  uint32_t line = 0;       ///< 0: the file does not give the field.
  std::string text;        ///< Of the line; empty when the file cannot be read, or is another one by now.

  std::string str() const; ///< `quickstart.yaml:10: pipeline: {stages: 4}`
};
SpecPlace specPlaceOf(const emu::Finding &finding, const ptx::LaunchInfo &info);

/// `ptx:240  wgmma.mma_async...  CTA (0, 0, 0), thread 128 (warp 4, consumer), k step 3`
std::string str(const emu::Witness &witness);

llvm::json::Object toJson(const emu::Finding &finding, const ptx::LaunchInfo &info);

} // namespace gemmc::run
