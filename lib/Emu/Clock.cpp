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

void ForeignClocks::join(const Known &known) {
  for (Known &one : of)
    if (one.cluster == known.cluster) {
      one.generic.join(known.generic);
      one.async.join(known.async);
      one.loose.join(known.loose);
      return;
    }
  of.push_back(known);
}

bool ForeignClocks::knows(Clock Known::*how, uint64_t cluster, const Access &event) const {
  for (const Known &one : of)
    if (one.cluster == cluster)
      return event.collective ? (one.*how).knowsAny(event.component, event.lanes, event.epoch)
                              : (one.*how).knows(event.component, event.lanes, event.epoch);
  return false;
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
