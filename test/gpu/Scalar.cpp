// Instructions on single registers: a row of Scalar.def is a kernel that computes all variants of its pattern from the
// same operands.
#include "Family.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using ptx::Type;

struct Row {
  const char *name;
  const char *types; ///< Of d and the sources, as `drawScalar` knows them.
  const char *pattern;
  std::optional<Tolerance> tolerance;
};
const Row rows[] = {
#define SCALAR(Name, Types, Pattern) {Name, Types, Pattern, std::nullopt},
#define APPROXIMATE(Name, Types, Pattern, ...) {Name, Types, Pattern, Tolerance{__VA_ARGS__}},
#include "Scalar.def"
#undef SCALAR
#undef APPROXIMATE
};

/// `a{x,y}b{,z}` -> axb, axbz, ayb, aybz. An alternative may be empty.
std::vector<std::string> expand(StringRef pattern) {
  size_t open = pattern.find('<');
  if (open == StringRef::npos)
    return {pattern.str()};
  size_t close = pattern.find('>', open);
  SmallVector<StringRef> choices;
  pattern.slice(open + 1, close).split(choices, '|');
  std::vector<std::string> all;
  for (StringRef choice : choices)
    for (const std::string &rest : expand(pattern.drop_front(close + 1)))
      all.push_back((pattern.take_front(open) + choice + rest).str());
  return all;
}

/// A register's width: what is smaller than 16 bits lives in 32.
unsigned registerBits(Type type) {
  unsigned bits = ptx::bitsOf(type);
  return type == Type::tf32 || bits < 16 ? 32 : bits;
}
Type sourceType(Type type) { return ptx::bitsOf(type) < 16 && type != Type::pred ? Type::b32 : type; }

constexpr unsigned threads = 256;

struct Scalar {
  std::vector<std::string> instructions; ///< Complete, with operands.
  std::vector<Type> types;               ///< d, then sources.
  std::vector<unsigned> offsets;         ///< Of each source in a CTA's input.
  unsigned outBytes = 4;
};

std::string text(const Scalar &scalar, unsigned inBytes) {
  std::string out = ptxHead;
  raw_string_ostream os(out);
  os << ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out, %x;\n.reg .b32 %t, %cta, %u;\n"
     << ".reg .pred %p, %q;\n";
  unsigned number = scalar.instructions.size();
  bool predicate = scalar.types[0] == Type::pred;
  if (!predicate)
    os << formatv(".reg .b{0} %d<{1}>;\n", registerBits(scalar.types[0]), number);
  for (size_t i = 1; i < scalar.types.size(); ++i)
    os << formatv(".reg .b{0} %{1};\n", registerBits(scalar.types[i]), char('a' + i - 1));
  os << "mov.u32 %t, %tid.x;\nmov.u32 %cta, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
     << formatv("mad.wide.u32 %in, %cta, {0}, %in;\nmad.wide.u32 %out, %cta, {1}, %out;\n", inBytes,
                number * threads * scalar.outBytes);
  for (size_t i = 1; i < scalar.types.size(); ++i)
    os << formatv("mad.wide.u32 %x, %t, {0}, %in;\nld.global.b{1} %{2}, [%x+{3}];\n", registerBits(scalar.types[i]) / 8,
                  registerBits(scalar.types[i]), char('a' + i - 1), scalar.offsets[i - 1]);
  os << formatv("mad.wide.u32 %out, %t, {0}, %out;\n", scalar.outBytes);
  for (unsigned i = 0; i < number; ++i) {
    std::string instruction = scalar.instructions[i];
    if (predicate)
      os << instruction << ";\nselp.b32 %u, 1, 0, %p;\n" << formatv("st.global.b32 [%out+{0}], %u;\n", i * threads * 4);
    else
      os << instruction << ";\n"
         << formatv("st.global.b{0} [%out+{1}], %d{2};\n", scalar.outBytes * 8, i * threads * scalar.outBytes, i);
  }
  os << "ret;\n}\n";
  return out;
}

/// The operands after the mnemonic: those of the pattern (`;d, a, 5`) or all sources in order.
std::string withOperands(StringRef mnemonic, StringRef operands, const std::vector<Type> &types, unsigned index) {
  std::string d = types[0] == Type::pred ? "%p" : ("%d" + Twine(index)).str();
  std::string result = (mnemonic + " ").str();
  if (!operands.empty()) {
    for (char c : operands)
      result += c == '@' ? d : std::string(1, c);
    return result;
  }
  result += d;
  for (size_t i = 1; i < types.size(); ++i)
    result += std::string(", %") + char('a' + i - 1);
  return result;
}

void fill(const Scalar &scalar, Random &random, Bytes in) {
  for (unsigned t = 0; t < threads; ++t) {
    uint64_t first = 0;
    for (size_t i = 1; i < scalar.types.size(); ++i) {
      Type type = sourceType(scalar.types[i]);
      bool same = i > 1 && ptx::bitsOf(type) == ptx::bitsOf(sourceType(scalar.types[1])) && random.chance(5);
      uint64_t value = same ? drawNear(random, type, first) : drawScalar(random, type);
      if (scalar.types[i] == Type::u8)
        value &= 0xff;
      if (i == 1)
        first = value;
      unsigned bytes = registerBits(scalar.types[i]) / 8;
      storeBits(in, scalar.offsets[i - 1] + size_t(t) * bytes, value, bytes);
    }
  }
}

std::string describe(const Scalar &scalar, ConstBytes in, unsigned word) {
  unsigned variant = word / threads, t = word % threads;
  std::string out = scalar.instructions[variant];
  for (size_t i = 1; i < scalar.types.size(); ++i) {
    unsigned bytes = registerBits(scalar.types[i]) / 8;
    out += formatv(" {0}={1}", char('a' + i - 1),
                   hex(loadBits(in, scalar.offsets[i - 1] + size_t(t) * bytes, bytes), bytes * 8))
               .str();
  }
  return out;
}

Family familyOf(const Row &row) {
  auto scalar = std::make_shared<Scalar>();
  SmallVector<StringRef> names;
  StringRef(row.types).split(names, ' ');
  for (StringRef name : names)
    scalar->types.push_back(*ptx::parseType(name));
  auto [pattern, operands] = StringRef(row.pattern).split(';');
  for (const std::string &mnemonic : expand(pattern))
    scalar->instructions.push_back(withOperands(mnemonic, operands, scalar->types, scalar->instructions.size()));
  unsigned inBytes = 0;
  for (size_t i = 1; i < scalar->types.size(); ++i) {
    scalar->offsets.push_back(inBytes);
    inBytes += threads * registerBits(scalar->types[i]) / 8;
  }
  scalar->outBytes = scalar->types[0] == Type::pred ? 4 : registerBits(scalar->types[0]) / 8;
  Family family;
  family.name = std::string("scalar/") + row.name;
  family.ptx = text(*scalar, inBytes);
  family.threads = threads;
  family.inBytes = inBytes;
  family.outBytes = scalar->instructions.size() * threads * scalar->outBytes;
  family.wordBytes = scalar->outBytes;
  family.vectors = threads;
  family.tolerance = row.tolerance;
  Type d = scalar->types[0];
  family.element = d == Type::f16x2 ? Type::f16 : d == Type::bf16x2 ? Type::bf16 : d;
  family.fill = [scalar](Random &random, Bytes in) { fill(*scalar, random, in); };
  family.describe = [scalar](ConstBytes in, unsigned word, uint64_t, uint64_t) { return describe(*scalar, in, word); };
  return family;
}
} // namespace

void addScalarFamilies(std::vector<Family> &families) {
  for (const Row &row : rows)
    families.push_back(familyOf(row));
}

} // namespace gemmc::microtests
