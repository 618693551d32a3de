/// What kernels that copy operands to the workspace have in common: whose operand a CTA has, and parameters.
#pragma once
#include "Lowering.h"

namespace gemmc {

/// An operand on its way.
struct CopySource {
  std::string buffer;
  Expr lines, length, pitch, packedPitch; ///< All but `lines` in bytes.
  Expr offset;                            ///< Of the copy in the workspace.
};

class CopyKernel {
protected:
  CopyKernel(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes, bool dependent)
      : function(function), b(function), sources(std::move(sources)), elementBytes(elementBytes), dependent(dependent) {
  }

  /// The address of a buffer, a parameter.
  Val pointer(llvm::StringRef buffer);
  /// What is known is an immediate; the rest the host computes.
  Val value(const Expr &expr, Type type, const std::string &name);
  /// `of` the operand that this CTA copies.
  Val pick(Type type, llvm::StringRef name, llvm::function_ref<Expr(const CopySource &)> of);
  /// Where that operand starts. `cta` becomes the number among the CTAs that copy it.
  Val pickOperand(const Val &cta, llvm::function_ref<Expr(const CopySource &)> ctasOf);
  /// Threads and CTAs of the launch.
  void configure(unsigned threads, llvm::function_ref<Expr(const CopySource &)> ctasOf);

  /// Waits for the kernel in front, and lets the product's be launched meanwhile: it waits for all of this one before
  /// it reads (16x4095x4095 14.4 -> 13.9 us, 65x4095x4095 15.8 -> 15.4; H200, 2026-11-27, docs/hopper-l2.md, *Lines
  /// that start anywhere*).
  void overlap();

  ptx::Function &function;
  ptx::Builder b;
  std::vector<CopySource> sources;
  unsigned elementBytes;
  bool dependent;
  ptx::KernelInfo info;
  Val second; ///< Whether the CTA copies the second operand.
};

/// Copies line by line (Repack.cpp).
ptx::KernelInfo emitRepack(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                           bool dependent);
/// Copies to lines of the other direction (Turn.cpp).
ptx::KernelInfo emitTurn(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                         bool dependent);

} // namespace gemmc
