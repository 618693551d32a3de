// What the planner's clock asks of a draft, whatever the shape is.
#include "Clock.h"

namespace gemmc::plan {
double productsOfDoubles(const Draft &draft) { return *draft.spec().target == Target::sm_90a ? 128 : 64; }

bool isPlain(const Draft &draft) {
  const Spec &s = draft.spec();
  return draft.wgmma() && !draft.stream && !draft.holdsA() && draft.inputBits() == 16 && *s.accumulator == Elem::f32 &&
         bytesOf(*s.d.type) == 2 && s.beta.value == Scale{0.0};
}

namespace {
Rates ratesOf(const Draft &draft) {
  if (draft.wgmma())
    return {wgmmaProducts * 16.0 / draft.inputBits(), 128, 168};
  // The rate follows the width of the elements, but for f64.
  bool wide = *draft.spec().a.type == Elem::f64;
  double products = wide ? productsOfDoubles(draft) : 1024 * 16.0 / draft.inputBits();
  switch (*draft.spec().target) {
  case Target::sm_86:
  case Target::sm_89:
    return {wide ? 2 : products / 2, 128, 32};
  default:
    return {products, 128, 44};
  }
}

/// Products long enough (multiply-adds).
bool atPowerLimit(const Draft &draft) {
  constexpr double longProduct = 34e9;
  double m = double(draft.plannedM()), n = double(draft.plannedN());
  return m * n * double(draft.plannedK()) * double(draft.plannedBatch()) > longProduct;
}

/// What nobody has measured goes by clocks: streams, slices (but beside whole tiles, whose measure is theirs), other
/// types, pitches of 16 bytes.
bool energyIsKnown(const Draft &draft) {
  const Spec &s = draft.spec();
  return draft.wgmma() && !draft.stream && (*s.split == SplitMode::none || draft.way.slices > 1) &&
         draft.inputBits() == 16 && *s.accumulator == Elem::f32 && !rowsSplitSectors(draft);
}

bool hasFewSteps(const Draft &draft) {
  constexpr int64_t mostOfFit = 2816;
  return storesAreKnown(draft) && draft.plannedK() <= mostOfFit;
}

/// k too short leaves nothing to multiply meanwhile.
bool mayOverlapStores(const Draft &draft) {
  return asksForHalves(draft) || draft.plannedK() > (fewStepsBesideStores - 1) * draft.elementsIn(lineBytes);
}

/// `sent`, `received` and `pairs` of `usual` are of the races that MainLoop.cpp names.
constexpr Fit usual{.sent = 93.5, .sentTogether = 93.5, .received = 130, .requests = true, .pairs = 1.03, .inARow = 1};
/// Long products with k contiguous in one operand and not in the other, rows of which start inside sectors: 1543
/// kernels of 70 products and 73 pairs of plans (H200, 2026-11-30, docs/hopper-shapes.md, *Rows along k beside
/// others*).
constexpr Fit mixed{.sent = 109, .sentTogether = 95, .received = 153, .requests = false, .pairs = 1.04, .inARow = 1.03};

/// Shorter ones took as long by either, of few k and with a short side longer by `mixed`. With C, D in 32 bits, sums in
/// f16, operands that lanes turn and batches were not measured.
const Fit &fitOf(const Draft &draft) {
  constexpr int64_t leastSide = 512, leastK = 1000;
  constexpr double leastProducts = 8e9;
  const double m = double(draft.plannedM()), n = double(draft.plannedN()), k = double(draft.plannedK());
  const bool isMixed = draft.kMajorA() != draft.kMajorB() && rowsStartInsideSectors(draft);
  const bool isLong = std::min(m, n) >= leastSide && k >= leastK && m * n * k >= leastProducts;
  return isPlain(draft) && !isBatch(draft.spec()) && isMixed && isLong ? mixed : usual;
}

Premises::Operand operandOf(const Draft &draft, const OperandSpec &operand, bool kMajor) {
  return {kMajor, rowStep(draft, operand), rowsStartInsideSectors(draft, operand)};
}
} // namespace

Premises::Premises(const Draft &draft)
    : draft(draft), m(draft.plannedM()), n(draft.plannedN()), k(draft.plannedK()), batch(draft.plannedBatch()),
      wgmma(draft.wgmma()), streamed(draft.stream.has_value()), skinny(isSkinny(draft)), inputBits(draft.inputBits()),
      a(operandOf(draft, draft.kernelA(), draft.kMajorA())), b(operandOf(draft, draft.kernelB(), draft.kMajorB())),
      holdsA(draft.holdsA()), shifts(draft.shifts()), promotes(draft.promotes()),
      multipliesDoubles(draft.multipliesDoubles()), measuredTiles(hasMeasuredTiles(draft)),
      slicesInMemory(draft.slicesInMemory()), rates(ratesOf(draft)), atPowerLimit(plan::atPowerLimit(draft)),
      energyIsKnown(plan::energyIsKnown(draft)), sharesSums(mayShareSums(draft)),
      storesAreKnown(plan::storesAreKnown(draft)), fewStepsAreKnown(hasFewSteps(draft)),
      waitsForSectors(plan::waitsForSectors(draft)), keepsTilesTogether(plan::keepsTilesTogether(draft)),
      collectsSectors(plan::collectsSectors(draft)), mayOverlapStores(plan::mayOverlapStores(draft)),
      storesAlongN(plan::storesAlongN(draft)), writesOddLines(plan::writesOddLines(draft)),
      sectorsOfD(startsAt(draft.spec().d, sectorBytes)), linesOfD(startsAt(draft.spec().d, lineBytes)),
      doubt(doubtOf(draft)), fit(fitOf(draft)) {}

} // namespace gemmc::plan
