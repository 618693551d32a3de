#include "Rewrite.h"

namespace gemmc::tile {
namespace {

// ld and cp.async: groups and CTA barriers ---------------------------------------------------------------------------

/// One stage: copy, barrier, read, barrier.
void guardSingleStage(Op &loop, bool async) {
  size_t firstRead = llvm::find_if(loop.body, [](const Op &op) { return !isCopy(op); }) - loop.body.begin();
  std::vector<Op> visible;
  if (async)
    append(visible, {Op(OpKind::Commit), Op(OpKind::WaitGroup).set("pending", 0)});
  visible.push_back(Op(OpKind::Sync));
  loop.body.insert(loop.body.begin() + firstRead, visible.begin(), visible.end());
  loop.body.push_back(Op(OpKind::Sync));
}

/// A commit closes each iteration's copies, even when there were none, so that the count of groups stays the
/// iteration's.
void commitCopies(Op &loop) {
  size_t last = loop.body.size();
  while (last > 0 && !isCopy(loop.body[last - 1]))
    --last;
  loop.body.insert(loop.body.begin() + last, Op(OpKind::Commit));
}

void guardGroups(Kernel &kernel) {
  int64_t stages = kernel.number("stages");
  bool async = kernel.word("copy") == "cp_async";
  std::vector<Op> &tile = findIn(kernel.body(), OpKind::Tiles)->body;
  if (stages == 1)
    return guardSingleStage(*findIn(tile, OpKind::For), async);
  for (Op &op : tile)
    if (op.kind == OpKind::For)
      commitCopies(op);
  Op &loop = *mainLoopOf(tile);
  loop.body.insert(loop.body.begin(), {Op(OpKind::WaitGroup).set("pending", stages - 2), Op(OpKind::Sync)});
  // The next tile's prologue, or nothing: its copies must not meet reads of this tile that are still under way.
  if (kernel.word("persistent") == "on") {
    size_t end = &loop - tile.data() + 1;
    tile.insert(tile.begin() + end, {Op(OpKind::WaitGroup).set("pending", 0), Op(OpKind::Sync)});
  }
}

// TMA: full and empty mbarriers --------------------------------------------------------------------------------------

/// Which CTAs of a cluster write into this one's stages: those of its row (A is shared along n) and column.
int64_t writers(const Kernel &kernel) { return kernel.root.item("cluster", 0) + kernel.root.item("cluster", 1) - 1; }

/// Fragments of A: threads read the stages, and not wgmma alone.
bool readByThreads(const Kernel &kernel) {
  return llvm::any_of(kernel.root.body, [](const Op &op) { return op.kind == OpKind::Fragment; });
}

void declareBarriers(Kernel &kernel) {
  int64_t stages = kernel.number("stages");
  int64_t readers = kernel.word("schedule") == "pingpong" ? 1 : kernel.number("consumers");
  if (readByThreads(kernel))
    readers *= 4; // each warp of a warpgroup for itself
  Op full = Op(OpKind::Barrier, "full").set("stages", stages).set("count", 1);
  Op empty =
      Op(OpKind::Barrier, "empty").set("stages", stages).set("count", readers * writers(kernel)).set("free", "yes");
  size_t at = indexOf(kernel.body(), OpKind::Accumulator);
  kernel.body().insert(kernel.body().begin() + at, {full, empty});
}

int64_t stageBytes(const Kernel &kernel) {
  int64_t bytes = 0;
  for (const Op &op : kernel.body())
    if (op.kind == OpKind::Shared)
      bytes += tileOf(op).stageBytes();
  return bytes;
}

/// wait empty; expect full; copies that signal full.
std::vector<Op> guardedCopies(const Kernel &kernel, std::vector<Op> copies) {
  Expr w = Expr::var("w");
  std::vector<Op> result = {Op(OpKind::Wait, Ref{"empty", {w}}),
                            Op(OpKind::Expect, Ref{"full", {w}}).set("bytes", stageBytes(kernel))};
  for (Op &copy : copies) {
    copy.set("signal", Ref{"full", {w}});
    // Neighbours along n work on the same rows of A, neighbours along m on the same columns of B.
    bool isA = copy.ref("from").name == "A";
    if (kernel.root.item("cluster", isA ? 1 : 0) > 1)
      copy.set("multicast", isA ? "n" : "m");
    copy.erase("when");
    result.push_back(std::move(copy));
  }
  return result;
}

/// Puts the copies of `body` behind their waits; `elect`: only one lane of the first warp does it.
void guardProducer(const Kernel &kernel, std::vector<Op> &body, bool elect) {
  std::vector<Op> copies, result;
  for (Op &op : body) {
    if (isCopy(op)) {
      copies.push_back(std::move(op));
      continue;
    }
    if (!copies.empty()) {
      Op block = Op(OpKind::Elect).set("warp", 0);
      if (copies.front().has("when"))
        block.set("when", copies.front().expr("when"));
      std::vector<Op> guarded = guardedCopies(kernel, std::move(copies));
      copies.clear();
      if (elect) {
        block.body = std::move(guarded);
        result.push_back(std::move(block));
      } else {
        append(result, std::move(guarded));
      }
    }
    result.push_back(std::move(op));
  }
  body = std::move(result);
}

/// Fragments of A are loaded into registers that a wgmma before may still read, which is waited for first: of two
/// halves of a stage the one before the last, after which the stage before is free.
void guardFragments(std::vector<Op> &body, const Expr &later) {
  const Expr q = Expr::var("q");
  const bool halves = llvm::count_if(body, [](const Op &op) { return op.kind == OpKind::Wgmma; }) > 1;
  const Op wait = Op(OpKind::WaitWgmma).set("pending", int64_t(halves)).set("when", later);
  const std::vector<Op> release = {wait, Op(OpKind::Arrive, Ref{"empty", {q}}).set("when", later),
                                   Op(OpKind::Advance, "q").set("when", later)};
  std::vector<Op> first = {Op(OpKind::Wait, Ref{"full", {Expr::var("r")}})};
  if (halves) {
    body.insert(body.begin() + indexOf(body, OpKind::Wgmma) + 1, release.begin(), release.end());
    first.push_back(wait);
  } else {
    append(first, release);
  }
  body.insert(body.begin() + indexOf(body, OpKind::Load), first.begin(), first.end());
}

/// wait full; wgmma; the wgmma `inFlight` before it has finished: release its stage.
void guardConsumer(std::vector<Op> &body, int64_t inFlight) {
  size_t at = indexOf(body, OpKind::Wgmma);
  if (at == body.size())
    return;
  Expr r = Expr::var("r"), q = Expr::var("q"), later = less(inFlight - 1, Expr::var("kt"));
  if (indexOf(body, OpKind::Load) < at)
    return guardFragments(body, later);
  Op wait = Op(OpKind::WaitWgmma).set("pending", inFlight);
  if (inFlight == 1) // more are waited for without a branch: with fewer under way it waits for nothing
    wait.set("when", later);
  body.insert(body.begin() + at + 1, {wait, Op(OpKind::Arrive, Ref{"empty", {q}}).set("when", later),
                                      Op(OpKind::Advance, "q").set("when", later)});
  body.insert(body.begin() + at, Op(OpKind::Wait, Ref{"full", {r}}));
}

/// In `outer` (a role, or the kernel): the released stage gets a cursor of its own, `q`, that follows `r`.
void guardReads(std::vector<Op> &outer, int64_t inFlight = 1) {
  Op &tiles = *findIn(outer, OpKind::Tiles);
  size_t at = size_t(mainLoopOf(tiles.body) - tiles.body.begin());
  guardConsumer(tiles.body[at].body, inFlight);
  Expr steps = tiles.body[at].expr("to");
  std::vector<Op> last = {Op(OpKind::WaitWgmma).set("pending", 0)};
  for (int64_t i = 0; i < inFlight; ++i)
    for (Op &op : std::vector<Op>{Op(OpKind::Arrive, Ref{"empty", {Expr::var("q")}}), advance("q")}) {
      if (i > 0 && !(steps.isConst() && steps.constant() > i))
        op.set("when", less(i, steps)); // a tile of fewer steps
      last.push_back(op);
    }
  tiles.body.insert(tiles.body.begin() + at + 1, last.begin(), last.end());
  // Wherever `r` is declared or steps over another warpgroup's tile, `q` does.
  auto follow = [](std::vector<Op> &body) {
    for (size_t i = 0; i < body.size(); ++i) {
      bool twin = body[i].subject.name == "r" &&
                  (body[i].kind == OpKind::Cursor || (body[i].kind == OpKind::Advance && body[i].has("by")));
      if (!twin)
        continue;
      Op copy = body[i];
      copy.subject.name = "q";
      body.insert(body.begin() + ++i, std::move(copy));
    }
  };
  follow(tiles.body);
  follow(outer);
}

/// The turn is passed on in front of the last wgmma, so that the other warpgroup's first one follows it without a gap.
/// Behind it would do as well, but what stands between a wgmma and the wait that ends it can make ptxas 13 move
/// accumulators there, and then it serialises every wgmma (C7514): whether it does depends on the tile's width.
void passTurnEarly(Op &tiles) {
  auto pass =
      llvm::find_if(tiles.body, [](const Op &op) { return op.kind == OpKind::Turn && op.word("action") == "pass"; });
  auto loop = mainLoopOf(tiles.body);
  if (pass == tiles.body.end() || pass < loop)
    return;
  Op early = *pass;
  early.set("when", lessEqual(loop->expr("to"), Expr::var("kt") + 1));
  auto last = llvm::find_if(llvm::reverse(loop->body), [](const Op &op) { return op.kind == OpKind::Wgmma; });
  loop->body.insert(std::prev(last.base()), std::move(early));
  tiles.body.erase(pass);
}

/// wgmma's reads are over for all four warps when one of them has waited; what a warp's own lanes read, it releases
/// itself.
void arriveByWarps(std::vector<Op> &body) {
  for (Op &op : body) {
    if (op.kind == OpKind::Arrive)
      op.set("by", "warps");
    arriveByWarps(op.body);
  }
}

void placeMbarriers(Kernel &kernel) {
  declareBarriers(kernel);
  if (kernel.word("schedule") == "pipelined") {
    for (Op &op : findIn(kernel.body(), OpKind::Tiles)->body)
      if (op.kind == OpKind::For)
        guardProducer(kernel, op.body, true);
    return guardReads(kernel.body());
  }
  for (Op &role : kernel.body()) {
    if (role.kind != OpKind::Role)
      continue;
    if (Op *elect = findIn(role.body, OpKind::Elect)) {
      guardProducer(kernel, findIn(findIn(elect->body, OpKind::Tiles)->body, OpKind::For)->body, false);
      continue;
    }
    // Registers that threads fill are free when their products are done: nothing more is under way than those of one
    // stage.
    guardReads(role.body, readByThreads(kernel) ? 1 : kernel.root.number("in_flight", 1));
    passTurnEarly(*findIn(role.body, OpKind::Tiles));
  }
}
} // namespace

void placeBarriers(Kernel &kernel) {
  if (kernel.word("copy") == "tma") {
    placeMbarriers(kernel);
    if (readByThreads(kernel))
      arriveByWarps(kernel.body());
  } else {
    guardGroups(kernel);
  }
}
} // namespace gemmc::tile
