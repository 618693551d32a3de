/// The spec: what a user asks for, field by field, each with the place it was written.
///
/// One table (`Fields.def`) names every field with its path, kind, allowed values and documentation; the reader,
/// `--set`, the printer, the JSON schema and the reference page (docs/spec.md) all come from it. A field that is not
/// given is `auto`; the planner (room Plan) decides it and records why.
#pragma once
#include "gemmc/Support/Diag.h"
#include "gemmc/Support/Types.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gemmc {

enum class Target : uint8_t { sm_80, sm_86, sm_89, sm_90a };
/// fma: ordinary multiply-adds, of a matrix by a vector.
enum class Instruction : uint8_t { wmma, mma, wgmma, fma };
enum class CopyKind : uint8_t { ld, cp_async, tma };
/// pipelined: all warps copy and multiply. cooperative: a producer warp, consumer warpgroups share a block tile.
/// pingpong: a producer warp, two consumer warpgroups take block tiles in turn.
enum class Schedule : uint8_t { pipelined, cooperative, pingpong };
enum class Swizzle : uint8_t { none, b32, b64, b128, padded, xor_, blocked };
enum class RasterOrder : uint8_t { along_m, along_n, hilbert };
/// Where a CTA of a persistent kernel has its next tile from: its number says so, or a counter that all CTAs take from.
enum class Scheduler : uint8_t { fixed, dynamic };
enum class Persistence : uint8_t { off, on };
/// How an operand is read that lies in rows which TMA cannot read. on: a kernel in front copies it; inside: the
/// product's kernel shifts each line into place on its way to the tensor cores.
enum class Repack : uint8_t { off, on, inside };
/// When a kernel lets the one behind it be launched: as soon as it runs, when the sums of a CTA's last tile are done,
/// or when the CTA has stored them.
enum class Trigger : uint8_t { start, sums, end };
enum class StoreKind : uint8_t { direct, staged, tma };
/// How a fragment gets from shared memory into registers. descriptor: not at all, wgmma reads shared memory itself.
/// direct: from global memory, as fma has no shared memory in between.
enum class FragmentLoad : uint8_t { ldmatrix, lds, descriptor, wmma_load, direct };
/// snake: each other row of a warp tile is walked backwards, so that neighbouring products share a fragment.
enum class FragmentOrder : uint8_t { snake, plain };
/// What takes the place of a product of two bits; none: the elements are no bits.
enum class BitOperation : uint8_t { none, xor_, and_ };

/// A value with its place and origin.
template <typename T> struct Field {
  T value{};
  bool given = false;  ///< Written by the user (file or --set); false = auto.
  llvm::SMRange range; ///< The value's text; invalid when it was not given.
  std::string reason;  ///< Why the planner chose it; empty when given.
  const T &operator*() const { return value; }
  void decide(T chosen, std::string why) {
    if (!given) {
      value = std::move(chosen);
      reason = std::move(why);
    }
  }
};

/// An extent or leading dimension: a number, or `dynamic` (given at launch).
struct Size {
  std::optional<int64_t> fixed; ///< nullopt = dynamic.
  bool typical = false;         ///< Planned with in the place of one that is given at launch (Typical.cpp).
  bool dynamic() const { return !fixed; }
  friend bool operator==(const Size &x, const Size &y) { return x.fixed == y.fixed; }
};
/// alpha or beta: a finite number, or `dynamic`.
struct Scale {
  std::optional<double> fixed;
  bool dynamic() const { return !fixed; }
  friend bool operator==(const Scale &, const Scale &) = default;
};

/// split_k: each tile's k is cut into slices, which CTAs share. stream_k: the k steps of all tiles stand in a row,
/// which is cut into equal parts, one a CTA.
enum class SplitMode : uint8_t { none, split_k, stream_k };
/// Where the sums of a tile's slices meet. cluster: the CTAs of a tile form a cluster and exchange them in its shared
/// memory.
enum class SplitThrough : uint8_t { workspace, cluster };
/// How long the L2 is to keep what is read.
enum class CachePolicy : uint8_t { normal, evict_first, evict_last };

struct OperandSpec {
  Field<Elem> type;
  Field<Order> layout;
  Field<Size> ld; ///< Elements; >= the extent along the contiguous direction.
  Field<Size> batchStride{
      Size{0}, false, {}, {}}; ///< Elements from one product's matrix to the next one's; 0: they share one.
  Field<unsigned> align;       ///< Bytes the base pointer is a multiple of (element size .. 128).
  Field<Persistence> negate;   ///< a, b: the product takes the negative.
  Field<CachePolicy> cache;    ///< a, b: a hint of TMA copies.
  Field<Repack> repack;        ///< a, b.
};

struct Spec {
  Field<std::string> name; ///< Of the kernel: [a-z_][a-z0-9_]{0,62}.
  Field<Target> target;
  Field<Size> m, n, k;
  Field<Size> batch{Size{1}, false, {}, {}}; ///< Products.
  /// Of dynamic sizes: what is planned for. Of the others nobody decides them.
  Field<int64_t> typicalM, typicalN, typicalK, typicalBatch;
  OperandSpec a, b, c, d; ///< a: m x k, b: k x n, c and d: m x n.
  Field<Elem> accumulator;
  Field<Persistence> fastAccumulation; ///< Of 8-bit floats: sums stay in the tensor cores, which keep 14 bits.
  Field<Scale> alpha, beta;
  Field<std::array<int64_t, 3>> block;       ///< Block tile [m, n, k] of one CTA.
  Field<std::array<int64_t, 3>> warp;        ///< Warp tile [m, n, k] (mma, wmma) or warpgroup tile (wgmma).
  Field<std::array<int64_t, 3>> cluster;     ///< CTAs of a cluster along [m, n, k].
  Field<std::array<int64_t, 3>> matrixShape; ///< [m, n, k] of one matrix instruction, as PTX names it.
  Field<Instruction> instruction;
  Field<FragmentLoad> fragmentsA, fragmentsB;
  Field<int64_t> fragmentBuffers;
  Field<FragmentOrder> fragmentOrder;
  Field<BitOperation> bitOperation;
  Field<CopyKind> copy;
  Field<int64_t> copyBytes; ///< At most, of one copy instruction.
  Field<int64_t> stages;
  Field<int64_t> inFlight; ///< Stages whose products are not waited for, while the next stage is.
  Field<Schedule> schedule;
  Field<Swizzle> swizzle;
  Field<int64_t> padding; ///< Bytes behind each row of a padded tile; 0 for the other layouts.
  Field<RasterOrder> rasterOrder;
  Field<int64_t> rasterGroup; ///< Tile rows (along_n: columns) that are walked together; 1 = plain order.
  Field<Persistence> persistent;
  Field<Scheduler> scheduler;
  Field<StoreKind> store;      ///< How the epilogue writes D.
  Field<StoreKind> loadC;      ///< How it reads C.
  Field<int64_t> storeBuffers; ///< Of each warp, between the sums and TMA; 0 for other stores.
  Field<int64_t>
      storeOverlap; ///< Steps of k that half a tile multiplies while the other half of the one before is stored.
  Field<SplitMode> split;
  Field<SplitThrough> splitThrough;
  Field<int64_t> splitSlices;
  Field<int64_t> splitOwners;      ///< Of a tile, those who add and store a share of it where its slices meet.
  Field<Persistence> dependent;    ///< Kernels start before the one in front of them has ended.
  Field<Trigger> trigger;          ///< When the kernel behind may be launched.
  Field<int64_t> prefetch;         ///< Of k, of each CTA's first tile, before the kernel in front has ended.
  Field<Persistence> swapOperands; ///< Compute D^T = B^T A^T.
  Field<Persistence> foldBatch;    ///< Compute a batch whose products follow each other as one product.
};

/// Whether there may be more products than one, or none.
inline bool isBatch(const Spec &spec) { return spec.batch.value != Size{1}; }
/// Of a plan's spec: whether its products are computed as one.
inline bool isFolded(const Spec &spec) { return isBatch(spec) && *spec.foldBatch == Persistence::on; }

/// One `--set path=value`; messages about it are located in a source of that name.
struct Override {
  std::string path, value;
};
/// Splits the argument of `--set`; reports and gives nullopt when it has no `=` or no path.
std::optional<Override> parseOverride(llvm::StringRef text, Diags &diags);

/// Reads a spec from YAML `text` (a source held by `diags`) and applies the overrides. All problems are reported;
/// nullopt when one of them is an error. `baseName` (from the file name) becomes the kernel's name when none is given.
std::optional<Spec> readSpec(llvm::StringRef text, llvm::ArrayRef<Override> overrides, Diags &diags,
                             llvm::StringRef baseName = "gemm");
/// Gives `spec` the values of `words`, `path=value` separated by spaces; fields that it gives itself stay, and those
/// that it rules out. The paths that were set, or nullopt after a reported error.
std::optional<std::vector<std::string>> applyChoice(Spec &spec, llvm::StringRef words, Diags &diags);
/// Makes those fields decided ones, with `reason`: after planning, so that the planner took them as they are.
void settleChoice(Spec &spec, llvm::ArrayRef<std::string> paths, llvm::StringRef reason);

/// The complete YAML of a spec, a reason behind each decided field as a comment. readSpec(printSpec(s)) gives the same
/// values, all of them `given`. A field that is neither given nor decided with a reason is printed as `auto`, but for
/// typical sizes, which are left out then.
std::string printSpec(const Spec &spec, bool reasons);
/// Every field as text, in the order of the table.
struct FieldText {
  llvm::StringRef path;
  std::string value; ///< As YAML, `auto` when it is open.
  bool given = false;
  std::string reason;
};
std::vector<FieldText> fieldTexts(const Spec &spec);
/// The JSON schema and the reference page, from the table.
std::string specJsonSchema();
std::string specReference();

llvm::StringRef nameOf(Target);
llvm::StringRef nameOf(Instruction);
llvm::StringRef nameOf(CopyKind);
llvm::StringRef nameOf(Schedule);
llvm::StringRef nameOf(Swizzle);
llvm::StringRef nameOf(RasterOrder);
llvm::StringRef nameOf(Scheduler);
llvm::StringRef nameOf(Persistence);
llvm::StringRef nameOf(Repack);
llvm::StringRef nameOf(Trigger);
llvm::StringRef nameOf(StoreKind);
llvm::StringRef nameOf(SplitMode);
llvm::StringRef nameOf(SplitThrough);
llvm::StringRef nameOf(CachePolicy);
llvm::StringRef nameOf(FragmentLoad);
llvm::StringRef nameOf(FragmentOrder);
llvm::StringRef nameOf(BitOperation);

} // namespace gemmc
