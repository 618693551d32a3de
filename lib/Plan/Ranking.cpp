#include "Ranking.h"
#include <functional>
#include <limits>

namespace gemmc::plan {

/// The first candidate of mma is the one that measurements like best: the others must beat it by what the estimate is
/// surely wrong by.
constexpr double margin = 0.98;

Ranking::Ranking(const Draft &draft) : draft(draft), on(draft), candidates(draft) {
  constexpr size_t mostOfOutline = 256;
  left.reserve(candidates.outlines().size());
  for (const Outline &outline : candidates.outlines())
    left.push_back({leastCost(on, outline), false, mostOfOutline * left.size(), left.size()});
  std::make_heap(left.begin(), left.end(), std::greater());
}

const Ranked *Ranking::next(double below) {
  const double most = below / (draft.wgmma() ? 1 : margin);
  while (!left.empty()) {
    if (left.front().key >= most)
      return nullptr;
    std::pop_heap(left.begin(), left.end(), std::greater());
    const Entry entry = left.back();
    left.pop_back();
    if (entry.isShape)
      return &shapes[entry.index];
    look(candidates.outlines()[entry.index], entry.place);
    if (left.empty() && shapes.empty() && candidates.takesUnfit())
      for (auto [shape, place] : std::exchange(unfit, {}))
        add(shape, place);
  }
  return nullptr;
}

void Ranking::look(const Outline &outline, size_t place) {
  const Candidates::Shapes its = candidates.shapesOf(outline);
  for (const Shape &shape : its.unfit)
    unfit.push_back({shape, place++});
  for (const Shape &shape : its.fit)
    add(shape, place++);
}

void Ranking::add(const Shape &shape, size_t place) {
  const bool first = shapes.empty();
  Ranked &ranked = shapes.emplace_back(Ranked{shape, {}});
  double key = std::numeric_limits<double>::infinity();
  if (sane(shape)) {
    ranked.estimate = estimate(on, shape);
    dearest = std::max(dearest, ranked.estimate.cost / ranked.estimate.clocks);
    key = ranked.estimate.cost / (draft.wgmma() || first ? 1 : margin);
  }
  left.push_back({key, true, place, shapes.size() - 1});
  std::push_heap(left.begin(), left.end(), std::greater());
}

} // namespace gemmc::plan
