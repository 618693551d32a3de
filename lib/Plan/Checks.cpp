// The rules of tiles and budgets. The same function judges the planner's candidates (into a sink that is thrown away)
// and what the user wrote (into the real one), so that the planner never takes what it would refuse.
#include "Draft.h"
#include "gemmc/Layout/SharedTile.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::formatv;

namespace gemmc::plan {

const char *userDimension(const Draft &draft, char kernelDimension) {
  if (kernelDimension == 'k')
    return "k";
  return (kernelDimension == 'm') != draft.plan.swapped ? "m" : "n";
}

llvm::SMRange elementRange(llvm::SMRange list, unsigned index, int64_t value) {
  if (!list.isValid())
    return list;
  llvm::StringRef text(list.Start.getPointer(), size_t(list.End.getPointer() - list.Start.getPointer()));
  for (unsigned i = 0;; ++i) {
    text = text.drop_until([](char c) { return llvm::isDigit(c); });
    llvm::StringRef number = text.take_while([](char c) { return llvm::isDigit(c); });
    text = text.drop_front(number.size());
    int64_t seen;
    if (number.getAsInteger(10, seen))
      return list;
    if (i == index)
      return seen == value ? rangeOf(number) : list;
  }
}

namespace {
class Checker {
public:
  Checker(const Draft &draft, const Shape &shape, Diags &diags)
      : draft(draft), spec(draft.spec()), shape(shape), diags(diags) {}

  void all() {
    bool staged = stages();
    if (!blockRanges() || !blockMultiples() || !warps() || !split())
      return;
    cluster();
    shifted();
    registers();
    if (staged)
      shared();
  }

private:
  const Draft &draft;
  const Spec &spec;
  const Shape &shape;
  Diags &diags;

  unsigned userIndex(char dimension) const {
    return dimension == 'k' ? 2 : (dimension == 'm') != draft.plan.swapped ? 0 : 1;
  }
  /// The element of a tile field that means the kernel's `dimension`; when it was decided, the field that led to it.
  llvm::SMRange placeIn(const Field<std::array<int64_t, 3>> &field, char dimension) const {
    if (field.given)
      return elementRange(field.range, userIndex(dimension), (*field)[userIndex(dimension)]);
    return tilePlace();
  }
  llvm::SMRange tilePlace() const {
    if (spec.block.given)
      return spec.block.range;
    if (spec.warp.given)
      return spec.warp.range;
    if (spec.schedule.given)
      return spec.schedule.range;
    return spec.instruction.range;
  }
  /// What to write in the place of an element; nothing where the spec does not have it.
  void offer(Problem &problem, const Field<std::array<int64_t, 3>> &field, char dimension, const llvm::Twine &text) {
    if (field.given)
      problem.fix(placeIn(field, dimension), text);
  }
  template <typename... Args> Problem &report(Diag id, llvm::SMRange place, Args &&...args) {
    Problem &problem = diags.report(id, place, std::forward<Args>(args)...);
    if (draft.plan.swapped)
      problem.note(Diag::plan_note_swapped, spec.swapOperands.given ? spec.swapOperands.range : spec.d.layout.range);
    return problem;
  }

  /// Of D, that one instruction computes.
  int64_t rows() const { return draft.wgmma() ? 64 : draft.matrix->rows(); }
  int64_t columns() const { return draft.wgmma() ? 8 : draft.matrix->columns(); }
  using Rule = llvm::function_ref<std::string()>; ///< In words, which only who breaks it asks for.
  std::string rowsRule() const {
    return draft.wgmma() ? "wgmma multiplies 64 rows"
                         : formatv("{0} multiplies {1} rows", nameOf(*spec.instruction), rows()).str();
  }
  std::string columnsRule() const {
    return draft.wgmma() ? "wgmma multiplies 8 to 256 columns in steps of 8"
                         : formatv("{0} multiplies {1} columns", nameOf(*spec.instruction), columns()).str();
  }

  bool blockRange(char dimension, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most)
      return true;
    offer(report(Diag::plan_block_range, placeIn(spec.block, dimension), userDimension(draft, dimension), value,
                 nameOf(*spec.instruction), least, most),
          spec.block, dimension, llvm::Twine(std::clamp(value, least, most)));
    return false;
  }
  bool blockRanges() {
    // A is brought in one TMA box of at most 256 lines, B in one or two; mma blocks are bounded by their 16 warps.
    bool wgmma = draft.wgmma();
    bool m = blockRange('m', shape.m, rows(), wgmma ? mostBoxRows : 512);
    bool n = blockRange('n', shape.n, columns(), 512);
    constexpr int64_t mostBytes = 512;
    bool k = blockRange('k', shape.k, draft.elementsIn(wgmma ? wgmmaDepthBytes : leastDepthBytes),
                        draft.elementsIn(wgmma ? mostBytes : mostDepthBytes(draft)));
    return m && n && k;
  }

  bool multiple(Diag id, const Field<std::array<int64_t, 3>> &field, char dimension, int64_t value, int64_t of,
                Rule rule) {
    if (value % of == 0)
      return true;
    offer(report(id, placeIn(field, dimension), userDimension(draft, dimension), value, of, rule()), field, dimension,
          llvm::Twine((value + of - 1) / of * of));
    return false;
  }
  bool blockMultiples() {
    auto block = [&](char dimension, int64_t value, int64_t of, Rule rule) {
      return multiple(Diag::plan_block_multiple, spec.block, dimension, value, of, rule);
    };
    bool m = block('m', shape.m, rows(), [&] { return rowsRule(); });
    bool n = block('n', shape.n, columns(), [&] { return columnsRule(); });
    if (draft.wgmma() && n && shape.n > mostBoxRows && draft.kMajorB())
      n = block('n', shape.n, 2 * TileParts::groupRows,
                [] { return "TMA brings more than 256 rows in two boxes of whole groups of eight"; });
    if (!draft.wgmma())
      return m && n && mmaDepth();
    const int64_t span = swizzleSpan(draft);
    const int64_t each = draft.elementsIn(wgmmaDepthBytes);
    const bool rowsOfK = span > each && (draft.kMajorA() || draft.kMajorB());
    bool k = block('k', shape.k, rowsOfK ? span : each, [&]() -> std::string {
      return rowsOfK ? formatv("swizzle {0} works on rows of {1} elements", nameOf(*spec.swizzle), span).str()
                     : formatv("wgmma multiplies {0} elements deep", each).str();
    });
    return m && n && k;
  }

  bool mmaDepth() {
    std::vector<std::string> allowed;
    for (int64_t bytes = leastDepthBytes; bytes <= mostDepthBytes(draft); bytes *= 2)
      if (int64_t depth = draft.elementsIn(bytes); depth % draft.matrix->k == 0) {
        if (shape.k == depth)
          return true;
        allowed.push_back(std::to_string(depth));
      }
    offer(report(Diag::plan_block_k, placeIn(spec.block, 'k'), shape.k, nameOf(*spec.a.type), llvm::join(allowed, ", "),
                 draft.matrix->k),
          spec.block, 'k', allowed[allowed.size() / 2]);
    return false;
  }

  bool warpDirection(char dimension, int64_t value, int64_t block, int64_t step, int64_t most, Rule rule) {
    if (value < step || value > most) {
      offer(report(Diag::plan_warp_range, placeIn(spec.warp, dimension), userDimension(draft, dimension), value, step,
                   most),
            spec.warp, dimension, llvm::Twine(std::clamp(value, step, most)));
      return false;
    }
    if (!multiple(Diag::plan_warp_multiple, spec.warp, dimension, value, step, rule))
      return false;
    if (block % value == 0)
      return true;
    report(Diag::plan_warp_divides, placeIn(spec.warp, dimension), userDimension(draft, dimension), value, block);
    return false;
  }
  bool warps() {
    bool m = warpDirection('m', shape.warpM, shape.m, rows(), 256, [&] { return rowsRule(); });
    bool n = warpDirection('n', shape.warpN, shape.n, columns(), 256, [&] { return columnsRule(); });
    return m && n && integerColumns() && slices() && blocked();
  }

  bool integerColumns() {
    return !draft.wgmma() || draft.wgmmaColumns(shape.warpN) == shape.warpN ||
           multiple(Diag::plan_warp_multiple, spec.warp, 'n', shape.warpN, 16,
                    [] { return "of integers wgmma multiplies 8, 16, 24, 32 and then 16 columns more at a time"; });
  }

  /// Slices of k begin where instructions and 16-byte pieces do.
  bool slices() {
    if (shape.warpK == shape.k)
      return true;
    if (draft.wgmma()) {
      offer(report(Diag::plan_warp_k, placeIn(spec.warp, 'k'), shape.warpK, shape.k), spec.warp, 'k',
            llvm::Twine(shape.k));
      return false;
    }
    int64_t step = std::max({draft.matrix->k, draft.elementsIn(16), int64_t(8)});
    if (*spec.swizzle == Swizzle::blocked)
      step = std::max<int64_t>(step, 16);
    if (shape.warpK < shape.k && shape.k % shape.warpK == 0 && shape.warpK % step == 0)
      return true;
    offer(report(Diag::plan_warp_slice, placeIn(spec.warp, 'k'), shape.warpK, shape.k, step), spec.warp, 'k',
          llvm::Twine(shape.k));
    return false;
  }

  /// Blocks of 16 x 16 elements are whole, and a wmma fragment has the same distance between all of its rows.
  bool blocked() {
    if (*spec.swizzle != Swizzle::blocked || draft.wgmma()) // wgmma has none: reported
      return true;
    const MatrixInstruction &matrix = *draft.matrix;
    std::string why;
    if (draft.wmma() &&
        (matrix.m > 16 || matrix.n > 16 || matrix.k * int64_t(bitsOf(matrix.type)) > 16 * 8 * bytesOf(matrix.type)))
      why = formatv("fragments of m{0}n{1}k{2} are larger", matrix.m, matrix.n, matrix.k);
    else if (shape.warpM % 16 || shape.warpN % 16)
      why = formatv("a warp tile of {0}x{1} cuts them", shape.warpM, shape.warpN);
    else if (shape.k / perByte(matrix.type) % 16)
      why = formatv("a block tile {0} deep cuts them", shape.k);
    if (why.empty())
      return true;
    report(Diag::plan_swizzle_blocked, spec.swizzle.range, why)
        .fix(spec.swizzle.range, draft.wmma() ? "padded" : "xor");
    return false;
  }

  llvm::SMRange splitPlace() const { return spec.warp.given ? spec.warp.range : tilePlace(); }
  bool split() {
    return draft.wgmma() ? (shape.schedule == Schedule::pingpong ? pingpong() : warpgroups()) : warpCount();
  }
  bool warpCount() {
    if (shape.warps() <= 16)
      return true;
    report(Diag::plan_threads, splitPlace(), shape.m, shape.n, shape.warpM, shape.warpN, shape.warps(),
           shape.warps() * 32);
    return false;
  }
  bool pingpong() {
    if (shape.warps() == 1)
      return true;
    report(Diag::plan_warp_pingpong, splitPlace(), shape.warpM, shape.warpN, shape.m, shape.n);
    return false;
  }
  bool warpgroups() {
    const int64_t most = mostWarpgroups(shape.schedule);
    if (shape.warpM != shape.m && shape.warpN != shape.n) {
      report(Diag::plan_warp_split, splitPlace(), shape.warpM, shape.warpN, shape.m, shape.n);
      return false;
    }
    if (shape.warps() > most) {
      report(Diag::plan_warpgroups, splitPlace(), shape.m, shape.n, shape.warpM, shape.warpN, shape.warps(),
             nameOf(shape.schedule), most);
      return false;
    }
    // A warpgroup's columns of an n-contiguous B start at a whole swizzled row.
    return shape.warpN == shape.n || draft.kMajorB() ||
           multiple(Diag::plan_warp_multiple, spec.warp, 'n', shape.warpN, swizzleSpan(draft),
                    [] { return "n is contiguous in B and warpgroups start at whole swizzled rows"; });
  }

  bool clusterDirection(char dimension, int64_t value, const char *allowed) {
    // Slices that the cluster follows have their own rule.
    bool slices = dimension == 'k' && draft.meetsInCluster() && (!spec.cluster.given || (value >= 2 && value <= 8));
    if (value == 1 || slices || (dimension != 'k' && (value == 2 || value == 4)))
      return true;
    offer(report(Diag::plan_cluster_size, placeIn(spec.cluster, dimension), userDimension(draft, dimension), value,
                 allowed),
          spec.cluster, dimension, dimension == 'k' || value < 2 ? "1" : "2");
    return false;
  }
  void cluster() {
    bool m = clusterDirection('m', shape.clusterM, "1, 2, 4");
    bool n = clusterDirection('n', shape.clusterN, "1, 2, 4");
    bool k = clusterDirection('k', shape.clusterK, draft.meetsInCluster() ? "1 to 8" : "1");
    if (!m || !n || !k)
      return;
    int64_t ctas = shape.clusterM * shape.clusterN * shape.clusterK;
    if (ctas > 8 && (spec.cluster.given || shape.clusterK <= 8)) // too many slices have their own rule
      report(Diag::plan_cluster_count, spec.cluster.range, shape.clusterM,
             shape.clusterK > 1 ? formatv("{0}x{1}", shape.clusterN, shape.clusterK).str()
                                : std::to_string(shape.clusterN),
             ctas);
    const bool slices = !spec.cluster.given && draft.inCluster(); // checkSplit says so
    if (ctas > 1 && !slices && (!draft.wgmma() || shape.schedule == Schedule::pipelined))
      report(Diag::plan_cluster_schedule, spec.cluster.range, nameOf(shape.schedule))
          .fix(spec.cluster.range, "[1, 1, 1]");
  }

  /// Eight boxes bring an operand's lines, each those that lie alike; what they bring fills whole 128 bytes.
  void shifted() {
    struct Lines {
      bool shifted;
      const OperandSpec &operand;
      char dimension;
      int64_t extent;
      bool kMajor;
    };
    for (const Lines &lines : {Lines{draft.shiftsA(), draft.kernelA(), 'm', shape.m, draft.kMajorA()},
                               Lines{draft.shiftsB(), draft.kernelB(), 'n', shape.n, draft.kMajorB()}}) {
      if (!lines.shifted)
        continue;
      const int64_t length = lines.kMajor ? shape.k : lines.extent; // of lines that come by eight, as wgmma takes them
      const char *along = lines.kMajor ? "k" : userDimension(draft, lines.dimension);
      std::string why;
      if (shape.schedule != Schedule::cooperative && !spec.schedule.given) // else decideRepack says so
        why = formatv("feeds cooperative warpgroups: `pipeline.schedule` is {0}", nameOf(shape.schedule));
      else if (length % draft.elementsIn(128) != 0 || length > longestShifted)
        why = formatv("takes lines of 128 bytes, at most three: `tile.block` {0} is {1}, not 64, 128 or 192", along,
                      length);
      else if (shape.warps() != 1)
        why = formatv("leaves registers for one warpgroup that multiplies: {0} {1} of them",
                      spec.warp.given ? "`tile.warp` makes" : "so large a `tile.block` takes", shape.warps());
      else if (shape.clusterM * shape.clusterN != 1 && !spec.cluster.given)
        why = "shares no tiles: `tile.cluster` is not 1 along m and n";
      if (why.empty())
        continue;
      report(Diag::plan_shift, tilePlace().isValid() ? tilePlace() : lines.operand.repack.range,
             &lines.operand == &spec.b ? "b" : "a", why);
      return; // of the other operand it would be the same, or comes to light then
    }
  }

  void registers() {
    unsigned need = accumulatorRegisters(draft, shape), limit = accumulatorLimit(draft, shape);
    if (need <= limit)
      return;
    unsigned threads = threadsOf(draft, shape);
    unsigned each = registerSplit(draft, shape).second;
    if (!each)
      each = std::min(255u, draft.limits.registersPerSM / threads);
    int64_t elements = int64_t(limit) * (draft.wgmma() ? 128 : 32) * 32 / bitsOf(*spec.accumulator);
    Problem &problem = report(Diag::plan_registers, splitPlace(), shape.warpM, shape.warpN, need, threads, limit, each);
    problem.note(Diag::plan_note_registers, splitPlace(), elements, draft.wgmma() ? "warpgroup" : "warp");
    if (mostGathered(draft, shape) == limit)
      problem.note(Diag::plan_note_gathered, splitPlace());
  }

  /// The rule of `stages` alone; what fits is shared()'s.
  bool stages() {
    if (!spec.stages.given)
      return true;
    if (*spec.copy == CopyKind::ld) {
      if (*spec.stages == 1)
        return true;
      Problem &problem = diags.report(Diag::plan_stages_ld, spec.stages.range, *spec.stages);
      problem.fix(spec.stages.range, "1");
      if (!spec.copy.given)
        problem.note(Diag::plan_note_copy, spec.stages.range, spec.copy.reason);
      return false;
    }
    int64_t least = draft.wgmma() ? 2 : 1; // cp.async into one buffer waits for each copy
    int64_t most = draft.wgmma() ? mostStages : 8;
    if (*spec.stages >= least && *spec.stages <= most)
      return true;
    std::string from = most > 8 ? formatv("{0} to {1}, by itself {0}", least, most).str() : std::to_string(least);
    diags.report(Diag::plan_stages, spec.stages.range, *spec.stages, from)
        .fix(spec.stages.range, llvm::Twine(std::clamp<int64_t>(*spec.stages, least, most)));
    return false;
  }
  void shared() {
    if (shape.stages < 1 || shape.stages > mostStages || sharedBytes(draft, shape) <= draft.limits.sharedPerBlock)
      return;
    int64_t sums = exchangeBytes(draft, shape) + fixedBytes(draft, shape);
    if (exchangeOver(draft, shape) && sums > draft.limits.sharedPerBlock) {
      report(Diag::plan_shared_sums, tilePlace(), shape.clusterK, shape.m, shape.n, sums, nameOf(*spec.target),
             draft.limits.sharedPerBlock)
          .note(Diag::plan_note_owners, tilePlace(), shape.warpN, columnShares(shape).each);
      return;
    }
    if (int64_t epilogue = epilogueBytes(draft, shape); epilogue > draft.limits.sharedPerBlock) {
      report(Diag::plan_shared_epilogue, tilePlace(), shape.m, shape.n, epilogue, nameOf(*spec.target),
             draft.limits.sharedPerBlock);
      return;
    }
    int64_t fits = stagesThatFit(draft, shape);
    llvm::SMRange place = spec.stages.given ? spec.stages.range : tilePlace();
    Problem &problem = report(Diag::plan_shared, place, shape.stages, sharedBytes(draft, shape), nameOf(*spec.target),
                              draft.limits.sharedPerBlock);
    if (spec.stages.given && fits >= 2)
      problem.fix(place, llvm::Twine(fits));
    std::string rest = *spec.swizzle == Swizzle::padded && !draft.wgmma()
                           ? formatv(" with {0} bytes a row of padding", *spec.padding).str()
                           : "";
    if (int64_t fixed = fixedBytes(draft, shape))
      rest += formatv(", and {0} are for barriers{1}{2} and alignment", fixed,
                      draft.shifts() ? ", three tiles of shifted lines" : "",
                      stagedBytes(draft, shape) ? ", the epilogue" : "");
    problem.note(Diag::plan_note_stage, tilePlace().isValid() ? tilePlace() : place, shape.m, shape.k, shape.n,
                 nameOf(*spec.a.type), stageBytes(draft, shape), rest);
  }
};
} // namespace

void checkShape(const Draft &draft, const Shape &shape, Diags &diags) { Checker(draft, shape, diags).all(); }

} // namespace gemmc::plan
