#include "Rewrite.h"

namespace gemmc::tile {
namespace {
constexpr int64_t warpsOfGroup = 4, around = 16; ///< Bytes that come with a line, because it may start anywhere.

/// What the pass is about: an operand's tile in place (sA, sB) and its lines as they come (rA, rB).
struct Shifted {
  std::string tile, raw;
  int64_t stages; ///< Of the tile.
  int64_t pitch;  ///< Bytes from line to line in memory.
};

/// The lines as they lie in memory, rows of m or n, or of k, `around` bytes longer than the tile's.
Op rawLines(const Op &tile, const Shifted &shifted, int64_t stages) {
  int64_t more = around / int64_t(bytesOf(*parseElem(tile.word("type"))));
  const bool kMajor = tile.word("major") == "k";
  return Op(OpKind::Shared, shifted.raw)
      .set("type", tile.word("type"))
      .set("extent", std::vector<Expr>{tile.item("extent", 0) + (kMajor ? 0 : more),
                                       tile.item("extent", 1) + (kMajor ? more : 0)})
      .set("major", tile.word("major"))
      .set("swizzle", "eighths")
      .set("stages", stages);
}

/// The producer's copies go to the raw lines.
void redirect(std::vector<Op> &body, const Shifted &shifted, int64_t moreBytes) {
  for (Op &op : body) {
    if (isCopy(op) && op.subject.name == shifted.tile)
      op.subject.name = shifted.raw;
    if (op.kind == OpKind::Expect)
      op.set("bytes", op.number("bytes") + moreBytes);
    redirect(op.body, shifted, moreBytes);
  }
}

/// wait for lines; wait for a tile that nobody reads; shift; give it on. The stage of the lines is the consumer's to
/// release: it also holds a tile of the other operand.
Op shifterOf(Op &producer, const Shifted &shifted, int64_t stages) {
  Expr x = Expr::var("x"), y = Expr::var("y");
  Op role(OpKind::Role, "shifter");
  role.set("warps", std::vector<Expr>{warpsOfGroup, warpsOfGroup});
  role.body = {cursor("x", stages), cursor("y", shifted.stages)};
  Op tiles = *findIn(findIn(producer.body, OpKind::Elect)->body, OpKind::Tiles);
  findIn(tiles.body, OpKind::For)->body = {
      Op(OpKind::Wait, Ref{"full", {x}}),
      Op(OpKind::Wait, Ref{"used", {y}}),
      Op(OpKind::Shift, Ref{shifted.tile, {y}}).set("from", Ref{shifted.raw, {x}}).set("pitch", shifted.pitch),
      Op(OpKind::Arrive, Ref{"shifted", {y}}).set("by", "warps"),
      advance("x"),
      advance("y")};
  role.body.push_back(std::move(tiles));
  return role;
}

/// What the consumer gives back of a stage, it gives back of a tile in place: cursors `t` and `u` follow `r` and `q`.
/// It waits for the tile alone: who has shifted it has waited for all of the stage.
void follow(std::vector<Op> &body, const Shifted &shifted) {
  auto twinOf = [](llvm::StringRef cursor) { return cursor == "r" ? "t" : cursor == "q" ? "u" : ""; };
  for (size_t i = 0; i < body.size(); ++i) {
    follow(body[i].body, shifted);
    if (body[i].kind == OpKind::Wgmma)
      for (llvm::StringRef key : {"a", "b"})
        if (body[i].ref(key).name == shifted.tile)
          body[i].set(key, Ref{shifted.tile, {Expr::var("t")}});
    Op twin = body[i];
    bool moves = twin.kind == OpKind::Cursor || twin.kind == OpKind::Advance;
    if (moves && *twinOf(twin.subject.name)) {
      twin.subject.name = twinOf(twin.subject.name);
      if (twin.kind == OpKind::Cursor)
        twin.set("stages", shifted.stages);
    } else if (twin.kind == OpKind::Wait && twin.subject.name == "full") {
      body[i].subject = Ref{"shifted", {Expr::var("t")}};
      continue;
    } else if (twin.kind == OpKind::Arrive && twin.subject.name == "empty") {
      twin.subject = Ref{"used", {Expr::var("u")}};
    } else {
      continue;
    }
    body.insert(body.begin() + ++i, std::move(twin));
  }
}
} // namespace

void shiftLines(Kernel &kernel) {
  const Op *tensor = kernel.shiftedTensor();
  if (!tensor)
    return;
  const std::string &name = tensor->subject.name;
  const Shifted shifted{"s" + name, "r" + name, kernel.number("shifted_stages"),
                        tensor->number("ld") * int64_t(bytesOf(*parseElem(tensor->word("type"))))};
  const int64_t stages = kernel.number("stages");
  auto shared = llvm::find_if(kernel.body(), [&](const Op &op) { return op.subject.name == shifted.tile; });
  shared->set("stages", shifted.stages);
  Op lines = rawLines(*shared, shifted, stages);
  const SharedTile raw = tileOf(lines);
  int64_t moreBytes = raw.rows * raw.pitch - tileOf(*shared).stageBytes();
  declareShared(kernel, std::move(lines));

  std::vector<Op> &body = kernel.body();
  const Op &empty =
      *llvm::find_if(body, [](const Op &op) { return op.kind == OpKind::Barrier && op.subject.name == "empty"; });
  Op done = Op(OpKind::Barrier, "shifted").set("stages", shifted.stages).set("count", warpsOfGroup);
  Op used =
      Op(OpKind::Barrier, "used").set("stages", shifted.stages).set("count", empty.number("count")).set("free", "yes");
  body.insert(body.begin() + (&empty - body.data()) + 1, {done, used});

  size_t at = indexOf(body, OpKind::Role);
  redirect(body[at].body, shifted, moreBytes);
  Op &consumer = body[at + 1];
  consumer.set("warps", std::vector<Expr>{2 * warpsOfGroup, consumer.item("warps", 1)});
  follow(consumer.body, shifted);
  Op shifter = shifterOf(body[at], shifted, stages);
  body.insert(body.begin() + at + 1, std::move(shifter));
}
} // namespace gemmc::tile
