/// The mbarrier object (PTX ISA 9.7.13.15) as a pure state machine: a word of shared memory and a command in, a word
/// and an outcome out. Nothing changes when a rule is broken.
///
/// The word holds the whole state, so that it may be copied, overwritten or forgotten like the memory it is. Neither
/// zeros nor all-ones are a valid object.
///
///   63      62..61   60..40    39..20    19..0
///   0       phase    tx        pending   expected
///           mod 4    + 2^20    arrivals  arrivals
///
/// The phase completes when pending is 0 and tx is 0 after an arrive-on or a complete-tx.
#pragma once
#include "gemmc/Emu/Broken.h"
#include <cstdint>
#include <optional>

namespace gemmc::emu::sem {

constexpr int32_t mbarrierMax = (1 << 20) - 1; ///< Largest of all counts.

struct MbarrierState {
  uint32_t phase = 0; ///< Modulo 4.
  uint32_t expected = 0, pending = 0;
  int32_t tx = 0;
};
/// Nothing when the word is not a valid object.
std::optional<MbarrierState> decodeMbarrier(uint64_t word);
uint64_t encodeMbarrier(const MbarrierState &state);
constexpr uint64_t invalidMbarrier = 0; ///< What `inval` leaves behind.

struct MbarrierCommand {
  enum Op : uint8_t {
    init, ///< `count`
    inval,
    arrive,     ///< `count`
    drop,       ///< arrive_drop: `count`
    expectTx,   ///< `tx`
    completeTx, ///< `tx`
    pend,       ///< What `cp.async.mbarrier.arrive` does at issue without `.noinc`: one more arrival is pending.
    testToken,  ///< test_wait, try_wait: `token`
    testParity  ///< the same with `.parity`: `parity`
  };
  Op op = init;
  bool noComplete = false; ///< arrive, drop
  bool hasExpect = false;  ///< arrive, drop: expect-tx of `tx` first; the count is then 1.
  uint32_t count = 1;
  uint32_t tx = 0;     ///< Bytes.
  uint32_t parity = 0; ///< 0 or 1.
  uint64_t token = 0;  ///< From an earlier arrive.
  /// What a token is told from those of other mbarriers by (below 2^27), and from older ones of its own: its phases so
  /// far. Without that number a token names a phase modulo 4.
  uint32_t object = 0;
  std::optional<uint32_t> phases;
};

struct MbarrierOutcome {
  uint64_t word = 0;      ///< The new word.
  uint64_t token = 0;     ///< arrive, drop: the state as it was before the arrive-on.
  bool completed = false; ///< A phase completed.
  bool passed = false;    ///< test: the phase asked for is complete.
  Broken broken;
};

MbarrierOutcome stepMbarrier(uint64_t word, const MbarrierCommand &command);

/// mbarrier.pending_count: pending arrivals when the token was made. Nothing when it is no token.
std::optional<uint32_t> pendingOfToken(uint64_t token);

/// For messages: `parity 1, 2 of 4 arrivals pending, 4096 bytes outstanding`.
std::string describeMbarrier(uint64_t word);

} // namespace gemmc::emu::sem
