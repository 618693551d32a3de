#include "gemmc/Support/Yaml.h" // nearest
#include "gemmc/Tile/IR.h"
#include "llvm/ADT/StringExtras.h"

namespace gemmc::tile {
namespace {
constexpr unsigned maxDepth = 32;

bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Reads the text form by walking the forms of Ops.def. One statement a line; `#` starts a comment.
class Parser {
public:
  Parser(llvm::StringRef text, Diags &diags) : rest(text), diags(diags) {}

  std::optional<Kernel> kernel() {
    skipSpace(true);
    Kernel result;
    llvm::StringRef spelling = word();
    if (spelling != "kernel") {
      report(Diag::tile_no_kernel, spelling, spelling);
      return std::nullopt;
    }
    if (!statement(kernelForm(), result.root, spelling, 0))
      return std::nullopt;
    skipSpace(true);
    if (!rest.empty())
      report(Diag::tile_after_kernel, rest.take_front(1));
    return diags.hasErrors() ? std::nullopt : std::optional(std::move(result));
  }

private:
  template <typename... Args> bool report(Diag id, llvm::StringRef where, Args &&...args) {
    diags.report(id, rangeOf(where), std::forward<Args>(args)...);
    return false;
  }

  void skipSpace(bool lines) {
    while (!rest.empty()) {
      if (rest.front() == '#')
        rest = rest.drop_until([](char c) { return c == '\n'; });
      else if (rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\r' || (lines && rest.front() == '\n'))
        rest = rest.drop_front();
      else
        return;
    }
  }
  llvm::StringRef word() {
    llvm::StringRef result = rest.take_while(isWordChar);
    rest = rest.drop_front(result.size());
    return result;
  }
  bool consume(char c) {
    if (!rest.starts_with(llvm::StringRef(&c, 1)))
      return false;
    rest = rest.drop_front();
    return true;
  }

  /// [expr, expr, ...] behind the opening bracket.
  bool list(std::vector<Expr> &items) {
    do {
      rest = rest.ltrim(" \t");
      auto item = Expr::parsePrefix(rest, diags);
      if (!item)
        return false;
      items.push_back(*item);
      rest = rest.ltrim(" \t");
    } while (consume(','));
    return consume(']') || report(Diag::tile_expected, rest.take_front(1), "]");
  }

  bool ref(Ref &result) {
    llvm::StringRef name = word();
    if (name.empty())
      return report(Diag::tile_expected, rest.take_front(1), "a name");
    result.name = name.str();
    return !consume('[') || list(result.index);
  }

  std::optional<AttrValue> value(AttrKind kind) {
    switch (kind) {
    case AttrKind::Expr:
      if (auto expr = Expr::parsePrefix(rest, diags))
        return AttrValue(*expr);
      return std::nullopt;
    case AttrKind::Ref: {
      Ref result;
      if (!ref(result))
        return std::nullopt;
      return AttrValue(std::move(result));
    }
    case AttrKind::Word: {
      llvm::StringRef text = rest.take_while([](char c) { return isWordChar(c) || c == '.' || c == '-' || c == '+'; });
      rest = rest.drop_front(text.size());
      if (text.empty()) {
        report(Diag::tile_expected, rest.take_front(1), "a word");
        return std::nullopt;
      }
      return AttrValue(Word{text.str()});
    }
    case AttrKind::Exprs: {
      std::vector<Expr> items;
      if (!consume('[')) {
        report(Diag::tile_expected, rest.take_front(1), "[");
        return std::nullopt;
      }
      if (!list(items))
        return std::nullopt;
      return AttrValue(std::move(items));
    }
    }
    return std::nullopt;
  }

  bool attribute(const OpForm &form, Op &op) {
    llvm::StringRef key = word();
    if (key.empty())
      return report(Diag::tile_expected, rest.take_front(1), "an attribute");
    llvm::SmallVector<llvm::StringRef> known;
    for (const AttrForm &attr : form.attrs)
      known.push_back(attr.key);
    auto attr = llvm::find_if(form.attrs, [&](const AttrForm &candidate) { return candidate.key == key; });
    if (attr == form.attrs.end()) {
      Problem &problem =
          diags.report(Diag::tile_unknown_attribute, rangeOf(key), form.spelling, key, llvm::join(known, ", "));
      if (llvm::StringRef near = nearest(key, known); !near.empty())
        problem.fix(rangeOf(key), near);
      return false;
    }
    if (op.has(key))
      return report(Diag::tile_duplicate_attribute, key, key);
    if (!consume('='))
      return report(Diag::tile_expected, rest.take_front(1), "=");
    auto parsed = value(attr->kind);
    if (parsed)
      op.set(key, std::move(*parsed));
    return parsed.has_value();
  }

  /// Everything behind the spelling: subject, attributes, body.
  bool statement(const OpForm &form, Op &op, llvm::StringRef spelling, unsigned depth) {
    op.range = rangeOf(spelling);
    skipSpace(false);
    if (form.subject != Subject::None && !ref(op.subject))
      return false;
    for (skipSpace(false); !rest.empty() && rest.front() != '\n' && rest.front() != '{'; skipSpace(false))
      if (!attribute(form, op))
        return false;
    for (const AttrForm &attr : form.attrs)
      if (!attr.optional && !op.has(attr.key))
        return report(Diag::tile_missing_attribute, spelling, form.spelling, attr.key);
    if (!form.hasBody)
      return rest.empty() || rest.front() == '\n' ||
             report(Diag::tile_expected, rest.take_front(1), "the end of the line");
    if (depth >= maxDepth)
      return report(Diag::tile_too_deep, spelling, maxDepth);
    return consume('{') ? body(op, depth + 1) : report(Diag::tile_expected, rest.take_front(1), "{");
  }

  bool body(Op &op, unsigned depth) {
    for (skipSpace(true); !rest.empty(); skipSpace(true)) {
      if (consume('}'))
        return true;
      llvm::StringRef spelling = word();
      std::optional<OpKind> kind = kindOf(spelling);
      if (!kind)
        return unknown(spelling);
      Op inner(*kind);
      if (!statement(formOf(*kind), inner, spelling, depth))
        return false;
      op.body.push_back(std::move(inner));
    }
    return report(Diag::tile_expected, rest, "}");
  }

  static constexpr unsigned numKinds = 0
#define TILE_OP(...) +1
#include "gemmc/Tile/Ops.def"
#undef TILE_OP
      ;
  std::optional<OpKind> kindOf(llvm::StringRef spelling) {
    for (unsigned i = 0; i < numKinds; ++i)
      if (formOf(OpKind(i)).spelling == spelling)
        return OpKind(i);
    return std::nullopt;
  }
  bool unknown(llvm::StringRef spelling) {
    llvm::SmallVector<llvm::StringRef> known;
    for (unsigned i = 0; i < numKinds; ++i)
      known.push_back(formOf(OpKind(i)).spelling);
    if (spelling.empty())
      spelling = rest.take_front(1);
    Problem &problem = diags.report(Diag::tile_unknown_operation, rangeOf(spelling), spelling);
    if (llvm::StringRef near = nearest(spelling, known); !near.empty())
      problem.fix(rangeOf(spelling), near);
    return false;
  }

  llvm::StringRef rest;
  Diags &diags;
};
} // namespace

std::optional<Kernel> parse(llvm::StringRef text, Diags &diags) { return Parser(text, diags).kernel(); }
} // namespace gemmc::tile
