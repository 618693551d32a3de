#include "Lowering.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {

Val Lowering::binary(llvm::StringRef mnemonic, const Val &a, const Val &c, llvm::StringRef name) {
  Val d = b.reg(Type::b32, name);
  b.emit(mnemonic, {d, a, c});
  return d;
}

Val Lowering::inRegister(const Val &value, llvm::StringRef name) {
  if (value.isReg())
    return value;
  Val reg = b.reg(Type::b32, name);
  b("mov.u32", reg, value);
  return reg;
}

Val Lowering::laneSum(llvm::ArrayRef<LaneTerm> terms, llvm::StringRef name) {
  constexpr unsigned lanes = 32;
  Val sum = 0;
  for (const LaneTerm &term : terms) {
    Val part = divide(lane, term.divide, name);
    if (term.divide * term.modulo < lanes)
      part = remainder(part, term.modulo, name);
    sum = add(sum, mul(part, term.times, name), name);
  }
  return sum;
}

Val Lowering::floatInRegister(const Val &value) {
  if (value.isReg())
    return value;
  Val reg = b.reg(Type::f32, "factor");
  b("mov.f32", reg, value);
  return reg;
}

std::optional<double> fixedScale(llvm::StringRef word) {
  double value = 0;
  return word.getAsDouble(value) ? std::nullopt : std::optional(value);
}

ptx::Type Lowering::factorType() const {
  bool doubles = false;
  tile::walk(kernel.body(),
             [&](const Op &op) { doubles |= op.kind == OpKind::Accumulator && op.word("type") == nameOf(Elem::f64); });
  return doubles ? Type::f64 : Type::f32;
}

void Lowering::compareBeta(llvm::StringRef how, const Val &into) {
  if (factorType() == Type::f64)
    b("setp." + how.str() + ".f64", into, beta, Val(ptx::Operand::makeF64(0)));
  else
    b("setp." + how.str() + ".f32", into, beta, Val(ptx::Operand::makeF32(0)));
}

Val Lowering::factorOf(const std::optional<double> &fixed, const Val &given, Elem sums) {
  if (sums == Elem::s32)
    return int64_t(*fixed);
  if (!fixed)
    return given;
  return sums == Elem::f64 ? Val(ptx::Operand::makeF64(*fixed)) : Val(ptx::Operand::makeF32(float(*fixed)));
}

Val Lowering::factorInRegister(const std::optional<double> &fixed, const Val &given, Elem sums) {
  const Val factor = factorOf(fixed, given, sums);
  return sums == Elem::s32 || sums == Elem::f64 ? factor : floatInRegister(factor);
}

Val Lowering::add(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm + c.op.imm;
  if (a.isImm())
    return add(c, a, name);
  return c.isImm(0) ? a : binary("add.u32", a, c, name);
}

Val Lowering::mul(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm * c.op.imm;
  if (a.isImm())
    return mul(c, a, name);
  if (c.isImm(0) || c.isImm(1))
    return c.isImm(0) ? Val(0) : a;
  if (c.isImm() && llvm::isPowerOf2_64(c.op.imm))
    return binary("shl.b32", a, llvm::Log2_64(c.op.imm), name);
  return binary("mul.lo.u32", a, c, name);
}

Val Lowering::divide(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm / c.op.imm;
  if (c.isImm(1))
    return a;
  if (c.isImm() && llvm::isPowerOf2_64(c.op.imm))
    return binary("shr.u32", a, llvm::Log2_64(c.op.imm), name);
  return binary("div.u32", inRegister(a, name), c, name);
}

Val Lowering::remainder(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm % c.op.imm;
  if (c.isImm(1))
    return 0;
  if (c.isImm() && llvm::isPowerOf2_64(c.op.imm))
    return binary("and.b32", a, c.op.imm - 1, name);
  return binary("rem.u32", inRegister(a, name), c, name);
}

Val Lowering::wide(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm * c.op.imm;
  if (a.isImm(0) || c.isImm(0))
    return 0;
  Val d = b.reg(Type::b64, name);
  if (c.isImm() && llvm::isUInt<31>(c.op.imm)) {
    b("mul.wide.u32", d, a, c);
    return d;
  }
  if (a.isImm()) {
    b("mul.lo.u64", d, c, a);
    return d;
  }
  Val extended = b.reg(Type::b64, name);
  b("cvt.u64.u32", extended, a);
  b("mul.lo.u64", d, extended, c);
  return d;
}

Val Lowering::add64(const Val &a, const Val &c, llvm::StringRef name) {
  if (a.isImm() && c.isImm())
    return a.op.imm + c.op.imm;
  if (a.isImm())
    return add64(c, a, name);
  if (c.isImm(0))
    return a;
  Val d = b.reg(Type::b64, name);
  b("add.s64", d, a, c);
  return d;
}

Val Lowering::variable(llvm::StringRef name) {
  if (auto cursor = cursors.find(name); cursor != cursors.end())
    return cursor->second.slot;
  auto found = variables.find(name);
  assert(found != variables.end() && "the verifier lets only known variables through");
  return found->second;
}

Val Lowering::value(const Expr &expr) {
  switch (expr.kind()) {
  case Expr::Const:
    return expr.constant();
  case Expr::Var:
    return variable(expr.name());
  case Expr::Add:
    return add(value(expr.lhs()), value(expr.rhs()), "sum");
  case Expr::Sub: {
    Val a = value(expr.lhs()), c = value(expr.rhs());
    return c.isImm() ? add(a, -c.op.imm, "difference")
                     : binary("sub.u32", inRegister(a, "difference"), c, "difference");
  }
  case Expr::Mul:
    return mul(value(expr.lhs()), value(expr.rhs()), "product");
  case Expr::Div:
    return divide(value(expr.lhs()), value(expr.rhs()), "quotient");
  case Expr::Mod:
    return remainder(value(expr.lhs()), value(expr.rhs()), "remainder");
  case Expr::CeilDiv: {
    Val divisor = value(expr.rhs());
    Val rounded = divisor.isImm() ? add(value(expr.lhs()), divisor.op.imm - 1, "rounded")
                                  : add(add(value(expr.lhs()), divisor, "rounded"), -1, "rounded");
    return divide(rounded, divisor, "quotient");
  }
  case Expr::Min:
    return binary("min.u32", inRegister(value(expr.lhs()), "least"), value(expr.rhs()), "least");
  case Expr::Max:
    return binary("max.u32", inRegister(value(expr.lhs()), "most"), value(expr.rhs()), "most");
  default:
    llvm_unreachable("a condition where a number is wanted");
  }
}

Val Lowering::both(const Val &p, const Val &q, llvm::StringRef name) {
  if (!p.isReg() || !q.isReg())
    return p.isReg() ? p : q;
  Val both = b.reg(Type::pred, name);
  b("and.pred", both, p, q);
  return both;
}

Val Lowering::condition(const Expr &expr) {
  if (expr.isConst())
    return expr.constant() ? Val() : [&] {
      Val never = b.reg(Type::pred, "never");
      b("setp.ne.u32", never, 0, 0);
      return never;
    }();
  if (expr.kind() == Expr::Mul) {
    Val first = condition(expr.lhs()), second = condition(expr.rhs()), both = b.reg(Type::pred, "p");
    assert(first.isReg() && second.isReg() && "a constant factor is folded");
    b("and.pred", both, first, second);
    return both;
  }
  assert((expr.kind() == Expr::Lt || expr.kind() == Expr::Le) && "passes make no other conditions");
  Val p = b.reg(Type::pred, "p");
  Val left = inRegister(value(expr.lhs()), "left");
  b(expr.kind() == Expr::Lt ? "setp.lt.u32" : "setp.le.u32", p, left, value(expr.rhs()));
  return p;
}

Val Lowering::keyOf(const SharedTile &tile, const Val &row) {
  const SharedXor &swizzle = tile.swizzle;
  if (!swizzle.moves())
    return 0;
  return mul(remainder(divide(row, swizzle.rows, "key"), swizzle.keys, "key"), swizzle.chunks, "key");
}

Val Lowering::sharedOffset(const SharedTile &tile, const Val &row, const Val &byte, int64_t unit) {
  Val inSpan = byte, span = 0;
  if (tile.spans > 1) {
    span = divide(byte, tile.spanBytes, "span");
    inSpan = remainder(byte, tile.spanBytes, "in_span");
  }
  if (tile.layout == SharedLayout::blocked) {
    int64_t rows = SharedTile::blockRows;
    Val block =
        add(mul(divide(row, rows, "band"), tile.bandStride(), "band"), mul(span, rows * tile.pitch, "block"), "block");
    return add(add(mul(remainder(row, rows, "block_row"), tile.pitch, "to"), inSpan, "to"), block, "to");
  }
  Val start = add(mul(row, tile.pitch, "to"), mul(span, tile.spanStride(), "span"), "to");
  if (!tile.swizzle.moves())
    return add(start, inSpan, "to");
  Val key = keyOf(tile, row);
  Val chunk = divide(inSpan, 16, "chunk"), rest = unit < 16 ? remainder(inSpan, 16, "rest") : Val(0);
  if (!key.isImm(0))
    chunk = binary("xor.b32", inRegister(chunk, "chunk"), key, "chunk");
  return add(start, add(mul(chunk, 16, "to"), rest, "to"), "to");
}

bool Lowering::covers(const Expr &extent, int64_t step) { return extent.isConst() && extent.constant() % step == 0; }

bool Lowering::tilesCover(const TensorView &tensor) const {
  return covers(tensor.rows, kernel.root.item("block", 0) * clusterM) &&
         covers(tensor.cols, kernel.root.item("block", 1) * clusterN);
}

} // namespace gemmc
