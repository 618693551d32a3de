// The launch information survives its trip through the comment block, and a damaged block is refused where it is
// damaged.
#include "gemmc/PTX/LaunchInfo.h"
#include "Pace.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cfloat>
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

/// The same with names for its shared memory and the spec that they come from.
LaunchInfo named() {
  LaunchInfo info = sample();
  info.kernels[0].memory = {
      {"sA", 0, 16384, 4, "pipeline.stages"}, {"full", 65536, 8, 4, "pipeline.stages"}, {"tile", 1024, 64, 1, ""}};
  info.spec = {"specs/my gemm.yaml", {{"pipeline.stages", 10}, {"tile.block", 9}}};
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
         a.box == b.box && a.swizzle == b.swizzle && a.offset == b.offset;
}
bool same(const ParamInfo &a, const ParamInfo &b) {
  return a.kind == b.kind && a.name == b.name && a.type == b.type && a.source == b.source && a.value == b.value;
}
bool same(const KernelInfo &a, const KernelInfo &b);
template <typename T> bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T &x, const T &y) { return same(x, y); });
}
bool same(const KernelInfo &a, const KernelInfo &b) {
  return a.name == b.name && a.grid == b.grid && a.block == b.block && a.cluster == b.cluster &&
         a.dynamicShared == b.dynamicShared && same(a.maps, b.maps) && same(a.params, b.params) && a.memory == b.memory;
}
bool same(const LaunchInfo &a, const LaunchInfo &b) {
  return a.requirements == b.requirements && a.m == b.m && a.n == b.n && a.k == b.k && same(a.a, b.a) &&
         same(a.b, b.b) && same(a.c, b.c) && same(a.d, b.d) && a.accumulator == b.accumulator && a.alpha == b.alpha &&
         a.beta == b.beta && a.workspace == b.workspace && a.blockM == b.blockM && a.blockN == b.blockN &&
         same(a.kernels, b.kernels) && a.spec == b.spec;
}

/// "line name text" of each problem with the header after replacing `from` by `to` in it, where `text` is what the
/// problem's range holds of that line. It must stand at the same line and column of the header.
std::string problemsAfter(llvm::StringRef from, llvm::StringRef to, const LaunchInfo &info = sample()) {
  auto header = toHeader(info);
  bool found = false;
  for (std::string &line : header)
    if (size_t at = line.find(from); at != std::string::npos && !found) {
      line.replace(at, from.size(), to);
      found = true;
    }
  EXPECT_TRUE(found) << from.str();
  Diags diags;
  auto read = fromHeader(moduleWith(header), diags);
  EXPECT_EQ(!read, diags.hasErrors());
  std::string list;
  for (const Problem &problem : diags.all()) {
    list += (list.empty() ? "" : ", ") + nameOf(problem.id).str();
    if (!problem.range.isValid())
      continue;
    const char *begin = problem.range.Start.getPointer();
    llvm::StringRef text(begin, problem.range.End.getPointer() - begin);
    text = text.split('\n').first;
    unsigned line = 0, column = 0;
    auto parts = llvm::StringRef(diags.place(problem.range.Start)).split(':').second.split(':');
    EXPECT_FALSE(parts.first.getAsInteger(10, line) || parts.second.getAsInteger(10, column));
    EXPECT_EQ(llvm::StringRef("//" + header[line - 1]).substr(column - 1).take_front(text.size()), text);
    EXPECT_FALSE(text.size() && llvm::isAlnum(text.back()) && llvm::isAlnum(text.end()[0])) << "half a word";
    list += " " + std::to_string(line) + " " + text.take_front(20).str();
  }
  return list;
}
} // namespace

TEST(LaunchInfo, ReadsLikeAPage) {
  std::string text;
  for (const std::string &line : toHeader(sample()))
    text += "//" + line + "\n";
  EXPECT_EQ(text, R"ptx(//! gemmc launch 1
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
)ptx");
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

// The names of shared memory and the places in the spec are for messages: they may be missing.
TEST(LaunchInfo, NamesOfSharedMemory) {
  Diags diags;
  auto back = fromHeader(moduleWith(toHeader(named())), diags);
  diags.print(llvm::errs());
  ASSERT_TRUE(back);
  EXPECT_TRUE(same(named(), *back));
  EXPECT_FALSE(same(sample(), *back));
  std::string text = llvm::join(toHeader(named()), "\n");
  EXPECT_NE(text.find("! spec: {file: \"specs/my gemm.yaml\", lines: {pipeline.stages: 10, tile.block: 9}}\n"),
            std::string::npos);
  EXPECT_NE(text.find("!     memory:\n"
                      "!       - {name: sA, offset: 0, bytes: 16384, stages: 4, field: \"pipeline.stages\"}\n"),
            std::string::npos);
  EXPECT_NE(text.find("!       - {name: tile, offset: 1024, bytes: 64, stages: 1}\n"), std::string::npos);
}

// A matrix somewhere in the workspace; one at a buffer's beginning says nothing of it.
TEST(LaunchInfo, OffsetsOfTensorMaps) {
  LaunchInfo info = sample();
  info.kernels[0].maps[1].offset = Expr::var("m") * 256;
  Diags diags;
  auto back = fromHeader(moduleWith(toHeader(info)), diags);
  ASSERT_TRUE(back);
  EXPECT_TRUE(same(info, *back));
  EXPECT_FALSE(same(sample(), *back));
  std::string text = llvm::join(toHeader(info), "\n");
  EXPECT_NE(text.find("{name: map_w, buffer: workspace, offset: \"m * 256\", type: f32,"), std::string::npos);
  EXPECT_EQ(llvm::join(toHeader(sample()), "\n").find("buffer: workspace, offset"), std::string::npos);
  EXPECT_EQ(problemsAfter("\"m * 256\"", "-256", info), "launch_range 27 -256");
  EXPECT_EQ(problemsAfter("\"m * 256\"", "\"mm * 256\"", info), "launch_variable 27 mm");
  EXPECT_EQ(problemsAfter("\"m * 256\"", "[256]", info), "launch_kind 27 [256]");
  EXPECT_EQ(problemsAfter("\"m * 256\"", "256, offset: 0", info), "yaml_duplicate_key 27 offset");
}

TEST(LaunchInfo, RefusesWrongMemory) {
  EXPECT_EQ(problemsAfter("name: full", "name: sA", named()), "launch_duplicate 37 sA");
  EXPECT_EQ(problemsAfter("offset: 1024", "offset: 232385", named()), "launch_range 38 {name: tile, offset:");
  EXPECT_EQ(problemsAfter("stages: 4", "stages: 0", named()), "launch_range 36 0");
  EXPECT_EQ(problemsAfter("lines: {", "lines: [", named()), "yaml_expected_separator 19 :");
  EXPECT_EQ(problemsAfter("{pipeline.stages: 10, tile.block: 9}", "[10]", named()), "launch_kind 19 [10]");
  EXPECT_EQ(problemsAfter("tile.block: 9", "tile.block: nine", named()), "launch_kind 19 nine");
}

// Bits have an operation, and nothing else has.
TEST(LaunchInfo, BitProducts) {
  for (BitProduct bits : {BitProduct::xor_, BitProduct::and_}) {
    LaunchInfo info = sample();
    info.a.type = Elem::b1;
    info.bits = bits;
    Diags diags;
    auto read = fromHeader(moduleWith(toHeader(info)), diags);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->bits, bits);
  }
  EXPECT_EQ(llvm::join(toHeader(sample()), "\n").find("bits"), std::string::npos);
}

TEST(LaunchInfo, MayStandBehindOtherComments) {
  auto header = toHeader(sample());
  header.insert(header.begin(), {" Made by hand.", ""});
  header.push_back(" Not of the block: [}");
  Diags diags;
  EXPECT_TRUE(fromHeader(moduleWith(header), diags));
}

TEST(LaunchInfo, RefusesAnotherVersion) {
  EXPECT_EQ(problemsAfter("launch 1", "launch 2"), "launch_version 1 2");
  EXPECT_EQ(problemsAfter("launch 1", "launch 1x"), "launch_version 1 1x");
  EXPECT_EQ(problemsAfter("! gemmc launch 1", "! gemm launch 1"), "launch_missing");
}

TEST(LaunchInfo, RefusesUnknownMissingAndRepeatedKeys) {
  EXPECT_EQ(problemsAfter("shared:", "sharde:"), "launch_missing_key 20 name: gemm, launch_unknown_key 24 sharde");
  EXPECT_EQ(problemsAfter("! m: 4096", "! "), "launch_missing_key 3 n: n");
  EXPECT_EQ(problemsAfter("swizzle: 128B, ", ""), "launch_missing_key 26 {name: map_a, buffer");
  EXPECT_EQ(problemsAfter("ld: lda", "ld: lda, pad: 8"), "launch_unknown_key 5 pad");
  EXPECT_EQ(problemsAfter("ld: lda", "ld: lda, ld: 8"), "yaml_duplicate_key 5 ld");
  EXPECT_EQ(problemsAfter("\"reduce$1\"", "gemm"), "launch_duplicate 34 gemm");
  EXPECT_EQ(problemsAfter("name: map_w", "name: map_a"), "launch_duplicate 27 map_a, launch_no_map 30 map_w");
  EXPECT_EQ(problemsAfter("name: d", "name: map_a"), "launch_duplicate 31 map_a");
}

TEST(LaunchInfo, RefusesWrongForms) {
  EXPECT_EQ(problemsAfter("m: 4096", "m:"), "launch_kind 2 ");
  EXPECT_EQ(problemsAfter("m: 4096", "m: [4096]"), "launch_kind 2 [4096]");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: .nan"), "launch_kind 10 .nan");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: 1e999"), "launch_kind 10 1e999");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: 0.1x"), "launch_kind 10 0.1x");
  EXPECT_EQ(problemsAfter("alpha: -0.1", "alpha: '1'"), "launch_kind 10 '1'");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: many"), "launch_kind 24 many");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: '1'"), "launch_kind 24 '1'");
  EXPECT_EQ(problemsAfter("block: [384, 1, 1]", "block: 384"), "launch_kind 22 384");
  EXPECT_EQ(problemsAfter("block: [384, 1, 1]", "block: [384]"), "launch_length 22 [384]");
  EXPECT_EQ(problemsAfter("{type: bf16, layout: row, ld: lda}", "bf16"), "launch_kind 5 bf16");
  EXPECT_EQ(problemsAfter("type: bf16", "type: bf17"), "launch_word 5 bf17");
  EXPECT_EQ(problemsAfter("type: u64", "type: u63"), "launch_word 31 u63");
  EXPECT_EQ(problemsAfter("buffer: a", "buffer: x"), "launch_word 26 x");
  EXPECT_EQ(problemsAfter("m: 4096", R"(m: "40\x396")"), R"(launch_kind 2 "40\x396")");
  EXPECT_EQ(problemsAfter("a: {", "a: &x {"), "yaml_anchor 5 &x");
}

TEST(LaunchInfo, RefusesWrongNumbers) {
  EXPECT_EQ(problemsAfter("m: 4096", "m: -1"), "launch_range 2 -1");
  EXPECT_EQ(problemsAfter("workspace: \"m * n * 4\"", "workspace: -4"), "launch_range 16 -4");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: 232449"), "launch_range 24 232449");
  EXPECT_EQ(problemsAfter("shared: 232448", "shared: 99999999999999999999"), "launch_kind 24 99999999999999999999");
  EXPECT_EQ(problemsAfter("[384, 1, 1]", "[384, 0, 1]"), "launch_range 22 0");
  EXPECT_EQ(problemsAfter("[384, 1, 1]", "[513, 2, 1]"), "launch_product 22 [513, 2, 1]");
  EXPECT_EQ(problemsAfter("[2, 1, 1]", "[17, 1, 1]"), "launch_range 23 17");
  EXPECT_EQ(problemsAfter("[2, 1, 1]", "[4, 4, 2]"), "launch_product 23 [4, 4, 2]");
  EXPECT_EQ(problemsAfter(", 1, m]", ", 65536, m]"), "launch_range 21 65536");
  EXPECT_EQ(problemsAfter("[64, 128]", "[64, 257]"), "launch_range 26 257");
  EXPECT_EQ(problemsAfter("[64, 128]", "[64]"), "launch_length 26 [64]");
  EXPECT_EQ(problemsAfter("[\"lda * 2\"]", "[]"), "launch_length 26 []");
  EXPECT_EQ(problemsAfter("dims: [n]", "dims: [n, n, n, n, n, n]"), "launch_length 27 [n, n, n, n, n, n]");
}

TEST(LaunchInfo, RefusesWrongExpressions) {
  EXPECT_EQ(problemsAfter("ldd * 2", "lde * 2"), "launch_variable 8 lde");
  EXPECT_EQ(problemsAfter("ldd * 2", "n + foo + foo"), "launch_variable 8 foo");
  EXPECT_EQ(problemsAfter("ldd * 2", "n + oo * foo * oo"), "launch_variable 8 oo, launch_variable 8 foo");
  EXPECT_EQ(problemsAfter("ldd * 2", "na2 + na"), "launch_variable 8 na2, launch_variable 8 na");
  EXPECT_EQ(problemsAfter("ldd * 2", "ldd * "), "expr_expected 8 ");
  EXPECT_EQ(problemsAfter("ldd * 2", std::string(4000, '(')), "expr_too_deep 8 (");
}

TEST(LaunchInfo, ComparesWithTheEntries) {
  EXPECT_EQ(problemsAfter("name: gemm", "name: gemv"), "launch_no_entry 20 gemv");
  EXPECT_EQ(problemsAfter("type: s32", "type: s64"), "launch_param_differs 32 {name: k, type: s64,");
  EXPECT_EQ(problemsAfter("name: d,", "name: e,"), "launch_param_differs 31 {name: e, type: u64,");
  EXPECT_EQ(problemsAfter("      - {name: beta, type: f32, float: beta}", ""),
            "launch_param_count 29 - {name: map_a, type");
  EXPECT_EQ(problemsAfter("map: map_w", "map: map_x"), "launch_no_map 30 map_x");
  EXPECT_EQ(problemsAfter("type: u64, pointer: d", "type: s64, pointer: d"),
            "launch_param_type 31 {name: d, type: s64,");
  EXPECT_EQ(problemsAfter("pointer: d", "pointer: d, int: 4"), "launch_param_kind 31 {name: d, type: u64,");
  EXPECT_EQ(problemsAfter(", pointer: d", ""), "launch_param_kind 31 {name: d, type: u64}");
}

TEST(LaunchInfo, NoPrefixAndNoByteFlipCrashes) {
  auto header = toHeader(sample());
  for (size_t lines = 0; lines < header.size(); ++lines) {
    Diags diags;
    fromHeader(moduleWith({header.begin(), header.begin() + lines}), diags);
    EXPECT_EQ(diags.hasErrors(), lines != 33) << "the second kernel begins at line 34";
  }
  constexpr size_t apart = gemmc::test::instrumented ? 5 : 1; // and other places in the next line
  for (size_t line = 0; line < header.size(); ++line)
    for (size_t at = line % apart; at < header[line].size(); at += apart)
      for (char c : {'\0', '[', '}', '"', '-', ':', '9', '\xff', '#'}) {
        auto damaged = header;
        damaged[line][at] = c;
        Diags diags;
        auto info = fromHeader(moduleWith(damaged), diags);
        EXPECT_EQ(!info, diags.hasErrors());
      }
}
