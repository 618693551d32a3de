// Which block tile has which number. Numbers follow bands of `group` tile rows (along_n: columns), band after band; in
// a band they go down its lines, line after line. With `hilbert` the tiles of each whole square of a band, which are
// numbers in a row, follow a Hilbert curve instead, and each other band is walked backwards: what is computed at the
// same time lies in as many rows as columns. Either way each tile has one number: bands, and squares in them, are cut
// out of the numbers as they are out of the tiles.
#include "Lowering.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {

struct Lowering::Band {
  Val number;     ///< Of the tile, in the band.
  Val first;      ///< The band's first line.
  Val size;       ///< Lines of the band.
  Val slowExtent; ///< Tiles of a line.
  int64_t group;
};

/// Step `step` of 4^levels along the curve from (0, 0) to (2^levels - 1, 0). Each two bits of it, from the lowest up,
/// say in which quarter of the square the smaller one lies; in the first one it is mirrored at the diagonal, in the
/// last at the other one.
std::pair<Val, Val> Lowering::hilbert(const Val &step, unsigned levels) {
  Val x = 0, y = 0;
  for (unsigned level = 0; level < levels; ++level) {
    int64_t side = int64_t(1) << level;
    Val low = remainder(divide(step, side * side, "step_low"), 2, "step_low");
    Val high = remainder(divide(step, 2 * side * side, "step_high"), 2, "step_high");
    Val up = binary("xor.b32", inRegister(low, "up"), high, "up");
    if (level > 0) {
      Val both = binary("and.b32", low, high, "last"), turned = mul(both, side - 1, "turned");
      Val a = binary("xor.b32", x, turned, "x"), c = binary("xor.b32", y, turned, "y");
      Val swaps = b.reg(Type::pred, "swaps");
      b("setp.eq.u32", swaps, up, 0);
      x = b.reg(Type::b32, "x"), y = b.reg(Type::b32, "y");
      b("selp.b32", x, c, a, swaps);
      b("selp.b32", y, a, c, swaps);
    }
    x = add(x, mul(high, side, "x"), "x");
    y = add(y, mul(up, side, "y"), "y");
  }
  return {x, y};
}

/// {line of the band, tile of the line}.
std::pair<Val, Val> Lowering::placeInSquares(const Band &band) {
  int64_t group = band.group, squareTiles = group * group;
  bool wholeBand = band.size.isImm(), wholeSquares = band.slowExtent.isImm() && band.slowExtent.op.imm % group == 0;
  Val square = mul(divide(band.number, squareTiles, "square"), group, "square_first");
  auto alongCurve = [&] {
    b.comment("a Hilbert curve in each square of " + llvm::Twine(group) + " x " + llvm::Twine(group) + " tiles");
    auto [x, y] = hilbert(remainder(band.number, squareTiles, "step"), llvm::Log2_64(group));
    return std::pair(y, add(square, x, "tile_slow"));
  };
  if (wholeBand && wholeSquares)
    return alongCurve();
  // What is left of a band beside its whole squares, and a narrower band, have no curve.
  Val cut = b.reg(Type::pred, "cut"), line = b.reg(Type::b32, "in_row"), slow = b.reg(Type::b32, "tile_slow");
  Val plain = b.label("no_square"), placed = b.label("tile_placed");
  b("setp.gt.u32", cut, add(square, group, "square_end"), band.slowExtent);
  if (!wholeBand) {
    Val narrow = b.reg(Type::pred, "narrow");
    b("setp.lt.u32", narrow, band.size, group);
    b("or.pred", cut, cut, narrow);
  }
  b.when(cut)("bra", plain);
  auto [y, x] = alongCurve();
  b("mov.u32", line, y);
  b("mov.u32", slow, x);
  b("bra", placed);
  b.place(plain);
  b("mov.u32", line, remainder(band.number, band.size, "in_row"));
  b("mov.u32", slow, divide(band.number, band.size, "tile_slow"));
  b.place(placed);
  return {line, slow};
}

/// The same of a plain band, where all bands but the last one, of `rest` lines, are whole: each number is divided by
/// both constants, because a division by what is known at run time takes a hundred clocks in front of the first copy.
std::pair<Val, Val> Lowering::placeInBands(const Band &band, int64_t rest) {
  Val whole = b.reg(Type::pred, "whole"), line = b.reg(Type::b32, "in_row"), slow = b.reg(Type::b32, "tile_slow");
  b("setp.eq.u32", whole, band.size, band.group);
  auto choose = [&](const Val &to, const Val &ofWhole, const Val &ofRest) {
    b("selp.b32", to, inRegister(ofWhole, "of_whole"), ofRest, whole);
  };
  choose(line, remainder(band.number, band.group, "in_row"), remainder(band.number, rest, "in_row"));
  choose(slow, divide(band.number, band.group, "tile_slow"), divide(band.number, rest, "tile_slow"));
  return {line, slow};
}

void Lowering::placeTileOfProduct(const Val &id, const Val &tilesM, const Val &tilesN) {
  bool alongM = kernel.word("raster") != "along_n", curved = kernel.word("raster") == "hilbert";
  int64_t group = kernel.number("group");
  const Val &fastExtent = alongM ? tilesM : tilesN, &slowExtent = alongM ? tilesN : tilesM;
  bool turns = curved && !(fastExtent.isImm() && fastExtent.op.imm <= group); // there may be a second band
  curved &= !(fastExtent.isImm() && fastExtent.op.imm < group) && !(slowExtent.isImm() && slowExtent.op.imm < group);
  Val fast, slow;
  if (fastExtent.isImm() && fastExtent.op.imm <= group && !curved) {
    fast = remainder(id, fastExtent, "tile_fast");
    slow = divide(id, fastExtent, "tile_slow");
  } else if (group == 1) {
    slow = remainder(id, slowExtent, "tile_slow");
    fast = divide(id, slowExtent, "tile_fast");
  } else {
    b.comment("bands of " + llvm::Twine(group) + " tiles share operands in L2");
    Val bandTiles = mul(slowExtent, group, "band_tiles");
    Val band = divide(id, bandTiles, "band"), inBand = remainder(id, bandTiles, "in_band");
    Val first = mul(band, group, "band_first");
    Val size = group;
    if (!(fastExtent.isImm() && fastExtent.op.imm % group == 0)) {
      Val left = binary("sub.u32", inRegister(fastExtent, "fast_extent"), first, "band_left");
      size = binary("min.u32", left, group, "band_size");
    }
    Val line;
    if (curved)
      std::tie(line, slow) = placeInSquares({inBand, first, size, slowExtent, group});
    else if (!size.isImm() && fastExtent.isImm())
      std::tie(line, slow) = placeInBands({inBand, first, size, slowExtent, group}, fastExtent.op.imm % group);
    else
      line = remainder(inBand, size, "in_row"), slow = divide(inBand, size, "tile_slow");
    fast = add(first, line, "tile_fast");
    if (turns) { // there and back
      Val back = b.reg(Type::pred, "back"), there = slow;
      b("setp.ne.u32", back, remainder(band, 2, "band_odd"), 0);
      Val last = inRegister(add(slowExtent, -1, "line_end"), "line_end");
      slow = b.reg(Type::b32, "tile_slow");
      b("selp.b32", slow, binary("sub.u32", last, there, "tile_back"), there, back);
    }
  }
  Val tm = alongM ? fast : slow, tn = alongM ? slow : fast;
  if (clusterM > 1)
    tm = add(mul(tm, clusterM, "cluster_m"), rankM, "tm");
  if (clusterN > 1)
    tn = add(mul(tn, clusterN, "cluster_n"), rankN, "tn");
  variables["tm"] = tm;
  variables["tn"] = tn;
}

} // namespace gemmc
