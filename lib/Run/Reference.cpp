#include "gemmc/Run/Reference.h"
#include "BlockSums.h"
#include <cmath>
#include <numbers>

namespace gemmc::run {
namespace {
/// The matrix row by row, in double.
std::vector<double> unpack(const HostMatrix &matrix, unsigned threads) {
  std::vector<double> out(static_cast<size_t>(matrix.rows) * matrix.cols);
  const Decoder decoder(matrix.type);
  parallelFor(matrix.rows, threads, [&](int64_t row) {
    for (int64_t col = 0; col < matrix.cols; ++col)
      out[row * matrix.cols + col] = decoder(matrix.bits(row, col));
  });
  return out;
}

std::vector<double> complement(std::vector<double> bits) {
  for (double &bit : bits)
    bit = 1 - bit;
  return bits;
}

// What sums of k products err by, a part of the sum of their magnitudes (see the header).
double largestSum(double k) { return std::numbers::pi / std::sqrt(std::max(1.0, k)); }
double factorOfF32(double k) { return 0x1p-23 * largestSum(k) * (k / 2 + 6 * std::sqrt(k / 3)); }
double factorOfF16(double k) { return 0x1p-11 * largestSum(k) * 6 * std::sqrt(std::ceil(k / 8) / 3) + factorOfF32(k); }
double factorOfEights(double k) {
  constexpr double unit = 0x1p-13, together = 32;
  const double steps = std::ceil(k / together);
  return unit * largestSum(k) * (steps / 2 + 6 * std::sqrt(steps * together / 3)) + k * unit * unit;
}
/// In any order, whatever the products are: n u / (1 - n u); infinite when that says nothing.
double worstFactor(double n, double u) {
  return n * u >= 1 ? std::numeric_limits<double>::infinity() : n * u / (1 - n * u);
}

double factorOf(const GemmProblem &problem) {
  const double k = double(problem.args.k);
  if (problem.accumulator == Elem::f64)
    return worstFactor(2 * (k + 2), 0x1p-53);
  if (problem.accumulator == Elem::f16)
    return problem.randomSigns ? factorOfF16(k) : worstFactor(std::ceil(k / 8) + 2, 0x1p-10) + k * 0x1p-23;
  return problem.randomSigns ? factorOfF32(k) : worstFactor(k + 2, 0x1p-23);
}
} // namespace

Reference::Reference(const GemmProblem &problem, unsigned threads)
    : prob(problem), threadCount(threads), width(problem.args.k) {
  double k = double(problem.args.k);
  if (auto floating = formatOf(problem.d.type))
    format = *floating;
  gamma = factorOf(problem);
  if (problem.accumulator == Elem::f64)
    epilogue = 0x1p-51;
  if (isInteger(problem.a.type))
    gamma = 0; // what they become floats by is of the epilogue
  if (isFloat8(problem.a.type))
    gamma =
        problem.promoted
            ? factorOfEights(double(problem.promoted)) / std::sqrt(std::max(1.0, k / double(problem.promoted))) + gamma
            : factorOfEights(k);
  if (!problem.readsInputs() || problem.args.empty())
    return;
  a = unpack(problem.a, threads);
  b = unpack(problem.b, threads);
  if (problem.bits == ptx::BitProduct::xor_)
    unpackDifference();
  if (problem.negated)
    for (double &x : a)
      x = -x;
}

void Reference::unpackDifference() {
  /// Pieces of both in turn.
  auto inTurn = [](const std::vector<double> &x, const std::vector<double> &y, int64_t piece) {
    std::vector<double> both;
    for (int64_t at = 0; at < int64_t(x.size()); at += piece) {
      both.insert(both.end(), x.begin() + at, x.begin() + at + piece);
      both.insert(both.end(), y.begin() + at, y.begin() + at + piece);
    }
    return both;
  };
  const int64_t k = prob.args.k;
  a = inTurn(a, complement(a), k);
  b = inTurn(complement(b), b, k * prob.args.n);
  width = 2 * k;
}

llvm::ArrayRef<double> Reference::aRow(int64_t row) const {
  if (prob.a.matrices == 1)
    row %= prob.args.m;
  return a.empty() ? llvm::ArrayRef<double>() : llvm::ArrayRef<double>(a.data() + row * width, width);
}

llvm::ArrayRef<double> Reference::bRow(int64_t row) const {
  int64_t n = prob.args.n;
  return b.empty() ? llvm::ArrayRef<double>() : llvm::ArrayRef<double>(b.data() + row * n, n);
}

int64_t Reference::depthBefore(int64_t row) const { return prob.b.matrices == 1 ? 0 : row / prob.args.m * width; }

Reference::~Reference() = default;

const BlockSums &Reference::blockSums() const {
  std::call_once(summed, [&] { ofBlocks = std::make_unique<BlockSums>(*this); });
  return *ofBlocks;
}

void Reference::precompute() {
  std::vector<Expected> rows(size_t(prob.rows()) * size_t(prob.args.n));
  parallelFor(prob.rows(), threadCount,
              [&](int64_t i) { row(i, 0, llvm::MutableArrayRef(rows.data() + i * prob.args.n, size_t(prob.args.n))); });
  all = std::move(rows);
}

void Reference::row(int64_t row, int64_t col, llvm::MutableArrayRef<Expected> out) const {
  if (!all.empty()) {
    std::copy_n(all.begin() + row * prob.args.n + col, out.size(), out.begin());
    return;
  }
  int64_t count = out.size();
  std::vector<double> sums(count), magnitudes(prob.exact ? 0 : count);
  // Column after column of A times row after row of B: adjacent elements, sums in registers' order.
  llvm::ArrayRef<double> left = aRow(row);
  const int64_t first = depthBefore(row);
  for (int64_t k = 0; k < int64_t(left.size()); ++k) {
    double x = left[k];
    const double *right = bRow(first + k).data() + col;
    if (prob.exact) {
      if (x != 0) // exact inputs are finite: 0 adds nothing
        for (int64_t j = 0; j < count; ++j)
          sums[j] += x * right[j];
      continue;
    }
    double size = std::fabs(x);
    for (int64_t j = 0; j < count; ++j) {
      sums[j] += x * right[j];
      magnitudes[j] += size * std::fabs(right[j]);
    }
  }
  double alpha = prob.args.alpha, beta = prob.args.beta;
  const std::optional<FloatFormat> ofSums = formatOf(prob.accumulator);
  const double smallest = ofSums ? std::ldexp(1.0, ofSums->minExponent() - ofSums->fractionBits) : 0; // subnormal
  for (int64_t j = 0; j < count; ++j) {
    double product = prob.readsInputs() ? alpha * sums[j] : 0.0;
    double added = prob.readsC() ? beta * prob.c.at(prob.rowOfC(row), col + j) : 0.0;
    // No C is no addition: 0 + (-0) would lose a sign, which matters to nobody else.
    out[j].value = prob.readsC() ? product + added : product;
    if (prob.exact)
      continue;
    const double doubt = prob.readsInputs() ? gamma * magnitudes[j] + double(prob.args.k) * smallest : 0.0;
    const double spread = doubt == 0 ? 0.0 : std::fabs(alpha) * doubt;
    out[j].unknown = prob.readsInputs() && std::isinf(alpha) && std::isfinite(sums[j]) && std::fabs(sums[j]) <= doubt;
    out[j].bound = spread + epilogue * (std::fabs(product) + spread + std::fabs(added));
  }
}

bool Reference::accepts(const Expected &expected, uint64_t bits) const {
  if (isInteger(prob.d.type)) // exact below 2^53 (the plan's bound on alpha); an s32 keeps the low bits
    return bits == encode(prob.d.type, expected.value);
  double got = decode(prob.d.type, bits);
  if (bits == poisonOf(prob.d.type)) // not written
    return false;
  if (expected.unknown)
    return true;
  if (!prob.readsInputs() && !prob.readsC()) // +0 everywhere
    return bits == 0;
  if (std::isnan(expected.value) || std::isnan(got))
    return std::isnan(expected.value) && std::isnan(got);
  if (std::isinf(expected.value))
    return got == expected.value;
  if (prob.exact) {
    double rounded = decode(prob.d.type, encode(prob.d.type, expected.value));
    return got == rounded;
  }
  double rounding = std::ldexp(std::fabs(expected.value) + expected.bound, -format.precision()) +
                    std::ldexp(0.5, format.minExponent() - format.fractionBits);
  double allowed = expected.bound + rounding;
  if (std::isinf(got)) // fine where a value within the bound rounds to it
    return std::signbit(got) == std::signbit(expected.value) &&
           std::fabs(expected.value) + allowed > format.maxFinite();
  return std::isinf(allowed) || std::fabs(got - expected.value) <= allowed;
}

} // namespace gemmc::run
