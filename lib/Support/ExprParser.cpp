#include "ExprParser.h"
#include "llvm/ADT/StringExtras.h"

namespace gemmc {
namespace {
/// A longer spelling stands before its own prefix (`<=` before `<`).
constexpr ExprOperator operators[] = {
    {Expr::Or, "||", 1},
    {Expr::And, "&&", 2},
    {Expr::Eq, "==", 3, false},
    {Expr::Ne, "!=", 3, false},
    {Expr::Le, "<=", 4, false},
    {Expr::Lt, "<", 4, false},
    {Expr::Le, ">=", 4, false, true},
    {Expr::Lt, ">", 4, false, true},
    {Expr::Add, "+", 5},
    {Expr::Sub, "-", 5},
    {Expr::Mul, "*", 6},
    {Expr::Div, "/", 6},
    {Expr::Mod, "%", 6},
    {Expr::CeilDiv, "ceildiv", 0},
    {Expr::Min, "min", 0},
    {Expr::Max, "max", 0},
};

bool isNameStart(char c) { return llvm::isAlpha(c) || c == '_'; }
bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Recursive descent for what nests, precedence climbing for what chains. Nullopt means: reported.
class Parser {
public:
  Parser(llvm::StringRef text, Diags &diags) : rest(text), diags(diags) {}

  std::optional<Expr> binary(unsigned minLevel);
  /// Skips blanks; what is left is then the next token and all behind it.
  llvm::StringRef peek() { return rest = rest.ltrim(" \t"); }
  llvm::StringRef remaining() const { return rest; }
  void unexpectedTail();

private:
  std::optional<Expr> unary();
  std::optional<Expr> primary();
  std::optional<Expr> number(bool negative, llvm::StringRef from);
  std::optional<Expr> call(const ExprOperator &op);
  std::optional<Expr> closed(std::optional<Expr> inner, llvm::StringRef open);
  std::optional<Expr> checked(std::optional<Expr> built, llvm::StringRef from);
  const ExprOperator *infix();

  llvm::StringRef token() const;
  /// What a message calls the next token.
  std::string described() const { return token().empty() ? std::string("the end") : ("`" + token() + "`").str(); }

  llvm::StringRef rest;
  Diags &diags;
  unsigned nesting = 0;
};

llvm::StringRef Parser::token() const {
  if (rest.empty() || !isNameChar(rest.front()))
    return rest.take_front(1);
  return rest.take_while(isNameChar);
}

void Parser::unexpectedTail() {
  peek();
  diags.report(Diag::expr_trailing, rangeOf(token()), token());
}

const ExprOperator *Parser::infix() {
  peek();
  if (rest.starts_with("->")) // an arrow behind an expression is not a minus
    return nullptr;
  for (const ExprOperator &op : operators)
    if (!op.isCall() && rest.starts_with(op.spelling))
      return &op;
  return nullptr;
}

/// A chain deepens the tree without nesting the text, so the tree is what is measured.
std::optional<Expr> Parser::checked(std::optional<Expr> built, llvm::StringRef from) {
  if (!built || built->depth() <= Expr::maxParsedDepth)
    return built;
  diags.report(Diag::expr_too_deep, rangeOf(from.drop_back(rest.size())), unsigned(Expr::maxParsedDepth));
  return std::nullopt;
}

std::optional<Expr> Parser::binary(unsigned minLevel) {
  llvm::StringRef from = peek();
  auto left = unary();
  unsigned maxLevel = ExprOperator::unary;
  while (left) {
    const ExprOperator *op = infix();
    if (!op || op->level < minLevel || op->level > maxLevel)
      break;
    rest = rest.drop_front(op->spelling.size());
    auto right = binary(op->level + 1);
    if (!right)
      return std::nullopt;
    left = checked(op->swapped ? Expr::make(op->kind, *right, *left) : Expr::make(op->kind, *left, *right), from);
    maxLevel = op->chains ? op->level : op->level - 1;
  }
  return left;
}

std::optional<Expr> Parser::unary() {
  llvm::StringRef from = peek();
  if (++nesting > Expr::maxParsedDepth) {
    diags.report(Diag::expr_too_deep, rangeOf(token()), unsigned(Expr::maxParsedDepth));
    return std::nullopt;
  }
  std::optional<Expr> result;
  if (rest.starts_with("!") && !rest.starts_with("!=")) {
    rest = rest.drop_front();
    if (auto inner = unary())
      result = checked(Expr::make(Expr::Not, *inner, *inner), from);
  } else if (rest.consume_front("-")) {
    if (peek(); !rest.empty() && llvm::isDigit(rest.front()))
      result = number(true, from);
    else if (auto inner = unary())
      result = checked(Expr(0) - *inner, from);
  } else {
    result = primary();
  }
  --nesting;
  return result;
}

std::optional<Expr> Parser::primary() {
  peek();
  if (!rest.empty() && llvm::isDigit(rest.front()))
    return number(false, rest);
  if (llvm::StringRef open = rest; rest.consume_front("("))
    return closed(binary(0), open.take_front(1));
  if (!rest.empty() && isNameStart(rest.front())) {
    llvm::StringRef name = token();
    rest = rest.drop_front(name.size());
    if (peek().starts_with("("))
      for (const ExprOperator &op : operators)
        if (op.isCall() && op.spelling == name)
          return call(op);
    return Expr::var(name);
  }
  diags.report(Diag::expr_expected, rangeOf(token()), described());
  return std::nullopt;
}

/// `from` starts at the sign, if there is one. A decimal number without leading zeros, which C would read as octal.
std::optional<Expr> Parser::number(bool negative, llvm::StringRef from) {
  llvm::StringRef digits = rest.take_while(isNameChar);
  rest = rest.drop_front(digits.size());
  int64_t value;
  std::string signedText(negative ? "-" : "");
  signedText += digits;
  bool octal = digits.size() > 1 && digits.front() == '0';
  if (octal || llvm::StringRef(signedText).getAsInteger(10, value)) {
    diags.report(Diag::expr_number, rangeOf(from.drop_back(rest.size())), signedText);
    return std::nullopt;
  }
  return Expr(value);
}

std::optional<Expr> Parser::closed(std::optional<Expr> inner, llvm::StringRef open) {
  if (!inner)
    return std::nullopt;
  peek();
  if (rest.consume_front(")"))
    return inner;
  diags.report(Diag::expr_unclosed, rangeOf(token()), ")", described()).note(Diag::expr_opened, rangeOf(open), open);
  return std::nullopt;
}

std::optional<Expr> Parser::call(const ExprOperator &op) {
  llvm::StringRef open = rest;
  rest = rest.drop_front();
  auto a = binary(0);
  if (!a)
    return std::nullopt;
  peek();
  if (!rest.consume_front(",")) {
    diags.report(Diag::expr_unclosed, rangeOf(token()), ",", described())
        .note(Diag::expr_two_arguments, rangeOf(open.take_front(1)), op.spelling);
    return std::nullopt;
  }
  auto b = closed(binary(0), open.take_front(1));
  return b ? checked(Expr::make(op.kind, *a, *b), open) : std::nullopt;
}
} // namespace

const ExprOperator &ExprOperator::of(Expr::Kind kind) {
  for (const ExprOperator &op : operators)
    if (op.kind == kind && !op.swapped)
      return op;
  llvm_unreachable("not a binary operator");
}

std::optional<Expr> Expr::parsePrefix(llvm::StringRef &text, Diags &diags) {
  Parser parser(text, diags);
  auto result = parser.binary(0);
  if (result)
    text = parser.remaining();
  return result;
}

std::optional<Expr> Expr::parse(llvm::StringRef text, Diags &diags) {
  Parser parser(text, diags);
  auto result = parser.binary(0);
  if (!result || parser.peek().empty())
    return result;
  parser.unexpectedTail();
  return std::nullopt;
}

} // namespace gemmc
