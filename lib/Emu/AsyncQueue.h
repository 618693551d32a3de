/// Asynchronous operations in flight.
///
/// An operation is issued, then its sources are read, then its results land; what happens in between is free, and a
/// program that needs them earlier must wait. The default policy is lazy: an operation completes when its own waiter
/// asks (groups) or when no warp of the cluster can go on (mbarriers), oldest first, so that a missing wait shows up as
/// stale data. Other orders are other policies.
#pragma once
#include "Program.h"
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
  /// Completes the bulk groups of a thread but the `keep` most recent of `committed`; with `readOnly`, their sources
  /// are read and the results stay in flight.
  void waitGroups(const Warp &warp, unsigned lane, uint32_t committed, uint32_t keep, bool readOnly);
  /// Completes what a thread has in its bulk groups, committed or not.
  void finish(const Warp &warp, unsigned lane);
  bool empty() const { return pending.empty(); }
  void setPolicy(AsyncPolicy &other) { policy = &other; }

private:
  void complete(AsyncOp &op);
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

/// A warp's share of a wgmma: its 16 rows of D. Registers are read and written when it executes.
struct PendingWgmma {
  const Code *code = nullptr;
  uint64_t descA = 0, descB = 0;
  bool accumulate = true;
  uint32_t group = 0;
};

/// Asynchronous work that only the issuing thread or warp can wait for.
struct WarpAsync {
  std::vector<CpAsync> copies;
  std::array<uint32_t, numLanes> copyGroups{}; ///< Groups committed so far.
  std::array<uint32_t, numLanes> bulkGroups{};
  uint64_t lastSerial = 0;
  std::vector<PendingWgmma> wgmmas;
  uint32_t wgmmaGroups = 0;

  void commitCopies(Mask mask);
  /// Completes the copies of these lanes but those of the `keep` most recent groups.
  void waitCopies(Mask mask, uint32_t keep);
  /// Completes all copies of these lanes up to `serial`, committed or not.
  void finishCopies(Mask mask, uint64_t serial = ~uint64_t(0));

private:
  void finish(Mask mask, std::function<bool(const CpAsync &, unsigned)> due);
};

} // namespace gemmc::emu
