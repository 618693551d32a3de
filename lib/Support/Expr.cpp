#include "gemmc/Support/Expr.h"
#include "ExprParser.h"
#include <algorithm>

namespace gemmc {

/// A vertex of the tree. Shared and never changed; leaves have empty operands.
struct Expr::Node {
  Kind kind = Const;
  unsigned depth = 1; ///< Levels, this one included.
  int64_t value = 0;  ///< Const.
  std::string name;   ///< Var.
  Expr lhs{std::shared_ptr<const Node>()};
  Expr rhs{std::shared_ptr<const Node>()};
};

namespace {
using Kind = Expr::Kind;

std::optional<int64_t> divide(Kind kind, int64_t a, int64_t b) {
  if (b <= 0)
    return std::nullopt;
  switch (kind) {
  case Expr::Div:
    return a / b;
  case Expr::Mod:
    return a % b;
  default:
    return a / b + (a % b > 0);
  }
}

/// The value of a binary operator, or nullopt where it has none.
std::optional<int64_t> apply(Kind kind, int64_t a, int64_t b) {
  int64_t result;
  switch (kind) {
  case Expr::Add:
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Expr::Sub:
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Expr::Mul:
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Expr::Div:
  case Expr::Mod:
  case Expr::CeilDiv:
    return divide(kind, a, b);
  case Expr::Min:
    return std::min(a, b);
  case Expr::Max:
    return std::max(a, b);
  case Expr::Eq:
    return a == b;
  case Expr::Ne:
    return a != b;
  case Expr::Lt:
    return a < b;
  case Expr::Le:
    return a <= b;
  case Expr::And:
    return a && b;
  case Expr::Or:
    return a || b;
  case Expr::Const:
  case Expr::Var:
  case Expr::Not:
    break;
  }
  llvm_unreachable("not a binary operator");
}

/// Whether the value is always 0 or 1.
bool isTruth(const Expr &e) { return e.kind() >= Expr::Eq || e.isConst(0) || e.isConst(1); }

/// `a op b` when it is one of its operands or a constant whatever the variables are.
std::optional<Expr> simplify(Kind kind, const Expr &a, const Expr &b) {
  if (a.isConst() && b.isConst())
    if (auto value = apply(kind, a.constant(), b.constant()))
      return Expr(*value);
  switch (kind) {
  case Expr::Add:
    return a.isConst(0) ? std::optional(b) : b.isConst(0) ? std::optional(a) : std::nullopt;
  case Expr::Sub:
    return b.isConst(0) ? std::optional(a) : std::nullopt;
  case Expr::Mul:
    if (a.isConst(0) || b.isConst(0))
      return Expr(0);
    return a.isConst(1) ? std::optional(b) : b.isConst(1) ? std::optional(a) : std::nullopt;
  case Expr::Div:
  case Expr::CeilDiv:
    return b.isConst(1) ? std::optional(a) : std::nullopt;
  case Expr::Mod:
    return b.isConst(1) ? std::optional(Expr(0)) : std::nullopt;
  case Expr::And:
    if (a.isConst(0) || b.isConst(0))
      return Expr(0);
    if (a.isConst() && isTruth(b))
      return b;
    return b.isConst() && isTruth(a) ? std::optional(a) : std::nullopt;
  case Expr::Or:
    if ((a.isConst() && !a.isConst(0)) || (b.isConst() && !b.isConst(0)))
      return Expr(1);
    if (a.isConst() && isTruth(b))
      return b;
    return b.isConst() && isTruth(a) ? std::optional(a) : std::nullopt;
  default:
    return std::nullopt;
  }
}
} // namespace

Expr::Expr(int64_t value) {
  auto leaf = std::make_shared<Node>();
  leaf->value = value;
  node = std::move(leaf);
}

Expr Expr::var(llvm::StringRef name) {
  auto leaf = std::make_shared<Node>();
  leaf->kind = Var;
  leaf->name = name.str();
  return Expr(std::shared_ptr<const Node>(std::move(leaf)));
}

Expr Expr::make(Kind kind, const Expr &a, const Expr &b) {
  assert(kind != Const && kind != Var && "leaves have their own constructors");
  auto inner = std::make_shared<Node>();
  if (kind == Not) {
    if (a.isConst())
      return Expr(a.isConst(0));
  } else {
    if (auto simple = simplify(kind, a, b))
      return *simple;
    inner->rhs = b;
  }
  inner->kind = kind;
  inner->lhs = a;
  inner->depth = 1 + std::max(a.depth(), kind == Not ? 0 : b.depth());
  return Expr(std::shared_ptr<const Node>(std::move(inner)));
}

Expr::Kind Expr::kind() const { return node->kind; }
unsigned Expr::depth() const { return node->depth; }

int64_t Expr::constant() const {
  assert(isConst());
  return node->value;
}

llvm::StringRef Expr::name() const {
  assert(isVar());
  return node->name;
}

const Expr &Expr::lhs() const {
  assert(!isConst() && !isVar());
  return node->lhs;
}

const Expr &Expr::rhs() const {
  assert(!isConst() && !isVar() && kind() != Not);
  return node->rhs;
}

std::optional<int64_t> Expr::eval(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup) const {
  if (isConst())
    return constant();
  if (isVar())
    return lookup(name());
  auto a = lhs().eval(lookup);
  if (!a)
    return std::nullopt;
  if (kind() == Not)
    return *a == 0;
  if (kind() == And && !*a) // the right side may have no value then, as in `n > 0 && m % n == 0`
    return 0;
  if (kind() == Or && *a)
    return 1;
  auto b = rhs().eval(lookup);
  return b ? apply(kind(), *a, *b) : std::nullopt;
}

std::optional<int64_t> Expr::eval(const llvm::StringMap<int64_t> &values) const {
  return eval([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

Expr Expr::substitute(llvm::function_ref<std::optional<Expr>(llvm::StringRef)> with) const {
  if (isConst())
    return *this;
  if (isVar())
    return with(name()).value_or(*this);
  Expr a = lhs().substitute(with);
  return make(kind(), a, kind() == Not ? a : rhs().substitute(with));
}

void Expr::forEachVar(llvm::function_ref<void(llvm::StringRef)> visit) const {
  if (isConst())
    return;
  if (isVar())
    return visit(name());
  lhs().forEachVar(visit);
  if (kind() != Not)
    rhs().forEachVar(visit);
}

bool Expr::uses(llvm::StringRef variable) const {
  bool found = false;
  forEachVar([&](llvm::StringRef name) { found |= name == variable; });
  return found;
}

bool operator==(const Expr &a, const Expr &b) {
  if (a.node == b.node)
    return true;
  if (a.kind() != b.kind() || a.depth() != b.depth())
    return false;
  if (a.isConst())
    return a.constant() == b.constant();
  if (a.isVar())
    return a.name() == b.name();
  return a.lhs() == b.lhs() && (a.kind() == Expr::Not || a.rhs() == b.rhs());
}

/// Appends `e`, in parentheses when it binds less than `level`.
static void append(std::string &out, const Expr &e, unsigned level) {
  if (e.isConst()) {
    out += std::to_string(e.constant());
  } else if (e.isVar()) {
    out += e.name();
  } else if (e.kind() == Expr::Not) {
    out += '!';
    append(out, e.lhs(), ExprOperator::unary);
  } else {
    const ExprOperator &op = ExprOperator::of(e.kind());
    bool enclose = op.level < level && !op.isCall();
    out += op.isCall() ? (op.spelling + "(").str() : enclose ? "(" : "";
    append(out, e.lhs(), op.isCall() ? 0 : op.level + !op.chains);
    out += op.isCall() ? ", " : (" " + op.spelling + " ").str();
    append(out, e.rhs(), op.isCall() ? 0 : op.level + 1);
    out += op.isCall() || enclose ? ")" : "";
  }
}

std::string Expr::str() const {
  std::string out;
  append(out, *this, 0);
  return out;
}

} // namespace gemmc
