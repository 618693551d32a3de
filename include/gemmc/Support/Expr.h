/// Integer expressions over named variables: sizes, grid extents, coordinates, conditions.
///
/// The tile IR writes indices with them (`kt * 64`), the launch information writes grids and requirements with them
/// (`ceildiv(m, 128) * ceildiv(n, 256)`, `lda % 8 == 0 && k > 0`). Values are 64-bit signed; comparisons and `!`,
/// `&&`, `||` give 0 or 1. `/` and `%` round toward zero as in C, `ceildiv` rounds up; `&&` and `||` look at their
/// right side only when the left one leaves the question open. Immutable and cheap to copy. Building an expression
/// folds constants and the neutral elements (x + 0, x * 1, x * 0, x / 1), so that static sizes vanish by themselves.
#pragma once
#include "gemmc/Support/Diag.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>

namespace gemmc {

class Expr {
public:
  enum Kind : uint8_t { Const, Var, Add, Sub, Mul, Div, Mod, CeilDiv, Min, Max, Eq, Ne, Lt, Le, And, Or, Not };

  Expr() : Expr(int64_t(0)) {}
  Expr(int64_t value);
  Expr(int value) : Expr(int64_t(value)) {}
  Expr(unsigned value) : Expr(int64_t(value)) {}
  static Expr var(llvm::StringRef name);
  /// Folds where it can. `b` is ignored for Not.
  static Expr make(Kind kind, const Expr &a, const Expr &b);

  Kind kind() const;
  bool isConst() const { return kind() == Const; }
  bool isVar() const { return kind() == Var; }
  bool isConst(int64_t value) const { return isConst() && constant() == value; }
  int64_t constant() const;     ///< Only for Const.
  llvm::StringRef name() const; ///< Only for Var.
  const Expr &lhs() const;      ///< Only for operators.
  const Expr &rhs() const;      ///< Only for binary operators.
  unsigned depth() const;       ///< Levels of the tree; a leaf has 1.
  /// A text that needs a deeper tree is refused, so that walking what was read never exhausts the stack.
  static constexpr unsigned maxParsedDepth = 256;

  /// The value, or nullopt when a variable is unknown, a divisor is <= 0, or 64 bits overflow.
  std::optional<int64_t> eval(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup) const;
  std::optional<int64_t> eval(const llvm::StringMap<int64_t> &values) const;
  /// Replaces variables; a variable for which `with` gives nullopt stays.
  Expr substitute(llvm::function_ref<std::optional<Expr>(llvm::StringRef)> with) const;
  void forEachVar(llvm::function_ref<void(llvm::StringRef)> visit) const;
  bool uses(llvm::StringRef variable) const;

  /// C-like text with the fewest parentheses; `ceildiv`, `min`, `max` as calls. parse(str()) gives the same tree.
  /// Comparisons do not chain: `a < b < c` is refused. `a > b` is read as `b < a`, `-x` as `0 - x`.
  std::string str() const;
  /// Reads the whole of `text` (a piece of a source held by `diags`); reports and returns nullopt when it is malformed.
  static std::optional<Expr> parse(llvm::StringRef text, Diags &diags);
  /// Reads the longest expression at the front of `text` and removes it from there; after an error `text` is unchanged.
  static std::optional<Expr> parsePrefix(llvm::StringRef &text, Diags &diags);

  friend bool operator==(const Expr &a, const Expr &b);

private:
  struct Node;
  explicit Expr(std::shared_ptr<const Node> node) : node(std::move(node)) {}
  std::shared_ptr<const Node> node;
};

inline Expr operator+(const Expr &a, const Expr &b) { return Expr::make(Expr::Add, a, b); }
inline Expr operator-(const Expr &a, const Expr &b) { return Expr::make(Expr::Sub, a, b); }
inline Expr operator*(const Expr &a, const Expr &b) { return Expr::make(Expr::Mul, a, b); }
inline Expr operator/(const Expr &a, const Expr &b) { return Expr::make(Expr::Div, a, b); }
inline Expr operator%(const Expr &a, const Expr &b) { return Expr::make(Expr::Mod, a, b); }
inline Expr ceilDiv(const Expr &a, const Expr &b) { return Expr::make(Expr::CeilDiv, a, b); }
inline Expr minOf(const Expr &a, const Expr &b) { return Expr::make(Expr::Min, a, b); }
inline Expr maxOf(const Expr &a, const Expr &b) { return Expr::make(Expr::Max, a, b); }
inline Expr equal(const Expr &a, const Expr &b) { return Expr::make(Expr::Eq, a, b); }
inline Expr notEqual(const Expr &a, const Expr &b) { return Expr::make(Expr::Ne, a, b); }
inline Expr less(const Expr &a, const Expr &b) { return Expr::make(Expr::Lt, a, b); }
inline Expr lessEqual(const Expr &a, const Expr &b) { return Expr::make(Expr::Le, a, b); }
inline Expr operator&&(const Expr &a, const Expr &b) { return Expr::make(Expr::And, a, b); }
inline Expr operator||(const Expr &a, const Expr &b) { return Expr::make(Expr::Or, a, b); }
inline Expr operator!(const Expr &a) { return Expr::make(Expr::Not, a, a); }

} // namespace gemmc
