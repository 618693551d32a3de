/// Vector clocks: up to which event of each component (docs/emulator.md) something is known.
///
/// A dense array says what is known of all lanes of a component; a short list adds what is known of some lanes only
/// (an elected lane's arrival, a lane's own copies). A component of which more is known by lanes (each arrives by
/// itself) has an epoch for each of them instead.
#pragma once
#include "Program.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <memory>
#include <vector>

namespace gemmc::emu {

using Epoch = uint32_t;

struct Access;

class Clock {
public:
  void join(const Clock &other);
  void learn(uint32_t component, Mask lanes, Epoch epoch);
  bool knows(uint32_t component, Mask lanes, Epoch epoch) const {
    return epoch <= known(component) || !(lanes & ~someKnow(component, epoch));
  }
  bool knowsAny(uint32_t component, Mask lanes, Epoch epoch) const {
    return epoch <= known(component) || (lanes & someKnow(component, epoch));
  }
  /// The highest epoch known of any lane.
  Epoch highest(uint32_t component) const;
  bool empty() const { return all.empty() && some.empty() && byLane.empty(); }
  /// Joins what `other` knows of one component.
  void joinComponent(const Clock &other, uint32_t component);

private:
  struct Part {
    uint32_t component;
    Mask lanes;
    Epoch epoch;
  };
  struct ByLane {
    uint32_t component;
    std::array<Epoch, numLanes> epochs;
  };
  Epoch known(uint32_t component) const { return component < all.size() ? all[component] : 0; }
  Mask someKnow(uint32_t component, Epoch epoch) const {
    Mask lanes = 0;
    for (const Part &part : some)
      if (part.component == component && part.epoch >= epoch)
        lanes |= part.lanes;
    if (const ByLane *found = byLane.empty() ? nullptr : find(component))
      for (unsigned l = 0; l < numLanes; ++l)
        lanes |= Mask(found->epochs[l] >= epoch) << l;
    return lanes;
  }
  const ByLane *find(uint32_t component) const;
  ByLane *find(uint32_t component) { return const_cast<ByLane *>(std::as_const(*this).find(component)); }
  void add(const Part &part);
  /// The component's epochs by lane, with what the list had of it.
  ByLane &spread(uint32_t component);
  /// What all lanes have reached is known of all.
  void settle(const ByLane &lanes);
  std::vector<Epoch> all;
  llvm::SmallVector<Part, 2> some;
  std::vector<ByLane> byLane;
};

/// What a clock says of an event that it knows.
enum class Sight : uint8_t {
  execution,
  ordered,
  generic,
  asyncShared,
  asyncGlobal,
  asyncRemote,
  looseShared,
  looseGlobal,
  looseRemote,
  initialised,
  oneWay,
  aliased,
  counted
};
constexpr unsigned numSights = 13;

/// By cluster of the launch: which of its events are visible here, to generic accesses and to the asynchronous proxy
/// (global memory; fenced by its own thread, fenced by somebody), and which have happened, as far as fence.sc asks.
struct ForeignClocks {
  struct Known {
    uint64_t cluster = 0;
    Clock generic, async, loose, happened;
    bool fenced = false; ///< `loose` has all of `generic`.
  };
  /// Sorted by cluster. What is handed on is shared: in a chain of clusters each knows of all in front of it.
  std::vector<std::shared_ptr<const Known>> of;
  void join(Known known) { join(std::make_shared<const Known>(std::move(known))); }
  void join(const ForeignClocks &other);
  /// A fence.proxy.async behind what is known.
  void fence();
  bool knows(Clock Known::*how, uint64_t cluster, const Access &event) const;

private:
  void join(std::shared_ptr<const Known> known);
  static std::shared_ptr<const Known> joined(const Known &one, const Known &other);
};

struct Clocks {
  std::array<Clock, numSights> of;
  ForeignClocks foreign;
  ForeignClocks counted; ///< The same as `Sight::counted`, of other clusters.
  Clock &operator[](Sight order) { return of[static_cast<unsigned>(order)]; }
  const Clock &operator[](Sight order) const { return of[static_cast<unsigned>(order)]; }
  void join(const Clocks &other) {
    for (unsigned i = 0; i < numSights; ++i)
      if (!other.of[i].empty()) // as most are
        of[i].join(other.of[i]);
    foreign.join(other.foreign);
    counted.join(other.counted);
  }
  /// Something has happened and its effects are visible.
  void learn(uint32_t component, Mask lanes, Epoch epoch) {
    (*this)[Sight::execution].learn(component, lanes, epoch);
    (*this)[Sight::ordered].learn(component, lanes, epoch);
    (*this)[Sight::generic].learn(component, lanes, epoch);
  }
};
using SharedClocks = std::shared_ptr<Clocks>;

} // namespace gemmc::emu
