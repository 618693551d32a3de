// Threads of a CTA and what they hold in registers.
#include "Draft.h"

namespace gemmc::plan {

unsigned consumerWarpgroups(const Shape &shape) {
  return shape.schedule == Schedule::pingpong ? 2 : unsigned(shape.warps());
}

unsigned threadsOf(const Draft &draft, const Shape &shape) {
  if (!draft.wgmma())
    return unsigned(32 * shape.warps());
  unsigned others = shape.schedule == Schedule::pipelined ? 0 : draft.shifts() ? 2 : 1; // that copy, that shift
  return 128 * (consumerWarpgroups(shape) + others);
}

unsigned accumulatorRegisters(const Draft &draft, const Shape &shape) {
  const int64_t lanes = draft.wgmma() ? 128 : 32, times = draft.wgmma() && draft.promotes() ? 2 : 1;
  return unsigned(times * shape.warpM * shape.warpN * bitsOf(*draft.spec().accumulator) / (lanes * 32));
}

bool storesAlongN(const Draft &draft) { return (*draft.spec().d.layout == Order::row) != draft.plan.swapped; }

bool writesOddLines(const Draft &draft) {
  const Spec &s = draft.spec();
  return draft.wgmma() && *s.store == StoreKind::staged && storesAlongN(draft) && bytesOf(*s.d.type) == 2 &&
         promisedAlign(s.d) < 16;
}

bool writesWholeSectors(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  const int64_t element = bytesOf(*s.d.type);
  const bool staged = draft.wgmma() && *s.store == StoreKind::staged && storesAlongN(draft);
  // C is brought to words in other pieces.
  if (!staged || element < 2 || startsAt(s.d, sectorBytes) || (element == 4 && s.beta.value != Scale{0.0}))
    return writesOddLines(draft);
  // What ptxas 13 compiles without a spill where sizes and pitches come at launch, too (2026-11-29, some 500 kernels).
  const bool words = element == 4;
  unsigned most = 96;
  if (shape.schedule == Schedule::pipelined)
    most = std::min(255u, unsigned(draft.limits.registersPerSM) / threadsOf(draft, shape)) - (words ? 64 : 32);
  else if (consumerWarpgroups(shape) == 1)
    most = words ? 160 : 184;
  else if (consumerWarpgroups(shape) == 2)
    most = words ? 168 : 176;
  return writesOddLines(draft) || accumulatorRegisters(draft, shape) <= most;
}

/// mma: registers of the fragments of two k steps.
static unsigned fragmentRegisters(const Draft &draft, const Shape &shape, const MatrixInstruction &matrix) {
  auto each = [&](MatrixRole role, int64_t blocks) {
    return unsigned(fragmentMap(matrix, role).registers.size() * blocks) * (draft.inputBits() == 64 ? 2 : 1);
  };
  return 2 * (each(MatrixRole::a, shape.warpM / matrix.rows()) + each(MatrixRole::b, shape.warpN / matrix.columns()));
}

// f64: m16n8k8 reads and writes the sums half as often as m16n8k4, which costs energy. 301 pairs of kernels whose warps
// have 16 k and more take 0.98 of the time on average, ten large ones in turns of 0.1 s 0.95 to 1.00; of 8 k, one step,
// 1.05 to 1.2 (H200, 2026-11-30, docs/hopper-types.md, *f64*).
const MatrixInstruction &matrixOf(const Draft &draft, const Shape &shape) {
  constexpr unsigned addresses = 36, most = 252;
  if (!draft.multipliesDoubles() || draft.spec().matrixShape.given)
    return *draft.matrix;
  const MatrixInstruction *deep = findInstruction(matrixInstructions(), 16, 8, 8, Elem::f64, Elem::f64);
  const unsigned taken = accumulatorRegisters(draft, shape) + fragmentRegisters(draft, shape, *deep) + addresses;
  const unsigned even = draft.limits.registersPerSM / std::max(32u, threadsOf(draft, shape));
  return shape.warpK >= 2 * deep->k && taken <= std::min(most, even) ? *deep : *draft.matrix;
}

namespace {
/// mma of 8-bit floats: what they leave where sm_90a, whose tensor cores have no such instruction, makes f16 of its
/// operands first, and where sums are promoted. 64x64 of a warp spills 8 to 100 bytes, 64x48 and 64x40 up to 32; 64x32
/// of sixteen warps, which have 128 registers each, 76 to 328 where sizes come at launch.
unsigned mostBesideFloats(const Draft &draft, unsigned registers) {
  const Spec &s = draft.spec();
  const bool floats = isFloat8(*s.a.type);
  const bool byElement = draft.promotes() && !draft.kMajorB(); // n of B is contiguous: 64 sums spilled 8 to 36 bytes
  return !floats || (*s.target != Target::sm_90a && !draft.promotes()) ? 255
         : registers > 128                                             ? (byElement ? 48 : 64)
                                                                       : 32;
}

/// mma of at most 32 bits: what the fragments of two steps leave. Of 680 kernels of random warps with 96 to 144 sums a
/// thread 80 spilled, of the 436 that this allows 9 (ptxas 13.0, 2026-11-28): 32x128 of 16 bits, whose steps have 80
/// registers, 16 to 200 bytes, 96x48 4 to 1000.
unsigned mostBesideFragments(const Draft &draft, const Shape &shape) {
  constexpr unsigned most = 128, withFragments = 192;
  if (draft.wmma() || draft.inputBits() == 64 || isFloat8(*draft.spec().a.type))
    return 255;
  const unsigned taken = fragmentRegisters(draft, shape, *draft.matrix);
  // Words of rows of B whose number and length come at launch: 128 sums spilled 12 bytes.
  const Spec &s = draft.spec();
  const bool launched = draft.inputBits() == 32 && !draft.kMajorB() && !s.n.value.fixed && !s.k.value.fixed;
  return std::min(launched ? 112 : most, withFragments > taken ? withFragments - taken : 0);
}

/// wgmma with A in registers: four for each 64 rows of 32 bytes of a warpgroup's stage.
unsigned heldRegisters(const Draft &draft, const Shape &shape) {
  if (!draft.holdsA())
    return 0;
  return unsigned(shape.warpM / 64 * (shape.k / draft.elementsIn(wgmmaDepthBytes)) * 4);
}

bool scales(const Draft &draft) { return draft.spec().beta.value != Scale{0.0} || draft.spec().alpha.value.dynamic(); }

/// Whether sums become 16 bits, and lines of D leave by TMA, with nothing in between.
bool leavesAsItLies(const Draft &draft) {
  const Spec &s = draft.spec();
  const bool turned = !storesAlongN(draft);
  return *s.store == StoreKind::tma && !turned && bitsOf(*s.d.type) == 16 && s.alpha.value == Scale{1.0};
}

/// f64 whose parts meet in the workspace: what a CTA that goes on to other tiles, sizes that come at launch, or warps
/// whose sums of a tile meet before, leave. 128 spilled 4 to 12 bytes (6 of 240 plans in slices for sm_90a, 3 of 4500
/// plans of all types for sm_80 and sm_86); by four warps of 8 of k 128 and 144 did 4 to 172 (24 of 194 given tiles).
unsigned mostBesideParts(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  const bool given = s.m.value.fixed && s.n.value.fixed && s.k.value.fixed;
  const bool walks = *s.split == SplitMode::stream_k || (s.persistent.given && *s.persistent == Persistence::on);
  const bool met = shape.slices() > 2;
  return draft.inputBits() == 64 && *s.split != SplitMode::none && (!given || walks || met) ? 112 : 255;
}

/// wgmma, three and more warpgroups, of whose 160 registers ptxas wants one wgmma's accumulators and 26 more within the
/// 128 of the start; `brings` C, which is `wide` if it is of 32 bits. Of 2542 tiles of all types (2026-11-29) those
/// beyond it spilled 16 to 72 bytes beside C: 192x24, of f32 256x24 and 128x72.
unsigned mostOfThree(const Shape &shape, bool brings, bool wide) {
  const bool odd = shape.warpN % 16 != 0;
  if (brings && shape.warpM == 192)
    return odd ? 24 : 48;
  if (!wide)
    return 96;
  if (!odd)
    return 76;
  return shape.warpM == 256 ? 32 : 64;
}

// What remains of a thread's registers for accumulators. The rest is for addresses, barriers and the epilogue (wgmma
// reads its operands from shared memory), or for the fragments of two k steps besides (mma).
unsigned registersForSums(const Draft &draft, const Shape &shape) {
  unsigned threads = std::max(32u, threadsOf(draft, shape));
  unsigned even = draft.limits.registersPerSM / threads; // each thread's share of the register file
  if (!draft.wgmma()) {
    unsigned limit = std::min({std::min(256u, even) * 5 / 8, mostBesideFloats(draft, even),
                               mostBesideParts(draft, shape), mostBesideFragments(draft, shape)});
    if (draft.inputBits() < 64)
      return limit;
    // Fragments of f64 are as large as its accumulators.
    unsigned taken = fragmentRegisters(draft, shape, *draft.matrix) + 32, all = std::min(255u, even);
    return std::min(limit, all > taken ? all - taken : 0);
  }
  // C takes some on its way, of f32 more: what ptxas 13 compiles without a spill, whatever the tile's width. Lines that
  // warps bring themselves take more where k is given at launch, f16 sums on their way to them, too.
  // So do lanes that bring C to their sums; beside a larger tile that is asked for they add it to lines of D, if lanes
  // store those.
  const Spec &s = draft.spec();
  const bool turnedC = *s.c.layout != *s.d.layout || promisedAlign(s.d) % 16 != 0;
  const bool fragments = *s.loadC == StoreKind::direct && s.beta.value != Scale{0.0} &&
                         (*s.store == StoreKind::tma || (*s.store == StoreKind::staged && turnedC && !s.block.given));
  const bool lines = fragments || *s.loadC == StoreKind::staged;
  const unsigned besideLines = fragments || *s.accumulator == Elem::f16 ? 144 : 160;
  if (shape.schedule == Schedule::pipelined)
    return std::min(255u, even) - (lines ? 48 : 32);
  bool brings = lines || *draft.spec().loadC == StoreKind::tma;
  const bool wide = brings && bytesOf(*draft.spec().d.type) == 4;
  const bool tall = shape.warpM == 192; // three blocks of rows
  const bool odd = shape.warpN % 16 != 0;
  unsigned limit = 0;
  switch (consumerWarpgroups(shape)) {
  case 1: // of 255; lanes that read lines of C, or write odd ones of D, keep more addresses
    limit = draft.shifts()          ? unsigned(sumsBesideShifter(draft))
            : lines                 ? besideLines
            : writesOddLines(draft) ? 184
            : wide                  ? 192
                                    : 208;
    break;
  case 2:
    // Of 232; the staged store and the streams of tiles keep more addresses, and with 192 ptxas spills.
    limit = *draft.spec().store == StoreKind::staged || *draft.spec().split == SplitMode::stream_k ? 184 : 200;
    if (writesOddLines(draft))
      limit = 176;
    if (brings)
      limit = wide && (odd || tall) ? 104 : wide || tall ? 144 : lines ? besideLines : 176;
    break;
  default:
    limit = mostOfThree(shape, brings, wide);
  }
  return std::min(limit, mostGathered(draft, shape));
}
} // namespace

/// wgmma: what is left where sums meet in the workspace: the addresses of parts lie beside them, and where they are
/// scaled what that takes, or what lanes need that store them. Of 6144 pinned tiles stored by TMA and 872 stored in all
/// ways those beyond it spilled 4 to 112 bytes (64x240 with C, 256x56 by one warpgroup, 128x120 stored by lanes, two of
/// 128x176 with C, three of 64x168).
/// Lanes that load A keep their addresses, too: beside scaled sums two of 64 x 208 of tf32 spill 4 bytes, two of
/// 128 x 128 8.
unsigned mostGathered(const Draft &draft, const Shape &shape) {
  if (!draft.wgmma() || *draft.spec().split == SplitMode::none || draft.meetsInCluster())
    return 255;
  if (draft.holdsA() && scales(draft))
    return shape.warpM > 64 ? 144 : 112;
  switch (consumerWarpgroups(shape)) {
  case 1:
    return shape.warpM == 256 ? 96 : scales(draft) || !leavesAsItLies(draft) ? 112 : 255;
  case 2:
    if (*draft.spec().loadC == StoreKind::staged)
      return 144;
    return scales(draft) || !leavesAsItLies(draft) ? 168 : 192;
  default:
    return scales(draft) ? 76 : 255;
  }
}

unsigned accumulatorLimit(const Draft &draft, const Shape &shape) {
  unsigned room = registersForSums(draft, shape), fragments = heldRegisters(draft, shape);
  return room > fragments ? room - fragments : 0;
}

// mma: fragments of two k steps take about as much again as half the accumulators, addresses the rest.
int64_t ctasByRegisters(const Draft &draft, const Shape &shape) {
  int64_t sums = accumulatorRegisters(draft, shape), each = sums * 8 / 5;
  if (draft.inputBits() == 64)
    each = std::max<int64_t>(each, sums + fragmentRegisters(draft, shape, matrixOf(draft, shape)));
  each = std::min<int64_t>(255, each + 40);
  return draft.limits.registersPerSM / (threadsOf(draft, shape) * each);
}

// setmaxnreg moves registers from the producer to the consumers; the sum over the warpgroups stays what the launch
// gives: 3 x 168 = 40 + 2 x 232, 4 x 128 = 32 + 3 x 160. Two warpgroups have 255 registers a thread anyway. One that
// shifts lines keeps its 168. Without a swizzle boxes are 16 bytes wide and so many that their places fill 32 registers
// (192 x 32 of m contiguous, shared, of a batch); few sums leave some.
std::pair<unsigned, unsigned> registerSplit(const Draft &draft, const Shape &shape) {
  if (!draft.wgmma() || shape.schedule == Schedule::pipelined)
    return {0, 0};
  if (draft.shifts() && accumulatorRegisters(draft, shape) <= sumsOfEvenShare)
    return {0, 0};
  constexpr unsigned fewSums = 48;
  const bool manyBoxes = *draft.spec().swizzle == Swizzle::none;
  switch (threadsOf(draft, shape)) {
  case 384:
    return {40, 232};
  case 512:
    return manyBoxes && accumulatorRegisters(draft, shape) <= fewSums ? std::pair(56u, 152u) : std::pair(32u, 160u);
  default:
    return {0, 0};
  }
}

} // namespace gemmc::plan
