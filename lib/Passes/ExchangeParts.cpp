#include "Rewrite.h"
#include "gemmc/Layout/ColumnShares.h"
#include "gemmc/Support/Types.h"

namespace gemmc::tile {
namespace {
/// What an owner of `columns` columns of each warpgroup gets from all slices but its own.
int64_t bytesOfOwner(const Kernel &kernel, const Op &exchange, int64_t columns) {
  const Op &acc = *kernel.declaration(exchange.subject.name);
  const int64_t warpgroups = acc.item("tile", 1) / kernel.root.item("warp", 1);
  return acc.item("tile", 0) * warpgroups * columns * int64_t(bytesOf(*parseElem(acc.word("type")))) *
         (exchange.number("slices") - 1);
}

/// One slot for each slice but the owner's own, as large as its share of the tile.
Op slots(const Kernel &kernel, int64_t bytes) {
  constexpr int64_t line = 128; // bytes; the lines mean nothing, registers lie as they are
  Op op(OpKind::Shared, "sX");
  op.set("type", "f32").set("extent", std::vector<Expr>{bytes / line, line / 4});
  op.set("major", "k").set("swizzle", "rows");
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
  const ColumnShares columns = shareColumns(kernel.root.item("warp", 1), exchange->number("owners"));
  const int64_t bytes = bytesOfOwner(kernel, *exchange, columns.each),
                last = bytesOfOwner(kernel, *exchange, columns.last);
  Op barrier = Op(OpKind::Barrier, "sums").set("stages", 1).set("count", 1).set("expects", bytes);
  if (last != bytes)
    barrier.set("expects_of_last", last);
  declareShared(kernel, slots(kernel, bytes));
  kernel.body().insert(kernel.body().begin() + indexOf(kernel.body(), OpKind::Accumulator), std::move(barrier));
}
} // namespace gemmc::tile
