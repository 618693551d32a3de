// Which CTA computes which tile, seen from outside: each CTA runs alone on the emulator, and what it wrote is its tile.
#include "Pace.h"
#include "gemmc/Driver/Compiler.h"
#include "gemmc/Emu/Emulator.h"
#include "gemmc/Runtime/Launch.h"
#include "llvm/ADT/ArrayRef.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace gemmc;

namespace {
constexpr int64_t tileM = 16, tileN = 8, depth = 16;
using Place = std::pair<int64_t, int64_t>; ///< Row and column of a tile.

/// The curve as a turtle draws it (Lindenmayer: A = +BF-AFA-FB+, B = -AF+BFB+FA-), from (0, 0) eastwards: x, y.
struct Turtle {
  std::vector<Place> path{{0, 0}};
  int64_t dx = 1, dy = 0;
  void left() { std::tie(dx, dy) = std::pair(-dy, dx); }
  void right() { std::tie(dx, dy) = std::pair(dy, -dx); }
  void forward() { path.push_back({path.back().first + dx, path.back().second + dy}); }
  void draw(char symbol, unsigned level) {
    switch (symbol) {
    case '+':
      return left();
    case '-':
      return right();
    case 'F':
      return forward();
    default:
      if (level)
        for (const char *next = symbol == 'A' ? "+BF-AFA-FB+" : "-AF+BFB+FA-"; *next; ++next)
          draw(*next, level - 1);
    }
  }
};

/// Bands of `group` rows, there and back; in them squares along the curve, and column after column what is no square.
std::vector<Place> expected(int64_t rows, int64_t columns, int64_t group) {
  Turtle turtle;
  turtle.draw('A', unsigned(std::log2(group)));
  std::vector<Place> places;
  for (int64_t first = 0; first < rows; first += group) {
    int64_t size = std::min(group, rows - first);
    auto add = [&](int64_t row, int64_t column) {
      bool back = group > 1 && first / group % 2; // 1: the plain order
      places.push_back({first + row, back ? columns - 1 - column : column});
    };
    for (int64_t column = 0; column < columns;) {
      if (size == group && column + group <= columns) {
        for (auto [x, y] : turtle.path)
          add(y, column + x);
        column += group;
      } else {
        for (int64_t row = 0; row < size; ++row)
          add(row, column);
        ++column;
      }
    }
  }
  return places;
}

std::string specOf(const char *order, int64_t group, const std::string &m, const std::string &n) {
  return "target: sm_80\nproblem: {m: " + m + ", n: " + n + ", k: 16}\na: {type: f16, layout: row, align: 2}\n" +
         "b: {type: f16, layout: row, align: 2}\nd: {type: f32, align: 4}\n" +
         "instruction: mma\ncopy: ld\ntile: {block: [16, 8, 16], warp: [16, 8, 16]}\nepilogue: {store: direct}\n" +
         "raster: {order: " + order + ", group: " + std::to_string(group) + ", persistent: off}\n";
}

class Grid {
public:
  Grid(const std::string &yaml, int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    auto spec = readSpec(diags.addSource("raster.yaml", yaml), {}, diags);
    auto made = spec ? compileSpec(*spec, diags) : std::nullopt;
    if (!made)
      return;
    auto module = ptx::parse(diags.addSource("raster.ptx", made->ptx), diags);
    info = made->launch;
    kernel = module ? emu::Kernel::load(*module, info.kernels.front().name) : nullptr;
  }

  /// The tile of each CTA; (-1, -1) where it wrote none, or one that another has written.
  std::vector<Place> places() {
    if (!kernel) {
      ADD_FAILURE() << diags.all().front().message;
      return {};
    }
    LaunchArgs args;
    args.m = rows * tileM - 3, args.n = columns * tileN - 1, args.k = depth; // the last tiles are cut
    args.lda = args.k, args.ldb = args.n, args.ldc = args.ldd = args.n;
    emu::Memory memory;
    auto zeros = [&](int64_t elements, int64_t bytes) {
      uint64_t at = memory.allocate(elements * bytes);
      std::memset(memory.find(at, elements * bytes), 0, elements * bytes);
      return at;
    };
    args.a = zeros(args.m * args.k, 2), args.b = zeros(args.k * args.n, 2), args.d = zeros(args.m * args.n, 4);
    auto *d = reinterpret_cast<float *>(memory.find(args.d, args.m * args.n * 4));
    std::fill(d, d + args.m * args.n, -1.0f);
    PreparedKernel prepared;
    auto noMaps = [](llvm::StringRef, const TensorMapArgs &, std::byte *) { return MaybeFailure(); };
    if (auto failed = prepareKernel(info.kernels.front(), args, 1, noMaps, prepared)) {
      ADD_FAILURE() << failed->str();
      return {};
    }
    EXPECT_EQ(int64_t(prepared.grid[0]), rows * columns);
    emu::LaunchParams params;
    params.grid = prepared.grid;
    params.block = info.kernels.front().block;
    params.dynamicShared = info.kernels.front().dynamicShared;
    params.params.assign(prepared.params.begin(), prepared.params.begin() + prepared.paramBytes);
    std::vector<Place> found;
    std::set<Place> seen;
    for (uint64_t cta = 0; cta < uint64_t(rows * columns); ++cta) {
      emu::Options options;
      options.threads = 1;
      options.clusters = {cta};
      EXPECT_EQ(kernel->launch(params, memory, options).verdict, emu::Verdict::clean);
      Place place{-1, -1};
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t n = 0; n < columns; ++n)
          if (d[m * tileM * args.n + n * tileN] == 0 && seen.insert({m, n}).second)
            place = {m, n};
      found.push_back(place);
    }
    return found;
  }

private:
  Diags diags;
  ptx::LaunchInfo info;
  std::shared_ptr<const emu::Kernel> kernel;
  int64_t rows, columns;
};

std::string fixedM(int64_t rows) { return std::to_string(rows * tileM - 3); }
std::string fixedN(int64_t columns) { return std::to_string(columns * tileN - 1); }

/// Rows, columns, group.
const std::array<int64_t, 3> grids[] = {{1, 1, 1}, {1, 1, 8},    {2, 2, 2},    {4, 4, 2},   {4, 4, 4}, {8, 8, 8},
                                        {3, 5, 2}, {5, 3, 2},    {7, 9, 4},    {9, 7, 4},   {8, 9, 8}, {9, 8, 8},
                                        {1, 9, 4}, {9, 1, 4},    {3, 17, 4},   {17, 3, 4},  {8, 4, 4}, {4, 8, 4},
                                        {5, 6, 1}, {16, 16, 16}, {17, 18, 16}, {32, 33, 32}};

/// Where sizes come at launch. Half of all tiles are the last grid's, whose squares the sanitizer sees with fixed
/// sizes.
const llvm::ArrayRef<std::array<int64_t, 3>> dynamicGrids =
    llvm::ArrayRef<std::array<int64_t, 3>>(grids).drop_back(gemmc::test::instrumented ? 1 : 0);

TEST(Raster, HilbertWithFixedSizes) {
  for (auto [rows, columns, group] : grids) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " in squares of " << group);
    Grid grid(specOf("hilbert", group, fixedM(rows), fixedN(columns)), rows, columns);
    EXPECT_EQ(grid.places(), expected(rows, columns, group));
  }
}

TEST(Raster, HilbertWithDynamicSizes) {
  for (auto [rows, columns, group] : dynamicGrids)
    for (int which : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << " in squares of " << group << ", " << which);
      Grid grid(specOf("hilbert", group, which & 1 ? "dynamic" : fixedM(rows), which & 2 ? "dynamic" : fixedN(columns)),
                rows, columns);
      EXPECT_EQ(grid.places(), expected(rows, columns, group));
    }
}

/// Each tile is somebody's, in the other orders as well.
TEST(Raster, EveryTileOnce) {
  for (const char *order : {"along_m", "along_n", "hilbert"})
    for (auto [rows, columns, group] : dynamicGrids) {
      Grid grid(specOf(order, group, "dynamic", "dynamic"), rows, columns);
      std::vector<Place> places = grid.places();
      EXPECT_EQ(std::set<Place>(places.begin(), places.end()).size(), size_t(rows * columns)) << order;
      EXPECT_EQ(std::count(places.begin(), places.end(), Place(-1, -1)), 0) << order;
    }
}

/// What the curve costs: once a tile, and not much.
TEST(Raster, HilbertIsShort) {
  auto lines = [](const char *order) {
    Diags diags;
    auto spec = readSpec(diags.addSource("raster.yaml", specOf(order, 32, "dynamic", "dynamic")), {}, diags);
    auto made = compileSpec(*spec, diags);
    return std::count(made->ptx.begin(), made->ptx.end(), '\n');
  };
  EXPECT_LT(lines("hilbert") - lines("along_m"), 100);
}
} // namespace
