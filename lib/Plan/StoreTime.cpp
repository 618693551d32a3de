// How long D takes to leave, by SM clocks: the part of the planner's clock that a tile pays once.
#include "Clock.h"

namespace gemmc::plan {
namespace {
/// Bytes of D that an SM stores in a clock.
double storeBytes(const Premises &on) { return on.wgmma ? 50 : 24; }
constexpr double storedByPort = 15, loadedByPort = 95; ///< Bytes a clock, of a product that waits for sectors.
} // namespace

// A fit to 2319 kernels of 53 products of 900 to 9000 rows and columns, multiples of 8, k of 264 to 2816, in all
// layouts, beside all else that this clock has. Over products left out of it the choice is 2.3% slower than the best of
// 41 or 57 kernels, 3.2% before. Of 88 products of 280 to 8000 rows and columns and k of 290 to 8040, measured before
// there was a fit, it changes 15: 13 of them are as fast as before or up to 5.5% faster, two 0.2 and 0.7% slower (H200,
// 2026-11-27, docs/hopper-l2.md, *Parts of lines*). Shorter sides got worse; where all rows start at lines, of C and of
// sums in f16 nothing was measured.
bool storesAreKnown(const Draft &draft) {
  constexpr int64_t leastSide = 512, leastK = 256, mostK = 8192;
  const Spec &s = draft.spec();
  const int64_t k = draft.plannedK();
  return isPlain(draft) && *s.store == StoreKind::tma && *s.split == SplitMode::none && k >= leastK && k <= mostK &&
         std::min(draft.plannedM(), draft.plannedN()) >= leastSide &&
         (rowsStartInsideLines(draft) || !startsAt(s.d, lineBytes));
}

double crowdedStore(const Premises &on, double store, double main) {
  constexpr double each = 5;
  return on.storesAreKnown ? 1 + each * store / main : 1;
}

double leastStoreClocks(const Premises &on, const Shape &shape) {
  return double(shape.m) * double(shape.n) * bytesOf(*on.draft.spec().d.type) / storeBytes(on);
}

double storeClocks(const Premises &on, const Shape &shape) {
  constexpr double ofLinesOfC = 0.14, ofOddD = 0.24; // an element of a warpgroup
  const double bytes = leastStoreClocks(on, shape);
  if (!on.wgmma || *on.draft.spec().loadC != StoreKind::staged)
    return bytes;
  const double each = ofLinesOfC + (on.writesOddLines ? ofOddD : 0);
  return std::max(bytes, each * double(shape.warpM) * double(shape.warpN));
}

/// A warpgroup's tile that has whole lines of D writes them one after the other: no sector is another's, too, but for
/// its first and last.
static bool hasWholeLines(const Premises &on, const Shape &shape) { return on.storesAlongN && shape.warpN >= on.n; }

double looseClocks(const Premises &on, const Shape &shape) {
  constexpr double of32 = 1.25, of16 = 1.75, of8 = 3.5; // columns: clocks of a row
  constexpr double underPingpong = 0.5, ofStore = 0.5;
  if (!on.storesAreKnown) {
    const bool odd = on.wgmma && shape.warpN % 16 != 0 && !hasWholeLines(on, shape) && !on.insideSectors();
    return odd ? ofStore * double(shape.m) * double(shape.n) * 2 / storeBytes(on) : 0;
  }
  if (!on.storesAlongN)
    return 0; // of its m a warpgroup has 64 rows at a time: whole 128 bytes
  const bool cutsSectors = on.sectorsOfD;
  const double ofRow =
      (shape.warpN & 32 ? of32 : 0) + (shape.warpN & 16 ? of16 : 0) + (shape.warpN & 8 && cutsSectors ? of8 : 0);
  const double warps = double(shape.n) / double(shape.warpN);
  return ofRow * double(shape.m) * warps * (shape.schedule == Schedule::pingpong ? underPingpong : 1);
}

static double bytesOfD(const Draft &draft) {
  return double(draft.plannedBatch()) * double(draft.plannedM()) * double(draft.plannedN()) *
         bytesOf(*draft.spec().d.type);
}

/// Whether D decides: of few k, and no C.
static bool isMostlyD(const Draft &draft) {
  constexpr int64_t mostBytes = 384; // of k
  const Spec &s = draft.spec();
  return !draft.stream && *s.split == SplitMode::none && !draft.inCluster() &&
         draft.plannedK() <= draft.elementsIn(mostBytes) && s.beta.value == Scale{0.0} && !s.d.ld.value.dynamic();
}
/// ... and its lines start inside sectors.
static bool cutsSectors(const Draft &draft) { return isMostlyD(draft) && !startsAt(draft.spec().d, sectorBytes); }
static constexpr double heldByL2 = 50e6; // bytes of D

bool waitsForSectors(const Draft &draft) {
  constexpr double leastD = 6e6; // bytes: smaller ones leave in one wave, whose last tile decides
  return draft.wgmma() && cutsSectors(draft) && !draft.holdsA() && bytesOfD(draft) >= leastD;
}

bool keepsTilesTogether(const Draft &draft) {
  constexpr double twice = 2;
  const Spec &s = draft.spec();
  const bool other =
      (s.scheduler.given && *s.scheduler != Scheduler::dynamic) ||
      (s.cluster.given && (*s.cluster)[0] * (*s.cluster)[1] > 1) || (s.storeOverlap.given && *s.storeOverlap > 0) ||
      (s.persistent.given && *s.persistent == Persistence::off) ||
      (s.schedule.given && *s.schedule == Schedule::pipelined) || (s.trigger.given && *s.trigger == Trigger::sums);
  return draft.wgmma() && !other && isMostlyD(draft) && !draft.shifts() &&
         bytesOfD(draft) >= heldByL2 * (startsAt(s.d, sectorBytes) ? twice : 1);
}

bool collectsSectors(const Draft &draft) {
  constexpr int64_t widest = 128; // columns of a tile of mma
  const Spec &s = draft.spec();
  const bool other = s.store.given && *s.store != StoreKind::staged;
  return *s.target == Target::sm_90a && *s.instruction == Instruction::mma && !other && cutsSectors(draft) &&
         storesAlongN(draft) && draft.plannedN() > widest && bytesOfD(draft) >= heldByL2;
}

double filledPart(const Premises &on, const Shape &shape) {
  auto filled = [](int64_t extent, int64_t tile) {
    return double(extent) / double(llvm::divideCeil(extent, tile) * tile);
  };
  return filled(on.m, shape.m) * filled(on.n, shape.n);
}

/// Bytes of D that an SM writes for its tiles.
static double bytesByPort(const Premises &on, const Shape &shape, double waves) {
  return waves * double(shape.m * shape.n) * bytesOf(*on.draft.spec().d.type);
}

double leastSectorClocks(const Premises &on, const Shape &shape, double clocks, double waves) {
  const double port = bytesByPort(on, shape, waves) / storedByPort;
  const double loads = waves * double(shape.m + shape.n) * double(on.k) * on.inputBits / 8.0 / loadedByPort;
  return std::max(clocks, port) + loads;
}

double sectorClocks(const Premises &on, const Shape &shape, double clocks, double waves) {
  constexpr double ofMemory = 1800;                      // bytes of a clock
  constexpr double odd = 4.4, half = 0.5, ofBoxes = 0.4; // what a sector costs that two tiles, or two boxes, write
  const Spec &s = on.draft.spec();
  const double m = double(on.m), n = double(on.n), batch = double(on.batch);
  const double input = on.inputBits / 8.0, k = double(on.k), result = double(bytesOf(*s.d.type));
  const double each = promisedAlign(s.d) < 16 ? odd : half;
  const double parts = !writesWholeSectors(on.draft, shape) ? ofBoxes // columns of 64 do so wherever they meet
                       : hasWholeLines(on, shape)           ? 0
                                                            : each * sectorBytes / (double(shape.warpN) * result);
  const double memory = batch * ((m + n) * k * input + m * n * result * (1 + parts)) / ofMemory;
  const double port = bytesByPort(on, shape, waves) / storedByPort;
  const double steps = std::ceil(k / double(shape.k));
  const double loads = waves * double(shape.m + shape.n) * steps * double(shape.k) * input / loadedByPort;
  return atOnce<5>({clocks, port, memory}) + loads;
}

/// Requests of lines of the L2 for one tile of an operand: `rows` of it and all k.
static double linesAsked(const Premises &on, const Premises::Operand &operand, int64_t rows, int64_t tileK) {
  constexpr double ofInside = 0.6; // more, where rows reach into another line and sector
  auto lines = [&](int64_t elements) { return double(llvm::divideCeil(elements * on.inputBits, lineBytes * 8)); };
  const double asked = operand.kMajor ? double(rows * llvm::divideCeil(on.k, tileK)) * lines(std::min(tileK, on.k))
                                      : double(on.k) * lines(rows);
  return asked * (operand.insideSectors ? 1 + ofInside : 1);
}

double countedClocks(const Premises &on, const Shape &shape, double clocks, double tiles, double waves) {
  constexpr double ofMemory = 2200, ofL2 = 4000, ofPort = 20, requests = 50; // bytes, and requests, of a clock
  constexpr double odd = 9, each = 2.5, ofBoxes = 0.6; // what a sector costs that two tiles, or two boxes, write
  constexpr double large = 0.06, area = 32768;         // bytes: fewer tiles are under way
  constexpr double ofTurns = 0.02, turned = 0.03;
  const Spec &s = on.draft.spec();
  const double m = double(on.m), n = double(on.n), batch = double(on.batch), result = double(bytesOf(*s.d.type));
  const double line = double(shape.warpN) * result, tile = double(shape.m * shape.n) * result;
  const double parts = on.sectorsOfD                          ? (on.storesAlongN ? 0 : turned)
                       : !writesWholeSectors(on.draft, shape) ? ofBoxes
                       : hasWholeLines(on, shape)             ? 0
                       : promisedAlign(s.d) < 16              ? odd * sectorBytes / line
                                                              : each * sectorBytes / line;
  const double stored = batch * m * n * result * (1 + parts + large * std::max(0.0, tile / area - 1));
  const double memory = (batch * (m + n) * double(on.k) * on.inputBits / 8.0 + stored) / ofMemory;
  const double asked =
      tiles * (linesAsked(on, on.a, shape.m, shape.k) + linesAsked(on, on.b, shape.n, shape.k)) / requests;
  const double port = bytesByPort(on, shape, waves) * filledPart(on, shape) / ofPort;
  return atOnce<5>({clocks, memory, port, asked + stored / ofL2}) *
         (shape.schedule == Schedule::pingpong ? 1 + ofTurns : 1);
}

double halfSectorClocks(const Premises &on, const Shape &shape, double waves, double main, double store) {
  constexpr double rate = 16, setApart = 8;
  const int64_t bytes = bytesOf(*on.draft.spec().d.type);
  if (!on.wgmma || !on.storesAlongN || shape.warpN * bytes % sectorBytes == 0 || hasWholeLines(on, shape) ||
      (on.keepsTilesTogether && !on.sectorsOfD)) // `countedClocks` has them
    return 0;
  const double tile = double(shape.m * shape.n * bytes) / rate;
  const double last = shape.schedule == Schedule::pingpong ? 0 : tile * std::min(1.0, setApart * store / main);
  return last + (waves - 1) * std::max(0.0, tile + store - main);
}

} // namespace gemmc::plan
