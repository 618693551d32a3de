#include "gemmc/Run/Problem.h"
#include "gemmc/Plan/Typical.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <unistd.h>

namespace gemmc::run {
namespace {
using ptx::LaunchInfo;
using ptx::OperandInfo;

/// How integer inputs are drawn: A has at most `nonZeros` elements other than 0 a row, all of magnitude up to `range`.
struct IntegerPlan {
  bool exact = false, exactResult = false;
  int64_t range = 1, rangeC = 1;
  int64_t nonZeros = 0;
  int scaleBits = 0;
};

/// The fewest fraction bits that hold alpha and beta; nullopt when 8 are not enough.
std::optional<int> scaleBitsOf(double alpha, double beta) {
  for (int bits = 0; bits <= 8; ++bits)
    if (std::trunc(std::ldexp(alpha, bits)) == std::ldexp(alpha, bits) &&
        std::trunc(std::ldexp(beta, bits)) == std::ldexp(beta, bits))
      return bits;
  return std::nullopt;
}

/// Chooses the inputs' range such that alpha * (any partial sum) + beta * c, in units of 2^-scaleBits, stays within
/// `limit`, and partial sums within the accumulator's limit. Dense and wide where that fits, else sparse.
IntegerPlan planIntegers(const LaunchArgs &args, int64_t accLimit, int64_t limit) {
  IntegerPlan plan;
  plan.nonZeros = args.k;
  auto bits = scaleBitsOf(args.alpha, args.beta);
  if (!bits)
    return plan;
  plan.scaleBits = *bits;
  double alpha = std::fabs(args.alpha), beta = std::fabs(args.beta);
  plan.rangeC = beta == 0 || std::ldexp(4 * beta, *bits) <= double(limit) / 2 ? 4 : 1;
  double room = (std::ldexp(double(limit), -*bits) - beta * double(plan.rangeC)) / std::max(alpha, 0x1p-64);
  int64_t sum = static_cast<int64_t>(std::min(room, double(accLimit)));
  if (sum < 1)
    return plan;
  plan.exact = true;
  for (int64_t range : {4, 3, 2, 1})
    if (args.k <= sum / (range * range)) {
      plan.range = range;
      return plan;
    }
  plan.range = sum >= 64 ? 2 : 1;
  plan.nonZeros = sum / (plan.range * plan.range);
  return plan;
}

/// Walks a matrix line by line (a line = adjacent elements) and leaves the padding as it is.
void fill(HostMatrix &matrix, llvm::function_ref<uint64_t()> draw) {
  if (matrix.data.empty())
    return;
  for (int64_t line = 0; line < matrix.lines(); ++line)
    for (int64_t i = 0, start = matrix.startOfLine(line); i < matrix.length(); ++i)
      matrix.setBitsAt(start + i, draw());
}

/// Draws from a table of 65,536 entries, four numbers from one random word.
class TableDraw {
public:
  TableDraw(const std::vector<uint64_t> &table, Random random) : random(random), table(table) {}
  uint64_t operator()() {
    if (left == 0) {
      word = random.next();
      left = 4;
    }
    uint64_t bits = table[word & 0xffff];
    word >>= 16;
    --left;
    return bits;
  }

private:
  Random random;
  const std::vector<uint64_t> &table;
  uint64_t word = 0;
  int left = 0;
};

void drawLine(HostMatrix &matrix, int64_t start, int64_t length, TableDraw &draw) {
  if (bitsOf(matrix.type) != 16) {
    for (int64_t i = 0; i < length; ++i)
      matrix.setBitsAt(start + i, draw());
    return;
  }
  std::byte *place = matrix.data.data() + start * 2; // most matrices by far: no question asked for each element
  for (int64_t i = 0; i < length; ++i) {
    uint16_t bits = static_cast<uint16_t>(draw());
    std::memcpy(place + 2 * i, &bits, 2);
  }
}

/// Fills a matrix from a table of `entry`s, blocks of lines at a time on all cores: a product of the suite has up to
/// 300 million inputs. Each block has a generator of its own, the first one that of the table.
void fillFromTable(HostMatrix &matrix, uint64_t seed, llvm::function_ref<uint64_t(Random &)> entry) {
  if (matrix.data.empty())
    return;
  Random random(seed);
  std::vector<uint64_t> table(65536);
  for (uint64_t &bits : table)
    bits = entry(random);
  constexpr int64_t blockElements = 1 << 20;
  const int64_t lines = matrix.lines(), length = matrix.length();
  int64_t linesPerBlock = std::max<int64_t>(1, blockElements / length);
  if (matrix.matrices > 1 && matrix.stride < lines / matrix.matrices * matrix.ld)
    linesPerBlock = std::max<int64_t>(1, lines); // matrices that share elements have one writer
  parallelFor((lines + linesPerBlock - 1) / linesPerBlock, 0, [&](int64_t block) {
    TableDraw draw(table, block == 0 ? random : Random(seed ^ (uint64_t(block) << 40)));
    int64_t end = std::min(lines, (block + 1) * linesPerBlock);
    for (int64_t line = block * linesPerBlock; line < end; ++line)
      drawLine(matrix, matrix.startOfLine(line), length, draw);
  });
}

void fillNormal(HostMatrix &matrix, uint64_t seed) {
  fillFromTable(matrix, seed, [&](Random &random) { return encode(matrix.type, random.normal()); });
}

void fillIntegers(HostMatrix &matrix, int64_t range, uint64_t seed) {
  fillFromTable(matrix, seed, [&](Random &random) {
    return encode(matrix.type, double(static_cast<int64_t>(random.below(2 * range + 1)) - range));
  });
}

/// At most `nonZeros` elements of each row are not 0, at random places all over the row.
void fillSparseRows(HostMatrix &matrix, int64_t range, int64_t nonZeros, uint64_t seed) {
  fill(matrix, [] { return uint64_t(0); });
  Random random(seed);
  for (int64_t row = 0; row < matrix.rows; ++row)
    for (int64_t i = 0; i < nonZeros; ++i) {
      int64_t value = 1 + static_cast<int64_t>(random.below(range));
      matrix.setBits(row, static_cast<int64_t>(random.below(matrix.cols)),
                     encode(matrix.type, random.next() & 1 ? double(value) : -double(value)));
    }
}

/// Every value of an integer type; of s32 (C) such that a sum has room besides.
void fillWhole(HostMatrix &matrix, uint64_t seed) {
  constexpr int64_t most = 1 << 20;
  int64_t low = std::max(lowestOf(matrix.type), -most), high = std::min(highestOf(matrix.type), most);
  fillFromTable(matrix, seed, [&](Random &random) {
    return encode(matrix.type, double(low + static_cast<int64_t>(random.below(high - low + 1))));
  });
}

/// Few NaN and infinities, so that most of D stays finite: they spread over a whole row or column of D.
void sprinkle(HostMatrix &matrix, uint64_t seed) {
  if (matrix.data.empty())
    return;
  Random random(seed ^ 0x5eed);
  FloatFormat format = *formatOf(matrix.type);
  const double infinity = std::numeric_limits<double>::infinity();
  auto anywhere = [&](double value) {
    matrix.setBits(static_cast<int64_t>(random.below(matrix.rows)), static_cast<int64_t>(random.below(matrix.cols)),
                   encode(matrix.type, value));
  };
  int64_t elements = matrix.rows * matrix.cols;
  for (int64_t i = 0; i < elements / 20 + 1; ++i) {
    double subnormal = std::ldexp(double(1 + random.below((uint64_t(1) << format.fractionBits) - 1)),
                                  format.minExponent() - format.fractionBits);
    anywhere(random.next() & 1 ? subnormal : -subnormal);
    anywhere(random.next() & 1 ? 0.0 : -0.0);
  }
  int64_t few = std::max<int64_t>(1, std::min(matrix.rows, matrix.cols) / 24);
  for (int64_t i = 0; i < few; ++i) {
    anywhere(infinity);
    anywhere(-infinity);
    anywhere(std::numeric_limits<double>::quiet_NaN());
  }
}

struct Shape {
  const LaunchInfo &info;
  const ProblemOptions &options;

  int64_t size(const Expr &fixed, std::optional<int64_t> given) const {
    return given ? *given : fixed.isConst() ? fixed.constant() : options.defaultSize;
  }
  static int64_t ld(const OperandInfo &operand, std::optional<int64_t> given, int64_t rows, int64_t cols) {
    if (given || operand.ld.isConst())
      return given ? *given : operand.ld.constant();
    return std::max<int64_t>(perByte(operand.type), operand.order == Order::row ? cols : rows);
  }
  /// Where nothing says it matrices lie end to end.
  static int64_t stride(const OperandInfo &operand, std::optional<int64_t> given, int64_t rows, int64_t cols,
                        int64_t ld) {
    if (given || operand.batchStride.isConst())
      return given ? *given : operand.batchStride.constant();
    const __int128 whole = __int128(operand.order == Order::row ? rows : cols) * ld;
    return static_cast<int64_t>(std::clamp<__int128>(whole, 0, INT64_MAX));
  }
  LaunchArgs args() const {
    LaunchArgs args;
    args.m = size(info.m, options.m);
    args.n = size(info.n, options.n);
    args.k = size(info.k, options.k);
    args.batch = options.batch ? *options.batch : info.batch.isConst() ? info.batch.constant() : usualBatch;
    args.lda = ld(info.a, options.lda, args.m, args.k);
    args.ldb = ld(info.b, options.ldb, args.k, args.n);
    args.ldc = ld(info.c, options.ldc, args.m, args.n);
    args.ldd = ld(info.d, options.ldd, args.m, args.n);
    if (args.batch != 1 || !info.batch.isConst(1)) {
      args.strideA = stride(info.a, options.strideA, args.m, args.k, args.lda);
      args.strideB = stride(info.b, options.strideB, args.k, args.n, args.ldb);
      args.strideC = stride(info.c, options.strideC, args.m, args.n, args.ldc);
      args.strideD = stride(info.d, options.strideD, args.m, args.n, args.ldd);
    }
    args.alpha = factorBeside(info.accumulator, options.alpha.value_or(info.alpha.value_or(1)));
    args.beta = factorBeside(info.accumulator, options.beta.value_or(info.beta.value_or(0)));
    return args;
  }
};

/// Of `rows` of each of `batch` products; one that all of them share, or that has no element, is there
/// once.
HostMatrix makeMatrix(llvm::StringRef name, const OperandInfo &operand, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride) {
  const bool once = stride == 0 || rows == 0 || cols == 0;
  const int64_t matrices = once ? std::min<int64_t>(batch, 1) : batch;
  HostMatrix matrix{name.str(), operand.type, operand.order, rows * matrices, cols, ld, {}, matrices, stride};
  matrix.data.resize(*matrixBytes(operand.type, operand.order, rows, cols, ld, matrices, stride));
  matrix.fillPoison();
  return matrix;
}

/// Half of the machine's memory, or what the options allow if that is less.
uint64_t memoryLimit(const ProblemOptions &options) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0)
    return options.maxBytes;
  return std::min(options.maxBytes, uint64_t(pages) * uint64_t(page) / 2);
}

/// What the options and types must fulfil beyond checkShape.
MaybeFailure checkProblem(const LaunchInfo &info, const LaunchArgs &args, const ProblemOptions &options) {
  const std::tuple<const char *, const OperandInfo &, int64_t, int64_t, int64_t, int64_t> operands[] = {
      {"a", info.a, args.m, args.k, args.lda, args.strideA},
      {"b", info.b, args.k, args.n, args.ldb, args.strideB},
      {"c", info.c, args.m, args.n, args.ldc, args.strideC},
      {"d", info.d, args.m, args.n, args.ldd, args.strideD}};
  unsigned __int128 total = 0;
  for (const auto &[name, operand, rows, cols, ld, stride] : operands) {
    if (!isKnown(operand.type))
      return Failure::make(Diag::run_type, nameOf(operand.type));
    const bool isRead = llvm::StringRef(name) != "c" || args.beta != 0;
    if (isRead && (options.misalign % bytesOf(operand.type) != 0 || options.misalign >= 256))
      return Failure::make(Diag::run_misalign, options.misalign, bytesOf(operand.type), name);
    if (isRead)
      total += *matrixBytes(operand.type, operand.order, rows, cols, ld, args.batch, stride);
  }
  constexpr Elem sums[] = {Elem::f32, Elem::f16, Elem::f64, Elem::s32};
  if (!llvm::is_contained(sums, info.accumulator))
    return Failure::make(Diag::run_type, nameOf(info.accumulator));
  if (uint64_t limit = memoryLimit(options); total > limit)
    return Failure::make(Diag::run_too_large, uint64_t(std::min<unsigned __int128>(total, UINT64_MAX)), limit);
  bool alike = info.c.type == info.d.type && info.c.order == info.d.order && args.ldc == args.ldd &&
               args.strideC == args.strideD;
  if (options.inPlace && args.beta != 0 && !alike)
    return Failure::make(Diag::run_in_place);
  return std::nullopt;
}

void fillInputs(GemmProblem &problem) {
  const ProblemOptions &options = problem.options;
  uint64_t seeds[3] = {options.seed * 3 + 1, options.seed * 3 + 2, options.seed * 3 + 3};
  HostMatrix *matrices[3] = {&problem.a, &problem.b, &problem.c};
  if (isInteger(problem.a.type)) {
    fillWhole(problem.a, seeds[0]);
    fillWhole(problem.b, seeds[1]);
    const bool whole = isInteger(problem.d.type);
    isInteger(problem.c.type) ? fillWhole(problem.c, seeds[2]) : fillNormal(problem.c, seeds[2]);
    problem.exact = problem.exactResult = whole; // else sums are exact, and become floats
    return;
  }
  if (options.kind != InputKind::integer) {
    for (int i = 0; i < 3; ++i) {
      fillNormal(*matrices[i], seeds[i]);
      if (options.kind == InputKind::special)
        sprinkle(*matrices[i], seeds[i]);
    }
    return;
  }
  // Freivalds' check wants an unrounded D; the plain loop rounds by itself and can take denser inputs.
  // The tensor cores keep 13 bits of fraction of a sum of 8-bit products, whatever its type (docs/emulator.md,
  // *Arithmetic*).
  constexpr int64_t ofEights = 1 << 13;
  const int64_t accLimit =
      isFloat8(problem.a.type) ? std::min(ofEights, exactLimit(problem.accumulator)) : exactLimit(problem.accumulator);
  const int64_t resultLimit = std::min(accLimit, exactLimit(problem.d.type));
  bool large = problem.macs() > double(1 << 26);
  IntegerPlan plan = planIntegers(problem.args, accLimit, large ? resultLimit : accLimit);
  if (large && !plan.exact)
    plan = planIntegers(problem.args, accLimit, accLimit);
  else
    problem.exactResult = large;
  problem.exact = plan.exact;
  problem.exactResult &= plan.exact;
  problem.scaleBits = plan.scaleBits;
  if (plan.nonZeros < problem.args.k)
    fillSparseRows(problem.a, plan.range, plan.nonZeros, seeds[0]);
  else
    fillIntegers(problem.a, plan.range, seeds[0]);
  fillIntegers(problem.b, plan.range, seeds[1]);
  fillIntegers(problem.c, plan.rangeC, seeds[2]);
}
} // namespace

llvm::StringRef nameOf(InputKind kind) {
  switch (kind) {
  case InputKind::normal:
    return "normal";
  case InputKind::integer:
    return "integer";
  case InputKind::special:
    return "special";
  }
  return "?";
}

int64_t exactLimit(Elem type) { return int64_t(1) << formatOf(type)->precision(); }

uint64_t HostMatrix::bitsAt(int64_t element) const {
  unsigned width = bitsOf(type), bytes = bytesOf(type);
  uint64_t value = 0;
  std::memcpy(&value, data.data() + element * width / 8, bytes);
  return width < 8 ? value >> element * width % 8 & ((1u << width) - 1) : value;
}

void HostMatrix::setBitsAt(int64_t element, uint64_t value) {
  unsigned width = bitsOf(type), bytes = bytesOf(type);
  std::byte *place = data.data() + element * width / 8;
  if (width < 8) { // the first element in the low bits
    unsigned shift = element * width % 8, mask = ((1u << width) - 1) << shift;
    value = (std::to_integer<unsigned>(*place) & ~mask) | (value << shift & mask);
  }
  std::memcpy(place, &value, bytes);
}

void HostMatrix::fillPoison() {
  const std::byte pattern[2] = {std::byte(poison & 0xff), std::byte(poison >> 8)};
  size_t filled = std::min<size_t>(2, data.size());
  std::copy_n(pattern, filled, data.begin());
  while (filled < data.size()) { // a copy of what is there: D may have half a gigabyte
    size_t more = std::min(filled, data.size() - filled);
    std::memcpy(data.data() + filled, data.data(), more);
    filled += more;
  }
}

void takeTypicalSizes(ProblemOptions &options, const Spec &spec) {
  auto take = [](std::optional<int64_t> &size, const Field<Size> &extent, int64_t typical) {
    if (!size && extent.value.dynamic())
      size = typical;
  };
  take(options.m, spec.m, typicalM(spec));
  take(options.n, spec.n, typicalN(spec));
  take(options.k, spec.k, typicalK(spec));
  take(options.batch, spec.batch, typicalBatch(spec));
}

Outcome<GemmProblem> makeProblem(const LaunchInfo &info, const ProblemOptions &options) {
  GemmProblem problem;
  problem.options = options;
  problem.accumulator = info.accumulator;
  problem.bits = info.bits;
  problem.negated = info.negated;
  problem.promoted = info.promoted;
  LaunchArgs &args = problem.args = Shape{info, options}.args();
  if (auto failed = checkShape(info, args))
    return *failed;
  if (args.strideC < 0 || !matrixBytes(info.c.type, info.c.order, args.m, args.n, args.ldc, args.batch, args.strideC)) {
    args.ldc = Shape::ld(info.c, std::nullopt, args.m, args.n); // not looked at without beta
    args.strideC = Shape::stride(info.c, std::nullopt, args.m, args.n, args.ldc);
  }
  if (auto failed = checkProblem(info, args, options))
    return *failed;
  problem.a = makeMatrix("a", info.a, args.m, args.k, args.lda, args.batch, args.strideA);
  problem.b = makeMatrix("b", info.b, args.k, args.n, args.ldb, args.batch, args.strideB);
  problem.c = makeMatrix("c", info.c, problem.readsC() ? args.m : 0, args.n, args.ldc, args.batch, args.strideC);
  problem.d = makeMatrix("d", info.d, args.m, args.n, args.ldd, args.batch, args.strideD);
  fillInputs(problem);
  if (options.inPlace && problem.readsC())
    problem.d.data = problem.c.data;
  return problem;
}

} // namespace gemmc::run
