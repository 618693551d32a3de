/// What the warps of one cluster wait for and what is in flight, as a trace of Chrome's format (ui.perfetto.dev): one
/// process a CTA, one thread a warp, and tracks of their own for asynchronous operations. Time is counted in warp
/// instructions of the cluster.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace gemmc::emu {

class Cluster;
class Warp;
struct Code;
struct Group;

class Timeline {
public:
  static constexpr size_t maxSpans = 200000; ///< What comes later is left out.
  static constexpr size_t none = ~size_t(0);

  // --- For the emulator
  void start(const Cluster &cluster); ///< Forgets what an earlier kernel has left.
  void blocked(const Warp &warp, const Group &group);
  void passed(const Warp &warp, const Group &group);
  /// A bulk copy, or an arrival that waits for cp.async copies; the span to be ended when it is complete.
  size_t copyIssued(const Warp &warp, const Code &code, unsigned lane);
  void end(const Cluster &cluster, size_t span);
  void groupIssued(const Warp &warp, uint32_t group, uint32_t sharedAddress); ///< cp.async, of the warp.
  void groupsWaited(const Warp &warp, uint32_t groups);
  void wgmmaIssued(const Warp &warp, uint32_t group, uint32_t a, uint32_t b); ///< Shared addresses; 0 = none.
  void wgmmaWaited(const Warp &warp, uint32_t groups);
  void finish(const Cluster &cluster);

  // --- For its owner
  bool complete() const { return !dropped; }
  /// A JSON array of events.
  void write(llvm::raw_ostream &os) const;

private:
  struct Span {
    uint32_t process, track;
    std::string name;
    uint64_t begin, end = ~uint64_t(0);
    uint32_t line = 0;
    std::optional<uint64_t> kStep;
  };
  struct Track {
    std::string name;
    size_t last = none; ///< Its newest span.
  };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>; ///< Warp or warpgroup, kind, number.

  size_t add(const Cluster &cluster, Span span);
  size_t addAside(const Warp &warp, const std::string &track, Span span);
  void endBelow(const Cluster &cluster, uint32_t owner, uint32_t kind, uint32_t number);

  std::vector<Span> spans;
  std::vector<std::string> processes;
  std::map<std::pair<uint32_t, uint32_t>, Track> tracks; ///< By process and number.
  std::map<Key, size_t> open;
  uint64_t dropped = 0, lastStep = 0;
};

} // namespace gemmc::emu
