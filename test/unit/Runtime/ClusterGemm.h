/// A launch with one tensor map, and what its kernel gets.
#pragma once
#include "gemmc/Runtime/Launch.h"
#include <cstring>

namespace gemmc::clustergemm {
using ptx::KernelInfo;
using ptx::ParamInfo;

inline constexpr const char *ptxText = ".version 8.3\n.target sm_90a\n.address_size 64\n";

inline ptx::LaunchInfo clusterInfo() {
  ptx::LaunchInfo info;
  info.m = Expr::var("m");
  info.n = Expr(64);
  info.k = Expr(64);
  info.a = {Elem::bf16, Order::row, Expr(64)};
  info.b = {Elem::bf16, Order::col, Expr(64)};
  info.c = info.d = {Elem::f32, Order::row, Expr(64)};
  info.requirements = {equal(Expr::var("a_ptr") % Expr(16), Expr(0))};
  KernelInfo kernel;
  kernel.name = "gemm";
  kernel.grid = {Expr(2) * ceilDiv(Expr::var("m"), Expr(128)), Expr(1), Expr(3)};
  kernel.block = {384, 1, 1};
  kernel.cluster = {2, 1, 1};
  kernel.dynamicShared = 200000;
  kernel.maps.push_back(
      {"a_map", "a", Elem::bf16, {Expr(64), Expr::var("m")}, {Expr(128)}, {64, 128}, ptx::TmaSwizzle::b128});
  kernel.params = {{ParamInfo::TensorMap, "a_map", ptx::Type::b8, "a_map", 0},
                   {ParamInfo::Pointer, "d", ptx::Type::u64, "d", 0},
                   {ParamInfo::Int, "m", ptx::Type::s32, "", Expr::var("m")},
                   {ParamInfo::Float, "beta", ptx::Type::f32, "beta", 0}};
  info.kernels.push_back(kernel);
  return info;
}

inline LaunchArgs goodArgs() {
  LaunchArgs args;
  args.m = 200, args.n = 64, args.k = 64;
  args.lda = args.ldb = args.ldc = args.ldd = 64;
  args.a = 0x100000, args.b = 0x200000, args.c = 0x300000, args.d = 0x400000;
  args.beta = 0.5f;
  return args;
}

/// Of the kernel's parameters.
inline const std::vector<size_t> paramBytes = {128, 8, 4, 4};

/// What the kernel got: the address in its map, and the parameters behind it.
struct Seen {
  uint64_t mapped = 0, d = 0;
  int32_t m = 0;
  float beta = 0;
  Seen() = default;
  explicit Seen(void **params) {
    std::memcpy(&mapped, static_cast<char *>(params[0]) + 64, 8);
    std::memcpy(&d, params[1], 8);
    std::memcpy(&m, params[2], 4);
    std::memcpy(&beta, params[3], 4);
  }
  bool operator==(const Seen &) const = default;
};

} // namespace gemmc::clustergemm
