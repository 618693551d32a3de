// wmma (PTX ISA 9.7.14.4). Element e of a matrix (row-major) is element e % perLane of lane e / perLane.
#include "MmaParts.h"

namespace gemmc::emu::sem {

namespace {

using ptx::Type;

struct Size {
  unsigned rows, columns;
};
Size sizeOf(const MmaForm &form, Role role) {
  if (role == Role::a)
    return {form.m, form.k};
  return role == Role::b ? Size{form.k, form.n} : Size{form.m, form.n};
}

/// f16 operands keep the eight registers of the first tensor cores, which is room for two or more copies.
unsigned regsOf(const MmaForm &form, Role role) {
  if (form.a == Type::f16 && (role == Role::a || role == Role::b))
    return 8;
  auto [rows, columns] = sizeOf(form, role);
  return rows * columns / 32 / elementsPerRegister(typeOf(form, role));
}

struct Slots {
  unsigned perLane, count; ///< Elements of a lane; elements of the matrix.
};
Slots slotsOf(const MmaForm &form, Role role) {
  auto [rows, columns] = sizeOf(form, role);
  return {regsOf(form, role) * elementsPerRegister(typeOf(form, role)), rows * columns};
}

/// Where line `line`'s element `i` is in the row-major matrix.
unsigned indexOf(Size size, Order order, unsigned line, unsigned i) {
  return order == Order::row ? line * size.columns + i : i * size.columns + line;
}

uint64_t loadElement(const std::byte *line, unsigned bits, unsigned i) {
  uint64_t value = 0;
  if (bits >= 8)
    std::memcpy(&value, line + size_t(i) * bits / 8, bits / 8);
  else
    value = std::to_integer<unsigned>(line[i * bits / 8]) >> i * bits % 8 & ((1u << bits) - 1);
  return value;
}

/// Visits the elements of the matrix: its row and column, and the bits in the registers.
template <typename Visit>
void forEachElement(const MmaForm &form, Role role, const uint32_t *const *regs, Visit visit) {
  unsigned columns = sizeOf(form, role).columns;
  auto [perLane, count] = slotsOf(form, role);
  for (unsigned e = 0; e < count; ++e)
    visit(e / columns, e % columns, element(regs, typeOf(form, role), e / perLane, e % perLane));
}

} // namespace

bool isWmma(const MmaForm &form) {
  auto shape = [&](unsigned m, unsigned n, unsigned k) { return form.m == m && form.n == n && form.k == k; };
  bool sixteen = shape(16, 16, 16) || shape(8, 32, 16) || shape(32, 8, 16);
  auto types = [&](Type ab, Type c, Type d) { return form.a == ab && form.b == ab && form.c == c && form.d == d; };
  auto isHalfOrFloat = [](Type type) { return type == Type::f16 || type == Type::f32; };
  bool rowCol = form.aOrder == Order::row && form.bOrder == Order::col;
  if (form.a == Type::f16)
    return sixteen && form.b == Type::f16 && isHalfOrFloat(form.c) && isHalfOrFloat(form.d);
  if (form.a == Type::s8 || form.a == Type::u8)
    return sixteen && types(form.a, Type::s32, Type::s32);
  if (form.a == Type::s4 || form.a == Type::u4)
    return shape(8, 8, 32) && rowCol && types(form.a, Type::s32, Type::s32);
  return (sixteen && types(Type::bf16, Type::f32, Type::f32)) ||
         (shape(16, 16, 8) && types(Type::tf32, Type::f32, Type::f32)) ||
         (shape(8, 8, 4) && types(Type::f64, Type::f64, Type::f64)) ||
         (shape(8, 8, 128) && rowCol && types(Type::b1, Type::s32, Type::s32));
}

unsigned wmmaRegs(const MmaForm &form, Role role) { return regsOf(form, role); }

WmmaLines wmmaLines(const MmaForm &form, Role role, Order order) {
  auto [rows, columns] = sizeOf(form, role);
  unsigned count = order == Order::row ? rows : columns, length = order == Order::row ? columns : rows;
  return {count, length * elementBits(typeOf(form, role)) / 8};
}

unsigned wmmaDefaultStride(const MmaForm &form, Role role, Order order) {
  auto [rows, columns] = sizeOf(form, role);
  return order == Order::row ? columns : rows;
}

void wmmaLoad(const MmaForm &form, Role role, Order order, const std::byte *const *lines, uint32_t *const *regs) {
  Size size = sizeOf(form, role);
  auto [perLane, count] = slotsOf(form, role);
  Type type = typeOf(form, role);
  unsigned perLine = wmmaDefaultStride(form, role, order);
  for (unsigned line = 0; line < count / perLine; ++line)
    for (unsigned i = 0; i < perLine; ++i) {
      uint64_t value = loadElement(lines[line], elementBits(type), i);
      for (unsigned e = indexOf(size, order, line, i); e < perLane * 32; e += count)
        setElement(regs, type, e / perLane, e % perLane, value);
    }
}

void wmmaStore(const MmaForm &form, Order order, const uint32_t *const *regs, std::byte *const *lines) {
  Size size = sizeOf(form, Role::d);
  auto [perLane, count] = slotsOf(form, Role::d);
  unsigned perLine = wmmaDefaultStride(form, Role::d, order), bytes = elementBits(form.d) / 8;
  for (unsigned line = 0; line < count / perLine; ++line)
    for (unsigned i = 0; i < perLine; ++i) {
      unsigned e = indexOf(size, order, line, i);
      uint64_t value = element(regs, form.d, e / perLane, e % perLane);
      std::memcpy(lines[line] + i * bytes, &value, bytes);
    }
}

void wmma(const MmaForm &form, const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c,
          uint32_t *const *d) {
  static thread_local Lines rows, columns;
  static thread_local std::vector<uint64_t> acc;
  unsigned bits = elementBits(form.a);
  rows.resize(form.m, form.k, bits);
  columns.resize(form.n, form.k, bits);
  acc.resize(form.m * form.n);
  forEachElement(form, Role::a, a, [&](unsigned row, unsigned i, uint64_t value) { rows.set(row, i, bits, value); });
  forEachElement(form, Role::b, b,
                 [&](unsigned i, unsigned column, uint64_t value) { columns.set(column, i, bits, value); });
  forEachElement(form, Role::c, c,
                 [&](unsigned row, unsigned column, uint64_t value) { acc[row * form.n + column] = value; });
  multiply(form, rows, columns, acc);
  auto [perLane, count] = slotsOf(form, Role::d);
  for (unsigned e = 0; e < count; ++e)
    setElement(d, form.d, e / perLane, e % perLane, acc[e]);
}

} // namespace gemmc::emu::sem
