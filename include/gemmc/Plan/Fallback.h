/// Plans for launches that the first plan's requirements exclude, or that have no workspace; the last of them is
/// makeFallbackPlan (Plan.h).
#pragma once
#include "gemmc/Plan/Plan.h"

namespace gemmc {

/// The fast plan for launches whose row starts exclude the first one: it promises only that pointers are aligned to
/// their elements and copies what TMA cannot read (`a.repack`, `b.repack`). Nullopt, without a report, where that does
/// not pay or does not go with what the spec gives.
std::optional<Plan> makeRepackPlan(const Spec &spec);

/// The plan for launches without a workspace, whose pointers and sizes are as promised: no counter gives tiles, slices
/// do not meet in memory and nothing is copied, but what the spec gives. Nullopt, without a report, where there is
/// none.
std::optional<Plan> makePlanWithoutWorkspace(const Spec &spec);

} // namespace gemmc
