/// What the text of the launch information looks like, described once for both directions.
///
/// `describe(io, x)` names the fields of `x` in the order in which they are printed. The writer and the reader are two
/// such `io`: each has `io(key, field, limits...)` for every field type that occurs here.
///
///     //! gemmc launch 1
///     //! m: 4096
///     //! a: {type: bf16, layout: row, ld: 4096}
///     //! kernels:
///     //!   - name: gemm
///     //!     grid: ["ceildiv(m, 128)", 16, 1]
#pragma once
#include "gemmc/PTX/LaunchInfo.h"

namespace gemmc::ptx::launch {

/// The first line of the block, behind `//`; a version follows. Raised whenever an older reader would misread the text.
constexpr llvm::StringLiteral firstLine = "! gemmc launch ";
constexpr unsigned version = 1;

/// Inclusive bounds of an integer.
struct Limits {
  int64_t low, high;
};
/// Bounds on the product of a triple, as hardware has them, and what is counted.
struct Product {
  uint32_t most;
  llvm::StringLiteral unit;
};

constexpr Limits nonNegative{0, INT64_MAX};
constexpr Limits gridExtent{0, 2147483647}; // CUDA C Programming Guide, compute capabilities: x; y and z: 65535
constexpr Limits sharedBytes{0, 232448};    // the largest opt-in size of any target (sm_90a)
constexpr Limits boxExtent{1, 256};         // cuTensorMapEncodeTiled, boxDim
constexpr Limits tileExtent{0, 65536};
constexpr Limits stageCount{1, 4096};
constexpr Limits textLine{1, INT32_MAX};
constexpr Product blockThreads{1024, "threads"};
constexpr Product clusterCtas{16, "CTAs"}; // with the non-portable size; 8 without
constexpr size_t maxRank = 5;              // cuTensorMapEncodeTiled, tensorRank

constexpr llvm::StringLiteral variables[] = {
    "m",        "n",        "k",   "batch", "lda",   "ldb",   "ldc",   "ldd",           "stride_a",    "stride_b",
    "stride_c", "stride_d", "sms", "a_ptr", "b_ptr", "c_ptr", "d_ptr", "alpha_is_zero", "beta_is_zero"};
constexpr llvm::StringLiteral buffers[] = {"a", "b", "c", "d", "workspace"};
constexpr llvm::StringLiteral scales[] = {"alpha", "beta"};

template <typename IO> void describe(IO &io, OperandInfo &x) {
  io("type", x.type);
  io("layout", x.order);
  io("ld", x.ld, nonNegative);
  io.optional("batch_stride", x.batchStride, nonNegative);
}

template <typename IO> void describe(IO &io, TensorMapInfo &x) {
  io("name", x.name);
  io("buffer", x.buffer, llvm::ArrayRef(buffers));
  io.optional("offset", x.offset, nonNegative);
  io("type", x.type);
  io("swizzle", x.swizzle);
  io("box", x.box, boxExtent);
  io("dims", x.dims, nonNegative);
  io("strides", x.strides, nonNegative);
}

template <typename IO> void describe(IO &io, ParamInfo &x) {
  io("name", x.name);
  io("type", x.type);
  io.source(x);
}

template <typename IO> void describe(IO &io, RegionInfo &x) {
  io("name", x.name);
  io("offset", x.offset, sharedBytes);
  io("bytes", x.bytes, sharedBytes);
  io("stages", x.stages, stageCount);
  io.optional("field", x.field);
}

template <typename IO> void describe(IO &io, SpecInfo &x) {
  io("file", x.file);
  io("lines", x.lines, textLine);
}

template <typename IO> void describe(IO &io, KernelInfo &x) {
  io("name", x.name);
  io("grid", x.grid, gridExtent);
  io("block", x.block, blockThreads);
  io("cluster", x.cluster, clusterCtas);
  io("shared", x.dynamicShared, sharedBytes);
  io("maps", x.maps);
  io("params", x.params);
  io.optional("memory", x.memory);
  io.optional("overlaps", x.overlaps, Limits{0, 1});
  io.optional("readies", x.readies, Limits{0, 1});
}

template <typename IO> void describe(IO &io, LaunchInfo &x) {
  io("m", x.m, nonNegative);
  io("n", x.n, nonNegative);
  io("k", x.k, nonNegative);
  io.unless(Expr(1), "batch", x.batch, nonNegative);
  io("a", x.a);
  io("b", x.b);
  io("c", x.c);
  io("d", x.d);
  io("accumulator", x.accumulator);
  if (x.a.type == Elem::b1) // read before
    io("bits", x.bits);
  io.optional("negated", x.negated, Limits{0, 1});
  io.optional("promoted", x.promoted, Limits{0, 4096});
  io("alpha", x.alpha);
  io("beta", x.beta);
  io("requirements", x.requirements);
  io("workspace", x.workspace, nonNegative);
  io("block_m", x.blockM, tileExtent);
  io("block_n", x.blockN, tileExtent);
  io.optional("spec", x.spec);
  io("kernels", x.kernels);
}

} // namespace gemmc::ptx::launch
