// mma.sync: a warp loads its fragments register by register, so that any bits may be anywhere.
#include "gemmc/Emu/Mma.h"
#include "Family.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using emu::sem::MmaForm;
using emu::sem::Role;
using ptx::Type;

constexpr unsigned warps = 4;

struct Fragment {
  Type type;
  unsigned regs, bytes; ///< `bytes` of one register.
};
Fragment fragmentOf(const MmaForm &form, Role role) {
  Type type = role == Role::a ? form.a : role == Role::b ? form.b : role == Role::c ? form.c : form.d;
  return {type, emu::sem::mmaRegs(form, role), type == Type::f64 ? 8u : 4u};
}
unsigned elementsOf(const Fragment &fragment) {
  unsigned width = widthOf(fragment.type);
  return fragment.regs * fragment.bytes * 8 / width;
}

struct Mma {
  MmaForm form;
  std::string mnemonic;
  Fragment a, b, c, d;
  unsigned aAt, bAt, cAt, inBytes, outBytes; ///< Of one warp.
};

std::string vectorOf(char name, unsigned regs) {
  std::string text = "{";
  for (unsigned i = 0; i < regs; ++i)
    text += (i ? ", %" : "%") + std::string(1, name) + std::to_string(i);
  return text + "}";
}

std::string textOf(const Mma &mma) {
  // fp8 came late to the shape of K = 16 and to sums in f16.
  bool isNew = widthOf(mma.a.type) == 8 && fieldsOf(mma.a.type) && (mma.form.k == 16 || mma.form.d == Type::f16);
  std::string out = isNew ? ".version 8.7\n.target sm_90a\n.address_size 64\n" : ptxHead;
  raw_string_ostream os(out);
  os << ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out, %x;\n.reg .b32 %t, %c, %w, %l;\n";
  const std::pair<char, const Fragment &> all[] = {{'d', mma.d}, {'a', mma.a}, {'b', mma.b}, {'e', mma.c}};
  for (auto &[name, fragment] : all)
    os << formatv(".reg .b{0} %{1}<{2}>;\n", fragment.bytes * 8, name, fragment.regs);
  os << "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
     << formatv("shr.u32 %w, %t, 5;\nand.b32 %l, %t, 31;\nmad.lo.u32 %w, %c, {0}, %w;\n", warps)
     << formatv("mad.wide.u32 %in, %w, {0}, %in;\nmad.wide.u32 %out, %w, {1}, %out;\n", mma.inBytes, mma.outBytes);
  auto load = [&](char name, const Fragment &fragment, unsigned at) {
    os << formatv("mad.wide.u32 %x, %l, {0}, %in;\n", fragment.bytes);
    for (unsigned i = 0; i < fragment.regs; ++i)
      os << formatv("ld.global.b{0} %{1}{2}, [%x+{3}];\n", fragment.bytes * 8, name, i, at + i * 32 * fragment.bytes);
  };
  load('a', mma.a, mma.aAt);
  load('b', mma.b, mma.bAt);
  load('e', mma.c, mma.cAt);
  os << formatv("{0} {1}, {2}, {3}, {4};\n", mma.mnemonic, vectorOf('d', mma.d.regs), vectorOf('a', mma.a.regs),
                vectorOf('b', mma.b.regs), vectorOf('e', mma.c.regs));
  os << formatv("mad.wide.u32 %x, %l, {0}, %out;\n", mma.d.bytes);
  for (unsigned i = 0; i < mma.d.regs; ++i)
    os << formatv("st.global.b{0} [%x+{1}], %d{2};\n", mma.d.bytes * 8, i * 32 * mma.d.bytes, i);
  os << "ret;\n}\n";
  return out;
}

/// Element `index` of a lane: registers lie as rows of 32 lanes.
uint64_t elementOf(ConstBytes in, size_t at, const Fragment &fragment, unsigned lane, unsigned index) {
  unsigned width = widthOf(fragment.type), per = fragment.bytes * 8 / width;
  uint64_t reg = loadBits(in, at + (size_t(index / per) * 32 + lane) * fragment.bytes, fragment.bytes);
  return width == 64 ? reg : reg >> index % per * width & ((uint64_t(1) << width) - 1);
}

std::string describe(const Mma &mma, ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
  unsigned perWarp = mma.outBytes / mma.d.bytes, warp = word / perWarp, reg = word % perWarp / 32, lane = word % 32;
  unsigned width = widthOf(mma.d.type), per = mma.d.bytes * 8 / width;
  unsigned index = reg * per + (per == 2 && (gpu & 0xffff) == (emulator & 0xffff));
  const MmaForm &form = mma.form;
  auto at = emu::sem::mmaPlace(form, Role::d, lane, index);
  std::vector<uint64_t> a(form.k), b(form.k);
  uint64_t c = 0;
  size_t base = size_t(warp) * mma.inBytes;
  auto visit = [&](Role role, const Fragment &fragment, size_t offset, auto take) {
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned i = 0; i < elementsOf(fragment); ++i)
        if (auto place = emu::sem::mmaPlace(form, role, l, i); place.quad == at.quad)
          take(place, elementOf(in, base + offset, fragment, l, i));
  };
  visit(Role::a, mma.a, mma.aAt, [&](auto place, uint64_t value) {
    if (place.row == at.row)
      a[place.column] = value;
  });
  visit(Role::b, mma.b, mma.bAt, [&](auto place, uint64_t value) {
    if (place.column == at.column)
      b[place.row] = value;
  });
  visit(Role::c, mma.c, mma.cAt, [&](auto place, uint64_t value) {
    if (place.row == at.row && place.column == at.column)
      c = value;
  });
  return formatv("row {0} column {1} {2}", at.row, at.column,
                 dotText(a, widthOf(form.a), b, widthOf(form.b), c, widthOf(form.c)))
      .str();
}

void add(std::vector<Family> &families, const MmaForm &form, const std::string &mnemonic) {
  auto mma = std::make_shared<Mma>();
  mma->form = form;
  mma->mnemonic = mnemonic;
  mma->a = fragmentOf(form, Role::a), mma->b = fragmentOf(form, Role::b);
  mma->c = fragmentOf(form, Role::c), mma->d = fragmentOf(form, Role::d);
  auto bytes = [](const Fragment &fragment) { return fragment.regs * 32 * fragment.bytes; };
  mma->aAt = 0;
  mma->bAt = bytes(mma->a);
  mma->cAt = mma->bAt + bytes(mma->b);
  mma->inBytes = mma->cAt + bytes(mma->c);
  mma->outBytes = bytes(mma->d);
  Family family;
  family.name = "mma/" + mnemonic.substr(strlen("mma.sync.aligned."));
  family.ptx = textOf(*mma);
  family.threads = warps * 32;
  family.inBytes = warps * mma->inBytes;
  family.outBytes = warps * mma->outBytes;
  family.wordBytes = mma->d.bytes;
  family.vectors = warps * elementsOf(mma->d) * 32;
  family.fill = [mma](Random &random, Bytes in) {
    for (unsigned w = 0; w < warps; ++w) {
      size_t base = size_t(w) * mma->inBytes;
      int ea = random.between(-9, 9), eb = random.between(-9, 9);
      fillElements(random, in, base + mma->aAt, elementsOf(mma->a) * 32, mma->a.type, Style(random, mma->a.type, ea));
      fillElements(random, in, base + mma->bAt, elementsOf(mma->b) * 32, mma->b.type, Style(random, mma->b.type, eb));
      fillElements(random, in, base + mma->cAt, elementsOf(mma->c) * 32, mma->c.type,
                   Style::addend(random, mma->c.type, ea + eb));
    }
  };
  if (form.a == Type::tf32 || form.a == Type::bf16)
    family.fillSmall = [mma](Random &random, Bytes in) {
      for (unsigned w = 0; w < warps; ++w) {
        fillSmall(random, in, w * mma->inBytes + mma->aAt, elementsOf(mma->a) * 32, mma->a.type);
        fillSmall(random, in, w * mma->inBytes + mma->bAt, elementsOf(mma->b) * 32, mma->b.type);
      }
    };
  family.describe = [mma](ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
    return describe(*mma, in, word, gpu, emulator);
  };
  families.push_back(std::move(family));
}

/// All shapes, types and modifiers that the emulator says the manual has.
struct Product {
  std::vector<Family> &families;

  void operator()(std::initializer_list<std::array<unsigned, 3>> shapes,
                  std::initializer_list<std::array<Type, 4>> types, std::initializer_list<const char *> before,
                  std::initializer_list<const char *> after, std::initializer_list<const char *> orders = {"row.col"}) {
    for (auto [m, n, k] : shapes)
      for (auto [d, a, b, c] : types)
        for (std::string order : orders)
          for (std::string early : before)
            for (std::string late : after) {
              MmaForm form;
              form.m = m, form.n = n, form.k = k;
              form.a = a, form.b = b, form.c = c, form.d = d;
              form.aOrder = order.substr(0, 3) == "row" ? Order::row : Order::col;
              form.bOrder = order.substr(4) == "row" ? Order::row : Order::col;
              auto name = [](Type type) { return ptx::nameOf(type).str(); };
              add(families, form,
                  formatv("mma.sync.aligned.m{0}n{1}k{2}.{3}{4}.{5}.{6}.{7}.{8}{9}", m, n, k, order, early, name(d),
                          name(a), name(b), name(c), late)
                      .str());
            }
  }
};
} // namespace

void addMmaFamilies(std::vector<Family> &families) {
  constexpr Type f16 = Type::f16, bf16 = Type::bf16, f32 = Type::f32, tf32 = Type::tf32, f64 = Type::f64,
                 s32 = Type::s32, s8 = Type::s8, u8 = Type::u8, s4 = Type::s4, u4 = Type::u4, b1 = Type::b1,
                 e4 = Type::e4m3, e5 = Type::e5m2;
  Product product{families};
  product({{16, 8, 8}, {16, 8, 16}}, {{f32, f16, f16, f32}, {f16, f16, f16, f16}}, {""}, {""});
  product({{8, 8, 4}}, {{f32, f16, f16, f32}, {f16, f16, f16, f16}, {f32, f16, f16, f16}}, {""}, {""},
          {"row.col", "row.row", "col.col", "col.row"});
  product({{16, 8, 8}, {16, 8, 16}}, {{f32, bf16, bf16, f32}}, {""}, {""});
  product({{16, 8, 4}, {16, 8, 8}}, {{f32, tf32, tf32, f32}}, {""}, {""});
  product({{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {{f64, f64, f64, f64}}, {"", ".rn", ".rz", ".rm", ".rp"},
          {""});
  product({{16, 8, 16}, {16, 8, 32}},
          {{f32, e4, e4, f32},
           {f32, e4, e5, f32},
           {f32, e5, e4, f32},
           {f32, e5, e5, f32},
           {f16, e4, e4, f16},
           {f16, e4, e5, f16},
           {f16, e5, e4, f16},
           {f16, e5, e5, f16}},
          {""}, {""});
  product({{8, 8, 16}, {16, 8, 16}, {16, 8, 32}},
          {{s32, s8, s8, s32}, {s32, s8, u8, s32}, {s32, u8, s8, s32}, {s32, u8, u8, s32}}, {"", ".satfinite"}, {""});
  product({{8, 8, 32}, {16, 8, 32}, {16, 8, 64}},
          {{s32, s4, s4, s32}, {s32, s4, u4, s32}, {s32, u4, s4, s32}, {s32, u4, u4, s32}}, {"", ".satfinite"}, {""});
  product({{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}, {{s32, b1, b1, s32}}, {""}, {".and.popc", ".xor.popc"});
}

} // namespace gemmc::microtests
