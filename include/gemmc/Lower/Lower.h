/// Tile IR to PTX: the only room that sees both.
#pragma once
#include "gemmc/PTX/LaunchInfo.h"
#include "gemmc/Tile/IR.h"

namespace gemmc {

/// A module with one kernel, and what launching that kernel needs. The problem-wide half of the launch information
/// (sizes, operands, requirements) is the caller's: it is in the plan, not in the kernel.
struct Lowered {
  ptx::Module module;
  ptx::KernelInfo kernel;
  /// Run before it, in this order: clear what the kernel counts with, copy operands to rows that TMA reads.
  std::vector<ptx::KernelInfo> before;
  Expr workspace = 0; ///< Bytes.
};

/// Lowers a kernel on which all passes have run.
Lowered lowerKernel(const tile::Kernel &kernel);

} // namespace gemmc
