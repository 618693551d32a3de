/// The tile IR: a kernel as block tiles, shared buffers with stages and swizzles, barriers, warp roles and asynchronous
/// copies. Passes rewrite it from a plain loop nest to the form that `Lower` turns into PTX, one decision a pass.
///
/// Everything is an operation: one row of `Ops.def` (a subject, keyed attributes, perhaps a body), so printer, parser
/// and the structural half of the verifier are one walk over that table. Text form:
///
///     kernel gemm target=sm_90a threads=384 stages=4 schedule=cooperative {
///       tensor A buffer=a type=bf16 rows=m cols=k order=row ld=lda align=16
///       shared sA type=bf16 extent=[128, 64] major=k stages=4 swizzle=128B offset=0
///       role producer warps=[0, 1] regs=40 {
///         tiles {
///           for kt from=0 to=ceildiv(k, 64) {
///             wait empty[w]
///             copy sA[w] from=A[tm * 128, kt * 64] via=tma signal=full[w]
///
/// A shared tile's extent is [mn, k] for both operands (B counts as n x k); `major` says which one is contiguous.
#pragma once
#include "gemmc/Support/Diag.h"
#include "gemmc/Support/Expr.h"
#include <string>
#include <variant>
#include <vector>

namespace gemmc::tile {

enum class OpKind : uint8_t {
#define TILE_OP(Name, ...) Name,
#include "gemmc/Tile/Ops.def"
#undef TILE_OP
};

/// `sA[w]`, `A[tm * 128, kt * 64]`, `acc`.
struct Ref {
  std::string name;
  std::vector<Expr> index;
  friend bool operator==(const Ref &, const Ref &) = default;
};
struct Word {
  std::string text;
  friend bool operator==(const Word &, const Word &) = default;
};
using AttrValue = std::variant<Expr, Ref, Word, std::vector<Expr>>;
struct Attr {
  std::string key;
  AttrValue value;
};

struct Op {
  OpKind kind;
  Ref subject; ///< Empty name = none.
  std::vector<Attr> attrs;
  std::vector<Op> body;
  llvm::SMRange range; ///< What in the spec caused it (or its own text when it was parsed).

  Op(OpKind kind, Ref subject = {}) : kind(kind), subject(std::move(subject)) {}
  Op(OpKind kind, llvm::StringRef name) : kind(kind), subject{name.str(), {}} {}

  bool has(llvm::StringRef key) const { return find(key) != nullptr; }
  const AttrValue *find(llvm::StringRef key) const;
  Op &set(llvm::StringRef key, AttrValue value); ///< Replaces or appends; returns *this.
  Op &set(llvm::StringRef key, llvm::StringRef word) { return set(key, AttrValue(Word{word.str()})); }
  Op &set(llvm::StringRef key, const char *word) { return set(key, AttrValue(Word{word})); }
  Op &set(llvm::StringRef key, int64_t value) { return set(key, AttrValue(Expr(value))); }
  Op &set(llvm::StringRef key, int value) { return set(key, int64_t(value)); }
  Op &set(llvm::StringRef key, Expr value) { return set(key, AttrValue(std::move(value))); }
  void erase(llvm::StringRef key);
  /// The attribute's value; asserts that it is there (or gives the default) and of that kind.
  const Expr &expr(llvm::StringRef key) const;
  int64_t number(llvm::StringRef key) const; ///< A constant expression.
  int64_t number(llvm::StringRef key, int64_t otherwise) const;
  llvm::StringRef word(llvm::StringRef key, llvm::StringRef otherwise = "") const;
  const Ref &ref(llvm::StringRef key) const;
  const std::vector<Expr> &list(llvm::StringRef key) const;
  int64_t item(llvm::StringRef key, unsigned index) const; ///< A constant of a list.
};

/// A kernel: its configuration (the plan's decisions that passes and lowering read) and its statements.
struct Kernel {
  Op root{OpKind::Role}; ///< Name, configuration attributes and body; printed as `kernel`.
  llvm::StringRef name() const { return root.subject.name; }
  std::vector<Op> &body() { return root.body; }
  const std::vector<Op> &body() const { return root.body; }
  int64_t number(llvm::StringRef key) const { return root.number(key); }
  llvm::StringRef word(llvm::StringRef key) const { return root.word(key); }
  /// The declaration of `name`; nullptr when there is none.
  Op *declaration(llvm::StringRef name);
  const Op *declaration(llvm::StringRef name) const;
  /// The tensors whose lines are shifted on their way: A, B, both or none.
  llvm::SmallVector<const Op *, 2> shiftedTensors() const;
};

/// A row of Ops.def, readable.
enum class Subject : uint8_t { None, Def, Use };
enum class AttrKind : uint8_t { Expr, Ref, Word, Exprs };
struct AttrForm {
  llvm::StringRef key;
  AttrKind kind;
  bool optional;
};
struct OpForm {
  llvm::StringRef spelling;
  Subject subject;
  std::vector<AttrForm> attrs;
  bool hasBody;
};
const OpForm &formOf(OpKind kind);
const OpForm &kernelForm(); ///< The configuration attributes.

/// Depth-first over all operations of a body, parents first.
void walk(std::vector<Op> &body, llvm::function_ref<void(Op &)> visit);
void walk(const std::vector<Op> &body, llvm::function_ref<void(const Op &)> visit);

std::string print(const Kernel &kernel);
/// Reads the text form (a source held by `diags`). print(parse(print(k))) == print(k).
std::optional<Kernel> parse(llvm::StringRef text, Diags &diags);
/// Names are declared before use and of the right kind, indices fit, variables are in scope, roles do not overlap,
/// cursors and barriers have as many stages as what they index.
bool verify(const Kernel &kernel, Diags &diags);

} // namespace gemmc::tile
