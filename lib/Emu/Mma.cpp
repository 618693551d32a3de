// mma.sync (PTX ISA 9.7.14.5) and the arithmetic it shares with wmma.
#include "gemmc/Emu/Mma.h"
#include "MmaParts.h"

namespace gemmc::emu::sem {

namespace {

using ptx::Type;

bool isQuad(const MmaForm &form) { return form.m == 8 && form.a == Type::f16; }

/// Elements of an A or B fragment lie in blocks: a register holds, of one row of A (column of B), the elements of K
/// that its lane owns in one block of four lanes.
///
///   A, register r:  row = lane / 4 + 8 * (r & 1)   k = e * (lane % 4) + 4e * (r >> 1) + i,  e elements a register
///   B, register r:  column = lane / 4              k = e * (lane % 4) + 4e * r + i
///   C, element i:   row = lane / 4 + 8 * (i >> 1)  column = 2 * (lane % 4) + (i & 1)
Place placeInA(const MmaForm &form, unsigned lane, unsigned index) {
  unsigned e = elementsPerRegister(form.a), r = index / e, rowBlocks = form.m / 8;
  return {lane / 4 + 8 * (r % rowBlocks), e * (lane % 4) + 4 * e * (r / rowBlocks) + index % e, 0};
}
Place placeInB(const MmaForm &form, unsigned lane, unsigned index) {
  unsigned e = elementsPerRegister(form.b), r = index / e;
  return {e * (lane % 4) + 4 * e * r + index % e, lane / 4, 0};
}
Place placeInC(unsigned lane, unsigned index) { return {lane / 4 + 8 * (index >> 1), lane % 4 * 2 + (index & 1), 0}; }

/// m8n8k4.f16: lanes 4q..4q+3 and 4q+16..4q+19 share a matrix.
Place placeInQuad(const MmaForm &form, Role role, unsigned lane, unsigned index) {
  unsigned quad = lane % 16 / 4, high = lane < 16 ? 0 : 4, own = lane % 4 + high;
  if (role == Role::a)
    return form.aOrder == Order::row ? Place{own, index, quad} : Place{index + high, lane % 4, quad};
  if (role == Role::b)
    return form.bOrder == Order::col ? Place{index, own, quad} : Place{lane % 4, index + high, quad};
  if ((role == Role::c ? form.c : form.d) == Type::f16)
    return {own, index, quad};
  return {(lane & 1) + (index & 2) + high, (index & 4) + (lane & 2) + (index & 1), quad};
}

struct Shape {
  unsigned m, n, k;
  bool operator==(const Shape &) const = default;
};
bool among(const MmaForm &form, std::initializer_list<Shape> shapes) {
  return llvm::is_contained(shapes, Shape{form.m, form.n, form.k});
}

} // namespace

bool isMma(const MmaForm &form) {
  bool rowCol = form.aOrder == Order::row && form.bOrder == Order::col, halfC = form.c == Type::f16,
       halfD = form.d == Type::f16, floatC = form.c == Type::f32, floatD = form.d == Type::f32;
  bool intAcc = form.c == Type::s32 && form.d == Type::s32;
  auto both = [&](Type x, Type y) { return (form.a == x || form.a == y) && (form.b == x || form.b == y); };
  if (form.a == Type::f16 && form.b == Type::f16 && form.m == 8)
    return among(form, {{8, 8, 4}}) && (halfC || floatC) && (floatD || (halfD && halfC));
  if (!rowCol)
    return false;
  switch (form.a) {
  case Type::f16:
    return form.b == Type::f16 && among(form, {{16, 8, 8}, {16, 8, 16}}) && (halfC || floatC) && form.c == form.d;
  case Type::bf16:
    return form.b == Type::bf16 && among(form, {{16, 8, 8}, {16, 8, 16}}) && floatC && floatD;
  case Type::tf32:
    return form.b == Type::tf32 && among(form, {{16, 8, 4}, {16, 8, 8}}) && floatC && floatD;
  case Type::e4m3:
  case Type::e5m2:
    return both(Type::e4m3, Type::e5m2) && among(form, {{16, 8, 16}, {16, 8, 32}}) && (halfC || floatC) &&
           form.c == form.d;
  case Type::f64:
    return form.b == Type::f64 && form.c == Type::f64 && form.d == Type::f64 &&
           among(form, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
  case Type::s8:
  case Type::u8:
    return both(Type::s8, Type::u8) && intAcc && among(form, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}});
  case Type::s4:
  case Type::u4:
    return both(Type::s4, Type::u4) && intAcc && among(form, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
  case Type::b1:
    return form.b == Type::b1 && intAcc && among(form, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
  default:
    return false;
  }
}

unsigned mmaRegs(const MmaForm &form, Role role) {
  Type type = typeOf(form, role);
  unsigned rows = role == Role::b ? form.n : form.m, columns = role == Role::a || role == Role::b ? form.k : form.n;
  unsigned lanes = isQuad(form) ? 8 : 32;
  return rows * columns / lanes / elementsPerRegister(type);
}

Place mmaPlace(const MmaForm &form, Role role, unsigned lane, unsigned index) {
  if (isQuad(form))
    return placeInQuad(form, role, lane, index);
  if (role == Role::a)
    return placeInA(form, lane, index);
  return role == Role::b ? placeInB(form, lane, index) : placeInC(lane, index);
}

namespace {

/// Elements of C and D, by `mmaPlace`; `quad` chooses one of the four matrices of m8n8k4.f16.
template <typename Visit> void forEachElement(const MmaForm &form, Role role, unsigned quad, Visit visit) {
  unsigned perLane = mmaRegs(form, role) * elementsPerRegister(typeOf(form, role));
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < perLane; ++i)
      if (Place at = mmaPlace(form, role, lane, i); at.quad == quad)
        visit(lane, i, at);
}

/// A and B element by element, for the shapes whose registers are not blocks of 32-bit words.
void gatherElements(const MmaForm &form, unsigned quad, const uint32_t *const *a, const uint32_t *const *b, Lines &rows,
                    Lines &columns) {
  unsigned bits = elementBits(form.a);
  forEachElement(form, Role::a, quad, [&](unsigned lane, unsigned i, Place at) {
    rows.set(at.row, at.column, bits, element(a, form.a, lane, i));
  });
  forEachElement(form, Role::b, quad, [&](unsigned lane, unsigned i, Place at) {
    columns.set(at.column, at.row, bits, element(b, form.b, lane, i));
  });
}

} // namespace

void mma(const MmaForm &form, const uint32_t *const *a, const uint32_t *const *b, const uint32_t *const *c,
         uint32_t *const *d) {
  static thread_local Lines rows, columns;
  static thread_local std::vector<uint64_t> acc;
  // d may share registers with the sources, but a quad's lanes are its own, so that each can be finished by itself.
  for (unsigned quad = 0; quad < (isQuad(form) ? 4 : 1); ++quad) {
    acc.resize(form.m * form.n);
    rows.resize(form.m, form.k, elementBits(form.a));
    columns.resize(form.n, form.k, elementBits(form.b));
    if (isQuad(form) || form.a == Type::f64) {
      gatherElements(form, quad, a, b, rows, columns);
    } else {
      gatherBlocks(a, mmaRegs(form, Role::a), form.m / 8, rows);
      gatherBlocks(b, mmaRegs(form, Role::b), 1, columns);
    }
    forEachElement(form, Role::c, quad, [&](unsigned lane, unsigned i, Place at) {
      acc[at.row * form.n + at.column] = element(c, form.c, lane, i);
    });
    multiply(form, rows, columns, acc);
    forEachElement(form, Role::d, quad, [&](unsigned lane, unsigned i, Place at) {
      setElement(d, form.d, lane, i, acc[at.row * form.n + at.column]);
    });
  }
}

} // namespace gemmc::emu::sem
