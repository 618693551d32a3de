// The order of `auto`: database of this device, table that gemmc ships, model. What was measured for just this spec and
// does not fit is a remark.
#include "gemmc/Tune/Choose.h"
#include "gemmc/Plan/Key.h"
#include "gemmc/Plan/Typical.h"
#include "gemmc/Tune/Entries.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>

using llvm::formatv;
using llvm::StringRef;

namespace gemmc::tune {
namespace {
/// A compilation waits no longer for a process that writes: it goes on without.
constexpr int readPatience = 200;

/// A problem whose measurement is good for the spec, if there is one.
struct Wanted {
  std::string text;
  bool exact;                 ///< Measured with all that the spec gives.
  const char *type = nullptr; ///< Measured with inputs of this other type.
};

/// A choice that was found for a problem.
struct Found {
  Tuned tuned;
  Origin origin;
};

/// The type whose products are the same instructions at the same rate.
const char *siblingOf(StringRef type) {
  return llvm::StringSwitch<const char *>(type)
      .Case("f16", "bf16")
      .Case("bf16", "f16")
      .Case("e4m3", "e5m2")
      .Case("e5m2", "e4m3")
      .Case("s8", "u8")
      .Case("u8", "s8")
      .Default(nullptr);
}

/// A choice for f16 is one for bf16, where sums are f32, and so on: the problem of `wanted` with the other of the two
/// types, nullopt where there is none. D and C of 16 bits follow operands of 16 bits.
std::optional<Wanted> siblingOf(const Wanted &wanted) {
  if (!StringRef(wanted.text).contains(" sums=f32 ") && !StringRef(wanted.text).contains(" sums=s32 "))
    return std::nullopt;
  llvm::SmallVector<StringRef> words;
  StringRef(wanted.text).split(words, ' ');
  Wanted sibling{"", wanted.exact};
  bool halves = false; ///< Of the operands.
  for (StringRef word : words) {
    auto [name, rest] = word.split('=');
    auto [type, more] = rest.split(':');
    const bool ofMatrix = name.size() == 1 && !more.empty();
    const char *other = ofMatrix ? siblingOf(type) : nullptr;
    const bool operand = name == "a" || name == "b", half = type == "f16" || type == "bf16";
    if (other && name == "a")
      sibling.type = other, halves = half;
    const bool changes = other && (operand || (half && halves));
    sibling.text +=
        (sibling.text.empty() ? "" : " ") + (changes ? formatv("{0}={1}:{2}", name, other, more).str() : word.str());
  }
  return sibling.type ? std::optional(std::move(sibling)) : std::nullopt;
}

class Search {
public:
  Search(const Spec &spec, const ChooseOptions &options, Diags &diags)
      : spec(spec), options(options), diags(diags),
        device(deviceFor(options, spec.target.given ? *spec.target : Target::sm_90a)) {}

  std::optional<Chosen> go() {
    if (options.off || device.empty() || !hasOpenFields())
      return byModel(options.off || device.empty() ? Origin::model : Origin::given);
    auto key = problemKey(spec);
    if (!key)
      return byModel(Origin::model); // which reports what is wrong
    std::vector<Wanted> all;
    auto want = [&](Wanted wanted) {
      auto sibling = siblingOf(wanted);
      all.push_back(std::move(wanted));
      if (sibling)
        all.push_back(std::move(*sibling));
    };
    want({key->text(), true});
    if (!key->given.empty())
      want({key->problem, false}); // measured without what is given: good where nothing contradicts
    if (hasDynamicSizes(spec))
      if (auto typical = problemKey(atTypicalSizes(spec)))
        want({typical->problem, false});
    openDatabase();
    for (const Wanted &wanted : all)
      for (const Found &found : candidatesFor(wanted.text))
        if (auto plan = planWith(found, wanted))
          return Chosen{std::move(*plan), found.origin, device, found.tuned};
    return byModel(Origin::model);
  }

private:
  bool hasOpenFields() const {
    return llvm::any_of(fieldTexts(spec),
                        [](const FieldText &field) { return !field.given && !isProblemField(field.path); });
  }

  std::optional<Chosen> byModel(Origin origin) {
    auto plan = makePlan(spec, diags);
    return plan ? std::optional(Chosen{std::move(*plan), origin, device, std::move(unused)}) : std::nullopt;
  }

  void ignore(const Failure &failure) { diags.report(Diag::tuning_ignored, {}, failure.str()); }

  /// A file that does not exist is not looked for any further: opening costs time.
  void openDatabase() {
    std::string path = options.database;
    const bool named = !path.empty() || std::getenv("GEMMC_TUNING"); // in the usual place there need not be one
    if (path.empty()) {
      auto usual = defaultDatabase();
      if (!usual || usual->empty())
        return; // nowhere: nothing was ever stored there
      path = *usual;
    }
    if (!llvm::sys::fs::exists(path)) {
      if (named)
        ignore(Failure::make(Diag::tuning_access, "open", path, "no such file"));
      return;
    }
    auto opened = Database::open(path, Database::Mode::read, readPatience);
    if (opened)
      database.emplace(std::move(*opened));
    else
      ignore(opened.failure());
  }

  std::vector<Found> candidatesFor(const std::string &text) {
    std::vector<Found> found;
    if (database) {
      auto row = database->find(device, text);
      if (!row) {
        ignore(row.failure());
        database.reset();
      } else if (*row) {
        found.push_back({std::move(**row), Origin::database});
      }
    }
    if (auto row = findBuiltIn(device, text))
      found.push_back({std::move(*row), Origin::table});
    return found;
  }

  std::optional<Plan> refuse(const Found &found, StringRef why) {
    diags.report(Diag::tuning_refused, {}, found.tuned.choice, why);
    return std::nullopt;
  }

  std::optional<Plan> planWith(const Found &found, const Wanted &wanted) {
    const Tuned &tuned = found.tuned;
    unused = tuned;
    if (tuned.kernels != kernelVersion) {
      if (found.origin == Origin::database) // a table is of its gemmc; the test of the tables says so
        diags.report(Diag::tuning_stale, {}, tuned.kernels, kernelVersion);
      return std::nullopt;
    }
    if (auto why = whyNoChoice(tuned.choice))
      return refuse(found, *why);
    Diags scratch;
    Spec with = spec;
    auto paths = applyChoice(with, tuned.choice, scratch);
    if (!wanted.exact && contradicts(tuned.choice))
      return std::nullopt;
    auto plan = paths ? makePlan(with, scratch) : std::nullopt;
    if (!plan && !wanted.exact)
      return std::nullopt; // of another problem than this one: nothing is wrong with either
    if (!plan)
      return refuse(found, scratch.all().front().message);
    explain(*plan, *paths, found, wanted.type);
    return plan;
  }

  /// Whether a word of `choice` has another value than the spec gives.
  bool contradicts(StringRef choice) const {
    Diags scratch;
    Spec other;
    applyChoice(other, choice, scratch);
    std::vector<FieldText> theirs = fieldTexts(other), ours = fieldTexts(spec);
    for (const auto &[their, our] : llvm::zip(theirs, ours))
      if (their.given && our.given && their.value != our.value)
        return true;
    return false;
  }

  void explain(Plan &plan, std::vector<std::string> paths, const Found &found, const char *otherType) {
    const Tuned &tuned = found.tuned;
    std::string reason = tuned.str();
    if (otherType)
      reason += formatv(" with {0}, whose kernels are as fast", otherType);
    if (hasDynamicSizes(plan.spec))
      reason += " at " + tuned.sizes;
    if (found.origin == Origin::table)
      reason += " (gemmc's own table)";
    std::string first = llvm::is_contained(paths, "tile.block") ? "tile.block" : paths.empty() ? "" : paths.front();
    std::erase(paths, first);
    if (!first.empty())
      settleChoice(plan.spec, first, reason);
    settleChoice(plan.spec, paths, "of that measurement, see " + first);
  }

  const Spec &spec;
  const ChooseOptions &options;
  Diags &diags;
  std::string device;
  std::optional<Database> database;
  std::optional<Tuned> unused;
};
} // namespace

StringRef nameOf(Origin origin) {
  switch (origin) {
  case Origin::given:
    return "given";
  case Origin::database:
    return "database";
  case Origin::table:
    return "table";
  case Origin::model:
    return "model";
  }
  llvm_unreachable("unknown origin");
}

std::string deviceFor(const ChooseOptions &options, Target target) {
  if (!options.device.empty())
    return options.device;
  return target == Target::sm_90a ? "NVIDIA H200" : "";
}

std::optional<Chosen> choose(const Spec &spec, const ChooseOptions &options, Diags &diags) {
  return Search(spec, options, diags).go();
}

std::optional<Plan> choosePlan(const Spec &spec, const ChooseOptions &options, Diags &diags) {
  auto chosen = choose(spec, options, diags);
  return chosen ? std::optional(std::move(chosen->plan)) : std::nullopt;
}

std::string wholeChoice(const Spec &spec, StringRef choice) {
  Diags scratch;
  Spec with = spec;
  auto paths = applyChoice(with, choice, scratch);
  auto plan = paths ? makePlan(with, scratch) : std::nullopt;
  if (!plan)
    return choice.str();
  return choiceOf(*plan, spec, *paths);
}

} // namespace gemmc::tune
