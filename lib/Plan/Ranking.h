/// What the planner tries, and the order of it.
#pragma once
#include "Clock.h"
#include <limits>
#include <vector>

namespace gemmc::plan {

/// What is known of a shape before its warp tiles and stages.
struct Outline {
  Schedule schedule;
  int64_t m, n; ///< Block tile.
  int64_t clusterM, clusterN, clusterK;
};

/// All that is worth a look, legal or not, in the order of preference (Candidates.cpp).
class Candidates {
public:
  explicit Candidates(const Draft &draft); ///< Which must live as long.
  struct Shapes {
    llvm::SmallVector<Shape, 8> fit, unfit; ///< For what the spec asks of the pipeline.
  };
  llvm::ArrayRef<Outline> outlines() const { return all; }
  Shapes shapesOf(const Outline &outline) const;
  bool takesUnfit() const; ///< Where no shape of any outline fits.
  /// Of all outlines; those that do not fit only where none does, and they are taken then.
  std::vector<Shape> shapes() const;

private:
  const Draft &draft;
  std::vector<Outline> all;
};

/// A bound of what any shape of an outline costs (Model.cpp).
double leastCost(const Premises &on, const Outline &outline);

struct Ranked {
  Shape shape;
  Estimate estimate;
};

/// Shapes by what they cost, the cheapest first, of equals the favourite (Ranking.cpp). Only outlines whose bound comes
/// before a shape that is asked for are looked into: of thousands of shapes a few hundred are estimated.
class Ranking {
public:
  explicit Ranking(const Draft &draft); ///< Which must live as long.
  /// The next one, until the next call; nullptr where none is left whose cost is less than `below`, with what the first
  /// one has beside the others.
  const Ranked *next(double below = std::numeric_limits<double>::infinity());
  /// The most that a clock has cost in the estimates so far. What takes fewer than `clocks` comes before
  /// `clocks * costOfClock()`: a bound has no less of an outline's clocks.
  double costOfClock() const { return dearest; }

private:
  /// An outline by its bound, or a shape by its cost; of the same, outlines come first.
  struct Entry {
    double key;
    bool isShape;
    size_t outline; ///< Its number: the favourite comes first.
    size_t index;   ///< In `shapes`, where those of an outline stand in the order of preference.
    auto operator<=>(const Entry &) const = default;
  };
  void look(size_t outline);
  void add(const Shape &shape, size_t outline);

  const Draft &draft;
  Premises on;
  Candidates candidates;
  std::vector<Ranked> shapes;
  std::vector<std::pair<Shape, size_t>> unfit; ///< With their outlines.
  std::vector<Entry> left;                     ///< A heap.
  double dearest = 0;
};

} // namespace gemmc::plan
