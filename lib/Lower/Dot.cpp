// A matrix by a vector. No element of the matrix is used twice, so that none goes through shared memory: each thread
// loads its own, as many bytes at a time as row starts allow, and multiplies them by the elements of the vector that
// belong to them, of which the L1 has most. Where k is contiguous, lanes lie along it and each has several rows; else
// they lie along m, and each has the rows of one load.
//
//     k contiguous                                 m contiguous
//     rows of a thread |  lanes along k            lanes along m, several rows each
//                      |  again, `unroll` times    | lanes along k, again, `unroll` times
//
// Warps have other rows or other k (`slices`). At the end lanes add up what they have of a row by
// shuffles, warps through shared memory, the CTAs of a cluster through that of the first one, always in this order.
#include "Elements.h"
#include "gemmc/Layout/VectorLanes.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc {

/// What a thread has of a step.
struct Lowering::VectorTile : VectorLanes {
  explicit VectorTile(const Lowering &l)
      : VectorTile(l, *l.kernel.declaration("A"), *l.kernel.declaration("B"), l.kernel.root) {}
  Elem type;
  int64_t bytes; ///< Of an element.
  bool alongK;   ///< What is contiguous in the matrix.
  int64_t blockM, blockK, warpM, warpK;
  int64_t width, vectorWidth; ///< Elements of one load: of the matrix, of the vector.
  int64_t depthOf(int64_t step) const { return step * lanesK * (alongK ? width : 1); } ///< From one load to another.

private:
  VectorTile(const Lowering &l, const Op &a, const Op &x, const Op &root)
      : VectorLanes(a.word("order") == "row", root.item("warp", 0), root.item("block", 2) / l.slices,
                    root.item("copy_bytes", 0) / bytesOf(*parseElem(a.word("type")))),
        type(*parseElem(a.word("type"))), bytes(bytesOf(type)), alongK(a.word("order") == "row"),
        blockM(root.item("block", 0)), blockK(root.item("block", 2)), warpM(root.item("warp", 0)),
        warpK(blockK / l.slices), width(root.item("copy_bytes", 0) / bytes),
        vectorWidth(alongK && x.word("order") == "col" ? std::min(width, root.item("copy_bytes", 1) / bytes) : 1) {}
};

AccumulatorView Lowering::vectorAccumulator(const Op &op) {
  AccumulatorView view{*parseElem(op.word("type")), op.item("warp", 0), op.item("warp", 1), 1, 1, {}, {}, {}};
  view.regs.push_back(b.regs(sumWords(view.type).reg, "sum", VectorTile(*this).rows));
  return view;
}

namespace {
/// Elements as they come from memory, several in a register where they are narrow.
class Loads {
public:
  Loads(ptx::Builder &b, Elem type, const char *how) : b(b), type(type), bytes(bytesOf(type)), how(how) {}

  /// `count` elements, `width` of them at a time, from [base + offset]; 0 where `guard` is false.
  std::vector<Val> load(const Val &base, int64_t offset, int64_t count, int64_t width, const Val &guard) {
    std::vector<Val> raw;
    for (int64_t i = 0; i < count; i += width) {
      std::vector<Val> part = b.regs(registerType(width), "raw", registers(width));
      if (guard.isReg())
        for (const Val &reg : part)
          clear(reg, width);
      if (guard.isReg())
        b.when(guard);
      b(vectorOf(how, int64_t(part.size()), typeName(width)), part.size() == 1 ? part[0] : Val(part),
        at(base, offset + i * bytes));
      raw.insert(raw.end(), part.begin(), part.end());
    }
    return raw;
  }

  /// Those elements as what they are multiplied as: f32, of f64 themselves.
  std::vector<Val> unpacked(const std::vector<Val> &raw, int64_t width) {
    if (type == Elem::f64)
      return raw;
    std::vector<Val> values;
    for (const Val &reg : raw) {
      if (bytes == 4) {
        Val value = b.reg(Type::f32, "value");
        b("and.b32", value, reg, tf32Bits); // as the tensor cores take it
        values.push_back(value);
      } else if (width == 1) {
        values.push_back(type == Elem::f16 ? fromHalf(reg) : fromBf16(reg));
      } else if (type == Elem::f16) {
        Val low = b.reg(Type::b16, "half"), high = b.reg(Type::b16, "half");
        b("mov.b32", Val(std::vector<Val>{low, high}), reg);
        values.push_back(fromHalf(low));
        values.push_back(fromHalf(high));
      } else { // bf16 is the upper half of an f32
        Val low = b.reg(Type::f32, "value"), high = b.reg(Type::f32, "value");
        b("shl.b32", low, reg, 16);
        b("and.b32", high, reg, upperHalf);
        values.push_back(low);
        values.push_back(high);
      }
    }
    return values;
  }

private:
  static constexpr int64_t tf32Bits = int64_t(0xffffe000), upperHalf = int64_t(0xffff0000);

  bool isHalf(int64_t width) const { return bytes == 2 && width == 1; }
  Type registerType(int64_t width) const { return bytes == 8 ? Type::f64 : isHalf(width) ? Type::b16 : Type::b32; }
  const char *typeName(int64_t width) const { return bytes == 8 ? "f64" : isHalf(width) ? "b16" : "b32"; }
  unsigned registers(int64_t width) const {
    return unsigned(std::max<int64_t>(1, width * bytes / std::max<int64_t>(4, bytes)));
  }
  void clear(const Val &reg, int64_t width) {
    if (bytes == 8)
      b("mov.f64", reg, Val(ptx::Operand::makeF64(0)));
    else
      b(isHalf(width) ? "mov.b16" : "mov.b32", reg, 0);
  }
  Val fromHalf(const Val &half) {
    Val value = b.reg(Type::f32, "value");
    b("cvt.f32.f16", value, half);
    return value;
  }
  Val fromBf16(const Val &half) {
    Val value = b.reg(Type::f32, "value"), zero = b.reg(Type::b16, "zero");
    b("mov.b16", zero, 0);
    b("mov.b32", value, Val(std::vector<Val>{zero, half}));
    return value;
  }

  ptx::Builder &b;
  Elem type;
  int64_t bytes;
  const char *how;
};
} // namespace

/// The lane's place among those that lie along m, and among those along k; what is contiguous is the fast one.
Val Lowering::laneRow(const VectorTile &t) {
  if (t.lanesM == 1)
    return 0;
  return t.alongK ? divide(lane, t.lanesK, "lane_row") : t.lanesK == 1 ? lane : remainder(lane, t.lanesM, "lane_row");
}
Val Lowering::laneDepth(const VectorTile &t) {
  if (t.lanesK == 1)
    return 0;
  return !t.alongK ? divide(lane, t.lanesM, "lane_k") : t.lanesM == 1 ? lane : remainder(lane, t.lanesK, "lane_k");
}

/// One step of k. What lies beyond k is not read and counts as 0; of rows beyond m the last ones are read again.
void Lowering::dot(const Op &op) {
  const VectorTile t(*this);
  const TensorView &a = tensors.find(op.ref("a").name)->second, &x = tensors.find(op.ref("b").name)->second;
  const std::vector<Val> &sums = accumulators.find(op.subject.name)->second.regs[0];
  Pitches pitches(b);
  const Val depth = value(op.ref("a").index[1]);
  Val row = add(value(op.ref("a").index[0]), mul(warpInSlice(), t.warpM, "row"), "row");
  Val k = add(depth, mul(slice(), t.warpK, "k"), "k");
  row = add(row, mul(laneRow(t), t.rows, "row"), "row");
  k = add(k, mul(laneDepth(t), t.alongK ? t.width : 1, "k"), "k");
  k = inRegister(k, "k");
  const bool whole = covers(a.rows, t.blockM);

  // Where the thread's rows, or its columns of rows, begin; those of later loads lie at known distances or further on.
  struct Line {
    Val base;
    int64_t offset = 0;
  };
  auto beside = [&](const Val &base, const TensorView &tensor, int64_t lines) -> Line {
    const Val distance = pitches.of(tensor, lines);
    if (distance.isImm() && distance.op.imm < maxOffset)
      return {base, distance.op.imm};
    return {add64(base, distance, "line"), 0};
  };
  std::vector<Line> lines; // along k: of each row; else of each load
  if (t.alongK) {
    auto lineOf = [&](const Val &of) { return add64(wide(of, pitches.of(a), "line"), a.base, "line"); };
    const Val first = lineOf(whole ? row : Val(0)), last = value(a.rows - 1), bytes = wide(k, t.bytes, "depth");
    for (int64_t i = 0; i < t.rows; ++i) {
      if (whole) {
        Line line = beside(first, a, i);
        lines.push_back({add64(line.base, bytes, "place"), line.offset});
      } else {
        lines.push_back(
            {add64(lineOf(binary("min.u32", inRegister(add(row, i, "row"), "row"), last, "row")), bytes, "place"), 0});
      }
    }
  } else {
    if (!whole)
      row = binary("min.u32", inRegister(row, "row"), value(a.rows - t.width), "row");
    Val first = add64(wide(row, t.bytes, "row_bytes"), a.base, "column");
    first = add64(wide(k, pitches.of(a), "depth"), first, "place");
    for (int64_t u = 0; u < t.unroll; ++u)
      lines.push_back(beside(first, a, t.depthOf(u)));
  }
  const bool contiguous = x.order == Order::col;
  const Val ofVector =
      add64(contiguous ? wide(k, t.bytes, "vector_place") : wide(k, pitches.of(x), "vector_place"), x.base, "vector");

  Loads matrix(b, t.type, "ld.global.cs"), vector(b, t.type, "ld.global");
  auto vectorAt = [&](int64_t u, const Val &guard) {
    const int64_t from = t.depthOf(u), count = t.alongK ? t.width : 1;
    if (contiguous)
      return vector.load(ofVector, from * t.bytes, count, t.vectorWidth, guard);
    std::vector<Val> raw;
    for (int64_t i = 0; i < count; ++i) {
      Line line = beside(ofVector, x, from + i);
      raw.push_back(vector.load(line.base, line.offset, 1, 1, guard)[0]);
    }
    return raw;
  };
  auto step = [&](bool checked) {
    std::vector<std::vector<Val>> raw, factors;
    for (int64_t u = 0; u < t.unroll; ++u) {
      Val inside;
      if (checked) {
        inside = b.reg(Type::pred, "inside");
        b("setp.lt.u32", inside, inRegister(add(k, t.depthOf(u), "k"), "k"), value(a.cols));
      }
      for (int64_t i = 0; i < (t.alongK ? t.rows : 1); ++i) {
        const Line &line = lines[t.alongK ? i : u];
        raw.push_back(
            matrix.load(line.base, line.offset + (t.alongK ? t.depthOf(u) * t.bytes : 0), t.width, t.width, inside));
      }
      factors.push_back(vectorAt(u, inside));
    }
    const char *multiplyAdd = t.type == Elem::f64 ? "fma.rn.f64" : "fma.rn.f32";
    for (int64_t u = 0; u < t.unroll; ++u) {
      const std::vector<Val> factor = vector.unpacked(factors[u], t.vectorWidth);
      for (int64_t i = 0; i < (t.alongK ? t.rows : 1); ++i) {
        const std::vector<Val> values = matrix.unpacked(raw[t.alongK ? u * t.rows + i : u], t.width);
        for (int64_t v = 0; v < t.width; ++v) {
          const Val &sum = sums[t.alongK ? i : v];
          b(multiplyAdd, sum, values[v], factor[t.alongK ? v : 0], sum);
        }
      }
    }
  };

  const Expr &all = a.cols;
  const bool evenSlices = clusterK == 1 || (stepCount().isConst() && stepCount().constant() % clusterK == 0);
  if (covers(all, t.blockK) && evenSlices)
    return step(false);
  if (all.isConst() && all.constant() < t.blockK)
    return step(true);
  Val last = b.label("last_step"), done = b.label("step_done"), cut = b.reg(Type::pred, "cut");
  b("setp.gt.u32", cut, inRegister(add(depth, t.blockK, "step_end"), "step_end"), value(all));
  b.when(cut)("bra", last);
  step(false);
  b("bra", done);
  b.place(last);
  step(true);
  b.place(done);
}

/// After it thread i has the sum of row i, of slices that of the first CTA; threads beyond the rows have the last
/// one's.
void Lowering::meet(const Op &op) {
  const VectorTile t(*this);
  AccumulatorView &acc = accumulators.find(op.subject.name)->second;
  const bool isF64 = acc.type == Elem::f64;
  const SumWords words = sumWords(acc.type);
  const int64_t bytes = words.bytes;
  const Type type = words.reg;
  const std::string word = words.type, plus = words.add;

  b.blank();
  b.comment("the sums of a row meet");
  const int64_t from = t.alongK ? t.lanesK / 2 : 16, to = t.alongK ? 1 : t.lanesM;
  for (const Val &sum : acc.regs[0])
    for (int64_t distance = from; distance >= to; distance /= 2) {
      Val other = b.reg(type, "other");
      if (isF64) {
        std::vector<Val> mine = b.regs(Type::b32, "part", 2), theirs = b.regs(Type::b32, "part", 2);
        b("mov.b64", Val(mine), sum);
        for (int i = 0; i < 2; ++i)
          b("shfl.sync.bfly.b32", theirs[i], mine[i], distance, 31, -1);
        b("mov.b64", other, Val(theirs));
      } else {
        b("shfl.sync.bfly.b32", other, sum, distance, 31, -1);
      }
      b(plus, sum, sum, other);
    }

  const Val shared = add(sharedBase, buffers.find(op.ref("through").name)->second.offset, "meeting");
  Val row = mul(warpInSlice(), t.warpM, "row");
  row = add(row, mul(laneRow(t), t.rows, "row"), "row");
  Val place = add(mul(add(mul(slice(), t.blockM, "place"), row, "place"), bytes, "place"), shared, "place");
  place = inRegister(place, "place");
  Val speaks;
  if (t.lanesK > 1) {
    speaks = b.reg(Type::pred, "speaks");
    b("setp.eq.u32", speaks, inRegister(laneDepth(t), "lane_k"), 0);
  }
  for (auto [i, sum] : llvm::enumerate(acc.regs[0])) {
    if (speaks.isReg())
      b.when(speaks);
    b("st.shared." + word, at(place, int64_t(i) * bytes), sum);
  }
  b("bar.sync", 0);
  Val own = tid;
  if (int64_t(kernel.number("threads")) > t.blockM)
    own = binary("min.u32", tid, t.blockM - 1, "own_row");
  own = inRegister(add(mul(own, bytes, "own_place"), shared, "own_place"), "own_place");
  Val total = b.reg(type, "total");
  b("ld.shared." + word, total, at(own));
  for (int64_t part = 1; part < slices; ++part) {
    Val other = b.reg(type, "other");
    b("ld.shared." + word, other, at(own, part * t.blockM * bytes));
    b(plus, total, total, other);
  }
  acc.regs[0] = {total};
  if (op.has("slices"))
    meetSlices(op, own, acc);
}

/// Through the shared memory of the first CTA's neighbours, which stay until it has read it.
void Lowering::meetSlices(const Op &op, const Val &own, AccumulatorView &acc) {
  const VectorTile t(*this);
  const SumWords words = sumWords(acc.type);
  const std::string word = words.type;
  const int64_t at0 = slices * t.blockM * words.bytes;
  const Val &total = acc.regs[0][0];
  Val first = b.reg(Type::pred, "first");
  if (int64_t(kernel.number("threads")) > t.blockM) {
    Val has = b.reg(Type::pred, "has_row");
    b("setp.lt.u32", has, tid, t.blockM);
    b.when(has);
  }
  b("st.shared." + word, at(own, at0), total);
  b("barrier.cluster.arrive.release.aligned");
  b("barrier.cluster.wait.acquire.aligned");
  b("setp.eq.u32", first, rank, 0);
  Val read = b.label("slices_read");
  b.unless(first)("bra", read);
  std::vector<Val> others = b.regs(words.reg, "slice", unsigned(op.number("slices") - 1));
  for (auto [i, other] : llvm::enumerate(others)) {
    Val there = b.reg(Type::b32, "there");
    b("mapa.shared::cluster.u32", there, own, int64_t(i) + 1);
    b("ld.shared::cluster." + word, other, at(there, at0));
  }
  for (const Val &other : others)
    b(words.add, total, total, other);
  b.place(read);
  b("barrier.cluster.arrive.release");
  b("barrier.cluster.wait.acquire");
}

/// Thread i stores row i.
void Lowering::storeVector(const Op &op) {
  const VectorTile t(*this);
  const AccumulatorView &acc = accumulators.find(op.ref("from").name)->second;
  Elements e(*this, op, acc.type);
  Pitches pitches(b);
  b.blank();
  b.comment("D = alpha * A B + beta * C");
  Val row = inRegister(add(value(op.subject.index[0]), tid, "row"), "row");
  Val guard;
  auto require = [&](const char *how, const Val &x, const Val &y) {
    Val p = b.reg(Type::pred, "stores");
    b(how, p, x, y);
    guard = both(guard, p, "stores");
  };
  if (int64_t(kernel.number("threads")) > t.blockM)
    require("setp.lt.u32", tid, t.blockM);
  if (!covers(e.d->rows, t.blockM))
    require("setp.lt.u32", row, value(e.d->rows));
  if (clusterK > 1)
    require("setp.eq.u32", rank, 0);
  auto placeIn = [&](const TensorView &tensor) {
    const Val bytes = tensor.order == Order::col ? Val(tensor.elemBytes()) : pitches.of(tensor);
    return Elements::Place{add64(wide(row, bytes, tensor.buffer + "_place"), tensor.base, tensor.buffer + "_place"), 0};
  };
  Val x = e.scaled(acc.regs[0][0]);
  if (e.c) {
    Val reads = guard;
    if (!e.fixedBeta) {
      Val some = b.reg(Type::pred, "beta_is_not_zero");
      compareBeta("neu", some);
      reads = both(guard, some, "reads");
    }
    x = e.plusC(x, e.loadC(placeIn(*e.c), reads));
  }
  e.put(placeIn(*e.d), x, guard);
}

} // namespace gemmc
