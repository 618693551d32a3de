// Expands `Fields.def` into rows. A row's functions are generic over the member's type; the overloads of readValue and
// printValue (Values.cpp) know the types.
#include "Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <type_traits>
#include <utility>

using llvm::StringRef;

namespace gemmc::spec {
namespace {
// The vocabulary of the third column of `Fields.def`.
template <typename T> Domain word() {
  auto words = wordsOf<T>();
  return {Domain::Word, 0, 0, {words.begin(), words.end()}};
}
/// Element types that some kernel has in such a place; which go together the planner knows.
Domain types(std::initializer_list<Elem> which) {
  Domain domain{Domain::Word, 0, 0, {}};
  for (Elem type : which)
    domain.words.push_back(nameOf(type));
  return domain;
}
Domain operandTypes() {
  return types({Elem::f16, Elem::bf16, Elem::e4m3, Elem::e5m2, Elem::tf32, Elem::f64, Elem::s8, Elem::u8, Elem::s4,
                Elem::u4, Elem::b1});
}
Domain resultTypes() { return types({Elem::f16, Elem::bf16, Elem::f32, Elem::f64, Elem::s32}); }
Domain sumTypes() { return types({Elem::f32, Elem::f16, Elem::f64, Elem::s32}); }
Domain name() { return {Domain::Name, 0, 0, {}}; }
Domain extent(int64_t lo) { return {Domain::Extent, lo, maxExtent, {}}; }
Domain integer(int64_t lo, int64_t hi) { return {Domain::Integer, lo, hi, {}}; }
Domain power(int64_t lo, int64_t hi) { return {Domain::Power, lo, hi, {}}; }
Domain triple(int64_t lo, int64_t hi) { return {Domain::Triple, lo, hi, {}}; }
Domain scale() { return {Domain::Scale, 0, 0, {}}; }
Domain required(Domain domain) {
  domain.required = true;
  return domain;
}

template <typename T> bool readAny(const YamlNode &node, const Row &row, Diags &diags, T &value) {
  if constexpr (std::is_enum_v<T>) {
    unsigned index = 0;
    if (!readWord(node, row, diags, index))
      return false;
    if constexpr (std::is_same_v<T, Elem>)
      value = *parseElem(row.domain.words[index]);
    else
      value = static_cast<T>(index);
    return true;
  } else {
    return readValue(node, row, diags, value);
  }
}

template <typename T> std::string printAny(const Field<T> &field) {
  if (!field.given && field.reason.empty())
    return "auto";
  if constexpr (std::is_enum_v<T>)
    return nameOf(field.value).str();
  else
    return printValue(field.value);
}

/// With what a field has before anybody has written or decided it.
const Spec &untouched() {
  static const Spec spec;
  return spec;
}

/// `Get` gives a row's field of a spec.
template <typename Get> Row makeRow(StringRef path, Domain domain, StringRef doc, StringRef example, Get) {
  Row row{path, std::move(domain), doc, example, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  row.read = [](Spec &spec, const YamlNode &node, const Row &row, Diags &diags) {
    auto &field = Get{}(spec);
    if (!readAny(node, row, diags, field.value))
      return false;
    field.given = true;
    field.range = node.range;
    return true;
  };
  row.clear = [](Spec &spec) { Get{}(spec) = Get{}(std::as_const(untouched())); };
  row.print = [](const Spec &spec) { return printAny(Get{}(spec)); };
  row.given = [](const Spec &spec) { return Get{}(spec).given; };
  row.reason = [](const Spec &spec) { return StringRef(Get{}(spec).reason); };
  row.settle = [](Spec &spec, StringRef reason) {
    Get{}(spec).given = false;
    Get{}(spec).range = {}; // of the choice's words, which need not live as long as the plan
    Get{}(spec).reason = reason.str();
  };
  return row;
}

struct Index {
  std::vector<Row> rows;
  std::vector<Section> sections;
  llvm::StringMap<const Row *> byPath;

  Index() {
#define GEMMC_SECTION(Path, Doc) sections.push_back({Path, Doc});
#define GEMMC_FIELD(Path, Member, Values, Doc, Example)                                                                \
  rows.push_back(makeRow(Path, Values, Doc, Example, [](auto &spec) -> auto & { return spec.Member; }));
#include "gemmc/Spec/Fields.def"
#undef GEMMC_FIELD
#undef GEMMC_SECTION
    for (const Row &row : rows)
      byPath[row.path] = &row;
  }
};
const Index &index() {
  static const Index index;
  return index;
}
} // namespace

const std::vector<Row> &rows() { return index().rows; }
const std::vector<Section> &sections() { return index().sections; }
const Row *findRow(StringRef path) { return index().byPath.lookup(path); }
const Section *findSection(StringRef path) {
  auto found = llvm::find_if(sections(), [&](const Section &section) { return section.path == path; });
  return found == sections().end() ? nullptr : &*found;
}

std::string listed(llvm::ArrayRef<StringRef> words) { return llvm::formatv("`{0}`", llvm::join(words, "`, `")); }

std::string describe(const Domain &domain) {
  std::string range = llvm::formatv("{0}..{1}", domain.lo, domain.hi == maxExtent ? "2^40" : std::to_string(domain.hi));
  switch (domain.kind) {
  case Domain::Word:
    return "one of " + listed(domain.words);
  case Domain::Name:
    return "a name";
  case Domain::Extent:
    return "a number " + range + " or `dynamic`";
  case Domain::Integer:
    return "a number " + range;
  case Domain::Power:
    return "a power of two " + range;
  case Domain::Triple:
    return "a list [m, n, k] of numbers " + range;
  case Domain::Scale:
    return "a finite number or `dynamic`";
  }
  llvm_unreachable("unknown kind of domain");
}

} // namespace gemmc::spec
