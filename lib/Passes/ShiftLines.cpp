#include "Rewrite.h"

namespace gemmc::tile {
namespace {
constexpr int64_t around = 16; ///< Bytes that come with a line, because it may start anywhere.

/// What the pass is about: an operand's tile in place (sA, sB) and its lines as they come (rA, rB).
struct Shifted {
  std::string tile, raw;
  int64_t pitch, stride; ///< Bytes in memory from line to line, and from matrix to matrix; 0: not asked for.
};
using Operands = llvm::ArrayRef<Shifted>; ///< One of them or both.

const Shifted *shiftedOf(Operands operands, llvm::StringRef tile) {
  auto found = llvm::find_if(operands, [&](const Shifted &shifted) { return shifted.tile == tile; });
  return found == operands.end() ? nullptr : found;
}

/// The lines as they lie in memory, rows of m or n, or of k, `around` bytes longer than the tile's.
Op rawLines(const Op &tile, const std::string &name, int64_t stages) {
  int64_t more = around / int64_t(bytesOf(*parseElem(tile.word("type"))));
  const bool kMajor = tile.word("major") == "k";
  return Op(OpKind::Shared, name)
      .set("type", tile.word("type"))
      .set("extent", std::vector<Expr>{tile.item("extent", 0) + (kMajor ? 0 : more),
                                       tile.item("extent", 1) + (kMajor ? more : 0)})
      .set("major", tile.word("major"))
      .set("swizzle", "eighths")
      .set("stages", stages);
}

/// The producer's copies go to the raw lines.
void redirect(std::vector<Op> &body, Operands operands, int64_t moreBytes) {
  for (Op &op : body) {
    if (const Shifted *shifted = isCopy(op) ? shiftedOf(operands, op.subject.name) : nullptr)
      op.subject.name = shifted->raw;
    if (op.kind == OpKind::Expect)
      op.set("bytes", op.number("bytes") + moreBytes);
    redirect(op.body, operands, moreBytes);
  }
}

/// wait for lines; wait for a tile that nobody reads; shift; give it on. A stage that also holds a tile of the other
/// operand is the consumer's to release; one of lines alone has been read.
Op shifterOf(Op &producer, Operands operands, int64_t stages, int64_t tileStages) {
  const bool linesAlone = operands.size() == 2;
  Expr x = Expr::var("x"), y = Expr::var("y");
  Op role(OpKind::Role, "shifter");
  role.set("warps", std::vector<Expr>{warpsOfGroup, warpsOfGroup});
  role.body = {cursor("x", stages), cursor("y", tileStages)};
  Op tiles = *findIn(findIn(producer.body, OpKind::Elect)->body, OpKind::Tiles);
  std::vector<Op> &step = findIn(tiles.body, OpKind::For)->body;
  step = {Op(OpKind::Wait, Ref{"full", {x}}), Op(OpKind::Wait, Ref{"used", {y}})};
  for (const Shifted &shifted : operands) {
    Op shift = Op(OpKind::Shift, Ref{shifted.tile, {y}}).set("from", Ref{shifted.raw, {x}}).set("pitch", shifted.pitch);
    if (shifted.stride % around != 0)
      shift.set("stride", shifted.stride);
    step.push_back(std::move(shift));
  }
  step.push_back(Op(OpKind::Arrive, Ref{"shifted", {y}}).set("by", "warps"));
  if (linesAlone)
    step.push_back(Op(OpKind::Arrive, Ref{"empty", {x}}).set("by", "fenced"));
  append(step, {advance("x"), advance("y")});
  role.body.push_back(std::move(tiles));
  return role;
}

/// What the consumer gives back of a stage, it gives back of a tile in place: cursors `t` and `u` follow `r` and `q`,
/// or take their place where stages hold lines alone. It waits for the tile alone: who has shifted it has waited for
/// all of the stage.
void follow(std::vector<Op> &body, Operands operands, int64_t tileStages) {
  const bool linesAlone = operands.size() == 2;
  auto twinOf = [](llvm::StringRef cursor) { return cursor == "r" ? "t" : cursor == "q" ? "u" : ""; };
  for (size_t i = 0; i < body.size(); ++i) {
    follow(body[i].body, operands, tileStages);
    if (body[i].kind == OpKind::Wgmma)
      for (llvm::StringRef key : {"a", "b"})
        if (const Shifted *shifted = shiftedOf(operands, body[i].ref(key).name))
          body[i].set(key, Ref{shifted->tile, {Expr::var("t")}});
    Op twin = body[i];
    bool moves = twin.kind == OpKind::Cursor || twin.kind == OpKind::Advance;
    if (moves && *twinOf(twin.subject.name)) {
      twin.subject.name = twinOf(twin.subject.name);
      if (twin.kind == OpKind::Cursor)
        twin.set("stages", tileStages);
    } else if (twin.kind == OpKind::Wait && twin.subject.name == "full") {
      body[i].subject = Ref{"shifted", {Expr::var("t")}};
      continue;
    } else if (twin.kind == OpKind::Arrive && twin.subject.name == "empty") {
      twin.subject = Ref{"used", {Expr::var("u")}};
    } else {
      continue;
    }
    if (linesAlone)
      body[i] = std::move(twin);
    else
      body.insert(body.begin() + ++i, std::move(twin));
  }
}
} // namespace

void shiftLines(Kernel &kernel) {
  llvm::SmallVector<Shifted, 2> operands;
  for (const Op *tensor : kernel.shiftedTensors()) {
    const int64_t each = bytesOf(*parseElem(tensor->word("type")));
    operands.push_back({"s" + tensor->subject.name, "r" + tensor->subject.name, tensor->number("ld") * each,
                        tensor->number("batch", 0) * each});
  }
  if (operands.empty())
    return;
  const int64_t stages = kernel.number("stages"), tileStages = kernel.number("shifted_stages");
  int64_t moreBytes = 0;
  for (const Shifted &shifted : operands) {
    Op &tile = *kernel.declaration(shifted.tile);
    tile.set("stages", tileStages);
    Op lines = rawLines(tile, shifted.raw, stages);
    const SharedTile raw = tileOf(lines);
    moreBytes += raw.rows * raw.pitch - tileOf(tile).stageBytes();
    declareShared(kernel, std::move(lines));
  }

  std::vector<Op> &body = kernel.body();
  Op &empty = *kernel.declaration("empty");
  Op done = Op(OpKind::Barrier, "shifted").set("stages", tileStages).set("count", warpsOfGroup);
  Op used =
      Op(OpKind::Barrier, "used").set("stages", tileStages).set("count", empty.number("count")).set("free", "yes");
  if (operands.size() == 2)
    empty.set("count", warpsOfGroup);
  body.insert(body.begin() + (&empty - body.data()) + 1, {done, used});

  size_t at = indexOf(body, OpKind::Role);
  redirect(body[at].body, operands, moreBytes);
  Op &consumer = body[at + 1];
  consumer.set("warps", std::vector<Expr>{2 * warpsOfGroup, consumer.item("warps", 1)});
  follow(consumer.body, operands, tileStages);
  Op shifter = shifterOf(body[at], operands, stages, tileStages);
  body.insert(body.begin() + at + 1, std::move(shifter));
}
} // namespace gemmc::tile
