/// What a launch needs beside the PTX text: which kernels, in which order, with which grid, shared memory, parameters
/// and tensor maps. Printed as a comment block (YAML in `//! ` lines) at the head of the PTX and read back from there
/// by the runtime and by the emulator, so that a `.ptx` file is complete by itself.
///
/// Expressions are over the launch variables: m, n, k (the problem's sizes), lda, ldb, ldc, ldd (leading dimensions in
/// elements), sms (multiprocessors of the device), a_ptr, b_ptr, c_ptr, d_ptr (device addresses),
/// alpha_is_zero, beta_is_zero (0 or 1).
#pragma once
#include "gemmc/PTX/IR.h"
#include "gemmc/Support/Expr.h"
#include "gemmc/Support/Types.h"

namespace gemmc::ptx {

/// TMA shared-memory swizzle (PTX ISA 5.5.7).
enum class TmaSwizzle : uint8_t { none, b32, b64, b128 };
llvm::StringRef nameOf(TmaSwizzle swizzle); ///< none, 32B, 64B, 128B

/// What two elements of b1 give before they are summed (PTX ISA 9.7.14.5.14, `.bitOp`).
enum class BitProduct : uint8_t { none, xor_, and_ };
llvm::StringRef nameOf(BitProduct bits);

/// Arguments of cuTensorMapEncodeTiled, dimension 0 innermost.
struct TensorMapInfo {
  std::string name;   ///< The kernel parameter it is passed in.
  std::string buffer; ///< a, b, c, d or workspace.
  Elem type = Elem::f16;
  std::vector<Expr> dims;    ///< Extents in elements.
  std::vector<Expr> strides; ///< Bytes, of dimensions 1..rank-1.
  std::vector<Expr> box;     ///< Extents in elements, 1 to 256.
  TmaSwizzle swizzle = TmaSwizzle::none;
  Expr offset = 0; ///< Bytes from the buffer's start to the matrix.
};

/// One kernel parameter, in order.
struct ParamInfo {
  enum Kind : uint8_t { Pointer, Int, Float, TensorMap };
  Kind kind = Pointer;
  std::string name; ///< Of the .param.
  Type type =
      Type::u64;      ///< u64 pointers; u32, s32, u64, s64 ints; f32, f64 floats; b8 tensor maps (128 bytes, align 64).
  std::string source; ///< Pointer: the buffer. Float: alpha (0 where k is 0) or beta. TensorMap: the map's name.
  Expr value;         ///< Int: its value.
};

/// A part of dynamic shared memory: what messages call its bytes. Nothing is launched differently for it.
struct RegionInfo {
  std::string name;    ///< sA, sB, sD, full, empty...
  uint32_t offset = 0; ///< Bytes, from the beginning of dynamic shared memory.
  uint32_t bytes = 0;  ///< Of one stage.
  uint32_t stages = 1; ///< One behind the other.
  std::string field;   ///< Of the spec: the one that decides it. Empty: none.
  friend bool operator==(const RegionInfo &, const RegionInfo &) = default;
};

/// The spec that a kernel was compiled from: where the fields that regions name were written.
struct SpecInfo {
  std::string file;                                    ///< As the compiler was given it; empty: no file.
  std::vector<std::pair<std::string, uint32_t>> lines; ///< By field; those that the file does not give have none.
  friend bool operator==(const SpecInfo &, const SpecInfo &) = default;
};

struct KernelInfo {
  std::string name;                                    ///< The entry.
  std::array<Expr, 3> grid{Expr(1), Expr(1), Expr(1)}; ///< CTAs; a 0 anywhere means: do not launch.
  std::array<uint32_t, 3> block{1, 1, 1};
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint32_t dynamicShared = 0; ///< Bytes.
  std::vector<TensorMapInfo> maps;
  std::vector<ParamInfo> params;
  std::vector<RegionInfo> memory; ///< May be empty: nobody must know.
  /// 1: it may start before the kernels in front of it on the stream have ended (programmatic dependent launch); what
  /// they write it reads behind griddepcontrol.wait.
  uint32_t overlaps = 0;
  /// 1: it only readies the workspace, and the kernels behind it leave it as they found it: where the last launch of
  /// these kernels had the same workspace, and nobody has written there since, it may be left out.
  uint32_t readies = 0;
};

/// An operand as the kernels expect it (for those who have only the PTX: runners, verifiers).
struct OperandInfo {
  Elem type = Elem::f16;
  Order order = Order::row;
  Expr ld = 0; ///< Leading dimension in elements: a constant, or the variable lda...
  Expr batchStride =
      0; ///< Elements from one product's matrix to the next one's, or the variable stride_a...; 0: they share one.
};

struct LaunchInfo {
  /// Conditions under which the kernels are right; when one does not hold, another variant must be compiled.
  std::vector<Expr> requirements;
  Expr m, n, k;   ///< Constants, or the variables m, n, k when dynamic.
  Expr batch = 1; ///< Products; a constant, or the variable batch.
  OperandInfo a, b, c, d;
  Elem accumulator = Elem::f32;
  BitProduct bits = BitProduct::none; ///< b1: what two elements give.
  uint32_t negated = 0;               ///< 1: the product is taken negative.
  uint32_t promoted = 0; ///< 8-bit floats: k whose products are summed before they are added in f32; 0: all.
  std::optional<double> alpha, beta; ///< Fixed values; nullopt = given at launch.
  Expr workspace = 0;                ///< Bytes.
  std::vector<KernelInfo> kernels;   ///< Launched in this order on one stream.
  /// For `--ctas`: the rows and columns of D that a CTA, or with its cluster several, work on; 0: clusters do not have
  /// tiles to themselves, and all of them run.
  uint32_t blockM = 0, blockN = 0;
  SpecInfo spec;
};

/// The lines of the comment block, each without `//`.
std::vector<std::string> toHeader(const LaunchInfo &info);
/// Reads the block back from a module's header; reports what is missing or malformed, at its lines and columns of
/// `file`.
std::optional<LaunchInfo> fromHeader(const Module &module, Diags &diags, llvm::StringRef file = "launch information");

} // namespace gemmc::ptx
