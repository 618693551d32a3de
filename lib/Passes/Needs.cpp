#include "Needs.h"
#include "gemmc/Layout/SharedTile.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::tile {
namespace {

const Op *findIn(const std::vector<Op> &body, OpKind kind) {
  auto found = llvm::find_if(body, [&](const Op &op) { return op.kind == kind; });
  return found == body.end() ? nullptr : &*found;
}

bool declares(const Kernel &kernel, llvm::StringRef name, OpKind kind) {
  const Op *decl = kernel.declaration(name);
  return decl && decl->kind == kind;
}

/// The loop that stays one: an unrolled one is a prologue.
const Op *mainLoop(const std::vector<Op> &body) {
  const Op *tiles = findIn(body, OpKind::Tiles);
  if (!tiles)
    return nullptr;
  auto found = llvm::find_if(tiles->body, [](const Op &op) { return op.kind == OpKind::For && !op.has("unroll"); });
  return found == tiles->body.end() ? nullptr : &*found;
}

/// As in Rewrite.h: the last role's operations, or the kernel's.
const std::vector<Op> &multiplying(const Kernel &kernel) {
  const std::vector<Op> *found = &kernel.body();
  for (const Op &op : kernel.body())
    if (op.kind == OpKind::Role)
      found = &op.body;
  return *found;
}

/// Who copies has a loop, and who multiplies one with products in it.
bool fitsRole(const Op &role) {
  if (const Op *elect = findIn(role.body, OpKind::Elect))
    return mainLoop(elect->body);
  const Op *loop = mainLoop(role.body);
  return loop && findIn(loop->body, OpKind::Wgmma);
}
} // namespace

bool hasOperands(const Kernel &kernel) {
  return declares(kernel, "acc", OpKind::Accumulator) && declares(kernel, "sA", OpKind::Shared) &&
         declares(kernel, "sB", OpKind::Shared);
}

bool hasSwizzles(const Kernel &kernel) {
  return llvm::all_of(kernel.body(), [](const Op &op) { return op.kind != OpKind::Shared || op.has("swizzle"); });
}

bool hasCopyLoop(const Kernel &kernel) {
  const Op *tiles = findIn(kernel.body(), OpKind::Tiles);
  const Op *loop = tiles ? findIn(tiles->body, OpKind::For) : nullptr;
  return loop && findIn(loop->body, OpKind::Copy);
}

bool fitsBarriers(const Kernel &kernel) {
  if (!hasOperands(kernel) || !hasSwizzles(kernel))
    return false;
  if (kernel.word("copy") != "tma" || kernel.word("schedule") == "pipelined")
    return mainLoop(kernel.body());
  return llvm::all_of(kernel.body(), [](const Op &op) { return op.kind != OpKind::Role || fitsRole(op); });
}

namespace {
/// Whether an operand's tile is one that a warpgroup can fill line by line.
bool isShiftable(const Kernel &kernel, const Op &tensor) {
  const std::string &name = tensor.subject.name;
  const bool known = (name == "A" || name == "B") && tensor.expr("ld").isConst() && !kernel.declaration("r" + name);
  const Op *tile = known ? kernel.declaration("s" + name) : nullptr;
  return tile && tile->kind == OpKind::Shared && tile->word("swizzle") == "128B" &&
         tile->item("extent", tile->word("major") == "k" ? 0 : 1) % SharedTile::groups == 0 &&
         (tile->word("type") == "f16" || tile->word("type") == "bf16");
}
} // namespace

bool fitsShift(const Kernel &kernel) {
  const auto tensors = kernel.shiftedTensors();
  if (tensors.empty())
    return true; // the pass does nothing
  std::vector<const Op *> roles;
  for (const Op &op : kernel.body())
    if (op.kind == OpKind::Role)
      roles.push_back(&op);
  const bool neighbours = roles.size() == 2 && roles[1] == roles[0] + 1;
  const Op *elect = neighbours ? findIn(roles[0]->body, OpKind::Elect) : nullptr;
  const Op *tiles = elect ? findIn(elect->body, OpKind::Tiles) : nullptr;
  const bool known = kernel.root.has("shifted_stages") && kernel.word("schedule") == "cooperative" &&
                     !kernel.root.has("scheduler") &&
                     kernel.root.item("cluster", 0) * kernel.root.item("cluster", 1) == 1 &&
                     llvm::all_of(tensors, [&](const Op *tensor) { return isShiftable(kernel, *tensor); });
  return known && tiles && findIn(tiles->body, OpKind::For) && declares(kernel, "full", OpKind::Barrier) &&
         declares(kernel, "empty", OpKind::Barrier) && !kernel.declaration("shifted") && !kernel.declaration("used");
}

bool fitsPromote(const Kernel &kernel) {
  if (!kernel.root.has("promote") || kernel.word("instruction") != "wgmma")
    return true; // the pass does nothing
  return declares(kernel, "acc", OpKind::Accumulator) && declares(kernel, "empty", OpKind::Barrier) &&
         !kernel.declaration("part") && kernel.root.number("in_flight", 1) == 1;
}

bool fitsTrim(const Kernel &kernel) {
  if (kernel.word("copy") != "tma" || kernel.word("instruction") != "wgmma")
    return true; // the pass does nothing
  return hasSwizzles(kernel) && declares(kernel, "sA", OpKind::Shared) && declares(kernel, "sB", OpKind::Shared);
}

bool fitsFragments(const Kernel &kernel) {
  if (kernel.word("instruction") != "mma" || kernel.number("stages") < 3 || kernel.root.number("buffers", 2) < 2)
    return true; // the pass does nothing
  const Op *loop = mainLoop(kernel.body());
  if (!loop || !declares(kernel, "fA", OpKind::Fragment) || !declares(kernel, "fB", OpKind::Fragment))
    return false;
  size_t mmas = llvm::count_if(loop->body, [](const Op &op) { return op.kind == OpKind::Mma; });
  std::vector<bool> loaded(mmas);
  for (const Op &op : loop->body) {
    if (op.kind != OpKind::Load)
      continue;
    if (size_t(op.number("step")) >= mmas)
      return false;
    loaded[op.number("step")] = true;
  }
  return mmas > 0 && llvm::all_of(loaded, [](bool step) { return step; });
}

bool hasStore(const Kernel &kernel) {
  const Op *tiles = findIn(kernel.body(), OpKind::Tiles), *acc = kernel.declaration("acc");
  bool wanted = kernel.root.number("slices", 1) > 1 || kernel.word("store") != "direct";
  if (!wanted)
    return true; // the pass does nothing
  if (kernel.word("instruction") == "wgmma")
    return acc && acc->kind == OpKind::Accumulator && kernel.root.has("store_buffers");
  const Op *last = tiles && !tiles->body.empty() ? &tiles->body.back() : nullptr;
  if (last && last->kind == OpKind::Gather) // as in Rewrite.h: what stores
    last = last->body.empty() ? nullptr : &last->body.back();
  return last && last->kind == OpKind::Store && acc && acc->kind == OpKind::Accumulator && acc->has("warp");
}

bool fitsBringC(const Kernel &kernel) {
  if (kernel.root.word("load_c") != "tma")
    return true; // the pass does nothing
  bool producer = false, consumer = false;
  for (const Op &role : kernel.body()) { // each is one or the other
    if (role.kind != OpKind::Role)
      continue;
    if (const Op *elect = findIn(role.body, OpKind::Elect)) {
      producer = findIn(elect->body, OpKind::Tiles);
      continue;
    }
    const Op *tiles = findIn(role.body, OpKind::Tiles);
    if (!tiles || tiles->body.empty() || tiles->body.back().kind != OpKind::Store)
      return false;
    const Op &store = tiles->body.back();
    consumer = store.has("c") && store.has("through") && store.word("via") == "tma" && !store.has("cursor");
  }
  return producer && consumer && declares(kernel, "acc", OpKind::Accumulator) && kernel.root.has("store_buffers") &&
         !kernel.declaration("brought") && !kernel.declaration("left");
}

bool hasExchange(const Kernel &kernel) {
  bool known = true;
  walk(kernel.body(), [&](const Op &op) {
    if (op.kind == OpKind::Exchange)
      known &= declares(kernel, op.subject.name, OpKind::Accumulator) && !declares(kernel, "sX", OpKind::Shared);
  });
  return known;
}

bool fitsRing(const Kernel &kernel) {
  if (!kernel.root.has("scheduler"))
    return true; // the pass does nothing
  bool gives = false, takes = false, whole = true;
  for (const Op &role : kernel.body()) {
    if (role.kind != OpKind::Role)
      continue;
    for (const Op &op : role.body)
      if (op.kind == OpKind::Elect) {
        gives = true;
        whole &= findIn(op.body, OpKind::Tiles) != nullptr;
      }
    takes |= findIn(role.body, OpKind::Tiles) != nullptr;
  }
  walk(kernel.body(), [&](const Op &op) { whole &= op.kind != OpKind::Tiles || !op.has("parts"); });
  return gives && takes && whole && declares(kernel, "acc", OpKind::Accumulator) && !kernel.declaration("sT");
}

bool fitsTrigger(const Kernel &kernel) {
  if (!kernel.root.has("trigger"))
    return true; // the pass does nothing
  return mainLoop(multiplying(kernel));
}

bool fitsOverlap(const Kernel &kernel) {
  if (!kernel.root.has("overlap"))
    return true; // the pass does nothing
  constexpr int64_t rows = 2 * 64;
  const Op *tiles = findIn(multiplying(kernel), OpKind::Tiles), *loop = mainLoop(multiplying(kernel));
  if (!tiles || !loop || tiles->attrs.size() || kernel.word("schedule") != "cooperative" ||
      kernel.root.number("in_flight", 1) > 1 || kernel.number("overlap") > kernel.number("stages") ||
      !loop->expr("from").isConst() || !loop->expr("to").isConst() ||
      loop->number("to") - loop->number("from") <= kernel.number("overlap"))
    return false;
  auto multiplies = [](const Op &op) { return op.kind == OpKind::Wgmma; };
  llvm::ArrayRef<Op> first(tiles->body.data(), loop);
  if (llvm::count_if(first, multiplies) != 1 || llvm::count_if(loop->body, multiplies) != 1)
    return false;
  const Op &store = tiles->body.back(), *acc = kernel.declaration("acc");
  bool byTma = store.kind == OpKind::Store && store.has("through") && store.word("via") == "tma" && !store.has("c");
  bool sums = byTma && store.ref("from").name == "acc" && declares(kernel, "acc", OpKind::Accumulator) &&
              acc->has("warp") && acc->item("warp", 0) == rows &&
              (acc->word("type") == "f32" || acc->word("type") == "f16");
  const Op *d = sums ? kernel.declaration(store.subject.name) : nullptr;
  return d && (d->word("type") == "f16" || d->word("type") == "bf16");
}

bool hasFlatLoops(const Kernel &kernel) {
  bool flat = true;
  walk(kernel.body(), [&](const Op &op) {
    if (op.kind == OpKind::For)
      walk(op.body, [&](const Op &inner) { flat &= inner.kind != OpKind::For; });
  });
  return flat;
}
} // namespace gemmc::tile
