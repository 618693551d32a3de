// How D is stored and C is read.
#include "Clock.h"

using llvm::formatv;

namespace gemmc::plan {
namespace {
bool readsC(const Draft &draft) { return draft.spec().beta.value != Scale{0.0}; }

/// Why TMA neither writes nor reads rows of D or C where they lie, `verb` them; empty: it does.
std::string whyNotRowsOfTma(const Draft &draft, const char *verb, const char *name, const OperandSpec &operand) {
  auto text = [](const Size &size) { return size.dynamic() ? "dynamic" : std::to_string(*size.fixed); };
  std::string given = formatv("align {0}, ld {1}", *operand.align, text(*operand.ld));
  if (isBatch(draft.spec()))
    given += ", batch_stride " + text(*operand.batchStride);
  if (promisedAlign(operand) < 16)
    return formatv("{0} lines that start at multiples of 16 bytes: those of {1} start at multiples of {2} ({3})", verb,
                   name, promisedAlign(operand), given);
  if (tooFarForTma(operand))
    return formatv("{0} lines less than 2^40 bytes apart: those of {1} are further ({2})", verb, name, given);
  return "";
}

/// Why C cannot come to the places where D will lie, whoever brings it; empty: it can.
std::string whyNotInPlaceOfD(const Draft &draft) {
  const Spec &s = draft.spec();
  if (*s.c.type != *s.d.type)
    return formatv("brings C into the places of D: their types are {0} and {1}", nameOf(*s.c.type), nameOf(*s.d.type));
  if (*s.c.layout != *s.d.layout)
    return formatv("brings C into the places of D: their layouts are {0} and {1}", nameOf(*s.c.layout),
                   nameOf(*s.d.layout));
  if (!storesAlongN(draft))
    return "brings rows of C: d is column order in the kernel's view";
  return "";
}

/// Why TMA cannot bring C into the places where D will lie; empty: it can.
std::string whyNotBroughtC(const Draft &draft) {
  const Spec &s = draft.spec();
  if (!draft.wgmma())
    return formatv("belongs to wgmma kernels: the instruction is {0}", nameOf(*s.instruction));
  if (!readsC(draft))
    return "with `epilogue.c: tma` reads C: beta is 0";
  if (std::string why = whyNotInPlaceOfD(draft); !why.empty())
    return why;
  if (std::string why = whyNotRowsOfTma(draft, "reads", "c", s.c); !why.empty())
    return why;
  if (s.schedule.given && *s.schedule == Schedule::pipelined)
    return "takes C from a producer: the schedule is pipelined";
  if (*s.split != SplitMode::none)
    return "takes C for tiles that a CTA computes alone: k is split";
  return "";
}

/// Why a consumer warp cannot bring lines of C to where it will put D; empty: it can.
std::string whyNotLinesOfC(const Draft &draft) {
  const Spec &s = draft.spec();
  if (!readsC(draft))
    return "reads C: beta is 0";
  if (std::string why = whyNotInPlaceOfD(draft); !why.empty())
    return why;
  if (s.store.given && *s.store == StoreKind::direct)
    return "brings C into the places of D: the store is direct";
  return "";
}

/// Whether warps bring lines of C themselves: as asked, or because TMA cannot. Element by element, on the way out,
/// takes up to two and a half times as long (H200, 2026-11-26, docs/hopper-l2.md, *Odd lines of C*).
bool takesLinesOfC(const Draft &draft) {
  const Field<StoreKind> &given = draft.spec().loadC;
  if (given.given ? *given != StoreKind::staged : !draft.wgmma() || whyNotBroughtC(draft).empty())
    return false;
  return whyNotLinesOfC(draft).empty();
}

/// Why TMA cannot write D, whatever C does; empty: it can.
std::string whyNotTmaStore(const Draft &draft) {
  const Spec &s = draft.spec();
  if (std::string why = whyNotRowsOfTma(draft, "writes", "d", s.d); !why.empty())
    return why;
  if (endsRowsInside16Bytes(draft))
    return formatv("writes whole 16 bytes: {0}s of d end after {1} elements of {2} bytes",
                   *s.d.layout == Order::row ? "row" : "column", *contiguousExtent(s, operandInfos[3]).fixed,
                   bytesOf(*s.d.type));
  return "";
}

/// Of a stream whose lines of D cross warps. Where they start at any element or any second one a turned tile takes
/// longer to leave than registers to memory do, up to 28% of the time, if a warpgroup has one block of 64 rows; with
/// two blocks, or lines that start at every fourth element, less. TMA takes the turned tile where the long side is the
/// kernel's m: 1% less time on average, up to 13; not of a short side beyond 208, where it may take 10% more
/// (H200, 2026-11-26, docs/hopper-shapes.md, *How a turned stream leaves*).
void decideTurnedStore(Draft &draft, bool mayBuffer) {
  Field<StoreKind> &store = draft.spec().store;
  constexpr int64_t block = 64, leastRows = 41, mostRows = 208;
  const int64_t shortSide = std::min(*draft.extentM(), *draft.extentN());
  const bool byTma = whyNotTmaStore(draft).empty();
  const bool startAnywhere = promisedAlign(draft.spec().d) <= 2 * bytesOf(*draft.spec().d.type);
  if (startAnywhere && draft.stream->m == block)
    store.decide(StoreKind::direct, "lines of d cross warps and start anywhere: registers to memory");
  else if (byTma && mayBuffer && *draft.extentM() > *draft.extentN() && shortSide >= leastRows && shortSide <= mostRows)
    store.decide(StoreKind::tma, "lines of d cross warps: a warpgroup turns its tile, and a thread starts whole lines");
  else
    store.decide(StoreKind::staged, "lines of d cross warps: a warpgroup turns its tile and writes them whole");
}

void decideStore(Draft &draft) {
  Spec &s = draft.spec();
  bool otherC = s.loadC.given && *s.loadC != StoreKind::tma;
  const bool turnedC = draft.wgmma() && *s.c.layout != *s.d.layout; // lanes bring it to their sums
  bool addsNone = readsC(draft) && !turnedC && (otherC || !whyNotBroughtC(draft).empty()) && !takesLinesOfC(draft);
  bool buffers = !(s.storeBuffers.given && *s.storeBuffers == 0), asked = s.storeBuffers.given && buffers;
  if (draft.wmma())
    s.store.decide(StoreKind::staged, "only whole fragments of wmma can be stored");
  else if (draft.stream && !storesAlongN(draft) && !asked)
    decideTurnedStore(draft, !addsNone && buffers);
  else if (draft.wgmma() && whyNotTmaStore(draft).empty() && !addsNone && buffers) {
    if (waitsForSectors(draft) && storesAlongN(draft) && !asked && !asksForHalves(draft))
      return s.store.decide(StoreKind::staged,
                            "lines of d start inside sectors of the L2, which lanes write whole: boxes "
                            "of TMA would write parts, and k is too short to hide what those cost");
    s.store.decide(StoreKind::tma,
                   "whole lines, and a thread that only starts them: the warps go on with the next tile");
  } else if (collectsSectors(draft))
    s.store.decide(StoreKind::staged, "lines of d start inside sectors of the L2: those of a tile are written whole");
  else if (!draft.wgmma() || !storesAlongN(draft))
    s.store.decide(StoreKind::direct, "registers to memory, no shared memory and no barrier");
  else
    s.store.decide(StoreKind::staged, "through shared memory whole lines are written");
}

void decideLoadC(Draft &draft) {
  Spec &s = draft.spec();
  if (!readsC(draft))
    s.loadC.decide(StoreKind::direct, "C is not read");
  else if (*s.store == StoreKind::tma && whyNotBroughtC(draft).empty())
    s.loadC.decide(StoreKind::tma, "while the main loop runs, into the buffers that D leaves through");
  else if (draft.wgmma() && *s.store != StoreKind::direct && whyNotLinesOfC(draft).empty())
    s.loadC.decide(StoreKind::staged, "TMA cannot bring it: each warp brings whole lines to where D will lie");
  else if (draft.wgmma() && *s.store != StoreKind::direct &&
           (*s.c.layout != *s.d.layout || promisedAlign(s.d) % 16 != 0))
    s.loadC.decide(StoreKind::direct, "it cannot come to where D will lie: lanes bring it to their sums");
  else
    s.loadC.decide(StoreKind::direct, "with the lines of D, in one go");
}

void checkStore(Draft &draft) {
  Spec &s = draft.spec();
  if (draft.wmma() && *s.store == StoreKind::direct)
    draft.diags.report(Diag::plan_store_direct, s.store.range).fix(s.store.range, "staged");
  if (*s.store == StoreKind::direct || (*s.store == StoreKind::staged && !draft.wgmma()))
    return;
  auto refuse = [&](const std::string &why, const char *instead) {
    draft.diags.report(Diag::plan_store_staged, s.store.range, nameOf(*s.store), why).fix(s.store.range, instead);
  };
  if (!draft.wgmma())
    return refuse(formatv("belongs to wgmma kernels: the instruction is {0}", nameOf(*s.instruction)), "staged");
  if (*s.store != StoreKind::tma)
    return;
  if (std::string why = whyNotTmaStore(draft); !why.empty())
    return refuse(why, "staged");
  if (!readsC(draft) || *s.loadC != StoreKind::direct || *s.c.layout != *s.d.layout)
    return;
  std::string why = whyNotLinesOfC(draft);
  refuse(why.empty() ? "takes a C that lies where D will: `epilogue.c` is direct" : why, "staged");
}

/// staged: C as lines that a warp adds to its sums (wgmma), or as fragments of the accumulators' type (wmma), in what D
/// leaves through.
std::string whyNotStagedC(const Draft &draft) {
  const Spec &s = draft.spec();
  if (draft.wgmma()) {
    std::string why = whyNotLinesOfC(draft);
    return why.empty() && *s.store == StoreKind::direct ? "brings C into the places of D: the store is direct" : why;
  }
  if (!draft.wmma())
    return formatv("goes through the shared memory of wgmma and wmma kernels: the instruction is {0}",
                   nameOf(*s.instruction));
  if (!readsC(draft))
    return "reads C: beta is 0";
  if (*s.accumulator == Elem::f16)
    return "adds in the type of the sums: f16 would round twice";
  if (*s.c.type != *s.accumulator)
    return formatv("loads accumulators: c is {0}, the sums are {1}", nameOf(*s.c.type), nameOf(*s.accumulator));
  if (*s.c.layout != *s.d.layout)
    return formatv("takes C through the tile of D: their layouts are {0} and {1}", nameOf(*s.c.layout),
                   nameOf(*s.d.layout));
  return "";
}

void checkLoadC(Draft &draft) {
  Spec &s = draft.spec();
  if (*s.loadC == StoreKind::direct)
    return;
  if (*s.loadC == StoreKind::staged) {
    if (std::string why = whyNotStagedC(draft); !why.empty())
      draft.diags.report(Diag::plan_c_staged, s.loadC.range, why).fix(s.loadC.range, "direct");
    return;
  }
  std::string why = whyNotBroughtC(draft);
  if (why.empty() && *s.store != StoreKind::tma)
    why = formatv("of C needs buffers that TMA stores D from: the store is {0}", nameOf(*s.store));
  if (!why.empty())
    draft.diags.report(Diag::plan_store_staged, s.loadC.range, "tma", why).fix(s.loadC.range, "direct");
}

const char *storeBuffersReason(const Draft &draft) {
  if (*draft.spec().store != StoreKind::tma)
    return "only lines that TMA stores wait in buffers";
  if (*draft.spec().loadC == StoreKind::tma)
    return "C waits in them for its tile's end";
  switch (draft.plan.storeBuffers) {
  case 1:
    if (leavesThroughOne(draft, shapeOf(draft.plan)))
      return "D leaves in smaller bursts, under the other warpgroup's main loop";
    return "the place of a second one holds another stage";
  case 2:
    return "one is filled while TMA reads the other one";
  default:
    return "half a tile leaves in the time of few products, and the stages leave room";
  }
}

void decideStoreBuffers(Draft &draft) {
  Spec &s = draft.spec();
  if (draft.plan.blockM == 0) { // no tile is legal, or none is chosen yet
    s.storeBuffers.decide(0, "");
    return;
  }
  const bool tma = draft.wgmma() && *s.store == StoreKind::tma, brought = tma && *s.loadC == StoreKind::tma;
  s.storeBuffers.decide(tma ? draft.plan.storeBuffers : 0, storeBuffersReason(draft));
  auto refuse = [&](const std::string &why, int64_t instead) {
    draft.diags.report(Diag::plan_store_buffers, s.storeBuffers.range, *s.storeBuffers, why)
        .fix(s.storeBuffers.range, std::to_string(instead));
  };
  if (!tma && *s.storeBuffers > 0)
    return refuse(formatv("is for `epilogue.store: tma`: it is {0}", nameOf(*s.store)), 0);
  if (tma && *s.storeBuffers == 0)
    return refuse("leaves none for `epilogue.store: tma`", 1);
  auto [least, most] = storeBufferLimits(draft, shapeOf(draft.plan));
  if (brought && (*s.storeBuffers < least || *s.storeBuffers > most))
    refuse(formatv("is not how many C can come to (`epilogue.c: tma`): {0} to {1} of a warpgroup's tile", least, most),
           least);
}
} // namespace

void decideEpilogue(Draft &draft) {
  decideStore(draft);
  decideLoadC(draft);
}

bool storesByLanesForSectors(const Draft &draft) {
  const Field<StoreKind> &store = draft.spec().store;
  return !store.given && *store == StoreKind::staged && waitsForSectors(draft) && whyNotTmaStore(draft).empty();
}

void checkEpilogue(Draft &draft) {
  checkStore(draft);
  checkLoadC(draft);
  decideStoreBuffers(draft);
}

} // namespace gemmc::plan
