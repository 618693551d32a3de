// Integer expressions: folding, evaluation against 128-bit arithmetic, and text that reads back as the same tree.
#include "gemmc/Support/Expr.h"
#include "gtest/gtest.h"
#include <random>

using namespace gemmc;

namespace {
Expr parsed(llvm::StringRef text) {
  Diags diags;
  auto result = Expr::parse(diags.addSource("expr", text), diags);
  EXPECT_TRUE(result && !diags.hasErrors()) << text.str();
  return result.value_or(Expr::var("unreadable"));
}

/// "column name" of the only problem, or what else happened.
std::string problemOf(llvm::StringRef text) {
  Diags diags;
  auto result = Expr::parse(diags.addSource("expr", text), diags);
  if (result || diags.all().size() != 1)
    return result ? "accepted: " + result->str() : std::to_string(diags.all().size()) + " problems";
  const Problem &problem = diags.all().front();
  return llvm::StringRef(diags.place(problem.range.Start)).rsplit(':').second.str() + " " + nameOf(problem.id).str();
}

using Wide = __int128;
const llvm::StringMap<int64_t> values{{"m", 127},    {"n", -3},          {"k", 0},
                                      {"lda", 4096}, {"big", INT64_MAX}, {"low", INT64_MIN}};

/// An expression next to its description, which was never folded.
struct Tree {
  Expr::Kind kind;
  int64_t value = 0;
  std::string name;
  std::vector<Tree> children;

  Expr build() const {
    if (kind == Expr::Const)
      return value;
    if (kind == Expr::Var)
      return Expr::var(name);
    return Expr::make(kind, children[0].build(), children.back().build());
  }
  /// The value by the definition of each operator; nullopt when some part of it has none.
  std::optional<Wide> naive() const;
};

std::optional<Wide> fits(Wide value) {
  return value < INT64_MIN || value > INT64_MAX ? std::nullopt : std::optional(value);
}

std::optional<Wide> Tree::naive() const {
  if (kind == Expr::Const)
    return value;
  if (kind == Expr::Var)
    return values.lookup(name);
  auto a = children[0].naive();
  if (!a)
    return std::nullopt;
  if (kind == Expr::Not)
    return *a == 0;
  if ((kind == Expr::And && *a == 0) || (kind == Expr::Or && *a != 0))
    return kind == Expr::Or;
  auto b = children[1].naive();
  if (!b)
    return std::nullopt;
  bool divides = kind == Expr::Div || kind == Expr::Mod || kind == Expr::CeilDiv;
  if (divides && *b <= 0)
    return std::nullopt;
  switch (kind) {
  case Expr::Add:
    return fits(*a + *b);
  case Expr::Sub:
    return fits(*a - *b);
  case Expr::Mul:
    return fits(*a * *b);
  case Expr::Div:
    return *a < 0 ? -(-*a / *b) : *a / *b;
  case Expr::Mod:
    return *a < 0 ? -(-*a % *b) : *a % *b;
  case Expr::CeilDiv:
    return *a > 0 ? (*a + *b - 1) / *b : -(-*a / *b);
  case Expr::Min:
    return *a < *b ? *a : *b;
  case Expr::Max:
    return *a < *b ? *b : *a;
  case Expr::Eq:
    return *a == *b;
  case Expr::Ne:
    return *a != *b;
  case Expr::Lt:
    return *a < *b;
  case Expr::Le:
    return *a <= *b;
  case Expr::And:
  case Expr::Or:
    return *b != 0;
  default:
    return std::nullopt;
  }
}

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}
  Tree tree(unsigned depth) {
    if (depth == 0 || pick(6) == 0)
      return pick(2) ? Tree{Expr::Var, 0, names[pick(std::size(names))], {}}
                     : Tree{Expr::Const, constants[pick(std::size(constants))], "", {}};
    auto kind = static_cast<Expr::Kind>(Expr::Add + pick(Expr::Not - Expr::Add + 1));
    Tree result{kind, 0, "", {tree(depth - 1)}};
    if (kind != Expr::Not)
      result.children.push_back(tree(depth - 1));
    return result;
  }

private:
  unsigned pick(unsigned count) { return random() % count; }
  static constexpr const char *names[] = {"m", "n", "k", "lda", "big", "low"};
  static constexpr int64_t constants[] = {0, 1, -1, 2, 8, 64, 128, -5, 1000003, INT64_MAX, INT64_MIN};
  std::mt19937 random;
};
} // namespace

TEST(Expr, FoldsConstantsAndNeutralElements) {
  Expr m = Expr::var("m");
  EXPECT_TRUE((Expr(3) * 4 + 5).isConst(17));
  EXPECT_EQ(m + 0, m);
  EXPECT_EQ(0 + m, m);
  EXPECT_EQ(m - 0, m);
  EXPECT_EQ(m * 1, m);
  EXPECT_EQ(1 * m, m);
  EXPECT_TRUE((m * 0).isConst(0));
  EXPECT_EQ(m / 1, m);
  EXPECT_EQ(ceilDiv(m, 1), m);
  EXPECT_TRUE((m % 1).isConst(0));
  EXPECT_TRUE((m && 0).isConst(0));
  EXPECT_TRUE((5 || m).isConst(1));
  EXPECT_EQ(1 && less(m, 3), less(m, 3));
  EXPECT_EQ((1 && m).str(), "1 && m") << "m is not 0 or 1, so it is not the value of `1 && m`";
  EXPECT_TRUE((!Expr(3)).isConst(0));
}

TEST(Expr, KeepsWhatHasNoValue) {
  EXPECT_EQ((Expr(1) / 0).str(), "1 / 0");
  EXPECT_EQ((Expr(INT64_MAX) + 1).str(), "9223372036854775807 + 1");
  EXPECT_FALSE((Expr(INT64_MIN) * -1).eval(values));
  EXPECT_FALSE(Expr::var("unknown").eval(values));
  EXPECT_FALSE((Expr(8) / Expr::var("n")).eval(values)) << "a divisor below 1 has no meaning in a size";
}

TEST(Expr, LooksAtTheRightSideOnlyWhenNeeded) {
  EXPECT_EQ(parsed("k > 0 && m % k == 0").eval(values), 0);
  EXPECT_EQ(parsed("k == 0 || m % k == 0").eval(values), 1);
  EXPECT_FALSE(parsed("k == 0 && m % k == 0").eval(values));
}

TEST(Expr, SubstitutesAndFolds) {
  Expr grid = parsed("ceildiv(m, 128) * ceildiv(n, 256)");
  Expr fixed = grid.substitute([](llvm::StringRef name) -> std::optional<Expr> {
    return name == "m" ? std::optional(Expr(4096)) : std::nullopt;
  });
  EXPECT_EQ(fixed.str(), "32 * ceildiv(n, 256)");
  EXPECT_TRUE(fixed.uses("n"));
  EXPECT_FALSE(fixed.uses("m"));
}

TEST(Expr, PrintsTheFewestParentheses) {
  for (const char *text : {"a + b + c", "a + (b + c)", "a - (b - c)", "(a + b) * c", "a * b / c % d", "a * (b / c)",
                           "!(a == b)", "!a && !(b || c)", "a < b && b < c || d", "(a < b) == (c < d)", "x - -3",
                           "a * (b - 1)", "min(a + 1, max(b, c)) % 8", "a == b < c", "ceildiv(m, 128) * n", "min"})
    EXPECT_EQ(parsed(text).str(), llvm::StringRef(text) == "(a < b) == (c < d)" ? "a < b == c < d" : text);
  EXPECT_EQ(parsed("a>b").str(), "b < a");
  EXPECT_EQ(parsed("a >= -b").str(), "0 - b <= a");
  EXPECT_EQ(parsed(" - 9223372036854775808 ").str(), "-9223372036854775808");
}

TEST(Expr, ReportsThePlaceOfAnError) {
  EXPECT_EQ(problemOf(""), "1 expr_expected");
  EXPECT_EQ(problemOf("m +"), "4 expr_expected");
  EXPECT_EQ(problemOf("m + * n"), "5 expr_expected");
  EXPECT_EQ(problemOf("(m + n"), "7 expr_unclosed");
  EXPECT_EQ(problemOf("min(m)"), "6 expr_unclosed");
  EXPECT_EQ(problemOf("ceildiv(m, n, k)"), "13 expr_unclosed");
  EXPECT_EQ(problemOf("m n"), "3 expr_trailing");
  EXPECT_EQ(problemOf("a < b < c"), "7 expr_trailing");
  EXPECT_EQ(problemOf("f(x)"), "2 expr_trailing");
  EXPECT_EQ(problemOf("m & n"), "3 expr_trailing");
  EXPECT_EQ(problemOf("1 + 9223372036854775808"), "5 expr_number");
  EXPECT_EQ(problemOf("010"), "1 expr_number");
  EXPECT_EQ(problemOf("12abc"), "1 expr_number");
  EXPECT_EQ(problemOf("0x10"), "1 expr_number");
}

TEST(Expr, RefusesDeepTextQuickly) {
  std::string parens(100000, '('), nots(100000, '!'), minuses(100000, '-'), chain = "m";
  for (int i = 0; i < 100000; ++i)
    chain += " + m";
  for (const std::string &text : {parens, nots + "m", minuses + "m", chain})
    EXPECT_TRUE(llvm::StringRef(problemOf(text)).ends_with("expr_too_deep"));
  std::string fine = std::string(200, '(') + "m" + std::string(200, ')');
  EXPECT_EQ(parsed(fine).str(), "m");
}

TEST(Expr, ReadsAPrefix) {
  Diags diags;
  auto prefix = [&](llvm::StringRef text) {
    text = diags.addSource("expr", text);
    auto e = Expr::parsePrefix(text, diags);
    return (e ? e->str() : "nothing") + "|" + text.ltrim().str();
  };
  EXPECT_EQ(prefix("kt * 64, 0]"), "kt * 64|, 0]");
  EXPECT_EQ(prefix("m -> n"), "m|-> n");
  EXPECT_EQ(prefix("a = b"), "a|= b");
  EXPECT_EQ(diags.numErrors(), 0u);
  EXPECT_EQ(prefix("(a, b"), "nothing|(a, b") << "an error leaves the text alone";
  EXPECT_EQ(diags.numErrors(), 1u);
}

TEST(Expr, RandomTreesEvaluateLikeWideIntegersAndReadBack) {
  Generator generator(20240611);
  unsigned defined = 0;
  for (int i = 0; i < 20000; ++i) {
    Tree tree = generator.tree(1 + i % 6);
    Expr e = tree.build();
    EXPECT_EQ(parsed(e.str()), e) << e.str();
    if (auto expected = tree.naive()) { // folding may give a value to what had none, never another one
      ++defined;
      auto actual = e.eval(values);
      ASSERT_TRUE(actual) << e.str();
      ASSERT_EQ(*actual, int64_t(*expected)) << e.str();
    }
  }
  EXPECT_GT(defined, 5000u);
}
