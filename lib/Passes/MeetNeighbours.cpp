#include "Rewrite.h"

namespace gemmc::tile {
namespace {
/// How many CTAs of a cluster bring something of every tile of an operand that they share: the first ones.
int64_t leastBringers(const Op &tensor, const SharedTile &tile, int64_t ctas) {
  const TileParts parts(tile.rows, ctas);
  return tile.kMajor && tensor.has("rest") ? parts.bringersOf(tensor.number("rest")) : parts.bringers();
}

/// Behind each `expect`.
void insertBehindExpects(std::vector<Op> &body, const Op &what) {
  for (size_t i = 0; i < body.size(); ++i) {
    insertBehindExpects(body[i].body, what);
    if (body[i].kind == OpKind::Expect && body[i].subject.name == "full") {
      Op op = what;
      op.subject = body[i].subject;
      body.insert(body.begin() + ++i, std::move(op));
    }
  }
}
} // namespace

// PTX ISA 9.7.13.15.4: somebody has waited for a phase before anybody arrives in the next.
void meetNeighbours(Kernel &kernel) {
  Op *full = kernel.declaration("full");
  if (!full || full->kind != OpKind::Barrier)
    return;
  for (auto [operand, direction, along] : {std::tuple("A", 1, "n"), std::tuple("B", 0, "m")}) {
    const int64_t ctas = kernel.root.item("cluster", direction);
    const Op *tensor = kernel.declaration(operand);
    if (ctas == 1 || !tensor || tensor->kind != OpKind::Tensor)
      continue;
    const int64_t bringers = leastBringers(*tensor, tileOf(*kernel.declaration(std::string("s") + operand)), ctas);
    if (bringers == ctas)
      continue;
    full->set("count", full->number("count") + ctas - bringers);
    insertBehindExpects(kernel.body(), Op(OpKind::Arrive, Ref{"full", {}}).set("along", along).set("from", bringers));
  }
}
} // namespace gemmc::tile
