// The ranking as a list: what a tuner tries.
#include "Ranking.h"
#include "Vector.h"

using llvm::formatv;

namespace gemmc {
using namespace plan;

namespace {
std::string textOf(std::array<int64_t, 3> tile) {
  return "[" + std::to_string(tile[0]) + "," + std::to_string(tile[1]) + "," + std::to_string(tile[2]) + "]";
}

std::string choiceOf(const Draft &draft, const Shape &shape) {
  const Spec &s = draft.spec();
  std::string words;
  auto add = [&](bool given, llvm::StringRef path, const std::string &value) {
    if (!given)
      words.append(words.empty() ? "" : " ").append(path).append("=").append(value);
  };
  add(s.schedule.given, "pipeline.schedule", nameOf(shape.schedule).str());
  for (auto [operand, path] : {std::pair{&s.a, "a.repack"}, {&s.b, "b.repack"}})
    if (*operand->repack == Repack::inside) // nor does it shift
      add(operand->repack.given, path, "inside");
  add(s.block.given, "tile.block", textOf(draft.way.widened(kernelView(draft, {shape.m, shape.n, shape.k}))));
  add(s.warp.given, "tile.warp", textOf(draft.way.widened(kernelView(draft, {shape.warpM, shape.warpN, shape.warpK}))));
  // A spec that gives its tile swaps for D's layout alone; where A is held, a narrowed spec gives what it has to be.
  if (!storesAlongN(draft))
    add(s.swapOperands.given && !draft.holdsA(), "swap_operands", draft.plan.swapped ? "on" : "off");
  if (*s.split == SplitMode::split_k && !draft.inCluster()) {
    add(s.split.given, "split.mode", nameOf(*s.split).str());
    add(s.splitSlices.given, "split.slices", std::to_string(*s.splitSlices));
  }
  // The last word: rankInto knows who has none.
  if (draft.stream || rowsStartInsideLines(draft) || draft.meetsInCluster())
    add(s.cluster.given, "tile.cluster", textOf(kernelView(draft, {shape.clusterM, shape.clusterN, shape.clusterK})));
  return words;
}

bool isLegal(const Draft &draft, const Shape &shape) {
  Diags scratch = Diags::wordless();
  checkShape(draft, shape, scratch);
  return !scratch.hasErrors() && !exceedsShared(draft, shape);
}

constexpr double anyCost = std::numeric_limits<double>::infinity();
/// Adds the first `most` of the ranking that are legal and cost less than `below`; 0: all. The draft's split and
/// epilogue are decided.
void rankedInto(const Draft &draft, size_t most, double below, std::vector<Alternative> &found) {
  const size_t before = found.size();
  Ranking ranking(draft);
  while (const Ranked *next = most && found.size() - before >= most ? nullptr : ranking.next(below)) {
    if (!isLegal(draft, next->shape))
      continue;
    std::string choice = choiceOf(draft, next->shape);
    bool known = llvm::any_of(found, [&](const Alternative &other) { // a stream says its cluster, too
      return other.choice == choice || other.choice == choice + " tile.cluster=[1,1,1]";
    });
    if (!known)
      found.push_back({std::move(choice), next->estimate.cost});
  }
}

void rankInto(Draft &draft, size_t most, std::vector<Alternative> &found) {
  decideSplit(draft);
  decideEpilogue(draft);
  rankedInto(draft, most, anyCost, found);
}

/// All of another way that the ranking goes by; nullopt where the way is none.
std::optional<Draft> rankedDraft(const Spec &spec, Way way, Diags &scratch) {
  Draft draft = draftOf(spec, scratch, way);
  decideProblem(draft);
  if (!decideFamily(draft))
    return std::nullopt;
  decideSplit(draft);
  decideEpilogue(draft);
  checkEpilogue(draft);
  return scratch.hasErrors() ? std::nullopt : std::optional(std::move(draft));
}
} // namespace

std::optional<double> plan::costOfWay(const Spec &spec, Way way, double below) {
  Diags scratch = Diags::wordless();
  std::optional<Draft> draft = rankedDraft(spec, way, scratch);
  if (!draft)
    return std::nullopt;
  Ranking ranking(*draft);
  const Ranked *next = ranking.next(below);
  while (next && !isLegal(*draft, next->shape))
    next = ranking.next(below);
  return next && next->estimate.cost < below ? std::optional(next->estimate.cost) : std::nullopt;
}

namespace {
/// The first `most` (0: all) legal ones of another way's ranking that cost less than `below`; empty where the way is
/// none.
std::vector<Alternative> alternativesOfWay(const Spec &spec, Way way, size_t most, double below) {
  Diags scratch = Diags::wordless();
  std::vector<Alternative> found;
  if (std::optional<Draft> draft = rankedDraft(spec, way, scratch))
    rankedInto(*draft, most, below, found);
  return found;
}

/// The cheapest `most` of both (0: all).
void mergeInto(std::vector<Alternative> &found, std::vector<Alternative> others, size_t most) {
  found.insert(found.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  llvm::stable_sort(found, [](const Alternative &x, const Alternative &y) { return x.cost < y.cost; });
  if (most && found.size() > most)
    found.resize(most);
}

/// What costs as much is none of the `count` cheapest, of which there may be fewer yet.
double mostToBeKept(llvm::ArrayRef<Alternative> found, size_t count) {
  double most = count && found.size() >= count ? 0 : anyCost;
  for (const Alternative &each : found)
    most = std::max(most, each.cost);
  return most;
}

/// Cuts that stream a skinny product; of the first one all warp tiles, of the others the best one. Half of `count` is
/// left to tiles that come from the clock of all products. `atFirst`: what a nanosecond costs, set by the first of all.
void streamsInto(Draft &draft, unsigned count, std::vector<Alternative> &found, double &atFirst) {
  for (Stream &way : streams(draft)) {
    if (count && found.size() >= (count + 1) / 2)
      break;
    const size_t before = found.size();
    draft.stream = std::move(way);
    rankInto(draft, before ? 1 : (count + 3) / 4, found);
    if (found.size() == before)
      continue;
    if (atFirst == 0)
      atFirst = found.front().cost / draft.stream->nanoseconds;
    // Warp tiles of the first one keep their order.
    const double scale = draft.stream->nanoseconds * atFirst / found[before].cost;
    for (size_t i = before; i < found.size(); ++i)
      found[i].cost *= scale;
  }
  draft.stream.reset();
}

std::vector<Alternative> alternativesOf(const Spec &spec, Way way, unsigned count, Diags &diags,
                                        std::optional<RepackChoice> &other) {
  way = wayOfLines(spec, way);
  unsigned errors = diags.numErrors();
  Draft draft = draftOf(spec, diags, way);
  decideProblem(draft);
  if (!decideFamily(draft) || diags.numErrors() != errors)
    return {};
  other = isBatch(spec) ? otherRepackOfBatch(spec) : otherRepack(draft);
  if (other && count)
    count -= count / 3;
  std::vector<Alternative> found;
  double atFirst = 0; // cost of a nanosecond
  streamsInto(draft, count, found, atFirst);
  if (!found.empty() && mayTurnStream(draft)) {
    Diags scratch;
    Way other = way;
    other.turned = true;
    Draft turned = draftOf(spec, scratch, other);
    decideProblem(turned);
    std::vector<Alternative> others;
    if (decideFamily(turned) && turned.shifts() == draft.shifts()) // else copies decide, of which streams know nothing
      streamsInto(turned, count, others, atFirst);
    mergeInto(found, std::move(others), (count + 1) / 2);
  }
  const size_t streamed = found.size();
  if (!count || streamed < count)
    rankInto(draft, count ? count - streamed : 0, found);
  // The clock of all products knows little of streams: what comes from it stands behind them.
  for (size_t i = streamed; streamed && i < found.size(); ++i)
    found[i].cost = std::max(found[i].cost, found[streamed - 1].cost), found[i].estimated = false;
  if (!streamed)
    for (Way each : otherWays(draft))
      mergeInto(found, alternativesOfWay(spec, each, count, mostToBeKept(found, count)), count);
  return found;
}

/// What a spec of any type is planned as.
std::vector<Alternative> asPlanned(const Spec &spec, unsigned count, Diags &diags, std::optional<RepackChoice> &other) {
  const std::optional<Narrowed> narrow = narrowed(spec);
  return alternativesOf(narrow ? narrow->spec : spec, narrow ? narrow->way : Way(), count, diags, other);
}

/// Says in front of each choice how operands are read.
void say(llvm::MutableArrayRef<Alternative> choices, const std::string &how) {
  for (Alternative &each : choices)
    each.choice = how + each.choice;
}

/// ... those that lanes could turn, of which they turn `inside` or none.
std::string wordsOf(const Turning &turning, const OperandInfo *inside, Repack others) {
  std::string words;
  for (const OperandInfo *info : turning.open)
    words += formatv("{0}.repack={1} ", info->name, nameOf(info == inside ? Repack::inside : others)).str();
  return words;
}

/// `ways` behind `found`; the best of them takes `times` what the best of those takes, with all that it takes to read
/// operands so, of which costs know nothing.
void append(std::vector<Alternative> &found, std::vector<Alternative> ways, double times) {
  const double scale = ways.empty() || found.empty() ? 1 : found.front().cost / ways.front().cost * times;
  for (Alternative &each : ways)
    each.cost *= scale;
  found.insert(found.end(), std::make_move_iterator(ways.begin()), std::make_move_iterator(ways.end()));
}

/// Where lanes turn an operand; then, a third of all, where copies do.
std::vector<Alternative> turnedAlternatives(const Spec &spec, const Turning &turning, unsigned count, Diags &diags) {
  std::optional<RepackChoice> none;
  std::vector<Alternative> found =
      asPlanned(withRepack(spec, turning.inside->operand, Repack::inside), count - count / 3, diags, none);
  say(found, wordsOf(turning, turning.inside, Repack::on));
  if (count && count / 3 == 0)
    return found;
  Diags scratch;
  std::vector<Alternative> ways =
      asPlanned(withRepack(spec, turning.inside->operand, Repack::on), count / 3, scratch, none);
  say(ways, wordsOf(turning, nullptr, Repack::on));
  append(found, std::move(ways), timesOfCopy(spec, turning));
  return found;
}

/// As `planByFamily` reads operands. The long one of a skinny product may be read in two ways: those of the one that
/// the planner does not take come last, a third of all.
std::vector<Alternative> alternativesOfFamily(const Spec &wide, unsigned count, Diags &diags) {
  const Turning turning = turningOf(wide);
  if (turning.inside)
    return turnedAlternatives(wide, turning, count, diags);
  std::optional<RepackChoice> other, none;
  std::vector<Alternative> found = asPlanned(wide, count, diags, other);
  say(found, wordsOf(turning, nullptr, turning.otherwise));
  if (!other || (count && count / 3 == 0))
    return found;
  Diags scratch;
  std::vector<Alternative> ways = asPlanned(withRepack(wide, other->operand, other->how), count / 3, scratch, none);
  say(ways, formatv("{0}={1} ", other->path, nameOf(other->how)));
  for (Alternative &each : ways)
    each.estimated &= other->times.has_value();
  append(found, std::move(ways), other->times.value_or(1));
  return found;
}
/// By tensor cores. Of a small product that mma reads as it lies a third are those of wgmma.
std::vector<Alternative> alternativesOfMatrices(const Spec &wide, const std::optional<ByMma> &small, unsigned count,
                                                Diags &diags) {
  if (!small)
    return alternativesOfFamily(wide, count, diags);
  std::optional<RepackChoice> none;
  Diags scratch = Diags::wordless();
  std::vector<Alternative> found = alternativesOf(withMma(wide), Way(), count - count / 3, scratch, none);
  say(found, "instruction=mma ");
  if (!count || count / 3 > 0)
    append(found, alternativesOfFamily(wide, count / 3, diags), small->times);
  return found;
}
} // namespace

// Of a matrix by a vector a third are those of what is estimated to be slower, tensor cores or multiply-adds.
std::vector<Alternative> alternatives(const Spec &given, unsigned count, Diags &diags) {
  const Spec wide = atTypicalSizes(asOneProduct(given));
  if (asksForVector(wide))
    return vectorAlternatives(wide, count);
  Diags scratch = Diags::wordless();
  const std::optional<Plan> byFamily = planByFamily(wide, scratch);
  const std::optional<ByMma> small = byFamily ? planByMma(wide, *byFamily) : std::nullopt;
  const std::optional<ByVector> vector = byFamily ? planByVector(wide, small ? small->plan : *byFamily) : std::nullopt;
  if (!vector)
    return alternativesOfMatrices(wide, small, count, diags);
  const bool first = vector->times > 1;
  auto listed = [&](bool vectors, unsigned most) {
    return vectors ? vectorAlternatives(wide, most) : alternativesOfMatrices(wide, small, most, diags);
  };
  std::vector<Alternative> found = listed(first, count - count / 3);
  if (!count || count / 3 > 0)
    append(found, listed(!first, count / 3), first ? vector->times : 1 / vector->times);
  return found;
}

} // namespace gemmc
