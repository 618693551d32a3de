/// What a form cannot say: one `verify<Name>` for each instruction that needs it, with the manual's section.
#include "Verify.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace gemmc::ptx {
namespace {

bool isFloat(Type type) { return type >= Type::f16 && type <= Type::f64; }

/// Number of the modifier `.v4`, `.x4`; 1 when there is none.
unsigned countOf(const Inst &inst, char letter) {
  for (unsigned slot = 0; slot < inst.mods.size(); ++slot)
    if (StringRef mod = inst.mod(slot); mod.size() == 2 && mod[0] == letter && isDigit(mod[1]))
      return mod[1] - '0';
  return 1;
}

struct Shape {
  unsigned m = 0, n = 0, k = 0;
};
/// The modifier `m16n8k16`.
Shape shapeOf(const Inst &inst) {
  Shape shape;
  for (unsigned slot = 0; slot < inst.mods.size(); ++slot) {
    StringRef mod = inst.mod(slot);
    if (mod.consume_front("m") && !mod.consumeInteger(10, shape.m) && mod.consume_front("n") &&
        !mod.consumeInteger(10, shape.n) && mod.consume_front("k") && !mod.consumeInteger(10, shape.k))
      return shape;
  }
  llvm_unreachable("a matrix instruction has a shape");
}

/// The types in the mnemonic, in order.
SmallVector<Type, 4> typesOf(const Checker &c) {
  SmallVector<Type, 4> types;
  for (unsigned slot = 0; slot < c.inst->mods.size(); ++slot)
    if (c.row->slots[slot].isType && c.inst->mods[slot])
      types.push_back(c.row->slots[slot].limits[c.inst->mods[slot] - 1].type);
  return types;
}

/// Registers in which `threads` threads hold `elements` of `type` together.
unsigned registersFor(unsigned elements, Type type, unsigned threads) {
  unsigned bits = bitsOf(type);
  return std::max(1u, elements / threads * bits / std::max(32u, bits));
}

// --- Arithmetic

/// `.approx` of f64 comes only with `.ftz`, and the other way round (9.7.3.14).
void verifyRcp(Checker &c) {
  if (c.inst->type() == Type::f64 && c.inst->has("approx") != c.inst->has("ftz"))
    c.fail(Diag::ptx_needs_modifier, c.inst->has("ftz") ? "ftz" : "approx", c.inst->has("ftz") ? "`.approx`" : "`.ftz`",
           c.shown());
}

/// The comparison belongs to the type of the sources (9.7.6.1).
void verifySet(Checker &c) {
  Type type = typesOf(c).back();
  StringRef compare = c.inst->mod(0);
  bool bits = type <= Type::b128, isUnsigned = type >= Type::u8 && type <= Type::u64;
  bool good = is_contained({"eq", "ne"}, compare);
  if (is_contained({"lt", "le", "gt", "ge"}, compare))
    good = !bits;
  else if (is_contained({"lo", "ls", "hi", "hs"}, compare))
    good = isUnsigned;
  else if (!good)
    good = isFloat(type);
  if (!good)
    c.fail(Diag::ptx_excludes_modifier, compare, ("`." + nameOf(type) + "`").str(), c.shown());
  if (c.inst->has("ftz") && type != Type::f32)
    c.fail(Diag::ptx_excludes_modifier, "ftz", ("`." + nameOf(type) + "`").str(), c.shown());
}

// --- Memory

/// `.v2` and `.v4` count the registers, and 128 bits are the most that one access moves (9.7.9.8).
void vectorAccess(Checker &c, unsigned index) {
  unsigned count = countOf(*c.inst, 'v');
  bool vector = c.op(index).kind == Operand::Vector;
  StringRef name = c.row->operands[index].name;
  if (count == 1 && vector)
    return c.fail(Diag::ptx_operand_kind, name, c.shown(), "a scalar: there is no `.v2` or `.v4`");
  if (count > 1 && !vector && c.op(index).kind != Operand::Sink && c.op(index).kind != Operand::Hole)
    return c.fail(Diag::ptx_operand_kind, name, c.shown(), "a vector `{...}`");
  c.length(index, count);
  if (count * bitsOf(c.inst->type()) > 128)
    c.fail(Diag::ptx_too_wide, c.shown(), count * bitsOf(c.inst->type()));
}
/// Modifiers that mean something in some spaces only (9.7.9.8, 9.7.9.11, 9.7.13.5); ptxas 13 refuses them elsewhere.
void modifiersInSpace(Checker &c) {
  auto find = [&](std::initializer_list<StringRef> names) {
    const auto *found = llvm::find_if(names, [&](StringRef name) { return c.inst->has(name); });
    return found == names.end() ? StringRef() : *found;
  };
  auto exclude = [&](StringRef one, StringRef space) {
    if (!one.empty() && !space.empty())
      c.fail(Diag::ptx_excludes_modifier, one, ("`." + space + "`").str(), c.shown());
  };
  const StringRef alone = find({"param", "param::entry", "param::func", "const", "local"});
  exclude(find({"relaxed", "acquire", "release"}), alone);
  if (alone != "local")
    exclude(find({"volatile"}), alone);
  const StringRef shared = find({"shared", "shared::cta", "shared::cluster"});
  exclude(find({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"}),
          alone == "local" ? alone : shared);
  exclude(find({"L2::cache_hint"}), shared);
  exclude(find({"L2::64B", "L2::128B", "L2::256B"}), shared);
  if (c.inst->op == Op::Atom || c.inst->op == Op::Red)
    exclude(find({"v2", "v4", "v8"}), shared);
}
void verifyLd(Checker &c) {
  vectorAccess(c, 0);
  modifiersInSpace(c);
}
void verifySt(Checker &c) {
  vectorAccess(c, 1);
  modifiersInSpace(c);
}
void verifyStAsync(Checker &c) { vectorAccess(c, 1); }
void verifyAtom(Checker &c) {
  vectorAccess(c, 0);
  vectorAccess(c, 2);
  modifiersInSpace(c);
}
void verifyRed(Checker &c) {
  vectorAccess(c, 1);
  modifiersInSpace(c);
}

/// x1, x2, x4: as many 8x8 matrices, one register of each a thread (9.7.14.5.15).
void verifyLdmatrix(Checker &c) { c.length(0, countOf(*c.inst, 'x')); }
void verifyStmatrix(Checker &c) { c.length(1, countOf(*c.inst, 'x')); }

void verifyMovParts(Checker &c, unsigned index) {
  size_t parts = c.op(index).elems.size();
  unsigned bits = bitsOf(c.inst->type());
  if (parts == 2 || (parts == 4 && bits >= 32))
    return;
  c.fail(Diag::ptx_vector_length, c.row->operands[index].name, c.shown(), parts, "2 or 4, each of 8 bits or more");
}
void verifyMovPack(Checker &c) { verifyMovParts(c, 1); }
void verifyMovUnpack(Checker &c) { verifyMovParts(c, 0); }

// --- Conversions

/// Whether some value of `from` lies outside of `to`; saturation to a float means to [0, 1].
bool canSaturate(Type to, Type from) {
  if (to == Type::bf16 || from == Type::bf16)
    return false;
  if (isFloat(to) || isFloat(from))
    return true;
  bool toSigned = to >= Type::s8, fromSigned = from >= Type::s8;
  return toSigned == fromSigned ? bitsOf(to) < bitsOf(from) : fromSigned || bitsOf(to) <= bitsOf(from);
}

/// Which rounding a conversion must, may or must not have (9.7.9.21).
void verifyCvt(Checker &c) {
  auto types = typesOf(c);
  Type to = types[0], from = types[1];
  StringRef round = c.inst->mod(0);
  bool integerRound = round.size() == 3, floatRound = round.size() == 2;
  auto fail = [&](StringRef rule) { c.fail(Diag::ptx_rounding, c.shown(), rule); };
  if (isFloat(from) && !isFloat(to) && !integerRound)
    return fail("rounds to an integer: it needs .rni, .rzi, .rmi or .rpi");
  if (!isFloat(from) && isFloat(to) && !floatRound)
    return fail("rounds to a float: it needs .rn, .rz, .rm or .rp");
  if (!isFloat(from) && !isFloat(to) && !round.empty())
    return fail("is exact: it has no rounding");
  if (isFloat(from) && isFloat(to)) {
    bool narrows = bitsOf(to) < bitsOf(from) || (bitsOf(to) == bitsOf(from) && to != from);
    if (narrows && !floatRound)
      return fail("rounds to a narrower float: it needs .rn, .rz, .rm or .rp");
    if (bitsOf(to) > bitsOf(from) && !round.empty())
      return fail("is exact: it has no rounding");
    if (to == from && floatRound)
      return fail("rounds to an integral value: .rni, .rzi, .rmi or .rpi");
  }
  if (c.inst->has("ftz") && to != Type::f32 && from != Type::f32)
    c.fail(Diag::ptx_needs_modifier, "ftz", "`.f32`", c.shown());
  if (c.inst->has("sat") && !canSaturate(to, from))
    fail("cannot overflow: it has no .sat");
  bool brain = to == Type::bf16 || from == Type::bf16;
  if (brain && (bitsOf(to) == 8 || bitsOf(from) == 8))
    fail("does not exist: bf16 converts to and from 16 bits and more");
  if (brain && to != Type::f32)
    c.limit(c.shown(), 90, 78, false);
}

// --- Asynchronous copies

/// 4, 8 or 16 bytes; past the first-level cache only 16 (9.7.9.25.3.1).
void verifyCpAsync(Checker &c) {
  bool cg = c.inst->has("cg");
  c.value(
      2, [&](int64_t n) { return n == 16 || (!cg && (n == 4 || n == 8)); },
      cg ? "16 with .cg (CA-1)" : "4, 8 or 16 (CA-1)");
}
void verifyCpAsyncSize(Checker &c) {
  verifyCpAsync(c);
  int64_t size = c.op(2).imm;
  c.value(3, [&](int64_t n) { return n >= 0 && n <= size; }, ("0 to " + Twine(size) + " (CA-1)").str());
}
void verifyCpAsyncWait(Checker &c) {
  c.value(0, [](int64_t n) { return n >= 0 && n <= UINT32_MAX; }, "a number of groups");
}

/// Bulk copies move multiples of 16 bytes (9.7.9.25.4.1).
void bulkSize(Checker &c, unsigned index) {
  c.value(index, [](int64_t n) { return n >= 0 && n % 16 == 0 && n <= UINT32_MAX; }, "a multiple of 16 (TM-7)");
}
void verifyBulk(Checker &c) { bulkSize(c, 2); }
/// Sums of 16-bit floats keep subnormals and say so (9.7.9.25.4.2).
void verifyCpReduceGlobal(Checker &c) {
  bool half = c.inst->has("add") && bitsOf(c.inst->type()) == 16;
  if (half && !c.inst->has("noftz"))
    c.fail(Diag::ptx_needs_modifier, nameOf(c.inst->type()), "`.noftz`", c.shown());
  verifyBulk(c);
}
void verifyCpBulkPrefetch(Checker &c) { bulkSize(c, 1); }

/// `.3d` takes three coordinates (5.5.3).
void coordinates(Checker &c, unsigned index) {
  for (unsigned slot = 0; slot < c.inst->mods.size(); ++slot) {
    StringRef mod = c.inst->mod(slot);
    if (mod.size() != 2 || !isDigit(mod[0]) || mod[1] != 'd' || c.op(index).kind != Operand::Address)
      continue;
    unsigned rank = mod[0] - '0';
    if (size_t given = c.op(index).elems.size(); given != rank)
      c.fail(Diag::ptx_vector_length, c.row->operands[index].name, c.shown(), given,
             (Twine(rank) + " coordinates with ." + mod + " (TM-13)").str());
  }
}
void verifyCpTensorLoad(Checker &c) { coordinates(c, 1); }
void verifyCpTensor(Checker &c) { coordinates(c, 0); }

void verifyTensormapDim(Checker &c) {
  c.value(1, [](int64_t n) { return n >= 0 && n <= 4; }, "a dimension, 0 to 4");
}
void size128(Checker &c, unsigned index) {
  c.value(index, [](int64_t n) { return n == 128; }, "128, the bytes of a tensor map (FP-6)");
}
void verifyFenceTensormap(Checker &c) { size128(c, 1); }
void verifyTensormapCopy(Checker &c) { size128(c, 2); }

// --- Barriers

/// Barriers 0 to 15; counts are whole warps (9.7.13.1).
void barrier(Checker &c, unsigned id, unsigned count) {
  c.value(id, [](int64_t n) { return n >= 0 && n <= 15; }, "a barrier, 0 to 15 (NB-1)");
  c.value(count, [](int64_t n) { return n >= 0 && n % 32 == 0 && n <= 1024; }, "a multiple of 32 up to 1024 (NB-11)");
}
void verifyBar(Checker &c) { barrier(c, 0, 1); }
void verifyBarRed(Checker &c) { barrier(c, 1, 2); }

/// Counts of an mbarrier have 20 bits (9.7.13.15.9).
void verifyMbarrierInit(Checker &c) {
  c.value(1, [](int64_t n) { return n >= 1 && n < (1 << 20); }, "a count, 1 to 2^20 - 1 (MB-4)");
}
/// A remote barrier gives no state back, and a count came with sm_90 (9.7.13.15.13).
void verifyMbarrierArrive(Checker &c) {
  if (c.op(2).kind != Operand::None)
    c.limit(c.shown() + "` with `count", 90, 78, false);
  if (c.inst->has("shared::cluster") && c.op(0).kind != Operand::Sink)
    c.fail(Diag::ptx_operand_kind, c.row->operands[0].name, c.shown(), "`_` with .shared::cluster (MB-13)");
}
void verifyMbarrierParity(Checker &c) {
  c.value(2, [](int64_t n) { return n == 0 || n == 1; }, "0 or 1");
}

/// A multiple of 8 from 24 to 256 (9.7.19.5).
void verifySetMaxNReg(Checker &c) {
  c.value(0, [](int64_t n) { return n >= 24 && n <= 256 && n % 8 == 0; }, "a multiple of 8 from 24 to 256 (SR-1)");
}
void verifyNanosleep(Checker &c) {
  c.value(0, [](int64_t n) { return n >= 0 && n <= 1'000'000; }, "at most 1000000 ns");
}
void verifyLop3(Checker &c) {
  c.value(5, [](int64_t n) { return n >= 0 && n <= 255; }, "a table of 8 bits");
}

// --- Matrices

/// Fragments of mma.sync: the warp's 32 threads share each matrix evenly (9.7.14.5).
void verifyMma(Checker &c) {
  Shape s = shapeOf(*c.inst);
  auto types = typesOf(c);
  c.length(0, registersFor(s.m * s.n, types[0], 32));
  c.length(1, registersFor(s.m * s.k, types[1], 32));
  c.length(2, registersFor(s.n * s.k, types[2], 32));
  c.length(3, registersFor(s.m * s.n, types[3], 32));
}
/// Four quads work on a product of their own each (9.7.14.5.1).
void verifyMmaF16Quad(Checker &c) {
  auto types = typesOf(c);
  if (types[3] == Type::f32 && types[0] != Type::f32)
    c.fail(Diag::ptx_needs_modifier, "f32", "d of `.f32`", c.shown());
  c.length(0, types[0] == Type::f32 ? 8 : 4);
  c.length(1, 2);
  c.length(2, 2);
  c.length(3, types[3] == Type::f32 ? 8 : 4);
}
/// m16n8k8 takes no mixed accumulators (9.7.14.5.14).
void verifyMmaF16(Checker &c) {
  auto types = typesOf(c);
  if (types[0] != types[3])
    return c.fail(Diag::ptx_needs_modifier, nameOf(types[0]), "the same type of c", c.shown());
  verifyMma(c);
}
void verifyMmaFp8(Checker &c) { verifyMmaF16(c); }

/// f16 operands of wmma take 8 registers in every shape; all else is shared evenly (9.7.14.4).
unsigned wmmaOperand(unsigned elements, Type type) { return type == Type::f16 ? 8 : registersFor(elements, type, 32); }
void verifyWmmaLoad(Checker &c) {
  Shape s = shapeOf(*c.inst);
  c.length(0, wmmaOperand(c.inst->has("a") ? s.m * s.k : s.n * s.k, c.inst->type()));
}
void verifyWmmaLoadC(Checker &c) {
  Shape s = shapeOf(*c.inst);
  c.length(0, registersFor(s.m * s.n, c.inst->type(), 32));
}
void verifyWmmaStore(Checker &c) {
  Shape s = shapeOf(*c.inst);
  c.length(1, registersFor(s.m * s.n, c.inst->type(), 32));
}
void verifyWmma(Checker &c) {
  Shape s = shapeOf(*c.inst);
  auto types = typesOf(c); // d, a, b, c; only d and c for f16
  Type a = types.size() == 2 ? Type::f16 : types[1];
  c.length(0, registersFor(s.m * s.n, types.front(), 32));
  c.length(1, wmmaOperand(s.m * s.k, a));
  c.length(2, wmmaOperand(s.n * s.k, a));
  c.length(3, registersFor(s.m * s.n, types.back(), 32));
  if (types.size() == 4 && types[1] != types[2])
    c.fail(Diag::ptx_needs_modifier, nameOf(types[1]), "the same type of b", c.shown());
}

/// 128 threads hold D; A in registers always takes four; scales are signs (9.7.15.5.2).
void wgmma(Checker &c, unsigned scales, unsigned transposes) {
  Shape s = shapeOf(*c.inst);
  c.length(0, registersFor(s.m * s.n, typesOf(c).front(), 128));
  c.length(1, 4);
  unsigned index = 4;
  for (unsigned i = 0; i < scales; ++i)
    c.value(index++, [](int64_t n) { return n == 1 || n == -1; }, "1 or -1");
  for (unsigned i = 0; i < transposes; ++i)
    c.value(index++, [](int64_t n) { return n == 0 || n == 1; }, "0 or 1");
}
void verifyWgmma16(Checker &c) { wgmma(c, 2, 2); }
void verifyWgmma16Reg(Checker &c) { wgmma(c, 2, 1); }
void verifyWgmmaFloat(Checker &c) { wgmma(c, 2, 0); }
void verifyWgmmaInt(Checker &c) {
  auto types = typesOf(c);
  if (types[1] != types[2])
    c.limit(c.shown() + "` of mixed types `", 90, 84, true);
  wgmma(c, 0, 0);
}

struct Entry {
  Op op;
  Rule rule;
};
constexpr Entry entries[] = {
    {Op::Rcp, verifyRcp},
    {Op::Set, verifySet},
    {Op::Ld, verifyLd},
    {Op::St, verifySt},
    {Op::StAsync, verifyStAsync},
    {Op::Atom, verifyAtom},
    {Op::Red, verifyRed},
    {Op::Ldmatrix, verifyLdmatrix},
    {Op::Stmatrix, verifyStmatrix},
    {Op::MovPack, verifyMovPack},
    {Op::MovUnpack, verifyMovUnpack},
    {Op::Cvt, verifyCvt},
    {Op::CpAsync, verifyCpAsyncSize},
    {Op::CpAsyncIgnore, verifyCpAsync},
    {Op::CpAsyncWait, verifyCpAsyncWait},
    {Op::CpBulkWait, verifyCpAsyncWait},
    {Op::WgmmaWait, verifyCpAsyncWait},
    {Op::CpBulkLoad, verifyBulk},
    {Op::CpBulkCluster, verifyBulk},
    {Op::CpBulkStore, verifyBulk},
    {Op::CpReduceGlobal, verifyCpReduceGlobal},
    {Op::CpReduceCluster, verifyBulk},
    {Op::CpBulkPrefetch, verifyCpBulkPrefetch},
    {Op::CpTensorLoad, verifyCpTensorLoad},
    {Op::CpTensorStore, verifyCpTensor},
    {Op::CpTensorPrefetch, verifyCpTensor},
    {Op::CpReduceTensor, verifyCpTensor},
    {Op::TensormapDim, verifyTensormapDim},
    {Op::TensormapCopy, verifyTensormapCopy},
    {Op::FenceTensormapAcquire, verifyFenceTensormap},
    {Op::BarSync, verifyBar},
    {Op::BarArrive, verifyBar},
    {Op::BarrierSync, verifyBar},
    {Op::BarrierArrive, verifyBar},
    {Op::BarRed, verifyBarRed},
    {Op::BarRedPopc, verifyBarRed},
    {Op::MbarrierInit, verifyMbarrierInit},
    {Op::MbarrierArrive, verifyMbarrierArrive},
    {Op::MbarrierArriveExpectTx, verifyMbarrierArrive},
    {Op::MbarrierDrop, verifyMbarrierArrive},
    {Op::MbarrierDropExpectTx, verifyMbarrierArrive},
    {Op::MbarrierTestWaitParity, verifyMbarrierParity},
    {Op::MbarrierTryWaitParity, verifyMbarrierParity},
    {Op::SetMaxNReg, verifySetMaxNReg},
    {Op::Nanosleep, verifyNanosleep},
    {Op::Lop3, verifyLop3},
    {Op::MmaF16, verifyMmaF16},
    {Op::MmaF16Quad, verifyMmaF16Quad},
    {Op::MmaBf16, verifyMma},
    {Op::MmaTf32, verifyMma},
    {Op::MmaF64, verifyMma},
    {Op::MmaInt8, verifyMma},
    {Op::MmaInt4, verifyMma},
    {Op::MmaBit, verifyMma},
    {Op::MmaFp8, verifyMmaFp8},
    {Op::WmmaLoad, verifyWmmaLoad},
    {Op::WmmaLoadC, verifyWmmaLoadC},
    {Op::WmmaStore, verifyWmmaStore},
    {Op::WmmaF16, verifyWmma},
    {Op::WmmaBf16, verifyWmma},
    {Op::WmmaTf32, verifyWmma},
    {Op::WmmaF64, verifyWmma},
    {Op::WmmaInt8, verifyWmma},
    {Op::WmmaInt4, verifyWmma},
    {Op::WmmaBit, verifyWmma},
    {Op::WgmmaF16, verifyWgmma16},
    {Op::WgmmaF16Reg, verifyWgmma16Reg},
    {Op::WgmmaBf16, verifyWgmma16},
    {Op::WgmmaBf16Reg, verifyWgmma16Reg},
    {Op::WgmmaTf32, verifyWgmmaFloat},
    {Op::WgmmaTf32Reg, verifyWgmmaFloat},
    {Op::WgmmaFp8, verifyWgmmaFloat},
    {Op::WgmmaFp8Reg, verifyWgmmaFloat},
    {Op::WgmmaInt8, verifyWgmmaInt},
    {Op::WgmmaInt8Reg, verifyWgmmaInt},
    {Op::WgmmaBit, verifyWgmmaInt},
    {Op::WgmmaBitReg, verifyWgmmaInt},
};

constexpr auto byOp = [] {
  std::array<Rule, numOps> table{};
  for (const Entry &entry : entries)
    table[static_cast<unsigned>(entry.op)] = entry.rule;
  return table;
}();
} // namespace

Rule ruleOf(Op op) { return byOp[static_cast<unsigned>(op)]; }

} // namespace gemmc::ptx
