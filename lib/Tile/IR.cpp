#include "gemmc/Tile/IR.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cassert>

namespace gemmc::tile {
namespace {
struct RowText {
  const char *spelling;
  Subject subject;
  const char *attrs;
  bool hasBody;
};
constexpr bool Leaf = false, Body = true;
constexpr Subject None = Subject::None, Def = Subject::Def, Use = Subject::Use;
constexpr RowText rowTexts[] = {
#define TILE_OP(Name, Spelling, Subj, Attrs, HasBody) {Spelling, Subj, Attrs, HasBody},
#include "gemmc/Tile/Ops.def"
#undef TILE_OP
};
/// What a kernel's first line may hold: the target and the plan's decisions.
constexpr RowText kernelText = {
    "kernel", Def,
    "target:word threads:expr m:expr n:expr k:expr batch?:expr block:exprs warp:exprs cluster:exprs "
    "instruction:word copy:word copy_bytes:exprs stages:expr schedule:word swizzle:word matrix?:exprs load_a?:word "
    "load_b?:word buffers?:expr order?:word bits?:word raster:word "
    "group:expr persistent:word scheduler?:word store:word store_buffers?:expr split_slices?:expr cluster_k?:expr "
    "exchange?:word "
    "consumers:expr producer_regs?:expr "
    "consumer_regs?:expr resident?:expr slices?:expr padding?:expr load_c?:word dependent?:word trigger?:word "
    "in_flight?:expr prefetch?:expr overlap?:expr promote?:word shifted_stages?:expr "
    "shared?:expr",
    Body};

AttrForm parseAttr(llvm::StringRef text) {
  auto [key, kind] = text.split(':');
  bool optional = key.consume_back("?");
  AttrKind attrKind = llvm::StringSwitch<AttrKind>(kind)
                          .Case("expr", AttrKind::Expr)
                          .Case("ref", AttrKind::Ref)
                          .Case("word", AttrKind::Word)
                          .Case("exprs", AttrKind::Exprs);
  return {key, attrKind, optional};
}

OpForm parseRow(const RowText &text) {
  OpForm form{text.spelling, text.subject, {}, text.hasBody};
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(text.attrs, words);
  for (llvm::StringRef word : words)
    form.attrs.push_back(parseAttr(word));
  return form;
}
} // namespace

const OpForm &formOf(OpKind kind) {
  static const std::vector<OpForm> forms = [] {
    std::vector<OpForm> list;
    for (const RowText &text : rowTexts)
      list.push_back(parseRow(text));
    return list;
  }();
  return forms[static_cast<unsigned>(kind)];
}

const OpForm &kernelForm() {
  static const OpForm form = parseRow(kernelText);
  return form;
}

const AttrValue *Op::find(llvm::StringRef key) const {
  for (const Attr &attr : attrs)
    if (attr.key == key)
      return &attr.value;
  return nullptr;
}

Op &Op::set(llvm::StringRef key, AttrValue value) {
  for (Attr &attr : attrs)
    if (attr.key == key) {
      attr.value = std::move(value);
      return *this;
    }
  attrs.push_back({key.str(), std::move(value)});
  return *this;
}

void Op::erase(llvm::StringRef key) {
  llvm::erase_if(attrs, [&](const Attr &attr) { return attr.key == key; });
}

const Expr &Op::expr(llvm::StringRef key) const {
  const AttrValue *value = find(key);
  assert(value && "the attribute is missing");
  return std::get<Expr>(*value);
}

int64_t Op::number(llvm::StringRef key) const { return expr(key).constant(); }

int64_t Op::number(llvm::StringRef key, int64_t otherwise) const { return has(key) ? number(key) : otherwise; }

llvm::StringRef Op::word(llvm::StringRef key, llvm::StringRef otherwise) const {
  const AttrValue *value = find(key);
  return value ? llvm::StringRef(std::get<Word>(*value).text) : otherwise;
}

const Ref &Op::ref(llvm::StringRef key) const {
  const AttrValue *value = find(key);
  assert(value && "the attribute is missing");
  return std::get<Ref>(*value);
}

const std::vector<Expr> &Op::list(llvm::StringRef key) const {
  const AttrValue *value = find(key);
  assert(value && "the attribute is missing");
  return std::get<std::vector<Expr>>(*value);
}

int64_t Op::item(llvm::StringRef key, unsigned index) const { return list(key)[index].constant(); }

static bool declares(OpKind kind) {
  switch (kind) {
  case OpKind::Tensor:
  case OpKind::Shared:
  case OpKind::Barrier:
  case OpKind::Accumulator:
  case OpKind::Fragment:
    return true;
  default:
    return false;
  }
}

Op *Kernel::declaration(llvm::StringRef name) {
  for (Op &op : root.body)
    if (declares(op.kind) && op.subject.name == name)
      return &op;
  return nullptr;
}

const Op *Kernel::declaration(llvm::StringRef name) const { return const_cast<Kernel *>(this)->declaration(name); }

llvm::SmallVector<const Op *, 2> Kernel::shiftedTensors() const {
  llvm::SmallVector<const Op *, 2> found;
  for (const Op &op : body())
    if (op.kind == OpKind::Tensor && op.has("shift"))
      found.push_back(&op);
  return found;
}

void walk(std::vector<Op> &body, llvm::function_ref<void(Op &)> visit) {
  for (Op &op : body) {
    visit(op);
    walk(op.body, visit);
  }
}

void walk(const std::vector<Op> &body, llvm::function_ref<void(const Op &)> visit) {
  for (const Op &op : body) {
    visit(op);
    walk(op.body, visit);
  }
}
} // namespace gemmc::tile
