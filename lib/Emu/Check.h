/// Happens-before: looks at every access and every synchronisation of a cluster and finds what is not ordered, however
/// the run came out. docs/emulator.md says what the clocks mean and which edges an instruction makes.
#pragma once
#include "CheckClusters.h"
#include "CheckReadOnly.h"
#include "Copies.h"
#include "GlobalReads.h"
#include "LaneClocks.h"
#include "Machine.h"
#include "Names.h"
#include "Release.h"
#include "Shadow.h"
#include "WgmmaRegisters.h"
#include <set>
#include <unordered_map>

namespace gemmc::emu {

std::string describeCounted(const Access &now, const Access &before, llvm::StringRef lines);
std::string describeMixed(const Access &now, const Access &before);

/// Who does something.
struct Actor {
  Warp &warp;
  const Code &code;
  unsigned lane;
};

/// What a lane stores, from the first byte on; the rest is zero.
using LaneBytes = std::array<std::byte, 32>;

/// What one cell of the shadow stands for: 2^n bytes.
unsigned granuleBits(const Program &program);

class Check {
public:
  explicit Check(Cluster &cluster);
  ~Check();

  // --- Synchronisation
  void namedArrived(Warp &warp, Mask mask, uint32_t id, bool waits);
  void namedOpened(Cta &cta, uint32_t id);
  void namedPassed(Warp &warp, Mask mask, uint32_t id);
  void clusterArrived(Warp &warp, Mask mask, bool relaxed);
  void clusterOpened();
  void clusterPassed(Warp &warp, Mask mask);
  void warpSync(Warp &warp, Mask lanes);
  enum FenceFlag : uint32_t { fenceShared = 1, fenceGlobal = 2, fenceOwn = 4 };
  void proxyFence(Warp &warp, Mask mask, uint32_t flags);
  /// fence.proxy.async::generic: the release half covers the lanes' own past, the acquire half makes it count.
  void oneWayFence(Warp &warp, Mask mask, bool acquires);
  void initFence(Warp &warp, Mask mask);
  void aliasFence(Warp &warp, Mask mask);
  void fence(Warp &warp, const Code &code, Mask mask);
  /// The fences of tensor maps that the device changes: the writer's release, the user's acquire of 128 bytes.
  void mapReleased(Warp &warp, const Code &code, Mask mask);
  void mapAcquired(Warp &warp, const Code &code, Mask mask, const uint64_t *addresses);
  /// griddepcontrol.
  void dependentsLaunched() { launchesDependents = true; }
  void gridWaited(Warp &warp, Mask mask);
  /// The cluster has ended.
  void finish();
  void exit(Warp &warp, Mask mask);

  // --- mbarriers: offsets in the window of a CTA
  /// Says in `command` which mbarrier it is for, and in which phase that is.
  void identify(const Cta &cta, uint32_t offset, sem::MbarrierCommand &command) const;
  void mbarrier(const Actor &actor, Cta &cta, uint32_t offset, const sem::MbarrierCommand &command, uint64_t before,
                const sem::MbarrierOutcome &outcome, bool byThread);
  void mbarrierPassed(Warp &warp, const Code &code, Mask mask, Cta &cta, uint32_t offset);
  /// A test that said False (`answered`) or that would, so that its lanes wait.
  void mbarrierRefused(Warp &warp, const Code &code, Mask mask, Cta &cta, uint32_t offset, bool answered,
                       bool spurious);
  /// The copies of a lane will arrive there.
  void copiesPromised(Warp &warp, const Code &code, unsigned lane, std::byte *object);
  /// Those up to `serial` have.
  void copiesArrived(Warp &warp, unsigned lane, uint64_t serial, std::byte *object);
  /// What was last done to the mbarrier that `wait` is about.
  std::string history(const Warp &warp, const Wait &wait) const;
  /// The k step that the phase of this wait stands for; only mbarriers in named regions have one.
  std::optional<uint64_t> kStepOf(const Warp &warp, const Wait &wait) const;

  // --- Accesses
  /// `constant`: a read by the cache that is not coherent.
  /// `together`: the lanes make one collective write, and who knows of one of them knows of it.
  enum Use : uint8_t { read = 1, write = 2, strong = 4, collective = 8, constant = 16, together = 32 };
  void generic(Warp &warp, const Code &code, Mask mask, const uint64_t *addresses, Where where, unsigned bytes,
               unsigned use);
  /// Lanes store `bytes` each, aligned to them, at `to` by one instruction that is not strong; `stored(lane)`: what.
  void compareLanes(Warp &warp, const Code &code, Mask mask, std::byte *const *to, unsigned bytes,
                    llvm::function_ref<LaneBytes(unsigned lane)> stored);
  void copyIssued(Warp &warp, const Code &code, const CpAsync &copy, const std::array<uint64_t, numLanes> &sources);
  void copiesCommitted(Warp &warp, Mask mask);
  void copiesWaited(Warp &warp, Mask mask);

  /// An operation and the clocks that it starts with.
  struct Agent {
    Actor actor;
    Access access;
    const Clocks *clocks = nullptr;
    const Clocks *issue = nullptr; ///< wgmma: when it was issued; `clocks` are those of the last wgmma.fence.
    bool repeats = false;          ///< A bulk store that another lane issues as well, by the same instruction (BG-7).
    const Cta *home = nullptr;     ///< Whose shared memory it accesses.
  };
  /// An instruction for bulk copies begins: what its lanes access is told from what they access when it comes again.
  void bulkBegins(Warp &warp) { ++of(warp).now; }
  /// A copy into shared memory that completes at the target's mbarrier; notes the phase in the target.
  Agent loadAgent(const Actor &actor, BulkTarget &target);
  /// A bulk store: its reading half or its writing half.
  Agent storeAgent(const Actor &actor, bool reads);
  /// The actor's bulk store is that of the lane `first`, too.
  void repeated(const Actor &actor, unsigned first);
  void shared(Agent &agent, Cta &cta, uint32_t offset, uint64_t bytes, bool writes);
  struct GlobalRange {
    uint64_t address, bytes;
  };
  void global(Agent &agent, llvm::ArrayRef<GlobalRange> ranges, bool writes);
  /// A tensor map is read by the agent's operation.
  void mapUsed(Agent &agent, uint64_t address);
  /// The copy's bytes are about to be counted; MB-11 when that is another phase than the one it was issued in.
  void delivered(const Actor &actor, const BulkTarget &target);
  void bulkWaited(Warp &warp, unsigned lane, bool readOnly);

  // --- wgmma
  void wgmmaFence(Warp &warp);
  void wgmmaIssued(Warp &warp, const Code &code, uint64_t descA, uint64_t descB);
  void wgmmaWaited(Warp &warp, uint32_t groups);
  void executes(uint32_t pc) { executed[pc] = true; }
  const std::vector<uint8_t> &whatRan() const { return executed; }
  void registers(Warp &warp, const Code &code) {
    if (wgmmaRegisters.touches(code))
      touchRegisters(warp, code);
  }

  static constexpr uint64_t ownCluster = ~uint64_t(0);
  /// What a report is about, beside its witnesses.
  struct About {
    Spot spot;
    std::optional<uint64_t> kStep, otherKStep;
  };
  /// Reports a broken rule with the severity of its row in Rules.def; each pair of instructions once.
  void report(Warp &warp, const Code &code, unsigned lane, llvm::StringRef rule, const llvm::Twine &text,
              const Access *before = nullptr, uint64_t ofCluster = ownCluster, const About &about = {});

private:
  using PerLane = std::array<uint32_t, numLanes>;
  /// What a lane has waited for and fenced itself: program order is for it alone, others learn it from a release.
  struct OwnLanes {
    PerLane copies{}, bulkRead{}, bulkDone{};             ///< Waited for.
    PerLane fenced[2] = {}, copiesFenced[2] = {}, init{}; ///< Fenced; [0] shared, [1] global.
    PerLane fencedRemote{};                               ///< Shared memory of other CTAs.
    PerLane oneWay{}, copiesOneWay{}, oneWayAcquire{};    ///< The halves of one-way fences.
    PerLane plainFence{}, initFences{};                   ///< When it last executed one of these fences.
    PerLane aliased{};                                    ///< The same of fence.proxy.alias.
  };
  /// The last wait for groups that a lane executed: when, and how much was committed then.
  struct LastWait {
    PerLane at{}, committed{};
  };
  /// A test of an mbarrier that was not True.
  struct Refused {
    uint32_t pc = 0, offset = 0, completed = 0;
    bool waiting = false, unanswered = false;
  };
  /// Fences, by the narrowest scope that they have.
  enum FenceScope : uint8_t { anyFence, clusterFence, wideFence, numFenceScopes };
  static FenceScope scopeOf(const Code &code) {
    return code.ordering.isWide() ? wideFence : code.ordering.atCta ? anyFence : clusterFence;
  }
  /// All that a release by lanes of a warp hands over.
  struct Known {
    Epoch now = 1;
    OwnLanes own;
    LaneClocks lanes;
  };
  /// A fence of memory that these lanes have executed.
  struct AtFence {
    Mask lanes = 0;
    FenceScope scope = anyFence;
    std::shared_ptr<const Known> known;
  };
  /// What goes with the strong accesses of an address: what their releases hand over, and, of kernels with fence.sc,
  /// what has happened before them.
  struct Location {
    /// By the CTA of who acquires; `near`: by a fence of .cta scope, which takes what its own CTA has released. In a
    /// cluster of one CTA `released` is all.
    llvm::SmallVector<ReleaseSequence<Clocks>, 1> released, near;
    Clock happened;
  };
  struct WarpState : Known {
    Mask exist = 0; ///< Lanes that the CTA has.
    std::unique_ptr<Clocks> atWgmmaFence;
    std::array<llvm::SmallVector<AtFence, 1>, numFenceScopes> fences; ///< For relaxed writes behind them.
    LaneClocks observed;             ///< By relaxed reads, for fences behind them, of whatever scope;
    LaneClocks observedFar;          ///< in a cluster of several CTAs all of it, for fences of a wider scope than .cta.
    LaneClocks counted;              ///< The same by atomics that count, for `Sight::counted`.
    std::array<AtFence, 2> scFences; ///< The last fence.sc, and the one before.
    PerLane mapReleased[numFenceScopes] = {};             ///< Fences of tensor maps, of these scopes.
    std::array<std::vector<uint32_t>, numLanes> copyEnds; ///< By lane and group: serial of the last copy.
    PerLane lastCopy{};
    LastWait copyWait, bulkWait;
    Epoch wgmmaWait = 0;
    std::array<Refused, numLanes> refused{};
    uint64_t usesAtFence[2] = {~uint64_t(0), ~uint64_t(0)};
    std::array<SharedClocks, 16> named;
    SharedClocks atCluster;
    SharedClocks behindNamed, behindCluster; ///< Of the last barrier that it has passed.
    std::optional<uint64_t> kStep;           ///< Of the stage that it has last waited for to be filled by bulk copies.
    WgmmaRegisters::State registers;
  };
  struct Event {
    const char *what;
    uint32_t line, thread, cta;
    std::string after;
  };
  struct Barrier {
    uint32_t component = 0;
    Access init;
    uint32_t completed = 0; ///< Phases.
    uint32_t inits = 0;
    uint32_t issued = 0; ///< Highest epoch of a copy that will be counted here.
    uint32_t issuedPc = 0;
    bool observed = true;                                        ///< Somebody has waited for the last completed phase.
    Clocks accumulated, accumulatedFar, published, publishedFar; ///< Far: with `.cluster` scope on both sides.
    std::deque<Event> events;
    std::vector<Access> uses; ///< In kernels with mbarrier.inval: the last one of each thread.
  };
  struct CtaState {
    std::unique_ptr<ShadowRange> shadow;
    std::array<SharedClocks, 16> named;
    std::map<uint32_t, Barrier> barriers;
    std::vector<Access> remoteUses; ///< By warps of other CTAs: the last one of each.
    std::vector<Access> sources;    ///< Reads by copies to other CTAs: the last one for each mbarrier.
    Clock atExit;
    bool idleBulkWait = false; ///< A thread has waited for bulk groups and never had any.
    uint64_t sharedUses = 0;   ///< Generic accesses and inits.
  };

  struct Problem {
    const char *rule = nullptr;
    std::string text; ///< Empty where the rule has been reported for the two instructions: a loop may break it often.
  };
  enum class Space : uint8_t { shared, global };

  WarpState &of(const Warp &warp) { return warps[warp.number()]; }
  const WarpState &of(const Warp &warp) const { return warps[warp.number()]; }
  CtaState &of(const Cta &cta) { return ctas[cta.rank]; }
  void acquire(Warp &warp, Mask mask, const Clocks &from) { of(warp).lanes.join(mask, from); }
  /// What the lanes know, and what they have done until now.
  void release(Warp &warp, Mask mask, Clocks &to, bool executionOnly = false) {
    handOver(warp, of(warp), mask, to, executionOnly);
    ++of(warp).now;
  }
  void handOver(const Warp &warp, const Known &known, Mask mask, Clocks &to, bool executionOnly = false) const;
  /// What their last fences of that scope, or a wider one, let relaxed writes of the lanes hand over.
  void handFenced(const Warp &warp, Mask mask, FenceScope scope, Clocks &to) const;
  void observes(Warp &warp, Mask mask, const Clocks &near, const Clocks &far);
  void countedUp(Warp &warp, const Code &code, unsigned lane, Clocks seen);
  /// The lines of atomics behind which a fence would order the two; empty: no such. `owner`: the cluster of `before`.
  std::string whereCounted(const Agent &agent, const Access &before, uint64_t owner) const;

  uint32_t warpComponent(const Warp &warp) const { return warp.number(); }
  uint32_t wgmmaComponent(const Warp &warp) const {
    return numWarps + warp.cta.rank * cluster.warpsPerCta + (warp.index & ~3u);
  }
  uint32_t copyComponent(const Warp &warp) const { return 2 * numWarps + warp.number(); }
  uint32_t bulkComponent(const Warp &warp, bool reads) const { return (reads ? 3 : 4) * numWarps + warp.number(); }

  Agent genericAgent(Warp &warp, const Code &code, unsigned lane, unsigned use);
  /// Whether nothing was to be said.
  bool look(Agent &agent, Space space, const Cell &cell, uint64_t address, bool isRead, bool isWrite);
  void keep(const Agent &agent, Cell &cell) const;
  template <typename Shadow> // a ShadowRange or ShadowPages
  void touch(Agent &agent, Space space, Shadow &shadow, uint64_t address, uint64_t bytes, bool isRead, bool isWrite);
  Epoch ownEpoch(const Warp &warp, unsigned lane, Sight order, uint32_t component) const;
  bool ordered(const Agent &agent, const Clocks &clocks, Sight order, const Access &before) const;
  bool ordered(const Agent &agent, Sight order, const Access &before) const {
    return ordered(agent, *agent.clocks, order, before);
  }
  Problem problem(const Agent &agent, const Access &before, const char *rule, const llvm::Twine &text) const;
  std::optional<Problem> judge(const Agent &agent, const Access &before, Space space) const;
  bool sameCta(const Agent &agent, const Access &before) const;
  /// Whether the earlier access is one to shared memory of another CTA than its thread's.
  bool isRemote(const Agent &agent, const Access &before) const {
    return agent.home && agent.home->rank != before.warp / cluster.warpsPerCta;
  }
  std::optional<Problem> judgeOrder(const Agent &agent, const Access &before, Space space) const;
  std::optional<Problem> judgeGeneric(const Agent &agent, const Access &before) const;
  std::optional<Problem> judgeProxies(const Agent &agent, const Access &before, Space space) const;
  std::optional<Problem> judgeAsync(const Agent &agent, const Access &before) const;
  Problem uncopied(const Agent &agent, const Access &before) const;
  Problem unstored(const Agent &agent, const Access &before) const;
  /// Only a barrier of threads stands between the issue of an operation and the agent; nullopt: not even that.
  std::optional<Problem> onlyBarrier(const Agent &agent, const Access &before) const;
  void lanesDiffer(Warp &warp, const Code &code, unsigned first, unsigned second, const std::byte *at);
  void dependency(const Agent &agent, uint64_t address, uint64_t bytes, bool isRead, bool isWrite);
  /// Of global memory, in a kernel that has ld.global.nc: such a load, or a write.
  void readOnly(const Agent &agent, uint64_t address, uint64_t bytes, bool writes);
  void leavesUnanswered(Warp &warp, Mask mask);
  bool fencedElsewhere(const Access &init) const;
  void mbarrierUsed(Barrier &barrier, const Access &use);
  void testedBy(Barrier &barrier, Warp &warp, const Code &code, Mask mask);
  void invalidated(const Actor &actor, Cta &cta, uint32_t offset, const Barrier &barrier);
  /// What a fence.sc of that scope adds for a lane of the warp that knows `known`.
  void learnScFences(const Warp &warp, FenceScope scope, const Clocks &known, Clocks &learnt) const;
  void keepScFence(Warp &warp, const AtFence &fence);
  void happens(Warp &warp, Location &location, LaunchCheck *launch, uint64_t key, unsigned lane, bool writes);
  void strongAccess(Warp &warp, const Code &code, unsigned lane, uint64_t key, bool isGlobal, unsigned use);
  /// What the cluster itself says of a use; what other clusters say comes for several together.
  struct GlobalUse {
    const Agent *agent;
    GlobalRange range;
  };
  GlobalUse insideCluster(Agent &agent, GlobalRange range, bool reads, bool writes, bool constant = false);
  void acrossClusters(llvm::ArrayRef<GlobalUse> uses, bool writes);
  std::optional<Problem> judgeForeign(const Agent &agent, const Access &now, uint64_t owner,
                                      const Access &before) const;
  void checkInit(const Actor &actor, Cta &cta, Barrier &barrier, bool byAsync);
  void touchGlobal(Agent &agent, uint64_t address, uint64_t bytes, bool isRead, bool isWrite);
  bool isNoted(Agent &agent, uint64_t address, uint64_t bytes);
  /// A read gets its place in the shadow; nothing is looked for.
  void enter(const GlobalReads::Read &read);
  bool observed(const Agent &agent, const Access &before, llvm::ArrayRef<const Access *> observers) const;
  void keepStrong(const Agent &agent, Cell &cell) const;
  void checkRemote(const Actor &actor, Cta &cta, bool async = false);
  void exitCta(Warp &warp, const Code &code, unsigned lane);
  void touchRegisters(Warp &warp, const Code &code);
  bool isReported(llvm::StringRef rule, const Code &code, const Access *before) const {
    return reported.count({rule.str(), pcOf(code), before ? before->pc + 1 : 0});
  }
  uint32_t pcOf(const Code &code) const { return &code - cluster.program.code.data(); }
  std::optional<uint64_t> kStepOf(const Access &access) const;
  /// `offset`: where two accesses meet.
  About aboutRace(const Access &now, const Access &before, const Cell &cell, uint32_t offset) const;
  About about(uint32_t mbarrier, uint64_t phase) const;
  Witness witness(const Access &access) const;

  Cluster &cluster;
  const uint64_t index; ///< Of the cluster in the launch.
  const unsigned granule;
  const uint32_t numWarps;
  uint32_t numComponents;
  std::vector<WarpState> warps;
  std::vector<CtaState> ctas;
  ShadowPages globals;
  GlobalReads globalReads;
  SharedClocks clusterAccumulated = std::make_shared<Clocks>();
  std::unordered_map<uint64_t, Location> locations;
  WgmmaRegisters wgmmaRegisters;
  /// A write of a tensor map.
  struct MapWrite {
    uint64_t cluster;
    uint32_t component;
    Epoch epoch;
    Mask lanes;
    bool covers(const MapWrite &other) const {
      return cluster == other.cluster && component == other.component && epoch == other.epoch &&
             !(other.lanes & ~lanes);
    }
  };
  /// fence.proxy.tensormap::generic.acquire of a thread, and the writes that it has made visible.
  struct MapAcquire {
    Access event;
    FenceScope scope = anyFence;
    std::vector<MapWrite> writes;
  };
  std::map<uint64_t, std::vector<MapAcquire>> mapAcquires;
  uint64_t globalUses = 0;
  std::vector<uint8_t> executed;   ///< By instruction.
  std::map<uint32_t, bool> fences; ///< Proxy fences by instruction: whether there ever was something to fence.
  uint32_t gridComponent;
  bool hasScFences = false, hasInval = false;
  std::map<uint32_t, Clocks> counters; ///< By instruction: all that atomics that count have seen and not acquired.
  bool mayLaunchDependents = false, launchesDependents = false;
  Touches globalTouches; ///< Of a kernel that lets its dependents launch.
  std::set<std::tuple<std::string, uint32_t, uint32_t>> reported;
};

} // namespace gemmc::emu
