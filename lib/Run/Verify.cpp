#include "gemmc/Run/Verify.h"
#include "BlockSums.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>
#include <mutex>

namespace gemmc::run {
namespace {
/// Compares rectangles of D and keeps the tally; the first mismatch is the one of the smallest (row, col).
class Checker {
public:
  Checker(const Reference &reference, const HostMatrix &d) : reference(reference), d(d) {}

  void rectangle(int64_t row, int64_t rows, int64_t col, int64_t cols) {
    parallelFor(rows, reference.threads(), [&](int64_t i) { oneRow(row + i, col, cols); });
  }
  Verification finish(std::string how) {
    result.ok = result.bad == 0;
    result.how = std::move(how);
    return std::move(result);
  }
  uint64_t bad() const { return result.bad; }

private:
  void oneRow(int64_t row, int64_t col, int64_t cols) {
    std::vector<Expected> expected(cols);
    reference.row(row, col, expected);
    uint64_t bad = 0;
    std::optional<Mismatch> first;
    for (int64_t j = 0; j < cols; ++j) {
      if (reference.accepts(expected[j], d.bits(row, col + j)))
        continue;
      ++bad;
      if (!first)
        first = Mismatch{d.matrices > 1 ? row % d.rowsOfOne() : row,
                         col + j,
                         expected[j].value,
                         d.at(row, col + j),
                         expected[j].bound,
                         d.bits(row, col + j) == poisonOf(d.type),
                         d.matrices > 1 ? std::optional(row / d.rowsOfOne()) : std::nullopt};
    }
    std::lock_guard<std::mutex> lock(mutex);
    result.compared += cols;
    result.bad += bad;
    auto place = [](const Mismatch &of) { return std::tuple(of.product, of.row, of.col); };
    if (first && (!result.first || place(*first) < place(*result.first)))
      result.first = first;
  }

  const Reference &reference;
  const HostMatrix &d;
  Verification result;
  std::mutex mutex;
};

std::string number(double value) {
  std::string out;
  llvm::raw_string_ostream(out) << llvm::format("%.9g", value);
  return out;
}

llvm::StringRef manner(const GemmProblem &problem) { return problem.exact ? "bit-exact" : "within the error bound"; }

/// Rows that Freivalds' check finds wrong, modulo 2^64. With x random and D = (alpha A B + beta C) * 2^s in integers,
/// D x - alpha A (B x) - beta C x is 0 in every row; a row with an error of at most 2^25 in some element shows one with
/// a chance of at most 2^-39 to be missed. Sums in s32 are compared modulo 2^32.
class Freivalds {
public:
  Freivalds(const Reference &reference, const HostMatrix &d)
      : reference(reference), problem(reference.problem()), d(d) {}

  std::vector<int64_t> wrongRows(uint64_t seed) {
    Random random(seed);
    x.resize(problem.args.n);
    for (uint64_t &value : x)
      value = random.next();
    bx.assign(problem.readsInputs() ? reference.depthOfAll() : 0, 0);
    parallelFor(bx.size(), reference.threads(), [&](int64_t k) { bx[k] = dot(reference.bRow(k), x.data()); });
    std::vector<char> wrong(problem.rows());
    parallelFor(problem.rows(), reference.threads(), [&](int64_t row) { wrong[row] = !rowHolds(row); });
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < problem.rows(); ++row)
      if (wrong[row])
        rows.push_back(row);
    return rows;
  }

private:
  static uint64_t integer(double value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
  static uint64_t dot(llvm::ArrayRef<double> row, const uint64_t *vector) {
    uint64_t sum = 0;
    for (size_t i = 0; i < row.size(); ++i)
      sum += integer(row[i]) * vector[i];
    return sum;
  }
  bool rowHolds(int64_t row) const {
    uint64_t difference = 0;
    for (int64_t col = 0; col < problem.args.n; ++col) {
      double scaled = std::ldexp(d.at(row, col), problem.scaleBits);
      if (!(std::fabs(scaled) <= 0x1p53) || scaled != std::trunc(scaled))
        return false; // NaN, infinite or no such multiple: no exact result
      difference += integer(scaled) * x[col];
    }
    uint64_t alpha = integer(std::ldexp(problem.args.alpha, problem.scaleBits));
    uint64_t beta = integer(std::ldexp(problem.args.beta, problem.scaleBits));
    difference -= alpha * dot(reference.aRow(row), bx.data() + (bx.empty() ? 0 : reference.depthBefore(row)));
    if (problem.readsC())
      for (int64_t col = 0; col < problem.args.n; ++col)
        difference -= beta * integer(problem.c.at(problem.rowOfC(row), col)) * x[col];
    // An s32 sum wraps: it is right modulo 2^32.
    return isInteger(problem.d.type) ? static_cast<uint32_t>(difference) == 0 : difference == 0;
  }

  const Reference &reference;
  const GemmProblem &problem;
  const HostMatrix &d;
  std::vector<uint64_t> x, bx;
};

Verification verifyExactLarge(const Reference &reference, const HostMatrix &d) {
  const LaunchArgs &args = reference.problem().args;
  Checker checker(reference, d);
  uint64_t seed = reference.problem().options.seed;
  // Elements of the first few wrong rows are compared, to say which ones are wrong.
  uint64_t wrongRows = 0;
  for (uint64_t vector = 0; vector < 2 && wrongRows == 0; ++vector) {
    std::vector<int64_t> rows = Freivalds(reference, d).wrongRows(seed * 1000 + vector);
    wrongRows = rows.size();
    for (size_t i = 0; i < std::min<size_t>(rows.size(), 16); ++i)
      checker.rectangle(rows[i], 1, 0, args.n);
  }
  constexpr int64_t samples = 16;
  for (int64_t i = 0; i < samples; ++i)
    checker.rectangle(i * (d.rows - 1) / (samples - 1), 1, 0, args.n);
  Verification result = checker.finish("Freivalds' check with 2 vectors and 16 rows bit-exact");
  if (wrongRows) {
    result.ok = false;
    result.problem = llvm::formatv("Freivalds' check finds {0} of {1} rows wrong", wrongRows, d.rows).str();
  }
  return result;
}

Verification verifyBoundedLarge(const Reference &reference, const HostMatrix &d) {
  const GemmProblem &problem = reference.problem();
  const LaunchArgs &args = problem.args;
  Checker checker(reference, d);
  constexpr int64_t rows = 16, patches = 64, edge = 32;
  for (int64_t i = 0; i < rows; ++i)
    checker.rectangle(i * (d.rows - 1) / (rows - 1), 1, 0, args.n);
  Random random(problem.options.seed + 7);
  for (int64_t i = 0; i < patches; ++i) {
    int64_t row = static_cast<int64_t>(random.below(d.rows)), col = static_cast<int64_t>(random.below(args.n));
    checker.rectangle(row, std::min(edge, d.rows - row), col, std::min(edge, args.n - col));
  }
  bool finite = problem.options.kind != InputKind::special;
  int64_t wrongRow = -1;
  bool held = !finite || reference.blockSums().hold(d, wrongRow);
  if (!held && checker.bad() == 0)
    checker.rectangle(wrongRow, 1, 0, args.n);
  Verification result = checker.finish(finite ? "16 rows, 64 patches and all block sums within the error bound"
                                              : "16 rows and 64 patches within the error bound");
  if (!held) {
    result.ok = false;
    result.problem = llvm::formatv("block sums of row {0} are outside the error bound", wrongRow).str();
  }
  return result;
}

enum class TileState { untouched, written, partly };

TileState stateOf(const HostMatrix &d, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  uint64_t untouched = poisonOf(d.type);
  int64_t written = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      written += d.bits(row + i, col + j) != untouched;
  return written == 0 ? TileState::untouched : written == rows * cols ? TileState::written : TileState::partly;
}

struct Tile {
  int64_t row, rows, col, cols;
};

/// Sorts the tiles of D; false when one is written in part, which is then `partly`.
bool sortTiles(const HostMatrix &d, int64_t tileM, int64_t tileN, std::vector<Tile> &written, Tile &partly) {
  written.clear();
  const int64_t each = std::max<int64_t>(1, d.rowsOfOne());
  for (int64_t row = 0, rows; row < d.rows; row += rows) {
    rows = std::min(tileM, each - row % each); // tiles end where their matrix does
    for (int64_t col = 0; col < d.cols; col += tileN) {
      Tile tile{row, rows, col, std::min(tileN, d.cols - col)};
      switch (stateOf(d, tile.row, tile.rows, tile.col, tile.cols)) {
      case TileState::untouched:
        break;
      case TileState::written:
        written.push_back(tile);
        break;
      case TileState::partly:
        partly = tile;
        return false;
      }
    }
  }
  return true;
}
} // namespace

/// `d[row, col]`, of a batch `d[product][row, col]`.
static std::string placeInD(std::optional<int64_t> product, int64_t row, int64_t col) {
  return product ? llvm::formatv("d[{0}][{1}, {2}]", *product, row, col).str()
                 : llvm::formatv("d[{0}, {1}]", row, col).str();
}

std::string Verification::wrong() const {
  std::vector<std::string> parts;
  if (guard)
    parts.push_back(
        llvm::formatv("`{0}` was overwritten outside its elements, at byte {1}", guard->buffer, guard->offset));
  if (!problem.empty())
    parts.push_back(problem);
  if (first) {
    parts.push_back(llvm::formatv("{0} of {1} compared elements are wrong; first {2} = {3}, expected {4}", bad,
                                  compared, placeInD(first->product, first->row, first->col),
                                  first->unwritten ? "(not written)" : number(first->got), number(first->expected)));
    if (first->bound > 0)
      parts.back() += " +- " + number(first->bound);
  }
  return llvm::join(parts, ": ");
}

std::string Verification::str() const {
  std::string why = wrong();
  return (ok ? "verified: " + how : "NOT verified") + (why.empty() ? "" : ": " + why);
}

Verification verify(const Reference &reference, const HostMatrix &d) {
  return reference.problem().macs() <= plainLimit ? verifyPlain(reference, d) : verifyLarge(reference, d);
}

Verification verifyPlain(const Reference &reference, const HostMatrix &d) {
  Checker checker(reference, d);
  checker.rectangle(0, d.rows, 0, d.cols);
  if (d.rows == 0 || d.cols == 0)
    return checker.finish("D is empty");
  return checker.finish(
      llvm::formatv("all {0} elements {1}", uint64_t(d.rows) * d.cols, manner(reference.problem())).str());
}

Verification verifyLarge(const Reference &reference, const HostMatrix &d) {
  return reference.problem().exactResult ? verifyExactLarge(reference, d) : verifyBoundedLarge(reference, d);
}

Verification verifyTiles(const Reference &reference, const HostMatrix &d, int64_t tileM, int64_t tileN,
                         uint64_t minTiles, uint64_t maxTiles) {
  std::vector<Tile> written;
  Tile partly{};
  Verification result;
  if (!sortTiles(d, tileM, tileN, written, partly) &&
      (tileM == tileN || !sortTiles(d, tileN, tileM, written, partly))) {
    result.ok = false;
    const bool several = d.matrices > 1;
    const std::string place = placeInD(several ? std::optional(partly.row / d.rowsOfOne()) : std::nullopt,
                                       several ? partly.row % d.rowsOfOne() : partly.row, partly.col);
    result.problem = "the tile at " + place + " is written in part";
    return result;
  }
  if (written.size() < minTiles || written.size() > maxTiles) {
    result.ok = false;
    result.problem =
        llvm::formatv("{0} tiles are written, between {1} and {2} should be", written.size(), minTiles, maxTiles).str();
    return result;
  }
  Checker checker(reference, d);
  for (const Tile &tile : written)
    checker.rectangle(tile.row, tile.rows, tile.col, tile.cols);
  return checker.finish(llvm::formatv("{0} sampled tiles {1}", written.size(), manner(reference.problem())).str());
}

std::optional<GuardViolation> checkPadding(const HostMatrix &before, const HostMatrix &after) {
  if (before.data.empty())
    return std::nullopt;
  const unsigned bits = bitsOf(before.type);
  std::vector<int64_t> starts(before.lines());
  for (int64_t line = 0; line < before.lines(); ++line)
    starts[line] = before.startOfLine(line);
  llvm::sort(starts);                                     // matrices of a batch may lie in each other's rows
  for (size_t line = 0; line + 1 < starts.size(); ++line) // nothing lies behind the last line
    for (int64_t at = (starts[line] + before.length()) * bits / 8; at < starts[line + 1] * bits / 8; ++at)
      if (before.data[at] != after.data[at])
        return GuardViolation{before.name, at};
  return std::nullopt;
}

std::optional<GuardViolation> checkUnchanged(const HostMatrix &before, llvm::ArrayRef<std::byte> after) {
  assert(before.data.size() == after.size());
  if (before.data.empty() || std::memcmp(before.data.data(), after.data(), after.size()) == 0)
    return std::nullopt;
  auto [old, now] = std::mismatch(before.data.begin(), before.data.end(), after.begin());
  return GuardViolation{before.name, old - before.data.begin()};
}

} // namespace gemmc::run
