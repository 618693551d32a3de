#include "gemmc/Runtime/Launch.h"
#include "gemmc/Support/Batch.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <charconv>
#include <cstring>

namespace gemmc {
namespace {
using ptx::LaunchInfo;
using ptx::OperandInfo;

/// An operand together with its launch arguments.
struct Matrix {
  const char *name;
  const char *ldName;
  const OperandInfo &info;
  int64_t rows, cols, ld;
  uint64_t address;
  const char *strideName;
  int64_t batch, stride; ///< Of one product 1 and 0.

  int64_t lines() const { return info.order == Order::row ? rows : cols; }
  int64_t length() const { return info.order == Order::row ? cols : rows; }
  std::optional<uint64_t> bytes() const { return matrixBytes(info.type, info.order, rows, cols, ld, batch, stride); }
};
struct Matrices {
  Matrices(const LaunchInfo &info, const LaunchArgs &args)
      : batch(info.batch.isConst(1) ? 1 : args.batch),
        a{"a", "lda", info.a, args.m, args.k, args.lda, args.a, "stride_a", batch, batch == 1 ? 0 : args.strideA},
        b{"b", "ldb", info.b, args.k, args.n, args.ldb, args.b, "stride_b", batch, batch == 1 ? 0 : args.strideB},
        c{"c", "ldc", info.c, args.m, args.n, args.ldc, args.c, "stride_c", batch, batch == 1 ? 0 : args.strideC},
        d{"d", "ldd", info.d, args.m, args.n, args.ldd, args.d, "stride_d", batch, batch == 1 ? 0 : args.strideD} {}
  int64_t batch;
  Matrix a, b, c, d;
};

std::string dynamicWould(const char *section, const char *key) {
  return llvm::formatv("a kernel whose `{0}{1}` is dynamic takes any (`--set={0}{1}=dynamic`)", section, key).str();
}

MaybeFailure checkSizes(const LaunchInfo &info, const LaunchArgs &args) {
  const std::tuple<const char *, const Expr &, int64_t> sizes[] = {
      {"m", info.m, args.m}, {"n", info.n, args.n}, {"k", info.k, args.k}, {"batch", info.batch, args.batch}};
  for (const auto &[name, expected, value] : sizes) {
    if (value < 0)
      return Failure::make(Diag::launch_negative, name, value);
    if (expected.isConst() && expected.constant() != value)
      return Failure::make(Diag::launch_fixed, name, value, expected.constant()).hint(dynamicWould("problem.", name));
  }
  return std::nullopt;
}

/// As few digits as tell it from its neighbours.
std::string numberOf(const LaunchInfo &info, double value) {
  char text[32];
  return {text, info.accumulator == Elem::f64 ? std::to_chars(text, std::end(text), value).ptr
                                              : std::to_chars(text, std::end(text), static_cast<float>(value)).ptr};
}

MaybeFailure checkScales(const LaunchInfo &info, const LaunchArgs &args) {
  if (info.alpha && factorBeside(info.accumulator, *info.alpha) != factorBeside(info.accumulator, args.alpha))
    return Failure::make(Diag::launch_fixed, "alpha", numberOf(info, args.alpha), numberOf(info, *info.alpha))
        .hint(dynamicWould("", "alpha"));
  if (info.beta && factorBeside(info.accumulator, *info.beta) != factorBeside(info.accumulator, args.beta))
    return Failure::make(Diag::launch_fixed, "beta", numberOf(info, args.beta), numberOf(info, *info.beta))
        .hint(dynamicWould("", "beta"));
  return std::nullopt;
}

MaybeFailure checkLd(const Matrix &matrix) {
  int64_t extent = matrix.info.order == Order::row ? matrix.cols : matrix.rows;
  if (matrix.ld < extent)
    return Failure::make(Diag::launch_ld, matrix.ldName, matrix.ld, nameOf(matrix.info.order), matrix.rows, matrix.cols,
                         extent);
  if (matrix.info.ld.isConst() && matrix.info.ld.constant() != matrix.ld)
    return Failure::make(Diag::launch_fixed, matrix.ldName, matrix.ld, matrix.info.ld.constant())
        .hint(dynamicWould((std::string(matrix.name) + ".").c_str(), "ld"));
  if (matrix.ld % perByte(matrix.info.type) != 0)
    return Failure::make(Diag::launch_packed, matrix.ld == extent ? "k" : matrix.ldName, matrix.ld,
                         nameOf(matrix.info.type), perByte(matrix.info.type));
  if (!matrixBytes(matrix.info.type, matrix.info.order, matrix.rows, matrix.cols, matrix.ld))
    return Failure::make(Diag::launch_too_large, matrix.name, matrix.rows, matrix.cols, matrix.ld);
  return std::nullopt;
}

MaybeFailure checkStride(const Matrix &matrix) {
  if (matrix.batch == 1)
    return std::nullopt;
  if (matrix.stride < 0)
    return Failure::make(Diag::launch_negative, matrix.strideName, matrix.stride);
  if (matrix.info.batchStride.isConst() && matrix.info.batchStride.constant() != matrix.stride)
    return Failure::make(Diag::launch_fixed, matrix.strideName, matrix.stride, matrix.info.batchStride.constant())
        .hint(dynamicWould((std::string(matrix.name) + ".").c_str(), "batch_stride"));
  if (matrix.stride % perByte(matrix.info.type) != 0)
    return Failure::make(Diag::launch_packed, matrix.strideName, matrix.stride, nameOf(matrix.info.type),
                         perByte(matrix.info.type));
  if (!matrix.bytes())
    return Failure::make(Diag::launch_batch_large, matrix.name, matrix.batch, matrix.stride);
  if (*matrix.name == 'd' && matricesOverlap(matrix.batch, matrix.lines(), matrix.length(), matrix.ld, matrix.stride))
    return Failure::make(Diag::launch_batch_overlap, matrix.stride, matrix.lines(), matrix.length(), matrix.ld);
  return std::nullopt;
}

MaybeFailure checkPointer(const Matrix &matrix, const char *why) {
  if (matrix.address == 0)
    return Failure::make(Diag::launch_null, matrix.name, why);
  if (matrix.address % bytesOf(matrix.info.type) != 0)
    return Failure::make(Diag::launch_misaligned, matrix.name, llvm::formatv("{0:x}", matrix.address).str(),
                         bytesOf(matrix.info.type));
  return std::nullopt;
}

bool overlap(const Matrix &x, const Matrix &y) {
  uint64_t xBytes = *x.bytes(), yBytes = *y.bytes();
  return xBytes && yBytes && x.address < y.address + yBytes && y.address < x.address + xBytes;
}

bool samePlace(const Matrix &c, const Matrix &d) {
  return c.address == d.address && c.ld == d.ld && c.stride == d.stride && c.info.order == d.info.order &&
         c.info.type == d.info.type;
}

MaybeFailure checkPointers(const Matrices &matrices, const LaunchArgs &args) {
  const Matrix &a = matrices.a, &b = matrices.b, &c = matrices.c, &d = matrices.d;
  if (auto failed = checkPointer(d, "the result is written there"))
    return failed;
  if (args.readsInputs()) {
    for (const Matrix *input : {&a, &b}) {
      if (auto failed = checkPointer(*input, "it is read: `alpha` and `k` are not 0"))
        return failed;
      if (overlap(*input, d))
        return Failure::make(Diag::launch_overlap, input->name);
    }
  }
  if (args.beta != 0) {
    if (auto failed = checkPointer(c, "it is read: `beta` is not 0"))
      return failed;
    if (overlap(c, d) && !samePlace(c, d))
      return Failure::make(Diag::launch_overlap, "c");
  }
  return std::nullopt;
}
} // namespace

std::optional<int64_t> launchVariable(const LaunchArgs &args, int64_t sms, llvm::StringRef name) {
  auto address = [](uint64_t value) { return std::optional<int64_t>(static_cast<int64_t>(value)); };
  auto stride = [&](int64_t elements) { return args.batch == 1 ? 0 : elements; }; // nobody has said one
  return llvm::StringSwitch<std::optional<int64_t>>(name)
      .Case("m", args.m)
      .Case("n", args.n)
      .Case("k", args.k)
      .Case("lda", args.lda)
      .Case("ldb", args.ldb)
      .Case("ldc", args.ldc)
      .Case("ldd", args.ldd)
      .Case("batch", args.batch)
      .Case("stride_a", stride(args.strideA))
      .Case("stride_b", stride(args.strideB))
      .Case("stride_c", stride(args.strideC))
      .Case("stride_d", stride(args.strideD))
      .Case("sms", sms)
      .Case("a_ptr", address(args.a))
      .Case("b_ptr", address(args.b))
      .Case("c_ptr", address(args.c))
      .Case("d_ptr", address(args.d))
      .Case("alpha_is_zero", args.alpha == 0)
      .Case("beta_is_zero", args.beta == 0)
      .Default(std::nullopt);
}

std::optional<uint64_t> matrixBytes(Elem type, Order order, int64_t rows, int64_t cols, int64_t ld) {
  assert(rows >= 0 && cols >= 0 && "sizes are checked first");
  if (rows == 0 || cols == 0)
    return 0;
  int64_t lines = order == Order::row ? rows : cols;
  int64_t length = order == Order::row ? cols : rows;
  __int128 bytes = ((static_cast<__int128>(lines - 1) * ld + length) * bitsOf(type) + 7) / 8;
  // Half the address space, so that a start plus a size never wraps.
  if (bytes > INT64_MAX)
    return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::optional<uint64_t> matrixBytes(Elem type, Order order, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                                    int64_t stride) {
  assert(batch >= 0 && (batch <= 1 || stride >= 0) && "sizes are checked first");
  std::optional<uint64_t> one = matrixBytes(type, order, rows, cols, ld);
  if (batch == 0)
    return 0;
  if (!one || *one == 0 || batch == 1)
    return one;
  __int128 bytes = static_cast<__int128>(batch - 1) * stride * bitsOf(type) / 8 + static_cast<__int128>(*one);
  return bytes > INT64_MAX ? std::nullopt : std::optional(static_cast<uint64_t>(bytes));
}

std::optional<uint64_t> workspaceBytes(const LaunchInfo &info, const LaunchArgs &args, int64_t sms) {
  auto value = info.workspace.eval([&](llvm::StringRef name) { return launchVariable(args, sms, name); });
  if (!value || *value < 0)
    return std::nullopt;
  return static_cast<uint64_t>(*value);
}

MaybeFailure checkShape(const LaunchInfo &info, const LaunchArgs &args) {
  if (auto failed = checkSizes(info, args))
    return failed;
  if (auto failed = checkScales(info, args))
    return failed;
  Matrices matrices(info, args);
  // Without a beta there is no C, and its leading dimension means nothing.
  for (const Matrix *matrix : {&matrices.a, &matrices.b, &matrices.d, &matrices.c}) {
    if (matrix == &matrices.c && args.beta == 0)
      continue;
    if (auto failed = checkLd(*matrix))
      return failed;
    if (auto failed = checkStride(*matrix))
      return failed;
  }
  return std::nullopt;
}

MaybeFailure checkArgs(const LaunchInfo &info, const LaunchArgs &args, int64_t sms) {
  if (auto failed = checkShape(info, args))
    return failed;
  if (args.empty())
    return std::nullopt;
  if (auto failed = checkPointers(Matrices(info, args), args))
    return failed;
  auto needed = workspaceBytes(info, args, sms);
  if (!needed)
    return Failure::make(Diag::launch_no_value, "workspace", info.kernels.empty() ? "?" : info.kernels.front().name,
                         info.workspace.str());
  if (*needed > 0 && (args.workspaceBytes < *needed || args.workspace == 0 || args.workspace % 256 != 0))
    return Failure::make(Diag::launch_workspace, *needed, args.workspaceBytes,
                         llvm::formatv("{0:x}", args.workspace).str());
  return std::nullopt;
}

const Expr *firstUnmet(const LaunchInfo &info, const LaunchArgs &args, int64_t sms) {
  auto lookup = [&](llvm::StringRef name) { return launchVariable(args, sms, name); };
  for (const Expr &requirement : info.requirements) {
    auto value = requirement.eval(lookup);
    if (!value || *value == 0)
      return &requirement;
  }
  return nullptr;
}

} // namespace gemmc
