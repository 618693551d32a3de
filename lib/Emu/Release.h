/// What a location hands over to those who acquire there.
#pragma once
#include "llvm/ADT/DenseSet.h"
#include <cstdint>

namespace gemmc::emu {

/// A strong write.
struct ReleaseBy {
  uint64_t thread = 0;
  bool isRelease = false;
  bool updates = false; ///< Reads first, in one step (atom, red).
};

/// The releases that whoever reads the location now observes: an update goes on with those before it, and so does a
/// store behind a release of its own thread; a store of another thread ends them (8.8, 8.9.2). `Handed`: clocks.
template <typename Handed> struct ReleaseSequence {
  Handed handed;
  llvm::SmallDenseSet<uint64_t, 2> threads; ///< That have released here.

  /// `now`: what the write hands over by itself.
  void written(const ReleaseBy &by, const Handed &now) {
    if (!by.updates && (by.isRelease || !threads.count(by.thread))) {
      handed = Handed();
      threads.clear();
    }
    handed.join(now);
    if (by.isRelease)
      threads.insert(by.thread);
  }
};

} // namespace gemmc::emu
