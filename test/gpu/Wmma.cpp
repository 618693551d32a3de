// wmma: matrices in global memory, since nobody may know which lane holds what.
#include "Family.h"
#include "gemmc/Emu/Mma.h"
#include "gemmc/Support/Types.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using emu::sem::MmaForm;
using emu::sem::Role;
using ptx::Type;

constexpr unsigned warps = 4;

struct Wmma {
  MmaForm form;
  unsigned aAt, bAt, cAt, inBytes, outBytes; ///< Of one warp.
};

unsigned aligned(unsigned bytes) { return (bytes + 127) / 128 * 128; }
unsigned matrixBytes(Type type, unsigned rows, unsigned columns) { return rows * columns * widthOf(type) / 8; }

std::string vectorOf(const char *name, unsigned regs) {
  std::string text = "{";
  for (unsigned i = 0; i < regs; ++i)
    text += formatv("{0}%{1}{2}", i ? ", " : "", name, i).str();
  return text + "}";
}

/// Its name, and the mnemonic of the multiplication.
std::string mnemonicOf(const MmaForm &form) {
  std::string shape = formatv("m{0}n{1}k{2}", form.m, form.n, form.k).str();
  std::string orders = formatv("{0}.{1}", nameOf(form.aOrder), nameOf(form.bOrder)).str();
  auto name = [](Type type) { return ptx::nameOf(type).str(); };
  if (form.a == Type::b1)
    return formatv("wmma.mma.{0}.popc.sync.aligned.{1}.{2}.s32.b1.b1.s32", form.exclusive ? "xor" : "and", orders,
                   shape);
  if (form.a == Type::f16)
    return formatv("wmma.mma.sync.aligned.{0}.{1}.{2}.{3}", orders, shape, name(form.d), name(form.c));
  const char *round = form.a != Type::f64                   ? ""
                      : form.round == emu::sem::Round::zero ? ".rz"
                      : form.round == emu::sem::Round::down ? ".rm"
                      : form.round == emu::sem::Round::up   ? ".rp"
                                                            : ".rn";
  return formatv("wmma.mma.sync.aligned.{0}.{1}{2}.{3}.{4}.{5}.{6}{7}", orders, shape, round, name(form.d),
                 name(form.a), name(form.b), name(form.c), form.satfinite ? ".satfinite" : "");
}

std::string textOf(const Wmma &wmma) {
  const MmaForm &form = wmma.form;
  std::string out = ptxHead;
  raw_string_ostream os(out);
  unsigned bits = form.a == Type::f64 ? 64 : 32;
  os << ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out, %x;\n.reg .b32 %t, %c, %w;\n";
  const std::pair<const char *, Role> all[] = {{"fd", Role::d}, {"fa", Role::a}, {"fb", Role::b}, {"fc", Role::c}};
  for (auto &[name, role] : all)
    os << formatv(".reg .b{0} %{1}<{2}>;\n", bits, name, emu::sem::wmmaRegs(form, role));
  os << "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
     << formatv("shr.u32 %w, %t, 5;\nmad.lo.u32 %w, %c, {0}, %w;\n", warps)
     << formatv("mad.wide.u32 %in, %w, {0}, %in;\nmad.wide.u32 %out, %w, {1}, %out;\n", wmma.inBytes, wmma.outBytes);
  std::string shape = formatv("m{0}n{1}k{2}", form.m, form.n, form.k).str();
  auto load = [&](const char *role, const char *name, Order order, Type type, unsigned regs, unsigned at) {
    os << formatv("add.u64 %x, %in, {0};\nwmma.load.{1}.sync.aligned.{2}.{3}.global.{4} {5}, [%x];\n", at, role,
                  nameOf(order), shape, ptx::nameOf(type), vectorOf(name, regs));
  };
  load("a", "fa", form.aOrder, form.a, emu::sem::wmmaRegs(form, Role::a), wmma.aAt);
  load("b", "fb", form.bOrder, form.b, emu::sem::wmmaRegs(form, Role::b), wmma.bAt);
  load("c", "fc", Order::row, form.c, emu::sem::wmmaRegs(form, Role::c), wmma.cAt);
  unsigned regsD = emu::sem::wmmaRegs(form, Role::d);
  os << formatv("{0} {1}, {2}, {3}, {4};\n", mnemonicOf(form), vectorOf("fd", regsD),
                vectorOf("fa", emu::sem::wmmaRegs(form, Role::a)), vectorOf("fb", emu::sem::wmmaRegs(form, Role::b)),
                vectorOf("fc", emu::sem::wmmaRegs(form, Role::c)))
     << formatv("wmma.store.d.sync.aligned.row.{0}.global.{1} [%out], {2};\nret;\n}\n", shape, ptx::nameOf(form.d),
                vectorOf("fd", regsD));
  return out;
}

std::string describe(const Wmma &wmma, ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
  const MmaForm &form = wmma.form;
  unsigned width = widthOf(form.d), wordBytes = width == 64 ? 8 : 4, perWarp = wmma.outBytes / wordBytes;
  unsigned warp = word / perWarp, e = word % perWarp * wordBytes * 8 / width;
  e += width == 16 && (gpu & 0xffff) == (emulator & 0xffff);
  unsigned row = e / form.n, column = e % form.n;
  ConstBytes own = in.slice(size_t(warp) * wmma.inBytes, wmma.inBytes);
  std::vector<uint64_t> a, b;
  for (unsigned k = 0; k < form.k; ++k) {
    a.push_back(loadElement(own.drop_front(wmma.aAt), form.aOrder == Order::row ? row * form.k + k : k * form.m + row,
                            widthOf(form.a)));
    b.push_back(loadElement(own.drop_front(wmma.bAt),
                            form.bOrder == Order::col ? column * form.k + k : k * form.n + column, widthOf(form.b)));
  }
  uint64_t c = loadElement(own.drop_front(wmma.cAt), e, widthOf(form.c));
  return formatv("row {0} column {1} {2}", row, column,
                 dotText(a, widthOf(form.a), b, widthOf(form.b), c, widthOf(form.c)))
      .str();
}

void add(std::vector<Family> &families, const MmaForm &form) {
  if (!emu::sem::isWmma(form))
    return;
  auto wmma = std::make_shared<Wmma>();
  wmma->form = form;
  wmma->aAt = 0;
  wmma->bAt = aligned(matrixBytes(form.a, form.m, form.k));
  wmma->cAt = wmma->bAt + aligned(matrixBytes(form.b, form.n, form.k));
  wmma->inBytes = wmma->cAt + aligned(matrixBytes(form.c, form.m, form.n));
  wmma->outBytes = matrixBytes(form.d, form.m, form.n);
  Family family;
  family.name = "wmma/" + mnemonicOf(form).substr(strlen("wmma.mma."));
  family.ptx = textOf(*wmma);
  family.threads = warps * 32;
  family.inBytes = warps * wmma->inBytes;
  family.outBytes = warps * wmma->outBytes;
  family.wordBytes = form.d == Type::f64 ? 8 : 4;
  family.vectors = warps * form.m * form.n;
  family.fill = [wmma](Random &random, Bytes in) {
    const MmaForm &form = wmma->form;
    for (unsigned w = 0; w < warps; ++w) {
      size_t base = size_t(w) * wmma->inBytes;
      int ea = random.between(-9, 9), eb = random.between(-9, 9);
      fillElements(random, in, base + wmma->aAt, form.m * form.k, form.a, Style(random, form.a, ea));
      fillElements(random, in, base + wmma->bAt, form.n * form.k, form.b, Style(random, form.b, eb));
      fillElements(random, in, base + wmma->cAt, form.m * form.n, form.c, Style::addend(random, form.c, ea + eb));
    }
  };
  if (form.a == Type::tf32 || form.a == Type::bf16)
    family.fillSmall = [wmma](Random &random, Bytes in) {
      for (unsigned w = 0; w < warps; ++w) {
        fillSmall(random, in, w * wmma->inBytes + wmma->aAt, wmma->form.m * wmma->form.k, wmma->form.a);
        fillSmall(random, in, w * wmma->inBytes + wmma->bAt, wmma->form.n * wmma->form.k, wmma->form.b);
      }
    };
  family.describe = [wmma](ConstBytes in, unsigned word, uint64_t gpu, uint64_t emulator) {
    return describe(*wmma, in, word, gpu, emulator);
  };
  families.push_back(std::move(family));
}
} // namespace

void addWmmaFamilies(std::vector<Family> &families) {
  constexpr Type f16 = Type::f16, f32 = Type::f32, s32 = Type::s32;
  const std::array<unsigned, 3> shapes[] = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}, {16, 16, 8},
                                            {8, 8, 4},    {8, 8, 32},  {8, 8, 128}};
  const std::array<Type, 3> types[] = {{f16, f32, f32},      {f16, f16, f16},        {f16, f16, f32},
                                       {f16, f32, f16},      {Type::bf16, f32, f32}, {Type::tf32, f32, f32},
                                       {Type::s8, s32, s32}, {Type::u8, s32, s32},   {Type::s4, s32, s32},
                                       {Type::u4, s32, s32}, {Type::b1, s32, s32},   {Type::f64, Type::f64, Type::f64}};
  constexpr emu::sem::Round rounds[] = {emu::sem::Round::nearest, emu::sem::Round::zero, emu::sem::Round::down,
                                        emu::sem::Round::up};
  for (auto [m, n, k] : shapes)
    for (auto [ab, c, d] : types)
      for (unsigned orders = 0; orders < 4; ++orders)
        for (unsigned variant = 0; variant < 4; ++variant) {
          bool isInteger = d == s32 && ab != Type::b1;
          if (variant >= (ab == Type::f64 ? 4u : d == s32 ? 2u : 1u) || (ab == Type::f64 && orders && variant))
            continue;
          MmaForm form;
          form.m = m, form.n = n, form.k = k;
          form.a = form.b = ab, form.c = c, form.d = d;
          form.aOrder = orders & 1 ? Order::col : Order::row;
          form.bOrder = orders & 2 ? Order::row : Order::col;
          form.satfinite = isInteger && variant;
          form.exclusive = ab == Type::b1 && variant;
          if (ab == Type::f64)
            form.round = rounds[variant];
          add(families, form);
        }
}

} // namespace gemmc::microtests
