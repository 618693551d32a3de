/// The assembler of the CUDA Toolkit as a subprocess: an argument list (no shell), a directory only we can enter,
/// bounded time and memory. Its report is read back as numbers.
#pragma once
#include "gemmc/Runtime/Failure.h"
#include <cstdint>

namespace gemmc {

/// What `ptxas -v` says of one kernel.
struct PtxasKernel {
  std::string name;
  unsigned registers = 0, barriers = 0;
  unsigned stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0;
  unsigned sharedBytes = 0; ///< Static shared memory.
};

struct PtxasReport {
  std::vector<PtxasKernel> kernels;
  std::vector<std::string> advisories; ///< C75xx lines: wgmma serialised, setmaxnreg ignored...
  std::vector<std::string> warnings;   ///< Other warnings.
  std::string log;                     ///< Everything it printed.
  bool spills() const;
};

struct PtxasResult {
  std::vector<char> cubin;
  PtxasReport report;
};

struct PtxasOptions {
  std::string program;                 ///< Empty = findPtxas().
  std::string target;                  ///< Empty = the `.target` of the text.
  unsigned seconds = 120;              ///< Of processor time.
  uint64_t memory = uint64_t(8) << 30; ///< Bytes of address space.
};

/// What PTX text is assembled for to run on a device of compute capability `sm` / 10: an architecture with its own
/// features (`sm_90a`) runs nowhere else, a cubin for an older one not on a newer device.
std::string architectureOn(unsigned sm, llvm::StringRef ptx);

/// $GEMMC_PTXAS, else `ptxas` of the PATH, else of `toolkit`. Failures: ptxas_missing, ptxas_override.
Outcome<std::string> findPtxas(llvm::StringRef toolkit = "/usr/local/cuda/bin");
/// Assembles PTX text. Failures: ptxas_missing, ptxas_failed (with its messages), ptxas_crashed (the text is kept),
/// ptxas_limit, temporary_failed.
Outcome<PtxasResult> assemblePtx(llvm::StringRef ptx, const PtxasOptions &options = {});
/// Reads the text that `ptxas -v` prints.
PtxasReport parsePtxasLog(llvm::StringRef log);

} // namespace gemmc
