#include "Rewrite.h"

namespace gemmc::tile {
namespace {

/// The parts of a pipelined mma.sync loop: [waits][copies][loads and mma by step][advance].
struct Loop {
  std::vector<Op> waits, copies, advances;
  std::vector<std::vector<Op>> loads; ///< By k-step.
  std::vector<Op> mmas;
};

Loop takeApart(std::vector<Op> body) {
  Loop loop;
  for (Op &op : body) {
    switch (op.kind) {
    case OpKind::WaitGroup:
    case OpKind::Sync:
      loop.waits.push_back(std::move(op));
      break;
    case OpKind::Load:
      if (loop.loads.size() <= size_t(op.number("step")))
        loop.loads.resize(op.number("step") + 1);
      loop.loads[op.number("step")].push_back(std::move(op));
      break;
    case OpKind::Mma:
      loop.mmas.push_back(std::move(op));
      break;
    default:
      bool reads = op.kind == OpKind::Advance && op.subject.name == "r";
      (reads ? loop.advances : loop.copies).push_back(std::move(op));
    }
  }
  return loop;
}

Ref inBuffer(Ref fragment, int64_t buffer) {
  fragment.index = {Expr(buffer)};
  return fragment;
}

std::vector<Op> loadsInto(std::vector<Op> loads, int64_t buffer) {
  for (Op &load : loads)
    load.subject = inBuffer(load.subject, buffer);
  return loads;
}

/// For each step: read the next step's fragments, multiply this one's. The last step first moves on to the next stage
/// and waits for it; the copies of the iteration hide behind the first step's multiplies.
std::vector<Op> rotate(const Loop &loop) {
  int64_t steps = loop.mmas.size();
  std::vector<Op> body;
  for (int64_t step = 0; step < steps; ++step) {
    if (step + 1 == steps) {
      append(body, loop.advances);
      append(body, loop.waits);
    }
    append(body, loadsInto(loop.loads[(step + 1) % steps], (step + 1) % 2));
    if (step == 0)
      append(body, loop.copies);
    Op mma = loop.mmas[step];
    mma.set("a", inBuffer(mma.ref("a"), step % 2)).set("b", inBuffer(mma.ref("b"), step % 2));
    body.push_back(std::move(mma));
  }
  return body;
}
} // namespace

void bufferFragments(Kernel &kernel) {
  int64_t stages = kernel.number("stages");
  if (kernel.word("instruction") != "mma" || stages < 3 || kernel.root.number("buffers", 2) < 2)
    return; // two stages: the next one's copies land while this one is still read
  std::vector<Op> &tile = findIn(kernel.body(), OpKind::Tiles)->body;
  size_t at =
      llvm::find_if(tile, [](const Op &op) { return op.kind == OpKind::For && !op.has("unroll"); }) - tile.begin();
  Loop loop = takeApart(tile[at].body);
  if (loop.loads.size() != loop.mmas.size())
    return;                   // not one multiply a step: nothing that could be rotated
  if (loop.mmas.size() % 2) { // an odd number of steps would change the buffers' roles each iteration
    Loop same = loop;
    std::vector<Op> body = std::move(same.waits);
    append(body, std::move(same.copies));
    for (size_t step = 0; step < same.mmas.size(); ++step) {
      append(body, std::move(same.loads[step]));
      body.push_back(std::move(same.mmas[step]));
    }
    append(body, std::move(same.advances));
    tile[at].body = std::move(body);
    return;
  }
  tile[at].body = rotate(loop);
  std::vector<Op> front = loop.waits;
  append(front, loadsInto(loop.loads[0], 0));
  tile.insert(tile.begin() + at, front.begin(), front.end());
  kernel.declaration("fA")->set("buffers", 2);
  kernel.declaration("fB")->set("buffers", 2);
}
} // namespace gemmc::tile
