/// Test helpers: a problem's launch information, a naive GEMM over raw bytes (its own conversions: the judge of ours),
/// and an executor made of it.
#pragma once
#include "gemmc/Run/Harness.h"
#include <cstring>
#include <functional>
#include <map>

namespace naive {
using namespace gemmc;
using namespace gemmc::run;

/// f16 x f16 -> f16 with f32 accumulation, all sizes and leading dimensions dynamic.
inline ptx::LaunchInfo info(Elem input = Elem::f16, Elem output = Elem::f16, Order a = Order::row, Order b = Order::col,
                            Order d = Order::row) {
  ptx::LaunchInfo out;
  out.m = Expr::var("m");
  out.n = Expr::var("n");
  out.k = Expr::var("k");
  out.a = {input, a, Expr::var("lda")};
  out.b = {input, b, Expr::var("ldb")};
  out.c = {output, d, Expr::var("ldc")};
  out.d = {output, d, Expr::var("ldd")};
  out.blockM = out.blockN = 32;
  ptx::KernelInfo kernel;
  kernel.name = "gemm";
  out.kernels.push_back(kernel);
  return out;
}

inline Code code(ptx::LaunchInfo info = naive::info()) { return {".version 8.0\n.target sm_80\n", std::move(info)}; }

/// A value of type `type`, by the compiler's own types.
inline float load(Elem type, const std::byte *at) {
  if (type == Elem::f32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  if (type == Elem::f16) {
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return static_cast<float>(half);
  }
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
inline void store(Elem type, std::byte *at, float value) {
  if (type == Elem::f32) {
    std::memcpy(at, &value, 4);
  } else if (type == Elem::f16) {
    _Float16 half = static_cast<_Float16>(value);
    std::memcpy(at, &half, 2);
  } else {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint16_t rounded = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16); // no NaN here
    std::memcpy(at, &rounded, 2);
  }
}

/// D = alpha A B + beta C in float, k after k, through real pointers, of one product.
inline void gemmOfOne(const ptx::LaunchInfo &info, const LaunchArgs &args) {
  auto element = [](uint64_t base, const ptx::OperandInfo &operand, int64_t ld, int64_t i, int64_t j) {
    int64_t offset = operand.order == Order::row ? i * ld + j : j * ld + i;
    return reinterpret_cast<std::byte *>(base) + offset * bytesOf(operand.type);
  };
  for (int64_t i = 0; i < args.m; ++i)
    for (int64_t j = 0; j < args.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < args.k && args.alpha != 0; ++k)
        sum += load(info.a.type, element(args.a, info.a, args.lda, i, k)) *
               load(info.b.type, element(args.b, info.b, args.ldb, k, j));
      float value = args.alpha != 0 && args.k != 0 ? float(args.alpha) * sum : 0;
      if (args.beta != 0)
        value += args.beta * load(info.c.type, element(args.c, info.c, args.ldc, i, j));
      store(info.d.type, element(args.d, info.d, args.ldd, i, j), value);
    }
}

/// ... of all products of a batch.
inline void gemm(const ptx::LaunchInfo &info, const LaunchArgs &args) {
  for (int64_t product = 0; product < args.batch; ++product) {
    LaunchArgs one = args;
    one.a += product * args.strideA * bytesOf(info.a.type);
    one.b += product * args.strideB * bytesOf(info.b.type);
    one.c += product * args.strideC * bytesOf(info.c.type);
    one.d += product * args.strideD * bytesOf(info.d.type);
    gemmOfOne(info, one);
  }
}

/// Runs gemm() on host memory; `after` may spoil the result.
class HostExecutor : public Executor {
public:
  bool emulator = true;
  bool isEmulator() const override { return emulator; }
  std::function<void(const Code &, const LaunchArgs &)> work = [](const Code &code, const LaunchArgs &args) {
    gemm(code.info, args);
  };
  std::function<void(const LaunchArgs &)> after;
  LaunchOutcome outcome;
  std::vector<LaunchChoice> choices;
  std::vector<LaunchArgs> launched;

  std::string where() const override { return "host"; }
  int64_t sms(const LaunchChoice &) const override { return 4; }
  MaybeFailure supports(llvm::StringRef) const override { return std::nullopt; }
  Outcome<uint64_t> upload(llvm::StringRef name, llvm::ArrayRef<std::byte> data, uint64_t misalign) override {
    auto &buffer = buffers[name.str()];
    buffer.assign(data.size() + 512, std::byte(0));
    uint64_t start = (reinterpret_cast<uint64_t>(buffer.data()) + 255) / 256 * 256 + misalign;
    if (!data.empty())
      std::memcpy(reinterpret_cast<void *>(start), data.data(), data.size());
    addresses[name.str()] = start;
    return start;
  }
  Outcome<LaunchOutcome> launch(const Code &code, const LaunchArgs &args, const LaunchChoice &choice) override {
    launched.push_back(args);
    choices.push_back(choice);
    work(code, args);
    if (after)
      after(args);
    return outcome;
  }
  MaybeFailure download(llvm::StringRef name, llvm::MutableArrayRef<std::byte> data,
                        std::optional<GuardViolation> &) override {
    if (!data.empty())
      std::memcpy(data.data(), reinterpret_cast<void *>(addresses[name.str()]), data.size());
    return std::nullopt;
  }

private:
  std::map<std::string, std::vector<std::byte>> buffers;
  std::map<std::string, uint64_t> addresses;
};

/// D with these elements, rounded to its type.
inline HostMatrix resultOf(const GemmProblem &problem, llvm::function_ref<double(int64_t, int64_t)> element) {
  HostMatrix d = problem.d;
  for (int64_t i = 0; i < d.rows; ++i)
    for (int64_t j = 0; j < d.cols; ++j)
      d.setBits(i, j, encode(d.type, element(i, j)));
  return d;
}

inline ProblemOptions sizes(int64_t m, int64_t n, int64_t k, InputKind kind = InputKind::integer) {
  ProblemOptions options;
  options.m = m, options.n = n, options.k = k;
  options.kind = kind;
  return options;
}
inline GemmProblem problem(const ptx::LaunchInfo &info, const ProblemOptions &options) {
  auto made = makeProblem(info, options);
  assert(made && "a good problem");
  return std::move(*made);
}
/// The right D, by gemm().
inline HostMatrix result(const ptx::LaunchInfo &info, const GemmProblem &problem) {
  HostMatrix d = problem.d;
  LaunchArgs args = problem.args;
  auto address = [](const HostMatrix &matrix) { return reinterpret_cast<uint64_t>(matrix.data.data()); };
  args.a = address(problem.a), args.b = address(problem.b), args.c = address(problem.c), args.d = address(d);
  gemm(info, args);
  return d;
}
} // namespace naive
