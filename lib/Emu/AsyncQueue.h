/// Asynchronous operations in flight.
///
/// An operation is issued, then its sources are read, then its results land; what happens in between is free, and a
/// program that needs them earlier must wait. The default policy is lazy: an operation completes when its own waiter
/// asks (groups) or when no warp of the cluster can go on (mbarriers), oldest first, so that a missing wait shows up as
/// stale data. Other orders are other policies. No queue of the hardware is endless, and no program may count on an
/// operation that has not completed: where very many are in flight, the oldest complete.
#pragma once
#include "Program.h"
#include "gemmc/Emu/Groups.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <deque>
#include <functional>
#include <vector>

namespace gemmc::emu {

class Cluster;
class Warp;

/// A bulk copy, or the arrival that follows a thread's cp.async copies.
struct AsyncOp {
  const Code *code = nullptr;
  Warp *issuer = nullptr;
  unsigned lane = 0;
  bool inGroup = false; ///< Waited for by its bulk group; else by an mbarrier.
  uint32_t group = 0;   ///< Number of the bulk group of the issuing thread.
  bool sourceRead = false;
  std::function<void()> readSource; ///< May be empty. Runs once, before `land`.
  std::function<void()> land;
};

/// Chooses when operations complete and which one is next.
class AsyncPolicy {
public:
  virtual ~AsyncPolicy();
  /// Whether `op` completes as soon as it is issued.
  virtual bool atIssue(const AsyncOp &op) { return false; }
  /// Index in `pending` (not empty) of the operation that completes when nothing else can go on.
  virtual size_t pick(const std::deque<AsyncOp> &pending) { return 0; }
};

class AsyncQueue {
public:
  void issue(AsyncOp op);
  /// Completes the operation that the policy picks; false when there is none.
  bool completeOne();
  /// Reads the sources of one operation, if there is one whose sources have not been read.
  void readOne(size_t from);
  /// Completes the bulk groups of a thread below `due`; with `readOnly`, their sources are read and the results stay in
  /// flight.
  void waitGroups(const Warp &warp, unsigned lane, uint32_t due, bool readOnly);
  /// Completes what a thread has in its bulk groups, committed or not.
  void finish(const Warp &warp, unsigned lane);
  bool empty() const { return pending.empty(); }
  size_t size() const { return pending.size(); }
  /// The first operation that `match` accepts; nullptr when there is none.
  const AsyncOp *find(llvm::function_ref<bool(const AsyncOp &)> match) const;
  void setPolicy(AsyncPolicy &other) { policy = &other; }

private:
  void complete(AsyncOp &op);
  void completeAt(size_t index);
  static constexpr size_t most = 4096; ///< In flight, of a cluster.
  AsyncPolicy lazy;
  AsyncPolicy *policy = &lazy;
  std::deque<AsyncOp> pending;
};

/// A warp's cp.async instruction: one copy for each lane (PTX ISA 9.7.9.25.3).
struct CpAsync {
  const Code *code = nullptr;
  Mask pending = 0;    ///< Lanes whose copy has not completed.
  uint64_t serial = 0; ///< Grows from one to the next.
  uint32_t bytes = 0;
  std::array<std::byte *, numLanes> dst;
  std::array<const std::byte *, numLanes> src;
  std::array<uint8_t, numLanes> srcBytes; ///< The rest is filled with zeros.
  std::array<uint32_t, numLanes> group;
};

/// Asynchronous work that only the issuing thread or warp can wait for.
struct WarpAsync {
  std::vector<CpAsync> copies; ///< Oldest first.
  std::array<sem::GroupsState, numLanes> copyGroups{}, bulkGroups{};
  uint64_t lastSerial = 0;

  /// Gives a lane's state machine a command.
  static sem::GroupsOutcome step(sem::GroupsState &state, sem::GroupsCommand command) {
    sem::GroupsOutcome outcome = sem::stepGroups(state, command);
    state = outcome.state;
    return outcome;
  }
  void issue(const CpAsync &copy);
  void commitCopies(Mask mask);
  /// Completes the copies of these lanes that a wait makes due.
  void waitCopies(Mask mask, sem::GroupsCommand command);
  /// Completes all copies of these lanes up to `serial`, committed or not.
  void finishCopies(Mask mask, uint64_t serial = ~uint64_t(0));
  /// One copy, any, that nobody waits for yet; false when there is none.
  bool completeOneCopy(bool newest);

private:
  static constexpr size_t most = 1024; ///< In flight, of a warp.
  void finish(Mask mask, std::function<bool(const CpAsync &, unsigned)> due);
};

} // namespace gemmc::emu
