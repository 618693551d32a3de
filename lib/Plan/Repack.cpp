// Operands that TMA cannot read as they lie: whether a kernel in front copies them to rows that it can read, whether
// the product's own kernel shifts the lines of one or both into place, or mma reads them by narrow copies. A copy costs
// the bytes of the operand twice; what both buy is wgmma.
#include "Streams.h"
#include <cmath>
#include <limits>

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr double copyRate = 4e12;     // bytes a second, read and written (H200: 4.3e12 at best)
constexpr double launchTime = 1.3e-6; // seconds that one more kernel takes, which overlaps with the product
constexpr double startTime = 1.2e-6;  // until a kernel's first products, and from its last ones to the end
constexpr double wgmmaRate = 650e12;  // operations a second of a large product, under sustained load
constexpr int64_t tileEdge = 64;      // the smallest block tiles: the SMs of a partial wave stand still
constexpr double never = std::numeric_limits<double>::infinity();

/// Operations a second of mma kernels on 16-bit inputs whose copies move so many bytes at a time.
double mmaRate(unsigned copyBytes) {
  return copyBytes >= 16 ? 400e12 : copyBytes >= 8 ? 300e12 : copyBytes >= 4 ? 150e12 : 50e12;
}

/// Seconds that such a kernel takes for each k at least: its few stages wait for what they have asked for.
double mmaLatency(unsigned copyBytes) {
  return copyBytes >= 16 ? 5e-9 : copyBytes >= 8 ? 9.2e-9 : copyBytes >= 4 ? 16.5e-9 : 25e-9;
}

/// Seconds of the product alone.
double productTime(const Draft &draft, double rate) {
  double tiles = double(draft.plannedBatch()) * std::ceil(double(draft.plannedM()) / tileEdge) *
                 std::ceil(double(draft.plannedN()) / tileEdge);
  double waves = std::ceil(tiles / draft.limits.sms);
  const double depth = double(draft.plannedK()) * draft.inputBits() / 16; // rates are those of 16-bit inputs
  return waves * 2 * tileEdge * tileEdge * depth / (rate / draft.limits.sms);
}

/// ... by mma. Of 70 products that it had been chosen for, when nothing but its rate was looked at, 53 were faster with
/// a copy or shifted lines, 1.3 times on average and up to three times; what is chosen now is within 10% of the faster
/// one of both but for a few (H200, 2026-11-26, docs/hopper-l2.md, *Pitches of 8 bytes*).
double mmaTime(const Draft &draft) {
  // A byte of D, beyond what it takes wgmma's epilogues; in rows that start at multiples of 2 or 4 bytes.
  constexpr double stores = 0.3e-12, narrowStores = 1.5e-12;
  const Spec &s = draft.spec();
  const unsigned narrow = std::min(promisedAlign(s.a), promisedAlign(s.b));
  const double stored =
      double(draft.plannedBatch()) * double(draft.plannedM()) * double(draft.plannedN()) * bytesOf(*s.d.type);
  // Elements that are read one by one, because k is not contiguous in one operand or in both: 4096^3 of tf32 takes 671
  // and 922 us, of s8 375 and 617, of e4m3 511 and 909, and 364 where it is (H100, 2026-11-26; by these rates 687, and
  // 172 of 8 bits).
  constexpr double wide[] = {1, 1, 1.35}, narrowOnes[] = {1, 2.2, 3.6}, floats[] = {2.1, 3, 5.3};
  const int turned = int(draft.needsTurning(s.a)) + int(draft.needsTurning(s.b));
  const double slower = draft.inputBits() > 8  ? wide[turned]
                        : isInteger(*s.a.type) ? narrowOnes[turned]
                                               : floats[turned];
  return std::max(slower * productTime(draft, mmaRate(narrow)), mmaLatency(narrow) * double(draft.plannedK())) +
         (promisedAlign(s.d) < 8 ? narrowStores : stores) * stored;
}

double bytesOfOperand(const Spec &s, const OperandInfo &info) {
  const OperandSpec &operand = s.*info.operand;
  const double matrices = operand.batchStride.value == Size{0} ? 1 : double(typicalBatch(s));
  return matrices * double(typicalSize(s, info.rows)) * double(typicalSize(s, info.cols)) * bytesOf(*operand.type);
}
} // namespace

double secondsOfCopies(const Draft &draft) {
  constexpr double launch = 0.87e-6, turnsBytes = 1e-6, turnsWords = 0.57e-6, startsAnywhere = 0.62e-6;
  constexpr double ofByte = 0.43e-12, ofLine = 0.136e-9; // a warp moves one line, however short
  const Spec &s = draft.spec();
  double moved = 0, turning = 0, narrow = 0;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    const OperandSpec &operand = s.*info.operand;
    if (*operand.repack != Repack::on)
      continue;
    const double line = double(*contiguousExtent(s, info).fixed) * bytesOf(*operand.type);
    moved += std::max(ofByte, ofLine / line) * bytesOfOperand(s, info);
    if (draft.turns(operand))
      turning = draft.inputBits() == 8 ? turnsBytes : turnsWords;
    if (promisedAlign(operand) < 4)
      narrow = startsAnywhere;
  }
  return moved > 0 ? launch + turning + narrow + moved : 0;
}

namespace {
std::string amount(double bytes) {
  return bytes < 1e5 ? formatv("{0:f1} kB", bytes / 1e3) : formatv("{0:f1} MB", bytes / 1e6);
}

/// Whether TMA can read the rows as they lie, which of a dynamic ld is a requirement of the launch.
bool startsAtMultiplesOf16(const OperandSpec &operand) {
  return !tooFarForTma(operand) && promisedAlign(operand) % 16 == 0;
}

/// ... and wgmma those.
bool readable(const Draft &draft, const OperandSpec &operand) {
  return startsAtMultiplesOf16(operand) && !draft.needsTurning(operand);
}
} // namespace

void refuseRepack(Draft &draft, const std::string &why, bool reported) {
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    Field<Repack> &repack = (draft.spec().*info.operand).repack;
    repack.decide(Repack::off, why);
    if (*repack != Repack::off && !reported)
      draft.diags.report(Diag::plan_repack, repack.range, info.name, nameOf(*repack), why).fix(repack.range, "off");
  }
}

namespace {
/// Why lanes cannot turn an operand that wgmma does not read as it lies; empty: they can. They read it from shared
/// memory into registers, from which wgmma takes the kernel's A.
std::string whyNotTurnedInside(const Draft &draft, const OperandInfo &info) {
  const Spec &s = draft.spec();
  const OperandSpec &operand = s.*info.operand;
  if (draft.inputBits() != 32)
    return formatv("lanes turn elements of 32 bits: `{0}.type` is {1}", info.name, nameOf(*operand.type));
  if (const bool isB = &operand == &s.b; s.swapOperands.given && (*s.swapOperands == Persistence::on) != isB)
    return formatv("wgmma takes its A alone from registers: `swap_operands` is {0}", nameOf(*s.swapOperands));
  if (const Field<Repack> &other = (&operand == &s.a ? s.b : s.a).repack; other.given && *other == Repack::inside)
    return "lanes turn one of both operands";
  // Of shorter rows there are so many boxes that the producer spills.
  if (s.swizzle.given && *s.swizzle != Swizzle::b128)
    return formatv("lanes read rows of 128 bytes: `swizzle` is {0}", nameOf(*s.swizzle));
  if (!startsAtMultiplesOf16(operand))
    return formatv("rows start at multiples of {0} bytes, TMA reads multiples of 16, less than 2^40 apart",
                   promisedAlign(operand));
  const Field<FragmentLoad> &load = &operand == &s.a ? s.fragmentsA : s.fragmentsB;
  if (load.given && *load != FragmentLoad::lds)
    return formatv("lanes read elements one by one (`lds`): `fragments.{0}` is {1}", info.name, nameOf(*load));
  return "";
}

/// Why the product's kernel cannot shift the lines of an operand into place on their way; empty: it can. They come by
/// TMA in eight boxes, of the lines that lie alike to multiples of 16 bytes, and a warpgroup writes them where wgmma
/// reads them.
std::string whyNotInside(const Draft &draft, const OperandInfo &info) {
  const Spec &s = draft.spec();
  const OperandSpec &operand = s.*info.operand;
  if (draft.needsTurning(operand))
    return whyNotTurnedInside(draft, info);
  if (draft.inputBits() == 32 && startsAtMultiplesOf16(operand))
    return formatv("k is contiguous: wgmma reads `{0}` as it lies", info.name);
  if (draft.inputBits() != 16)
    return formatv("a warpgroup shifts elements of 16 bits: `{0}.type` is {1}", info.name, nameOf(*operand.type));
  if (operand.ld.value.dynamic())
    return formatv("how far lines are off must be known: `{0}.ld` is dynamic", info.name);
  if (int64_t most = mostDistanceOfTma / 8 / int64_t(bytesOf(*operand.type)); *operand.ld.value.fixed > most)
    return formatv("tensor maps have lines less than 2^40 bytes apart, here of every eighth line: `{0}.ld` is {1}, at "
                   "most {2}",
                   info.name, *operand.ld.value.fixed, most);
  for (auto [size, name] : {std::pair{&Spec::m, "m"}, {&Spec::n, "n"}, {&Spec::k, "k"}})
    if ((size == info.rows || size == info.cols) && ((s.*size).value.dynamic() || (s.*size).value.typical))
      return formatv("eight tensor maps share the lines of a known matrix: `{0}` is dynamic", name);
  if (isBatch(s)) {
    const Size &stride = operand.batchStride.value;
    if (stride.dynamic() || stride.typical)
      return formatv("how far lines are off must be known: `{0}.batch_stride` is dynamic", info.name);
    // Of matrices that lie in other ways than the first one, each line is found by the 16 bytes that it begins in.
    const int64_t products = s.batch.value.fixed.value_or(1);
    if (products > mostShiftedProducts(*stride.fixed))
      return formatv("tensor maps count pieces of 16 bytes in 31 bits: {0} matrices of `{1}` are {2} elements apart",
                     products, info.name, *stride.fixed);
  }
  constexpr int64_t longest = 2147483647 - 7; // a map begins up to 7 elements in front of a line
  if (int64_t length = *contiguousExtent(s, info).fixed; length > longest)
    return formatv("tensor maps count in 31 bits: a line of `{0}` has {1} elements", info.name, length);
  const auto linesAlong = *operand.layout == Order::row ? info.rows : info.cols;
  if (int64_t lines = *(s.*linesAlong).value.fixed; lines < 8 && linesAlong == &Spec::k)
    return formatv("eight tensor maps share the lines of k: `{0}` has {1}", info.name, lines);
  if (*operand.align % 16 != 0)
    return formatv("the first line starts at a multiple of 16 bytes: `{0}.align` promises {1}", info.name,
                   *operand.align);
  if (s.schedule.given && *s.schedule != Schedule::cooperative)
    return formatv("the warpgroup that shifts feeds cooperative ones: `pipeline.schedule` is {0}", nameOf(*s.schedule));
  if (s.scheduler.given && *s.scheduler != Scheduler::fixed)
    return "the warpgroup that shifts knows its tiles by itself: `raster.scheduler` is dynamic";
  if (s.swizzle.given && *s.swizzle != Swizzle::b128)
    return formatv("lines are written with swizzle 128B: `swizzle` is {0}", nameOf(*s.swizzle));
  if (s.cluster.given && (*s.cluster)[0] * (*s.cluster)[1] != 1)
    return "CTAs do not share lines that are shifted: `tile.cluster` is not 1 along m and n";
  if (((s.split.given && *s.split != SplitMode::none) || draft.asksForSlices()) &&
      !(s.splitThrough.given && draft.inCluster()))
    return "slices of k meet in the cluster (`split.through: cluster`) where lines are shifted";
  if (s.inFlight.given && *s.inFlight >= shiftedStages)
    return formatv("of what was shifted there are {0} tiles: `pipeline.in_flight` is {1}", shiftedStages, *s.inFlight);
  for (const Field<FragmentLoad> *load : {&s.fragmentsA, &s.fragmentsB})
    if (load->given && **load != FragmentLoad::descriptor)
      return "wgmma reads what was shifted from shared memory: fragments are not `descriptor`";
  return "";
}

// What a skinny product takes beyond its own estimate (StreamTime.cpp, ShiftTime.cpp), nanoseconds and bytes a
// nanosecond. Where lines of the long operand are shifted, the copy of the short one in front: half of what it is, as
// small products in slices take some 1.2 us less than estimated. Where TMA reads the long operand as it lies, such a
// copy (seven products, 20:37). Where both are copied: more for the product, whose launch lies under the copy; the
// copy; and what of it the L2 does not keep. Of 42 products, each way, it takes the slower one seven times (H200,
// 2026-11-27, docs/hopper-l2.md, *Lines that start anywhere*).
constexpr double shortCopyLaunch = 600, shortCopyRate = 2500;
constexpr double shortCopyAlone = 1500, shortCopyAloneRate = 1250;
constexpr double behindCopy = 1.76, launchUnderCopy = 1460, copyRateOfL2 = 6760, keptBytes = 8e6, broughtAgain = 4120;

double copiedBytes(const Draft &draft) {
  double bytes = 0;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2))
    if (*(draft.spec().*info.operand).repack == Repack::on)
      bytes += bytesOfOperand(draft.spec(), info);
  return bytes;
}

} // namespace

double copyBesideShifted(const Draft &draft) {
  const double bytes = draft.shifts() ? copiedBytes(draft) : 0;
  return bytes > 0 ? shortCopyLaunch + bytes / shortCopyRate : 0;
}

namespace {
/// Nanoseconds of a skinny product whose operands are read so, as far as TMA cannot read them as they lie: of the
/// fastest cut, and of the copies in front of it.
double timeWith(const Draft &draft, Repack ofLong, Repack ofShort) {
  Draft tried = draft;
  Spec &s = tried.spec();
  s.instruction.value = Instruction::wgmma;
  const OperandSpec *streamed = longOperand(tried);
  for (OperandSpec *operand : {&s.a, &s.b})
    operand->repack.value = readable(tried, *operand) ? Repack::off : operand == streamed ? ofLong : ofShort;
  const std::optional<Stream> way = fastestStream(tried);
  if (!way || (tried.shifts() && s.stages.given && StagesOfShifted(tried).of(*way) < *s.stages))
    return never;
  const double product = way->nanoseconds, bytes = copiedBytes(tried);
  if (tried.shifts())
    return product + copyBesideShifted(tried);
  if (*streamed->repack == Repack::off)
    return product + shortCopyAlone + bytes / shortCopyAloneRate;
  return behindCopy * product - launchUnderCopy + bytes / copyRateOfL2 +
         std::max(0.0, bytes - keptBytes) / broughtAgain;
}

/// Whether a warpgroup shifts lines of the long operand, the short one or both (null: it cannot), which is decided
/// where that is faster than copies and than what takes `slow` seconds, or where the spec says so of one. Returns
/// whether copies are faster than that.
bool decideShifted(Draft &draft, const OperandInfo *streamed, const OperandInfo *beside, double slow) {
  Spec &s = draft.spec();
  auto given = [&](const OperandInfo *info) { return info && (s.*info->operand).repack.given; };
  const bool batched = draft.way.batched, alone = batched && !beside; // `wayOfLines` compares batches with whole plans
  const double copied = batched ? never : timeWith(draft, Repack::on, Repack::on),
               ofLong = !streamed ? never
                        : alone   ? 0
                                  : timeWith(draft, Repack::inside, Repack::on),
               ofShort = given(beside) ? timeWith(draft, Repack::on, Repack::inside) : never,
               ofAll = beside ? timeWith(draft, Repack::inside, Repack::inside) : never,
               least = std::min(ofLong, ofAll);
  const bool shallow = draft.way.shallow && beside;
  bool shifts = shallow || given(streamed) || least < std::min(copied, slow * 1e9);
  if (given(beside))
    shifts = shallow || ofAll < ofShort;
  auto decide = [&](const OperandInfo &info, const std::string &how) {
    Field<Repack> &repack = (s.*info.operand).repack;
    repack.decide(Repack::inside,
                  formatv("rows start at multiples of {0} bytes, TMA reads multiples of 16: a warpgroup shifts {1}",
                          promisedAlign(s.*info.operand), how));
  };
  if (streamed && shifts)
    decide(*streamed, "them into place on their way, which costs no second trip through memory");
  if (beside && shifts && (shallow || ofAll < ofLong))
    decide(*beside, formatv("the {0} beside what is streamed, so that no kernel has to copy them in front",
                            amount(bytesOfOperand(s, *beside))));
  return copied < slow * 1e9;
}
} // namespace

void decideRepack(Draft &draft, llvm::StringRef asked) {
  Spec &s = draft.spec();
  constexpr const char *fine = "TMA reads it as it lies";
  double bytes = 0;
  bool refused = false;                  // by the spec: then TMA is out of the question
  bool turns = false;                    // lanes turn an operand; there is room for one
  const OperandInfo *streamed = nullptr; // the long operand, if its lines may be shifted
  const OperandInfo *beside = nullptr;   // the short operand, if its lines may
  const OperandSpec *longOne = longOperand(draft);
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    OperandSpec &operand = s.*info.operand;
    std::string obstacle = whyNotInside(draft, info);
    if (operand.repack.given && *operand.repack == Repack::inside) {
      if (obstacle.empty()) {
        turns |= draft.needsTurning(operand);
        if (longOne && !draft.needsTurning(operand))
          (longOne == &operand ? streamed : beside) = &info;
        continue;
      }
      draft.diags.report(Diag::plan_repack, operand.repack.range, info.name, nameOf(*operand.repack), obstacle)
          .fix(operand.repack.range, readable(draft, operand) ? "off" : "on");
      operand.repack.value = Repack::on; // what follows is judged without it
    }
    if (readable(draft, operand))
      continue;
    bytes += bytesOfOperand(s, info);
    if (draft.needsTurning(operand) && !operand.repack.given && obstacle.empty())
      draft.turnable.push_back(&info);
    refused |= operand.repack.given && *operand.repack == Repack::off;
    if (!operand.repack.given && longOne && obstacle.empty())
      (longOne == &operand ? streamed : beside) = &info;
  }
  unsigned narrow = std::min(promisedAlign(s.a), promisedAlign(s.b));
  double copy = bytes > 0 ? 2 * bytes / copyRate + launchTime : 0, fast = productTime(draft, wgmmaRate),
         slow = mmaTime(draft);
  draft.secondsByMma = slow + startTime;
  bool pays = copy + fast < slow;
  if (!streamed && !(longOne && !longOne->repack.given && readable(draft, *longOne)))
    beside = nullptr; // a kernel in front copies the long operand anyway
  if ((streamed || beside) && !refused && !turns)
    pays |= decideShifted(draft, streamed, beside, asked.empty() && !draft.way.batched ? slow + startTime : never) &&
            streamed;
  auto times = [&] { // of small products by mma `planByMma` knows better
    const std::string byMma =
        pays && hasSmallD(draft) ? "" : formatv("; mma by {0}-byte copies {1:f1} us", narrow, slow * 1e6).str();
    return formatv("a copy of {0} takes {1:f1} us (read and written at 4 TB/s, 1.3 us to launch) and wgmma then {2:f1} "
                   "us{3}",
                   amount(bytes), copy * 1e6, fast * 1e6, byMma)
        .str();
  };
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    OperandSpec &operand = s.*info.operand;
    bool shifted = *operand.repack == Repack::inside && (operand.repack.given || streamed == &info || beside == &info);
    if (shifted) // decided above
      continue;
    if (readable(draft, operand)) {
      operand.repack.decide(Repack::off, fine);
      continue;
    }
    const std::string rows =
        draft.needsTurning(operand)
            ? formatv("wgmma reads {0} with k contiguous", nameOf(*operand.type)).str()
            : formatv("rows start at multiples of {0} bytes, TMA reads multiples of 16", promisedAlign(operand)).str();
    if (turns)
      operand.repack.decide(Repack::on, formatv("{0}: a copy, lanes turn one operand alone", rows));
    else if (!asked.empty())
      operand.repack.decide(Repack::on, formatv("{0}, and `{1}` asks for it", rows, asked));
    else if (refused)
      operand.repack.decide(Repack::off, "the spec leaves an operand in rows that TMA cannot read");
    else if (streamed && *(s.*streamed->operand).repack == Repack::inside)
      operand.repack.decide(Repack::on,
                            formatv("{0}; {1} beside what is streamed", rows, amount(bytesOfOperand(s, info))));
    else
      operand.repack.decide(pays ? Repack::on : Repack::off, formatv("{0}; {1}", rows, times()));
  }
}

std::optional<RepackChoice> otherRepack(const Draft &draft) {
  const Spec &s = draft.spec();
  const OperandSpec *streamed = draft.wgmma() ? longOperand(draft) : nullptr;
  if (!streamed)
    return std::nullopt;
  const bool ofLong = *streamed->repack != Repack::off;
  const bool isA = (streamed == &s.a) == ofLong;
  const OperandInfo &info = operandInfos[isA ? 0 : 1];
  const Field<Repack> &repack = (s.*info.operand).repack;
  if (repack.given || *repack == Repack::off || !whyNotInside(draft, info).empty())
    return std::nullopt;
  const Repack how = *repack == Repack::on ? Repack::inside : Repack::on;
  const OperandSpec &shortOne = streamed == &s.a ? s.b : s.a; // copied where the long operand is
  const double times = timeWith(draft, how, ofLong ? Repack::on : how) /
                       timeWith(draft, *streamed->repack, draft.isShifted(shortOne) ? Repack::inside : Repack::on);
  const bool known = std::isfinite(times) && times > 0;
  return RepackChoice{info.operand, isA ? "a.repack" : "b.repack", how, known ? std::optional(times) : std::nullopt};
}

} // namespace gemmc::plan
