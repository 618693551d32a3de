#include "Ranking.h"
#include <functional>
#include <utility>

namespace gemmc::plan {

/// The first candidate of mma is the one that measurements like best: the others must beat it by what the estimate is
/// surely wrong by.
constexpr double margin = 0.98;

Ranking::Ranking(const Draft &draft) : draft(draft), on(draft), candidates(draft) {
  left.reserve(candidates.outlines().size());
  for (const Outline &outline : candidates.outlines())
    left.push_back({leastCost(on, outline), false, left.size(), 0});
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
    look(entry.outline);
    if (left.empty() && shapes.empty() && candidates.takesUnfit())
      for (auto [shape, outline] : std::exchange(unfit, {}))
        add(shape, outline);
  }
  return nullptr;
}

void Ranking::look(size_t outline) {
  const Candidates::Shapes its = candidates.shapesOf(candidates.outlines()[outline]);
  for (const Shape &shape : its.unfit)
    unfit.push_back({shape, outline});
  for (const Shape &shape : its.fit)
    add(shape, outline);
}

void Ranking::add(const Shape &shape, size_t outline) {
  const bool first = shapes.empty();
  Ranked &ranked = shapes.emplace_back(Ranked{shape, {}});
  double key = std::numeric_limits<double>::infinity();
  if (sane(shape)) {
    ranked.estimate = estimate(on, shape);
    dearest = std::max(dearest, ranked.estimate.cost / ranked.estimate.clocks);
    key = ranked.estimate.cost / (draft.wgmma() || first ? 1 : margin);
  }
  left.push_back({key, true, outline, shapes.size() - 1});
  std::push_heap(left.begin(), left.end(), std::greater());
}

} // namespace gemmc::plan
