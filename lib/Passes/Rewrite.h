/// Small tools that several passes share.
#pragma once
#include "gemmc/Passes/Passes.h"
#include "gemmc/Support/Types.h"
#include "gemmc/Tile/SharedTileOf.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::tile {

constexpr int64_t warpsOfGroup = 4; ///< Of a warpgroup.

/// Replaces variables in all expressions of `op` and its body.
inline void substitute(Op &op, llvm::function_ref<std::optional<Expr>(llvm::StringRef)> with) {
  auto all = [&](std::vector<Expr> &list) {
    for (Expr &expr : list)
      expr = expr.substitute(with);
  };
  all(op.subject.index);
  for (Attr &attr : op.attrs) {
    if (auto *expr = std::get_if<Expr>(&attr.value))
      *expr = expr->substitute(with);
    else if (auto *ref = std::get_if<Ref>(&attr.value))
      all(ref->index);
    else if (auto *list = std::get_if<std::vector<Expr>>(&attr.value))
      all(*list);
  }
  for (Op &inner : op.body)
    substitute(inner, with);
}

inline void substitute(Op &op, llvm::StringRef variable, const Expr &value) {
  substitute(op, [&](llvm::StringRef name) { return name == variable ? std::optional(value) : std::nullopt; });
}

/// The first operation of `kind` in a body (not nested); nullptr when there is none.
inline Op *findIn(std::vector<Op> &body, OpKind kind) {
  auto found = llvm::find_if(body, [&](const Op &op) { return op.kind == kind; });
  return found == body.end() ? nullptr : &*found;
}

inline size_t indexOf(const std::vector<Op> &body, OpKind kind) {
  return llvm::find_if(body, [&](const Op &op) { return op.kind == kind; }) - body.begin();
}

/// The loop of `tile` that stays one: an unrolled one is a prologue. The end when there is none.
inline std::vector<Op>::iterator mainLoopOf(std::vector<Op> &tile) {
  return llvm::find_if(tile, [](const Op &op) { return op.kind == OpKind::For && !op.has("unroll"); });
}

/// What multiplies: the last role's operations, or the kernel's where it has no roles.
inline std::vector<Op> &multiplying(Kernel &kernel) {
  std::vector<Op> *found = &kernel.body();
  for (Op &op : kernel.body())
    if (op.kind == OpKind::Role)
      found = &op.body;
  return *found;
}

inline void append(std::vector<Op> &body, std::vector<Op> more) {
  for (Op &op : more)
    body.push_back(std::move(op));
}

inline bool isCopy(const Op &op) { return op.kind == OpKind::Copy; }

/// Indexes every use of shared memory in `op` by a cursor: copies' destinations, or multiplies' and loads' sources.
inline void indexCopies(Op &op, const Expr &cursor) {
  if (isCopy(op))
    op.subject.index = {cursor};
  for (Op &inner : op.body)
    indexCopies(inner, cursor);
}
inline void indexReads(Op &op, const Expr &cursor) {
  auto index = [&](llvm::StringRef key) {
    Ref ref = op.ref(key);
    ref.index = {cursor};
    op.set(key, ref);
  };
  if (op.kind == OpKind::Load)
    index("from");
  if (op.kind == OpKind::Wgmma) {
    if (op.ref("a").name == "sA") // not a fragment
      index("a");
    index("b");
  }
  for (Op &inner : op.body)
    indexReads(inner, cursor);
}

inline void giveStages(Kernel &kernel, int64_t stages) {
  for (Op &op : kernel.body())
    if (op.kind == OpKind::Shared)
      op.set("stages", stages);
}

/// Declares one more shared buffer, behind the others.
inline void declareShared(Kernel &kernel, Op buffer) {
  std::vector<Op> &body = kernel.body();
  size_t at = body.size();
  while (at > 0 && body[at - 1].kind != OpKind::Shared)
    --at;
  body.insert(body.begin() + at, std::move(buffer));
}

/// What stores a tile: its last operations, or what it does once the sums of all its parts are there.
inline std::vector<Op> &storing(std::vector<Op> &tile) {
  return !tile.empty() && tile.back().kind == OpKind::Gather ? tile.back().body : tile;
}

/// In front of the `store` of `tile`, or of what meets before: no copy is under way and no warp reads an operand tile
/// any more. Gives the place.
inline size_t finishReads(const Kernel &kernel, std::vector<Op> &tile) {
  size_t at = std::min({indexOf(tile, OpKind::Convert), indexOf(tile, OpKind::Store), indexOf(tile, OpKind::Gather)});
  // With one stage the loop ends with a barrier; a persistent kernel has put one behind it.
  if (kernel.number("stages") == 1 || (at > 0 && tile[at - 1].kind == OpKind::Sync))
    return at;
  tile.insert(tile.begin() + at, {Op(OpKind::WaitGroup).set("pending", 0), Op(OpKind::Sync)});
  return at + 2;
}

inline Op cursor(llvm::StringRef name, int64_t stages) { return Op(OpKind::Cursor, name).set("stages", stages); }
inline Op advance(llvm::StringRef name) { return Op(OpKind::Advance, name); }

} // namespace gemmc::tile
