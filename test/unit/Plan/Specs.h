/// Specs written by hand for the planner's tests: no YAML, no other room.
#pragma once
#include "gemmc/Plan/Plan.h"
#include <gtest/gtest.h>

namespace gemmc::test {

template <typename T> Field<T> given(T value) { return {std::move(value), true, {}, ""}; }
inline Size fixed(int64_t value) { return Size{value}; }
inline Size dynamic() { return Size{}; }

/// m x n x k with everything else open.
inline Spec problem(Size m, Size n, Size k) {
  Spec spec;
  spec.name = given<std::string>("gemm");
  spec.m = given(m), spec.n = given(n), spec.k = given(k);
  return spec;
}
/// ... of `type`, A and B in `layouts` (`rc`: row, col), D of 32 bits where `type` has its sums there.
inline Spec problem(std::array<int64_t, 3> sizes, const char *layouts, Elem type, int64_t batch = 1) {
  auto orderOf = [](char letter) { return letter == 'r' ? Order::row : Order::col; };
  Spec spec = problem(fixed(sizes[0]), fixed(sizes[1]), fixed(sizes[2]));
  spec.a.type = given(type), spec.b.type = given(type);
  if (type == Elem::tf32)
    spec.d.type = given(Elem::f32);
  else if (type == Elem::s8)
    spec.d.type = given(Elem::s32);
  spec.a.layout = given(orderOf(layouts[0])), spec.b.layout = given(orderOf(layouts[1]));
  if (batch > 1)
    spec.batch = given(fixed(batch));
  return spec;
}
inline Spec cube(int64_t size) { return problem(fixed(size), fixed(size), fixed(size)); }
inline Spec dynamicProblem() { return problem(dynamic(), dynamic(), dynamic()); }

using Tile3 = std::array<int64_t, 3>;

/// The plan, or a test failure with what was reported.
inline Plan planOf(const Spec &spec) {
  Diags diags;
  std::optional<Plan> plan = makePlan(spec, diags);
  for (const Problem &problem : diags.all())
    ADD_FAILURE() << problem.message;
  return plan.value_or(Plan{});
}

/// Names of all problems of a spec, in the order of their reports.
inline std::vector<std::string> problemsOf(const Spec &spec) {
  Diags diags;
  std::optional<Plan> plan = makePlan(spec, diags);
  EXPECT_EQ(plan.has_value(), !diags.hasErrors());
  std::vector<std::string> names;
  for (const Problem &problem : diags.all())
    names.push_back(nameOf(problem.id).str());
  return names;
}

inline std::vector<std::string> requirementsOf(const Plan &plan) {
  std::vector<std::string> texts;
  for (const Expr &requirement : plan.requirements)
    texts.push_back(requirement.str());
  return texts;
}
using Texts = std::vector<std::string>;

} // namespace gemmc::test
