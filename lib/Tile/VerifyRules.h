/// What operations of the tile IR may refer to and hold: the tables of the verifier (Verify.cpp).
#pragma once
#include "gemmc/Layout/ColumnShares.h"
#include "gemmc/Tile/IR.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace gemmc::tile {

/// Variables that are known at launch, everywhere in a kernel.
inline constexpr llvm::StringLiteral launchVariables[] = {
    "m", "n", "k", "lda", "ldb", "ldc", "ldd", "batch", "stride_a", "stride_b", "stride_c", "stride_d"};

/// What an operation's subject (no key) or attribute, where it has it, refers to. A stage needs one index, a tile of a
/// tensor two, the accumulators none.
struct UseRule {
  OpKind op;
  llvm::StringLiteral key;
  OpKind wanted;
  std::optional<OpKind> orElse = std::nullopt;
};
inline constexpr UseRule useRules[] = {
    {OpKind::Copy, "", OpKind::Shared},
    {OpKind::Copy, "from", OpKind::Tensor},
    {OpKind::Copy, "signal", OpKind::Barrier},
    {OpKind::Prefetch, "", OpKind::Shared},
    {OpKind::Shift, "", OpKind::Shared},
    {OpKind::Shift, "from", OpKind::Shared},
    {OpKind::Prefetch, "from", OpKind::Tensor},
    {OpKind::PrefetchLines, "", OpKind::Tensor},
    {OpKind::Expect, "", OpKind::Barrier},
    {OpKind::Wait, "", OpKind::Barrier},
    {OpKind::Arrive, "", OpKind::Barrier},
    {OpKind::Zero, "", OpKind::Accumulator},
    {OpKind::Promote, "", OpKind::Accumulator},
    {OpKind::Convert, "", OpKind::Accumulator},
    {OpKind::Promote, "from", OpKind::Accumulator},
    {OpKind::Gather, "", OpKind::Accumulator},
    {OpKind::Exchange, "", OpKind::Accumulator},
    {OpKind::Exchange, "through", OpKind::Shared},
    {OpKind::Exchange, "signal", OpKind::Barrier},
    {OpKind::Multiply, "", OpKind::Accumulator},
    {OpKind::Multiply, "a", OpKind::Shared},
    {OpKind::Multiply, "b", OpKind::Shared},
    {OpKind::Dot, "", OpKind::Accumulator},
    {OpKind::Dot, "a", OpKind::Tensor},
    {OpKind::Dot, "b", OpKind::Tensor},
    {OpKind::Meet, "", OpKind::Accumulator},
    {OpKind::Meet, "through", OpKind::Shared},
    {OpKind::Wgmma, "", OpKind::Accumulator},
    {OpKind::Wgmma, "a", OpKind::Shared, OpKind::Fragment},
    {OpKind::Wgmma, "b", OpKind::Shared},
    {OpKind::Load, "", OpKind::Fragment},
    {OpKind::Load, "from", OpKind::Shared},
    {OpKind::Mma, "", OpKind::Accumulator},
    {OpKind::Mma, "a", OpKind::Fragment},
    {OpKind::Mma, "b", OpKind::Fragment},
    {OpKind::Send, "", OpKind::Shared},
    {OpKind::Send, "from", OpKind::Accumulator},
    {OpKind::Stage, "", OpKind::Shared},
    {OpKind::Stage, "from", OpKind::Accumulator},
    {OpKind::Bring, "", OpKind::Shared},
    {OpKind::Bring, "from", OpKind::Tensor},
    {OpKind::Bring, "to", OpKind::Accumulator},
    {OpKind::Bring, "after", OpKind::Barrier},
    {OpKind::Bring, "signal", OpKind::Barrier},
    {OpKind::Combine, "", OpKind::Accumulator},
    {OpKind::Combine, "c", OpKind::Shared},
    {OpKind::Receive, "", OpKind::Accumulator},
    {OpKind::Receive, "from", OpKind::Shared},
    {OpKind::Tiles, "gives", OpKind::Shared},
    {OpKind::Tiles, "takes", OpKind::Shared},
    {OpKind::Tiles, "full", OpKind::Barrier},
    {OpKind::Tiles, "free", OpKind::Barrier},
    {OpKind::Keep, "", OpKind::Accumulator},
    {OpKind::Store, "", OpKind::Tensor},
    {OpKind::Store, "from", OpKind::Accumulator, OpKind::Shared}, // where `stage` left them
    {OpKind::Store, "c", OpKind::Tensor},
    {OpKind::Store, "through", OpKind::Shared},
    {OpKind::Store, "after", OpKind::Barrier},
    {OpKind::Store, "signal", OpKind::Barrier},
};

/// Words an attribute may hold, by operation spelling and key.
struct WordRule {
  const char *spelling, *key;
  std::vector<llvm::StringRef> allowed;
};
inline const std::vector<WordRule> &wordRules() {
  static const std::vector<WordRule> rules = {
      {"kernel", "target", {"sm_80", "sm_86", "sm_89", "sm_90a"}},
      {"kernel", "instruction", {"wmma", "mma", "wgmma", "fma"}},
      {"kernel", "copy", {"ld", "cp_async", "tma"}},
      {"kernel", "schedule", {"pipelined", "cooperative", "pingpong"}},
      {"kernel", "swizzle", {"none", "32B", "64B", "128B", "rows", "xor", "padded", "blocked"}},
      {"kernel", "load_a", {"ldmatrix", "lds", "wmma_load"}},
      {"kernel", "load_b", {"ldmatrix", "lds", "wmma_load"}},
      {"kernel", "order", {"snake", "plain"}},
      {"kernel", "bits", {"xor", "and"}},
      {"kernel", "raster", {"along_m", "along_n", "hilbert"}},
      {"kernel", "scheduler", {"dynamic"}},
      {"kernel", "promote", {"on"}},
      {"convert", "to", {"f32"}},
      {"kernel", "trigger", {"sums", "end"}},
      {"kernel", "persistent", {"on", "off"}},
      {"kernel", "store", {"direct", "staged", "tma"}},
      {"kernel", "load_c", {"direct", "staged", "tma", "fragments"}},
      {"tensor", "buffer", {"a", "b", "c", "d"}},
      {"tensor", "type", {"f16", "bf16", "e4m3", "e5m2", "tf32", "f32", "f64", "s8", "u8", "s4", "u4", "b1", "s32"}},
      {"tensor", "order", {"row", "col"}},
      {"shared", "type", {"f16", "bf16", "e4m3", "e5m2", "f32", "tf32", "f64", "s32", "s8", "u8", "s4", "u4", "b1"}},
      {"shared", "major", {"mn", "k"}},
      {"shared", "swizzle", {"none", "32B", "64B", "128B", "rows", "xor", "padded", "blocked", "eighths"}},
      {"shared", "over", {"operands"}},
      {"accumulator", "type", {"f16", "f32", "f64", "s32"}},
      {"fragment", "operand", {"a", "b"}},
      {"copy", "via", {"ld", "cp_async", "tma"}},
      {"load", "via", {"ldmatrix", "lds", "wmma_load"}},
      {"mma", "order", {"snake", "plain"}},
      {"tensor", "shift", {"on"}},
      {"tensor", "turn", {"on"}},
      {"copy", "multicast", {"m", "n"}},
      {"copy", "cache", {"evict_first", "evict_last"}},
      {"prefetch", "multicast", {"m", "n"}},
      {"arrive", "along", {"m", "n"}},
      {"arrive", "by", {"warps", "fenced"}},
      {"tiles", "first", {"yes"}},
      {"clear", "meet", {"yes"}},
      {"kernel", "exchange", {"apart", "over"}},
      {"tiles", "parts", {"split_k", "stream_k", "cluster"}},
      {"multiply", "negate", {"a", "b", "ab"}},
      {"wgmma", "negate", {"a", "b", "ab"}},
      {"turn", "action", {"wait", "pass"}},
      {"wgmma", "accumulate", {"yes", "no", "later"}},
      {"for", "runs", {"once"}},
      {"barrier", "free", {"yes", "no"}},
      {"for", "unroll", {"full"}},
      {"store", "via", {"direct", "staged", "tma"}},
      {"store", "sectors", {"whole"}},
      {"keep", "type", {"f16", "bf16"}},
      {"bring", "via", {"tma"}},
  };
  return rules;
}

/// Numbers that passes and lowering compute with: constants in a range, or lists of `count` such constants.
struct NumberRule {
  const char *spelling, *key;
  int64_t least, most;
  unsigned count = 0;                                     ///< 0: not a list.
  enum { constant, orLater, powerOfTwo } kind = constant; ///< `orLater`: or what is known at launch or in a loop only.
};
inline constexpr int64_t maxShared = 1 << 20, maxExtent = 4096, maxStep = 16384, maxStages = 64,
                         maxSize = int64_t(1) << 40;
inline constexpr NumberRule numberRules[] = {
    {"kernel", "threads", 32, 1024},
    {"kernel", "block", 1, maxStep, 3},
    {"kernel", "warp", 1, maxExtent, 2},
    {"kernel", "cluster", 1, 16, 2},
    {"kernel", "m", 0, maxSize, 0, NumberRule::orLater},
    {"kernel", "n", 0, maxSize, 0, NumberRule::orLater},
    {"kernel", "k", 0, maxSize, 0, NumberRule::orLater},
    {"kernel", "batch", 0, maxSize, 0, NumberRule::orLater},
    {"kernel", "copy_bytes", 1, 16, 2, NumberRule::powerOfTwo},
    {"kernel", "stages", 1, maxStages},
    {"kernel", "in_flight", 1, 7}, // as wgmma.wait_group counts
    {"kernel", "overlap", 1, 4},
    {"kernel", "buffers", 1, 2},
    {"kernel", "group", 1, 65536},
    {"kernel", "consumers", 0, 8},
    {"kernel", "producer_regs", 24, 256},
    {"kernel", "consumer_regs", 24, 256},
    {"kernel", "resident", 1, 32},
    {"kernel", "shared", 0, maxShared},
    {"kernel", "matrix", 1, 256, 3},
    {"kernel", "slices", 1, 16},
    {"kernel", "store_buffers", 1, 8},
    {"kernel", "split_slices", 2, 64},
    {"kernel", "cluster_k", 2, 8},
    {"kernel", "shifted_stages", 2, maxStages},
    {"kernel", "padding", 16, 1024},
    {"tensor", "rows", 0, maxSize, 0, NumberRule::orLater},
    {"tensor", "cols", 0, maxSize, 0, NumberRule::orLater},
    {"tensor", "ld", 0, maxSize, 0, NumberRule::orLater},
    {"tensor", "batch", 0, maxSize, 0, NumberRule::orLater},
    {"tensor", "repack", 0, maxSize, 0, NumberRule::orLater},
    {"tensor", "align", 1, 1 << 20, 0, NumberRule::powerOfTwo},
    {"shared", "extent", 1, maxExtent, 2},
    {"shared", "stages", 1, maxStages},
    {"shared", "padding", 16, 1024},
    {"shared", "offset", 0, maxShared},
    {"barrier", "stages", 1, maxStages},
    {"barrier", "count", 1, (1 << 20) - 1}, // PTX ISA 9.7.13.15.2: pending arrivals of an mbarrier
    {"barrier", "offset", 0, maxShared},
    {"barrier", "expects", 1, maxShared - 1},
    {"barrier", "expects_of_last", 1, maxShared - 1},
    {"accumulator", "tile", 1, maxExtent, 2},
    {"accumulator", "warp", 1, maxExtent, 2},
    {"fragment", "buffers", 1, maxExtent / 16},
    {"role", "warps", 0, 32, 2},
    {"role", "regs", 24, 256},
    {"tiles", "alternate", 1, 8},
    {"elect", "warp", 0, 31},
    {"for", "from", 0, maxSize, 0, NumberRule::orLater},
    {"for", "to", 0, maxSize, 0, NumberRule::orLater},
    {"advance", "by", 0, maxSize, 0, NumberRule::orLater},
    {"copy", "bytes", 1, 16, 0, NumberRule::powerOfTwo},
    {"prefetch_lines", "rows", 1, maxExtent},
    {"prefetch_lines", "cols", 1, maxExtent},
    {"shift", "pitch", 2, int64_t(1) << 40},
    {"shift", "stride", 2, int64_t(1) << 40},
    {"wait_group", "pending", 0, maxStages},
    {"cursor", "stages", 1, maxStages},
    {"arrive", "from", 1, 15},
    {"expect", "bytes", 0, maxShared - 1}, // 9.7.13.15.2: bytes of a phase
    {"load", "step", 0, maxExtent / 4 - 1},
    {"wgmma", "block", 0, maxExtent / 64 - 1},
    {"wgmma", "steps", 1, maxExtent / 4},
    {"wait_wgmma", "pending", 0, 7},
    {"send", "slice", 1, 15},
    {"exchange", "slices", 2, 8},
    {"meet", "slices", 2, 8},
    {"exchange", "owners", 1, 8},
    {"gather", "owners", 1, mostOwners},
    {"keep", "block", 0, maxExtent / 64 - 1},
    {"store", "block", 0, maxExtent / 64 - 1},
    {"wait_store", "pending", 0, 7},
};

} // namespace gemmc::tile
