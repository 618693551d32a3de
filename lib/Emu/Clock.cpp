#include "Lanes.h"
#include "Shadow.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace gemmc::emu {

const Clock::ByLane *Clock::find(uint32_t component) const {
  auto found = llvm::find_if(byLane, [&](const ByLane &one) { return one.component == component; });
  return found == byLane.end() ? nullptr : &*found;
}

void Clock::add(const Part &part) {
  constexpr unsigned mostInList = 4;
  if (part.epoch <= known(part.component))
    return;
  ByLane *lanes = byLane.empty() ? nullptr : find(part.component);
  unsigned listed = 0;
  for (Part &other : some) {
    if (other.component != part.component)
      continue;
    if (!(part.lanes & ~other.lanes) && part.epoch <= other.epoch)
      return;
    if (!(other.lanes & ~part.lanes) && other.epoch <= part.epoch) {
      other = part;
      return;
    }
    ++listed;
  }
  if (!lanes && listed < mostInList)
    return some.push_back(part);
  if (!lanes)
    lanes = &spread(part.component);
  forLanes(part.lanes, [&](unsigned l) { lanes->epochs[l] = std::max(lanes->epochs[l], part.epoch); });
  settle(*lanes);
}

Clock::ByLane &Clock::spread(uint32_t component) {
  ByLane &lanes = byLane.emplace_back(ByLane{component, {}});
  llvm::erase_if(some, [&](const Part &part) {
    if (part.component != component)
      return false;
    forLanes(part.lanes, [&](unsigned l) { lanes.epochs[l] = std::max(lanes.epochs[l], part.epoch); });
    return true;
  });
  return lanes;
}

void Clock::settle(const ByLane &lanes) {
  const Epoch least = *llvm::min_element(lanes.epochs);
  if (least <= known(lanes.component))
    return;
  if (all.size() <= lanes.component)
    all.resize(lanes.component + 1);
  all[lanes.component] = least;
}

void Clock::join(const Clock &other) {
  if (all.size() < other.all.size())
    all.resize(other.all.size());
  for (size_t i = 0; i < other.all.size(); ++i)
    all[i] = std::max(all[i], other.all[i]);
  if (!other.all.empty() && !some.empty())
    llvm::erase_if(some, [&](const Part &part) { return part.epoch <= known(part.component); });
  for (const Part &part : other.some)
    add(part);
  for (const ByLane &one : other.byLane) {
    ByLane *lanes = find(one.component);
    if (!lanes)
      lanes = &spread(one.component);
    for (unsigned l = 0; l < numLanes; ++l)
      lanes->epochs[l] = std::max(lanes->epochs[l], one.epochs[l]);
    settle(*lanes);
  }
}

void Clock::learn(uint32_t component, Mask lanes, Epoch epoch) {
  if (lanes != allLanes)
    return add({component, lanes, epoch});
  if (all.size() <= component)
    all.resize(component + 1);
  all[component] = std::max(all[component], epoch);
  llvm::erase_if(some, [&](const Part &part) { return part.component == component && part.epoch <= all[component]; });
}

Epoch Clock::highest(uint32_t component) const {
  Epoch most = known(component);
  for (const Part &part : some)
    if (part.component == component)
      most = std::max(most, part.epoch);
  if (const ByLane *lanes = find(component))
    most = std::max(most, *llvm::max_element(lanes->epochs));
  return most;
}

std::shared_ptr<const ForeignClocks::Known> ForeignClocks::joined(const Known &one, const Known &other) {
  auto both = std::make_shared<Known>(one);
  for (Clock Known::*clock : {&Known::generic, &Known::async, &Known::loose, &Known::happened})
    ((*both).*clock).join(other.*clock);
  both->fenced = one.fenced && other.fenced;
  return both;
}

static bool isBefore(const std::shared_ptr<const ForeignClocks::Known> &known, uint64_t cluster) {
  return known->cluster < cluster;
}

void ForeignClocks::join(std::shared_ptr<const Known> known) {
  auto at = llvm::lower_bound(of, known->cluster, isBefore);
  if (at == of.end() || (*at)->cluster != known->cluster)
    of.insert(at, std::move(known));
  else
    *at = joined(**at, *known);
}

void ForeignClocks::join(const ForeignClocks &other) {
  if (other.of.empty())
    return;
  if (of.empty()) {
    of = other.of;
    return;
  }
  std::vector<std::shared_ptr<const Known>> mine = std::exchange(of, {});
  of.reserve(std::max(mine.size(), other.of.size()));
  auto one = mine.begin();
  for (const auto &known : other.of) {
    for (; one != mine.end() && (*one)->cluster < known->cluster; ++one)
      of.push_back(std::move(*one));
    if (one == mine.end() || (*one)->cluster != known->cluster)
      of.push_back(known);
    else if (std::shared_ptr<const Known> same = std::move(*one++); same == known)
      of.push_back(known);
    else
      of.push_back(joined(*same, *known));
  }
  std::move(one, mine.end(), std::back_inserter(of));
}

void ForeignClocks::fence() {
  for (std::shared_ptr<const Known> &known : of)
    if (!known->fenced) {
      auto fenced = std::make_shared<Known>(*known);
      fenced->loose.join(fenced->generic);
      fenced->fenced = true;
      known = fenced;
    }
}

bool ForeignClocks::knows(Clock Known::*how, uint64_t cluster, const Access &event) const {
  auto at = llvm::lower_bound(of, cluster, isBefore);
  if (at == of.end() || (*at)->cluster != cluster)
    return false;
  const Clock &clock = (**at).*how;
  return event.collective ? clock.knowsAny(event.component, event.lanes, event.epoch)
                          : clock.knows(event.component, event.lanes, event.epoch);
}

void Clock::joinComponent(const Clock &other, uint32_t component) {
  if (Epoch epoch = other.known(component))
    learn(component, allLanes, epoch);
  for (size_t i = 0; i < other.some.size(); ++i)
    if (Part part = other.some[i]; part.component == component)
      add(part);
  if (const ByLane *lanes = other.find(component))
    for (unsigned l = 0; l < numLanes; ++l)
      if (lanes->epochs[l])
        add({component, laneBits[l], lanes->epochs[l]});
}

} // namespace gemmc::emu
