/// Where a plan comes from: what the spec gives, then what was measured for its problem on the device, then the model.
///
/// The rooms below know nothing of this: they plan a spec, and a choice makes a spec that says more.
#pragma once
#include "gemmc/Plan/Plan.h"
#include "gemmc/Tune/Database.h"

namespace gemmc::tune {

enum class Origin : uint8_t { given, database, table, model };
llvm::StringRef nameOf(Origin origin);

struct ChooseOptions {
  bool off = false;     ///< Neither database nor table.
  std::string device;   ///< Empty: the one that the target is usually (sm_90a: NVIDIA H200), for others none.
  std::string database; ///< A file. Empty: the default place.
};

struct Chosen {
  Plan plan;
  Origin origin = Origin::model;
  std::string device;
  /// What was measured for this problem here, whether it was taken or (stale, refused) not.
  std::optional<Tuned> measured;
};

/// Plans `spec`. Nullopt only after a reported error; what is wrong with the database or with a choice is a warning.
std::optional<Chosen> choose(const Spec &spec, const ChooseOptions &options, Diags &diags);
/// The plan alone.
std::optional<Plan> choosePlan(const Spec &spec, const ChooseOptions &options, Diags &diags);

/// The device that `options` mean for a target; empty: none is known.
std::string deviceFor(const ChooseOptions &options, Target target);
/// `choice` made whole: with the values of all fields that decide about speed, as the plan of `spec` with it has them.
/// So a later planner that decides otherwise changes nothing of it.
std::string wholeChoice(const Spec &spec, llvm::StringRef choice);

} // namespace gemmc::tune
