// How the product is computed: wgmma fed by TMA where the target and the operands allow it, else mma.sync fed by
// cp.async or, for rows on odd addresses, by plain loads.
#include "Draft.h"
#include "gemmc/Layout/WmmaInstruction.h"
#include "llvm/ADT/STLExtras.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t maxCoordinate = 2147483647; // TMA coordinates are signed 32-bit numbers

/// What the mma kernels would copy with.
llvm::StringRef mmaCopy(const Draft &draft) {
  bool narrow = promisedAlign(draft.spec().a) < 4 || promisedAlign(draft.spec().b) < 4;
  return narrow ? "ld" : "cp_async";
}

/// A given field that only the wgmma kernels have.
struct Wish {
  std::string text;
  llvm::SMRange range;
};
/// Why TMA cannot read the operands, each as one diagnostic at the guilty field, else at the field that `asked` for
/// TMA.
void checkTma(const Draft &draft, Diags &diags, const Wish *asked, bool sizesOnly = false) {
  const Spec &s = draft.spec();
  auto at = [&](const auto &field) { return field.given || !asked ? field.range : asked->range; };
  auto report = [&](Diag id, llvm::SMRange place, auto &&...args) -> Problem & {
    Problem &problem = diags.report(id, place, args...);
    if (asked)
      problem.note(Diag::plan_note_asked, asked->range, asked->text, mmaCopy(draft));
    return problem;
  };
  for (auto [size, name] : {std::pair{&s.m, "m"}, {&s.n, "n"}, {&s.k, "k"}}) {
    if (size->value == Size{0})
      report(Diag::plan_tma_empty, at(*size), name);
    else if (size->value.fixed.value_or(1) > maxCoordinate)
      report(Diag::plan_tma_extent, at(*size), name, *size->value.fixed);
  }
  if (s.k.value == Size{0})
    return; // a leading dimension that follows from k = 0 says nothing
  if (s.alpha.value == Scale{0.0})
    report(Diag::plan_tma_alpha, at(s.alpha));
  if (sizesOnly)
    return;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    const OperandSpec &operand = s.*info.operand;
    if (*operand.repack != Repack::off)
      continue; // TMA reads the copy, or lines that lie alike
    auto unreadable = [&](Diag id, llvm::SMRange place, auto &&...args) {
      Problem &problem = report(id, place, args...);
      if (operand.repack.given)
        problem.note(Diag::plan_note_not_copied, operand.repack.range, info.name).fix(operand.repack.range, "auto");
    };
    if (draft.needsTurning(operand))
      unreadable(Diag::plan_wgmma_lines, at(operand.layout), nameOf(*operand.type), info.name, nameOf(*operand.layout));
    if (*operand.align % 16 != 0)
      unreadable(Diag::plan_tma_base, at(operand.align), info.name, *operand.align);
    auto checkDistance = [&](const Size &distance, llvm::SMRange place, const char *of, const char *field) {
      const int64_t elements = distance.fixed.value_or(0), bytes = bytesOf(*operand.type);
      if (tooFarForTma(distance, *operand.type))
        unreadable(Diag::plan_tma_stride, place, of, info.name, field, elements, bytes);
      else if (elements * bytes % 16 != 0)
        unreadable(Diag::plan_tma_pitch, place, of, info.name, field, elements, bytes, elements * bytes,
                   elements * bytes % 16);
    };
    // A derived ld is wrong because the extent is, and a derived stride between matrices because the ld is.
    const bool row = *operand.layout == Order::row;
    checkDistance(*operand.ld, operand.ld.given ? operand.ld.range : at(row ? s.*info.cols : s.*info.rows), "rows",
                  "ld");
    const Size &stride = operand.batchStride.value;
    if (operand.batchStride.given || tooFarForTma(stride, *operand.type))
      checkDistance(stride,
                    operand.batchStride.given ? operand.batchStride.range : at(row ? s.*info.rows : s.*info.cols),
                    "matrices", "batch_stride");
  }
}

/// The first reason against TMA in a sentence, empty when there is none.
std::string whyNotTma(const Draft &draft, bool sizesOnly = false) {
  Diags scratch;
  checkTma(draft, scratch, nullptr, sizesOnly);
  return scratch.all().empty() ? "" : scratch.all().front().message;
}

/// Why no wgmma multiplies such operands; empty: one does.
std::string whyNotWgmma(const Spec &s) {
  switch (*s.a.type) {
  case Elem::f16:
  case Elem::bf16:
  case Elem::tf32:
  case Elem::e4m3:
  case Elem::e5m2:
  case Elem::s8:
  case Elem::u8:
    return "";
  default:
    return formatv("wgmma kernels multiply 16- and 8-bit types and tf32, a and b are {0}", nameOf(*s.a.type));
  }
}

/// What multiplies where it is not wgmma, and why if a given field says so.
std::pair<Instruction, std::string> mmaOrWmma(const Spec &s) {
  for (const auto &[load, path] : {std::pair{&s.fragmentsA, "fragments.a"}, {&s.fragmentsB, "fragments.b"}})
    if (load->given && **load == FragmentLoad::wmma_load)
      return {Instruction::wmma, formatv("`{0}: wmma_load` goes with wmma", path)};
  return {Instruction::mma, ""};
}

/// `epilogue.c: staged` is wmma's, too, where that is what multiplies.
bool stagesCOfWgmma(const Spec &s) {
  return s.loadC.given && *s.loadC == StoreKind::staged && *s.target == Target::sm_90a && whyNotWgmma(s).empty() &&
         !s.instruction.given && mmaOrWmma(s).first != Instruction::wmma;
}

std::vector<Wish> wgmmaWishes(const Spec &s) {
  std::vector<Wish> wishes;
  auto add = [&](const auto &field, const char *path, llvm::StringRef value) {
    wishes.push_back({formatv("{0}: {1}", path, value).str(), field.range});
  };
  if (s.instruction.given && *s.instruction == Instruction::wgmma)
    add(s.instruction, "instruction", "wgmma");
  if (s.copy.given && *s.copy == CopyKind::tma)
    add(s.copy, "copy", "tma");
  if (s.schedule.given && *s.schedule != Schedule::pipelined)
    add(s.schedule, "pipeline.schedule", nameOf(*s.schedule));
  if (s.swizzle.given && (*s.swizzle == Swizzle::b32 || *s.swizzle == Swizzle::b64 || *s.swizzle == Swizzle::b128))
    add(s.swizzle, "swizzle", nameOf(*s.swizzle));
  if (s.cluster.given && *s.cluster != std::array<int64_t, 3>{1, 1, 1})
    add(s.cluster, "tile.cluster", formatv("[{0}, {1}, {2}]", (*s.cluster)[0], (*s.cluster)[1], (*s.cluster)[2]).str());
  if (s.store.given && *s.store == StoreKind::tma)
    add(s.store, "epilogue.store", "tma");
  if (s.loadC.given && *s.loadC == StoreKind::tma)
    add(s.loadC, "epilogue.c", "tma");
  if (s.storeBuffers.given && *s.storeBuffers > 0)
    add(s.storeBuffers, "epilogue.buffers", std::to_string(*s.storeBuffers));
  if (asksForHalves(s))
    add(s.storeOverlap, "epilogue.overlap", std::to_string(*s.storeOverlap));
  if (stagesCOfWgmma(s))
    add(s.loadC, "epilogue.c", "staged");
  if (s.inFlight.given && *s.inFlight > 1)
    add(s.inFlight, "pipeline.in_flight", std::to_string(*s.inFlight));
  if (s.scheduler.given && *s.scheduler == Scheduler::dynamic)
    add(s.scheduler, "raster.scheduler", "dynamic");
  if (s.splitThrough.given && *s.splitThrough == SplitThrough::cluster)
    add(s.splitThrough, "split.through", "cluster");
  for (const auto &[load, path] : {std::pair{&s.fragmentsA, "fragments.a"}, {&s.fragmentsB, "fragments.b"}})
    if (load->given && **load == FragmentLoad::descriptor)
      add(*load, path, "descriptor");
  if (const auto &shape = *s.matrixShape; s.matrixShape.given && shape[0] == 64)
    add(s.matrixShape, "tile.instruction", formatv("[64, {0}, {1}]", shape[1], shape[2]).str());
  if (s.a.repack.given && *s.a.repack != Repack::off)
    add(s.a.repack, "a.repack", nameOf(*s.a.repack));
  if (s.b.repack.given && *s.b.repack != Repack::off)
    add(s.b.repack, "b.repack", nameOf(*s.b.repack));
  return wishes;
}

/// A given field that only the mma kernels have, as text; empty = none.
std::string mmaWish(const Draft &draft) {
  const Spec &s = draft.spec();
  if (s.copy.given && *s.copy != CopyKind::tma)
    return formatv("copy {0} was asked for", nameOf(*s.copy));
  if (s.swizzle.given &&
      (*s.swizzle == Swizzle::padded || *s.swizzle == Swizzle::xor_ || *s.swizzle == Swizzle::blocked))
    return formatv("swizzle {0} was asked for", nameOf(*s.swizzle));
  if (s.padding.given && *s.padding > 0)
    return formatv("padding of {0} bytes was asked for", *s.padding);
  if (s.copyBytes.given && *s.copyBytes < 16)
    return formatv("copies of {0} bytes were asked for, TMA moves 16 at a time", *s.copyBytes);
  unsigned m = draft.plan.swapped ? 1 : 0, n = 1 - m;
  if (s.block.given && (*s.block)[m] < 64)
    return formatv("a block tile of {0} rows was asked for, wgmma multiplies 64", (*s.block)[m]);
  if (s.block.given && s.warp.given && (*s.warp)[m] < (*s.block)[m] && (*s.warp)[n] < (*s.block)[n])
    return "warp tiles that cut the block tile both ways were asked for, warpgroups share it along one direction";
  if (s.warp.given && (*s.warp)[m] % 64 != 0)
    return formatv("a warp tile of {0} rows was asked for, wgmma multiplies 64", (*s.warp)[m]);
  if (s.matrixShape.given && (*s.matrixShape)[0] < 64)
    return formatv("an instruction of {0} rows was asked for, wgmma multiplies 64", (*s.matrixShape)[0]);
  for (const auto &[load, path] : {std::pair{&s.fragmentsA, "fragments.a"}, {&s.fragmentsB, "fragments.b"}})
    if (load->given && **load != FragmentLoad::descriptor)
      return formatv("{0} {1} was asked for", path, nameOf(**load));
  if (s.fragmentBuffers.given && *s.fragmentBuffers == 2)
    return "two fragment buffers were asked for";
  if (s.fragmentOrder.given && *s.fragmentOrder == FragmentOrder::snake)
    return "fragments in snake order were asked for";
  return "";
}

/// Whether operands are copied to rows that TMA reads, before TMA is judged.
void chooseRepack(Draft &draft, llvm::ArrayRef<Wish> wishes, const std::string &mma) {
  const Spec &s = draft.spec();
  std::string sizes = whyNotTma(draft, true);
  if (s.instruction.given && *s.instruction != Instruction::wgmma)
    refuseRepack(draft, formatv("TMA would read it, and instruction {0} was asked for", nameOf(*s.instruction)), false);
  else if (wishes.empty() && !mma.empty())
    refuseRepack(draft, "TMA would read it, and " + mma);
  else if (!sizes.empty())
    refuseRepack(draft, sizes);
  else
    decideRepack(draft, wishes.empty() ? "" : wishes.front().text);
}

void chooseInstruction(Draft &draft) {
  Spec &s = draft.spec();
  std::vector<Wish> wishes = wgmmaWishes(s);
  auto [plain, because] = mmaOrWmma(s);
  auto decidePlain = [&](std::string why) { s.instruction.decide(plain, because.empty() ? std::move(why) : because); };
  bool hopper = *s.target == Target::sm_90a;
  if (!hopper) {
    refuseRepack(draft, formatv("TMA would read it, and came with sm_90a: the target is {0}", nameOf(*s.target)));
    for (const Wish &wish : wishes)
      draft.diags.report(Diag::plan_needs_sm90a, wish.range, wish.text, nameOf(*s.target));
    std::string why = formatv("the matrix instruction of {0}; wgmma came with sm_90a", nameOf(*s.target));
    wishes.empty() ? decidePlain(why) : s.instruction.decide(Instruction::wgmma, why);
    return;
  }
  if (std::string why = whyNotWgmma(s); !why.empty()) {
    refuseRepack(draft, why);
    for (const Wish &wish : wishes)
      draft.diags.report(Diag::plan_wgmma_type, wish.range, wish.text, why);
    decidePlain(why);
    if (!wishes.empty())
      s.instruction.value = Instruction::mma;
    return;
  }
  std::string wish = mmaWish(draft);
  chooseRepack(draft, wishes, wish);
  std::string obstacle = whyNotTma(draft);
  if (!wishes.empty())
    s.instruction.decide(Instruction::wgmma, formatv("`{0}` goes with wgmma", wishes.front().text));
  else if (!wish.empty())
    decidePlain(wish);
  else if (!obstacle.empty())
    decidePlain(obstacle + "; mma takes operands that other copies bring");
  else
    s.instruction.decide(Instruction::wgmma, *s.a.repack == Repack::off && *s.b.repack == Repack::off
                                                 ? "twice the rate of mma.sync, and a and b can be read by TMA"
                                                 : "twice the rate of mma.sync; TMA brings a and b as `repack` says");
  if (*s.instruction != Instruction::wgmma || obstacle.empty())
    return;
  checkTma(draft, draft.diags, wishes.empty() ? nullptr : &wishes.front());
}

void chooseCopy(Draft &draft) {
  Spec &s = draft.spec();
  if (*s.instruction == Instruction::wgmma) {
    s.copy.decide(CopyKind::tma, "one thread copies a whole tile, swizzled on its way and zero beyond the edges");
    if (*s.copy != CopyKind::tma)
      draft.diags.report(Diag::plan_copy_family, s.copy.range, nameOf(*s.copy), "wgmma", "tma")
          .fix(s.copy.range, "tma");
    return;
  }
  unsigned a = promisedAlign(s.a), b = promisedAlign(s.b);
  if (s.k.value == Size{0} || s.alpha.value == Scale{0.0})
    s.copy.decide(CopyKind::ld, "nothing is read: k or alpha is 0");
  else if (s.copyBytes.given && *s.copyBytes < 4)
    s.copy.decide(CopyKind::ld, formatv("copies of {0} bytes were asked for; cp.async moves 4 at least", *s.copyBytes));
  else if (a < 4 || b < 4)
    s.copy.decide(CopyKind::ld,
                  formatv("rows of a start at multiples of {0} bytes, of b at {1}; cp.async needs 4", a, b));
  else
    s.copy.decide(CopyKind::cp_async,
                  formatv("asynchronous copies of {0} bytes for a, {1} for b: what row starts allow", std::min(a, 16u),
                          std::min(b, 16u)));
  if (*s.copy == CopyKind::tma)
    draft.diags.report(Diag::plan_copy_family, s.copy.range, "tma", nameOf(*s.instruction), "cp_async, ld")
        .fix(s.copy.range, mmaCopy(draft));
  if (*s.copy != CopyKind::cp_async)
    return;
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    const OperandSpec &operand = s.*info.operand;
    std::string ld = operand.ld.value.dynamic() ? "dynamic" : std::to_string(*operand.ld.value.fixed);
    if (promisedAlign(operand) < 4)
      draft.diags.report(Diag::plan_cp_async_align, s.copy.range, info.name, promisedAlign(operand), *operand.align, ld)
          .fix(s.copy.range, "ld");
  }
}

/// 128 bytes; less where the tile has no multiple of them along k, and nothing wants whole ones.
void chooseSpan(Draft &draft) {
  Spec &s = draft.spec();
  const bool fixed = draft.shifts() || draft.turnsInside(s.a) || draft.turnsInside(s.b);
  const bool ofK = !fixed && (draft.kMajorA() || draft.kMajorB());
  const int64_t shortDepth = depthOfShortK(draft), depth = s.block.given  ? (*s.block)[2]
                                                           : s.warp.given ? (*s.warp)[2]
                                                                          : shortDepth;
  const int64_t bytes = ofK && depth > 0 ? depth * int64_t(draft.inputBits()) / 8 : 128;
  const int64_t span = bytes % 128 == 0 || bytes % 32 != 0 ? 128 : bytes % 64 == 0 ? 64 : 32;
  if (span == 128)
    s.swizzle.decide(Swizzle::b128, "rows of 128 bytes spread over all 32 banks: no bank conflicts");
  else
    s.swizzle.decide(
        span == 64 ? Swizzle::b64 : Swizzle::b32,
        shortDepth > 0
            ? formatv("{0} bytes of a row hold all {1} of k", span, *draft.extentK()).str()
            : formatv("the tile's {0} bytes along k are a multiple of {1}, not of {2}", bytes, span, 2 * span).str());
}

void chooseSwizzle(Draft &draft) {
  Spec &s = draft.spec();
  bool narrow = *s.swizzle == Swizzle::b32 || *s.swizzle == Swizzle::b64 || *s.swizzle == Swizzle::b128;
  bool fits = *s.swizzle == Swizzle::none || narrow == draft.wgmma();
  fits &= !draft.wmma() || *s.swizzle != Swizzle::xor_; // wmma.load takes rows at equal distances
  const char *allowed = draft.wgmma()  ? "128B, 64B, 32B, none"
                        : draft.wmma() ? "padded, blocked, none"
                                       : "xor, padded, blocked, none";
  if (s.swizzle.given && !fits)
    draft.diags.report(Diag::plan_swizzle_family, s.swizzle.range, nameOf(*s.swizzle), nameOf(*s.instruction), allowed)
        .fix(s.swizzle.range, draft.wgmma()  ? "128B"
                              : draft.wmma() ? "padded"
                                             : "xor");
  if (draft.wgmma())
    chooseSpan(draft);
  else if (s.padding.given && *s.padding > 0)
    s.swizzle.decide(Swizzle::padded, formatv("padding of {0} bytes was asked for", *s.padding));
  else if (draft.wmma() && s.padding.given)
    s.swizzle.decide(Swizzle::none, "`padding` is 0, and wmma.load takes rows at equal distances");
  else if (draft.wmma())
    s.swizzle.decide(Swizzle::padded, "wmma.load takes rows at equal distances: padding spreads them over the banks");
  else
    s.swizzle.decide(Swizzle::xor_, "spreads the 16-byte pieces of a column over all 32 banks and takes no bytes");
}

void choosePadding(Draft &draft) {
  Spec &s = draft.spec();
  bool padded = *s.swizzle == Swizzle::padded;
  // Rows of a wmma fragment start at multiples of its bytes (PTX ISA 9.7.14.4.2).
  int64_t aligned =
      draft.wmma() ? std::max(wmmaOperandAlignment(*draft.matrix, true), wmmaOperandAlignment(*draft.matrix, false))
                   : 16;
  if (!padded)
    s.padding.decide(0, "rows are not padded");
  else if (draft.wmma())
    s.padding.decide(std::max<int64_t>(16, aligned),
                     formatv("rows of wmma fragments start at multiples of {0} bytes", aligned));
  else
    s.padding.decide(16, "each row is shifted by four banks");
  if (!padded && *s.padding != 0)
    draft.diags
        .report(Diag::plan_padding, s.padding.range, *s.padding,
                formatv("swizzle `{0}` has none, allowed 0", nameOf(*s.swizzle)).str())
        .fix(s.padding.range, "0");
  else if (padded && (*s.padding < 16 || *s.padding % 16))
    draft.diags
        .report(Diag::plan_padding, s.padding.range, *s.padding, "padded rows take a multiple of 16, at least 16")
        .fix(s.padding.range, llvm::Twine(std::max<int64_t>(16, (*s.padding + 15) / 16 * 16)));
}

/// Bytes of one copy of `operand`: what its row starts allow, at most what the spec does.
unsigned copyBytesOf(const Draft &draft, const OperandSpec &operand) {
  const Spec &s = draft.spec();
  unsigned most = s.copyBytes.given ? unsigned(*s.copyBytes) : 16;
  bool reads = s.k.value != Size{0} && s.alpha.value != Scale{0.0};
  switch (*s.copy) {
  case CopyKind::tma:
    return 16;
  case CopyKind::cp_async:
    return std::min(most, promisedAlign(operand));
  case CopyKind::ld:
    return reads ? std::max(bytesOf(*operand.type), std::min(most, promisedAlign(operand))) : bytesOf(*operand.type);
  }
  llvm_unreachable("unknown copy");
}

void chooseCopyBytes(Draft &draft) {
  Spec &s = draft.spec();
  Plan &plan = draft.plan;
  plan.copyBytesA = copyBytesOf(draft, draft.kernelA());
  plan.copyBytesB = copyBytesOf(draft, draft.kernelB());
  s.copyBytes.decide(std::max(plan.copyBytesA, plan.copyBytesB), "what row starts allow");
  const int64_t element = bytesOf(*s.a.type); // of which no copy moves a part
  int64_t least = *s.copy == CopyKind::tma        ? 16
                  : *s.copy == CopyKind::cp_async ? std::max<int64_t>(4, element)
                                                  : element;
  if (*s.copyBytes >= least || (!s.copyBytes.given && draft.diags.hasErrors())) // which row starts have caused
    return;
  draft.diags
      .report(Diag::plan_copy_bytes, s.copyBytes.range, *s.copyBytes, nameOf(*s.copy),
              *s.copy == CopyKind::tma ? "16" : formatv("{0} to 16", least).str())
      .fix(s.copyBytes.range, llvm::Twine(least));
}
} // namespace

bool decideFamily(Draft &draft) {
  unsigned before = draft.diags.numErrors();
  chooseInstruction(draft);
  Spec &s = draft.spec();
  if (draft.wgmma() && *s.target != Target::sm_90a) // what follows would be judged by the rules of another target
    return false;
  // TMA that cannot read the operands leaves the family in no doubt; a wrong instruction or copy does.
  bool clear = draft.diags.numErrors() == before || draft.wgmma();
  if (!draft.wgmma() && !decideMatrix(draft))
    return false;
  unsigned beforeCopy = draft.diags.numErrors();
  chooseCopy(draft);
  clear &= draft.diags.numErrors() == beforeCopy;
  chooseSwizzle(draft);
  choosePadding(draft);
  chooseCopyBytes(draft);
  return clear;
}

} // namespace gemmc::plan
