#include "gemmc/Tile/IR.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc::tile {
namespace {
class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : os(os) {}

  void op(const Op &op, llvm::StringRef spelling, bool hasBody, unsigned depth) {
    os.indent(2 * depth) << spelling;
    if (!op.subject.name.empty()) {
      os << ' ';
      ref(op.subject);
    }
    for (const Attr &attr : op.attrs) {
      os << ' ' << attr.key << '=';
      std::visit([&](const auto &value) { put(value); }, attr.value);
    }
    if (hasBody) {
      os << " {\n";
      for (const Op &inner : op.body)
        this->op(inner, formOf(inner.kind).spelling, formOf(inner.kind).hasBody, depth + 1);
      os.indent(2 * depth) << '}';
    }
    os << '\n';
  }

private:
  void put(const Expr &expr) { os << expr.str(); }
  void put(const Word &word) { os << word.text; }
  void put(const Ref &value) { ref(value); }
  void put(const std::vector<Expr> &items) { list(items); }

  void list(const std::vector<Expr> &items) {
    os << '[';
    for (size_t i = 0; i < items.size(); ++i)
      os << (i ? ", " : "") << items[i].str();
    os << ']';
  }
  void ref(const Ref &value) {
    os << value.name;
    if (!value.index.empty())
      list(value.index);
  }

  llvm::raw_ostream &os;
};
} // namespace

std::string print(const Kernel &kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Printer(os).op(kernel.root, "kernel", true, 0);
  return text;
}
} // namespace gemmc::tile
