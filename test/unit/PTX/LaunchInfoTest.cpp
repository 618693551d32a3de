// The launch information survives its trip through the comment block, and a damaged block is refused where it is damaged.
#include "gemmc/PTX/LaunchInfo.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace gemmc;
using namespace gemmc::ptx;

namespace {
Expr expr(llvm::StringRef text) {
  Diags diags;
  return Expr::parse(diags.addSource("expr", text), diags).value();
}

/// Two kernels that use every field in more than one way.
LaunchInfo sample() {
  LaunchInfo info;
  info.requirements = {expr("lda % 8 == 0 && k > 0"), expr("!(a_ptr % 16 != 0)"), expr("m")};
  info.m = 4096;
  info.n = Expr::var("n");
  info.k = Expr::var("k");
  info.a = {Elem::bf16, Order::row, Expr::var("lda")};
  info.b = {Elem::e4m3, Order::col, 512};
  info.c = {Elem::f32, Order::row, 0};
  info.d = {Elem::f16, Order::col, expr("ldd * 2")};
  info.accumulator = Elem::f64;
  info.alpha = -0.1;
  info.workspace = expr("m * n * 4");
  info.blockM = 128;
  info.blockN = 176;
  KernelInfo gemm;
  gemm.name = "gemm";
  gemm.grid = {expr("min(sms, ceildiv(n, 176) * 32)"), 1, Expr::var("m")};
  gemm.block = {384, 1, 1};
  gemm.cluster = {2, 1, 1};
  gemm.dynamicShared = 232448;
  gemm.maps = {{"map_a", "a", Elem::bf16, {Expr::var("k"), 4096}, {expr("lda * 2")}, {64, 128}, TmaSwizzle::b128},
               {"map_w", "workspace", Elem::f32, {Expr::var("n")}, {}, {256}, TmaSwizzle::none}};
  gemm.params = {{ParamInfo::TensorMap, "map_a", Type::b8, "map_a", 0},
                 {ParamInfo::TensorMap, "map_w", Type::b8, "map_w", 0},
                 {ParamInfo::Pointer, "d", Type::u64, "d", 0},
                 {ParamInfo::Int, "k", Type::s32, "", expr("k / 2")},
                 {ParamInfo::Float, "beta", Type::f32, "beta", 0}};
  KernelInfo reduce;
  reduce.name = "reduce$1";
  info.kernels = {gemm, reduce};
  return info;
}

Variable param(llvm::StringRef name, Type type, std::vector<uint64_t> extent = {}) {
  Variable variable;
  variable.space = Space::param;
  variable.type = type;
  variable.name = name.str();
  variable.extent = std::move(extent);
  return variable;
}

/// A module with the entries that `sample` launches.
Module moduleWith(std::vector<std::string> header) {
  Module module;
  module.header = std::move(header);
  Function gemm, reduce;
  gemm.name = "gemm";
  gemm.params = {param("map_a", Type::b8, {128}), param("map_w", Type::b8, {128}), param("d", Type::u64),
                 param("k", Type::u32), param("beta", Type::f32)};
  reduce.name = "reduce$1";
  module.functions = {gemm, reduce};
  return module;
}

bool same(const OperandInfo &a, const OperandInfo &b) { return a.type == b.type && a.order == b.order && a.ld == b.ld; }
bool same(const TensorMapInfo &a, const TensorMapInfo &b) {
  return a.name == b.name && a.buffer == b.buffer && a.type == b.type && a.dims == b.dims && a.strides == b.strides &&
         a.box == b.box && a.swizzle == b.swizzle;
}
bool same(const ParamInfo &a, const ParamInfo &b) {
  return a.kind == b.kind && a.name == b.name && a.type == b.type && a.source == b.source && a.value == b.value;
}
template <typename T> bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T &x, const T &y) { return same(x, y); });
}
bool same(const KernelInfo &a, const KernelInfo &b) {
  return a.name == b.name && a.grid == b.grid && a.block == b.block && a.cluster == b.cluster &&
         a.dynamicShared == b.dynamicShared && same(a.maps, b.maps) && same(a.params, b.params);
}
bool same(const LaunchInfo &a, const LaunchInfo &b) {
  return a.requirements == b.requirements && a.m == b.m && a.n == b.n && a.k == b.k && same(a.a, b.a) &&
         same(a.b, b.b) && same(a.c, b.c) && same(a.d, b.d) && a.accumulator == b.accumulator && a.alpha == b.alpha &&
         a.beta == b.beta && a.workspace == b.workspace && a.blockM == b.blockM && a.blockN == b.blockN &&
         same(a.kernels, b.kernels);
}

/// "line:column name" of each problem with the header after replacing `from` by `to` in it.
std::string problemsAfter(llvm::StringRef from, llvm::StringRef to) {
  auto header = toHeader(sample());
  bool found = false;
  for (std::string &line : header)
    if (size_t at = line.find(from); at != std::string::npos && !found) {
      line.replace(at, from.size(), to);
      found = true;
    }
  EXPECT_TRUE(found) << from.str();
  Diags diags;
  auto info = fromHeader(moduleWith(header), diags);
  EXPECT_EQ(!info, diags.hasErrors());
  std::string list;
  for (const Problem &problem : diags.all())
    list += (list.empty() ? "" : ", ") +
            llvm::StringRef(diags.place(problem.range.Start)).split(':').second.str() + " " + nameOf(problem.id).str();
  return list;
}
} // namespace

TEST(LaunchInfo, ReadsLikeAPage) {
  std::string text;
  for (const std::string &line : toHeader(sample()))
    text += "//" + line + "\n";
  EXPECT_EQ(text, R"(//! gemmc launch 1
//! m: 4096
//! n: n
//! k: k
//! a: {type: bf16, layout: row, ld: lda}
//! b: {type: e4m3, layout: col, ld: 512}
//! c: {type: f32, layout: row, ld: 0}
//! d: {type: f16, layout: col, ld: "ldd * 2"}
//! accumulator: f64
//! alpha: -0.1
//! beta: dynamic
//! requirements:
//!   - "lda % 8 == 0 && 0 < k"
//!   - "!(a_ptr % 16 != 0)"
//!   - m
//! workspace: "m * n * 4"
//! block_m: 128
//! block_n: 176
//! kernels:
//!   - name: gemm
//!     grid: ["min(sms, ceildiv(n, 176) * 32)", 1, m]
//!     block: [384, 1, 1]
//!     cluster: [2, 1, 1]
//!     shared: 232448
//!     maps:
//!       - {name: map_a, buffer: a, type: bf16, swizzle: 128B, box: [64, 128], dims: [k, 4096], strides: ["lda * 2"]}
//!       - {name: map_w, buffer: workspace, type: f32, swizzle: none, box: [256], dims: [n], strides: []}
//!     params:
//!       - {name: map_a, type: b8, map: map_a}
//!       - {name: map_w, type: b8, map: map_w}
//!       - {name: d, type: u64, pointer: d}
//!       - {name: k, type: s32, int: "k / 2"}
//!       - {name: beta, type: f32, float: beta}
//!   - name: "reduce$1"
//!     grid: [1, 1, 1]
//!     block: [1, 1, 1]
//!     cluster: [1, 1, 1]
//!     shared: 0
//!     maps: []
//!     params: []
)");
}

TEST(LaunchInfo, RoundTrips) {
  for (std::optional<double> alpha : {std::optional<double>(), std::optional(1e-300), std::optional(-0.0),
                                      std::optional(1.0 / 3), std::optional(1e22), std::optional(DBL_MAX)}) {
    LaunchInfo info = sample();
    info.alpha = alpha;
    Diags diags;
    auto back = fromHeader(moduleWith(toHeader(info)), diags);
    diags.print(llvm::errs());
    ASSERT_TRUE(back);
    EXPECT_TRUE(same(info, *back));
    EXPECT_EQ(alpha && std::signbit(*alpha), back->alpha && std::signbit(*back->alpha));
  }
}

TEST(LaunchInfo, MayStandBehindOtherComments) {
  auto header = toHeader(sample());
  header.insert(header.begin(), {" Made by hand.", ""});
  header.push_back(" Not of the block: [}");
  Diags diags;
  EXPECT_TRUE(fromHeader(moduleWith(header), diags));
}

TEST(LaunchInfo, RefusesAnotherVersion) {
  EXPECT_EQ(problemsAfter("launch 1", "launch 2"), "1:18 launch_version");
  EXPECT_EQ(problemsAfter("launch 1", "launch 1x"), "1:18 launch_version");
  EXPECT_EQ(problemsAfter("! gemmc launch 1", "! gemm launch 1"), " launch_missing");
}

TEST(LaunchInfo, RefusesUnknownMissingAndRepeatedKeys) {
  EXPECT_EQ(problemsAfter("shared:", "sharde:"), "20:7 launch_missing_key, 24:7 launch_unknown_key");
  EXPECT_EQ(problemsAfter("! m: 4096", "! "), "3:5 launch_missing_key");
  EXPECT_EQ(problemsAfter("swizzle: 128B, ", ""), "26:11 launch_missing_key");
  EXPECT_EQ(problemsAfter("ld: lda", "ld: lda, pad: 8"), "5:45 launch_unknown_key");
  EXPECT_EQ(problemsAfter("ld: lda", "ld: lda, ld: 8"), "5:40 yaml_duplicate_key");
  EXPECT_EQ(problemsAfter("reduce$1", "gemm"), "34:13 launch_duplicate");
  EXPECT_EQ(problemsAfter("name: map_w", "name: map_a"), "27:18 launch_duplicate");
  EXPECT_EQ(problemsAfter("name: d", "name: map_a"), "31:18 launch_duplicate");
}

TEST(LaunchInfo, RefusesWrongForms) {
  EXPECT_EQ(problemsAfter("m: 4096", "m:"), "2:7 launch_kind");
  EXPECT_EQ(problemsAfter("m: 4096", "m: [4096]"), "2:8 launch_kind");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: .nan"), "10:12 launch_kind");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: 1e999"), "10:12 launch_kind");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: 0.1x"), "10:12 launch_kind");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: '1'"), "10:12 launch_kind");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: many"), "24:15 launch_kind");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: '1'"), "24:15 launch_kind");
  EXPECT_EQ(problemsAfter("block: [384, 1, 1]", "block: 384"), "22:14 launch_kind");
  EXPECT_EQ(problemsAfter("block: [384, 1, 1]", "block: [384]"), "22:14 launch_length");
  EXPECT_EQ(problemsAfter("{type: bf16, layout: row, ld: lda}", "bf16"), "5:8 launch_kind");
  EXPECT_EQ(problemsAfter("type: bf16", "type: bf17"), "5:15 launch_word");
  EXPECT_EQ(problemsAfter("type: u64", "type: u63"), "30:27 launch_word");
  EXPECT_EQ(problemsAfter("buffer: a", "buffer: x"), "26:33 launch_word");
  EXPECT_EQ(problemsAfter("m: 4096", "m: \"40\\x396\""), "2:8 launch_kind") << "an escape in an expression";
  EXPECT_EQ(problemsAfter("a: {", "a: &x {"), "5:8 yaml_anchor");
}

TEST(LaunchInfo, RefusesWrongNumbers) {
  EXPECT_EQ(problemsAfter("m: 4096", "m: -1"), "2:8 launch_range");
  EXPECT_EQ(problemsAfter("workspace: \"m * n * 4\"", "workspace: -4"), "16:16 launch_range");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: 232449"), "24:15 launch_range");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: 99999999999999999999"), "24:15 launch_kind");
  EXPECT_EQ(problemsAfter("[384, 1, 1]", "[384, 0, 1]"), "22:20 launch_range");
  EXPECT_EQ(problemsAfter("[384, 1, 1]", "[513, 2, 1]"), "22:14 launch_product");
  EXPECT_EQ(problemsAfter("[2, 1, 1]", "[17, 1, 1]"), "23:17 launch_range");
  EXPECT_EQ(problemsAfter("[2, 1, 1]", "[4, 4, 2]"), "23:16 launch_product");
  EXPECT_EQ(problemsAfter(", 1, m]", ", 65536, m]"), "21:48 launch_range");
  EXPECT_EQ(problemsAfter("[64, 128]", "[64, 257]"), "26:83 launch_range");
  EXPECT_EQ(problemsAfter("[64, 128]", "[64]"), "26:78 launch_length");
  EXPECT_EQ(problemsAfter("[\"lda * 2\"]", "[]"), "26:113 launch_length");
  EXPECT_EQ(problemsAfter("dims: [n]", "dims: [n, n, n, n, n, n]"), "27:86 launch_length");
}

TEST(LaunchInfo, RefusesWrongExpressions) {
  EXPECT_EQ(problemsAfter("ldd * 2", "lde * 2"), "8:41 launch_variable");
  EXPECT_EQ(problemsAfter("ldd * 2", "n + foo + foo"), "8:45 launch_variable");
  EXPECT_EQ(problemsAfter("ldd * 2", "ldd * "), "8:47 expr_expected");
  EXPECT_EQ(problemsAfter("ldd * 2", std::string(4000, '(')), "8:296 expr_too_deep");
}

TEST(LaunchInfo, ComparesWithTheEntries) {
  EXPECT_EQ(problemsAfter("name: gemm", "name: gemv"), "20:13 launch_no_entry");
  EXPECT_EQ(problemsAfter("type: s32", "type: s64"), "32:11 launch_param_differs");
  EXPECT_EQ(problemsAfter("name: d,", "name: e,"), "30:11 launch_param_differs");
  EXPECT_EQ(problemsAfter("- {name: beta, type: f32, float: beta}", ""), "29:9 launch_param_count");
  EXPECT_EQ(problemsAfter("map: map_w", "map: map_x"), "29:38 launch_no_map");
  EXPECT_EQ(problemsAfter("type: u64, pointer: d", "type: s64, pointer: d"), "30:11 launch_param_type");
  EXPECT_EQ(problemsAfter("pointer: d", "pointer: d, int: 4"), "30:11 launch_param_kind");
  EXPECT_EQ(problemsAfter(", pointer: d", ""), "30:11 launch_param_kind");
}

TEST(LaunchInfo, NoPrefixAndNoByteFlipCrashes) {
  auto header = toHeader(sample());
  for (size_t lines = 0; lines < header.size(); ++lines) {
    Diags diags;
    fromHeader(moduleWith({header.begin(), header.begin() + lines}), diags);
    EXPECT_TRUE(diags.hasErrors() || lines >= 40);
  }
  for (size_t line = 0; line < header.size(); ++line)
    for (size_t at = 0; at < header[line].size(); ++at)
      for (char c : {'\0', '[', '}', '"', '-', ':', '9', '\xff', '#'}) {
        auto damaged = header;
        damaged[line][at] = c;
        Diags diags;
        auto info = fromHeader(moduleWith(damaged), diags);
        EXPECT_EQ(!info, diags.hasErrors());
      }
}
