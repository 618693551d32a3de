#include "Rewrite.h"
#include "gemmc/Support/Types.h"

namespace gemmc::tile {
namespace {
/// One slot for each slice but the owner's own, as large as its share of the tile.
Op slots(const Kernel &kernel, const Op &exchange) {
  constexpr int64_t line = 128; // bytes; the lines mean nothing, registers lie as they are
  const Op &acc = *kernel.declaration(exchange.subject.name);
  int64_t bytes = acc.item("tile", 0) * acc.item("tile", 1) * int64_t(bytesOf(*parseElem(acc.word("type"))));
  int64_t all = bytes / exchange.number("owners") * (exchange.number("slices") - 1);
  Op op(OpKind::Shared, "sX");
  op.set("type", "f32").set("extent", std::vector<Expr>{all / line, line / 4}).set("major", "k").set("swizzle", "rows");
  if (kernel.word("exchange") == "over")
    op.set("over", "operands");
  return op;
}
} // namespace

void exchangeParts(Kernel &kernel) {
  Op *exchange = nullptr;
  walk(kernel.body(), [&](Op &op) { exchange = op.kind == OpKind::Exchange ? &op : exchange; });
  if (!exchange)
    return;
  exchange->set("through", Ref{"sX", {0}}).set("signal", Ref{"sums", {0}});
  Op buffer = slots(kernel, *exchange);
  int64_t bytes = buffer.item("extent", 0) * buffer.item("extent", 1) * 4;
  Op barrier = Op(OpKind::Barrier, "sums").set("stages", 1).set("count", 1).set("expects", bytes);
  declareShared(kernel, std::move(buffer));
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Accumulator), std::move(barrier));
}
} // namespace gemmc::tile
