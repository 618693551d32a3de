/// What kernels that copy operands to the workspace have in common: whose operand a CTA has, and parameters.
#pragma once
#include "Lowering.h"

namespace gemmc {

/// An operand on its way.
struct CopySource {
  std::string buffer;
  Expr lines, length, pitch, packedPitch; ///< All but `lines` in bytes.
  Expr offset;                            ///< Of the copy in the workspace.
  Expr products = 1;                      ///< Matrices, and the bytes from one to the next.
  Expr stride = 0, packedStride = 0;
};

/// With whose launch that of a copy overlaps: with the one in front, which it waits for; and, where the copy's CTAs are
/// few, with the product's, which may begin as soon as all of those run, and waits for their ends. A copy that fills
/// the GPU would have the product's CTAs come one by one, as places fall free: 2465x1715x1751 31.5 -> 36.3 us,
/// 471x1581x1971 11.2 -> 12.5. One of few CTAs leaves the places that they find anyway.
enum class CopyOverlaps : uint8_t { nobody, inFront, both };

class CopyKernel {
protected:
  static constexpr unsigned threads = 256, warps = threads / 32;

  CopyKernel(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes, CopyOverlaps overlaps)
      : function(function), b(function), sources(std::move(sources)), elementBytes(elementBytes), overlaps(overlaps) {}

  /// The address of a buffer, a parameter.
  Val pointer(llvm::StringRef buffer);
  /// What is known is an immediate; the rest the host computes.
  Val value(const Expr &expr, Type type, const std::string &name);
  /// `of` the operand that this CTA copies.
  Val pick(Type type, llvm::StringRef name, llvm::function_ref<Expr(const CopySource &)> of);
  /// Where that operand starts. `cta` becomes the number among the CTAs that copy it.
  Val pickOperand(const Val &cta, llvm::function_ref<Expr(const CopySource &)> ctasOf);
  /// From a place in the first product's copy of that operand to the same one of the CTA's.
  void moveToProduct(const Val &place);
  /// Threads and CTAs of the launch: a row of these for each product of a batch.
  void configure(llvm::function_ref<Expr(const CopySource &)> ctasOf);

  /// What `overlaps` says, in front of everything else; the grid is known.
  void overlap();

private:
  Val ofProduct(const Val &base);

protected:
  ptx::Function &function;
  ptx::Builder b;
  std::vector<CopySource> sources;
  unsigned elementBytes;
  CopyOverlaps overlaps;
  ptx::KernelInfo info;
  Val second;  ///< Whether the CTA copies the second operand.
  Val product; ///< b64, of a batch.
};

/// Copies line by line (Repack.cpp).
ptx::KernelInfo emitRepack(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                           CopyOverlaps overlaps);
/// Copies to lines of the other direction (Turn.cpp).
ptx::KernelInfo emitTurn(ptx::Function &function, std::vector<CopySource> sources, unsigned elementBytes,
                         CopyOverlaps overlaps);

} // namespace gemmc
