#include "gemmc/Emu/Mbarrier.h"
#include "llvm/Support/FormatVariadic.h"

namespace gemmc::emu::sem {

namespace {

constexpr uint64_t field20 = (1 << 20) - 1, field21 = (1 << 21) - 1;
/// What an arrive returns: from the highest bit on `100`, pending arrivals (20), number of the phase (14), object (27).
/// A word of an mbarrier does not serve as one, nor does the other way round.
struct Token {
  static constexpr uint64_t mark = 4;
  static constexpr unsigned objectBits = 27, phaseBits = 14, pendingBits = 20;
  uint32_t object = 0, phase = 0, pending = 0;
  uint64_t encode() const { return ((mark << pendingBits | pending) << phaseBits | phase) << objectBits | object; }
  static std::optional<Token> decode(uint64_t bits) {
    if (bits >> 61 != mark)
      return std::nullopt;
    auto field = [&](unsigned from, unsigned count) {
      return static_cast<uint32_t>(bits >> from & ((uint64_t(1) << count) - 1));
    };
    return Token{field(0, objectBits), field(objectBits, phaseBits), field(objectBits + phaseBits, pendingBits)};
  }
};
/// The phase as tokens have it, and the number that it is modulo.
std::pair<uint32_t, uint32_t> phaseOf(const MbarrierState &state, const MbarrierCommand &command) {
  const uint32_t period = command.phases ? 1u << Token::phaseBits : 4;
  return {command.phases.value_or(state.phase) % period, period};
}

bool countInRange(uint32_t count) { return count >= 1 && count <= static_cast<uint32_t>(mbarrierMax); }
bool txInRange(int64_t tx) { return tx >= -mbarrierMax && tx <= mbarrierMax; }

/// A command on a valid object. The state is a copy: when a rule breaks it is thrown away.
struct Stepper {
  MbarrierState state;
  MbarrierOutcome &out;

  void complete() {
    if (state.pending || state.tx)
      return;
    state.phase = (state.phase + 1) & 3;
    state.pending = state.expected;
    out.completed = true;
  }
  Broken addTx(int64_t bytes) {
    int64_t tx = state.tx + bytes;
    if (!txInRange(tx))
      return broken("MB-8", "the transaction count would be {0}; its range is -{1} to {1}", tx, mbarrierMax);
    state.tx = static_cast<int32_t>(tx);
    return {};
  }
  /// The phase can never complete: only a complete-tx or an arrive could do it, and neither can raise the count.
  Broken checkReachable() {
    if (state.pending || state.tx >= 0)
      return {};
    return broken("MB-11",
                  "all arrivals are in and {0} more bytes have landed than this phase expected: it can never "
                  "complete",
                  -int64_t(state.tx));
  }
  Broken arrive(const MbarrierCommand &command) {
    uint32_t count = command.hasExpect ? 1 : command.count;
    if (!countInRange(count))
      return broken("MB-4", "the count of an arrive is 1 to {0}, not {1}", mbarrierMax, count);
    if (command.hasExpect)
      if (Broken b = addTx(command.tx))
        return b;
    if (count > state.pending)
      return broken("MB-5", "{0} arrivals where {1} of {2} are pending", count, state.pending, state.expected);
    if (command.op == MbarrierCommand::drop) {
      if (count >= state.expected)
        return broken("MB-7", "dropping {0} of {1} expected arrivals leaves none", count, state.expected);
      state.expected -= count;
    }
    state.pending -= count;
    if (command.noComplete && !state.pending && !state.tx)
      return broken("MB-6", "an arrive with .noComplete completes the phase");
    complete();
    return out.completed ? Broken{} : checkReachable();
  }
  Broken testToken(const MbarrierCommand &command) {
    std::optional<Token> then = Token::decode(command.token);
    if (!then)
      return broken("MB-14", "{0:x} is not a state that an arrive returned", command.token);
    if (then->object != command.object)
      return broken("MB-14", "the state is another mbarrier's, or that of one that was invalidated since");
    auto [phase, period] = phaseOf(state, command);
    if (then->phase == phase)
      return {};
    if ((then->phase + 1) % period != phase)
      return broken("MB-14", "the state is older than the phase before the current one");
    out.passed = true;
    return {};
  }
  Broken run(const MbarrierCommand &command) {
    switch (command.op) {
    case MbarrierCommand::arrive:
    case MbarrierCommand::drop:
      return arrive(command);
    case MbarrierCommand::expectTx:
      return addTx(command.tx);
    case MbarrierCommand::completeTx:
      if (Broken b = addTx(-int64_t(command.tx)))
        return b;
      complete();
      return out.completed ? Broken{} : checkReachable();
    case MbarrierCommand::pend:
      if (state.pending == static_cast<uint32_t>(mbarrierMax))
        return broken("CA-7", "more than {0} pending arrivals", mbarrierMax);
      ++state.pending;
      return {};
    case MbarrierCommand::testToken:
      return testToken(command);
    case MbarrierCommand::testParity:
      if (command.parity > 1)
        return broken("MB-25", "waits for parity {0}: a phase is even (0) or odd (1)", command.parity);
      out.passed = (state.phase & 1) != command.parity;
      return {};
    default:
      return {};
    }
  }
};

} // namespace

std::optional<MbarrierState> decodeMbarrier(uint64_t word) {
  uint64_t tx = word >> 40 & field21;
  MbarrierState state;
  state.phase = word >> 61 & 3;
  state.expected = word & field20;
  state.pending = word >> 20 & field20;
  state.tx = static_cast<int32_t>(tx) - (1 << 20);
  if (word >> 63 || !state.expected || !tx)
    return std::nullopt;
  return state;
}

uint64_t encodeMbarrier(const MbarrierState &state) {
  return uint64_t(state.phase & 3) << 61 | uint64_t(state.tx + (1 << 20)) << 40 | uint64_t(state.pending) << 20 |
         state.expected;
}

MbarrierOutcome stepMbarrier(uint64_t word, const MbarrierCommand &command) {
  MbarrierOutcome out;
  out.word = word;
  std::optional<MbarrierState> state = decodeMbarrier(word);
  if (command.op == MbarrierCommand::init) {
    if (state)
      out.broken =
          broken("MB-2", "there is a barrier already ({0}); `mbarrier.inval` it first", describeMbarrier(word));
    else if (!countInRange(command.count))
      out.broken = broken("MB-4", "the count of a barrier is 1 to {0}, not {1}", mbarrierMax, command.count);
    else
      out.word = encodeMbarrier({0, command.count, command.count, 0});
    return out;
  }
  if (!state) {
    out.broken = broken("MB-1", "no initialised barrier here (the word is {0:x})", word);
    return out;
  }
  if (command.op == MbarrierCommand::inval) {
    out.word = invalidMbarrier;
    return out;
  }
  Stepper stepper{*state, out};
  out.broken = stepper.run(command);
  if (out.broken) {
    out.completed = out.passed = false;
    return out;
  }
  out.word = encodeMbarrier(stepper.state);
  if (command.op == MbarrierCommand::arrive || command.op == MbarrierCommand::drop)
    out.token = Token{command.object, phaseOf(*state, command).first, state->pending}.encode();
  return out;
}

std::optional<uint32_t> pendingOfToken(uint64_t token) {
  std::optional<Token> then = Token::decode(token);
  return then ? std::optional(then->pending) : std::nullopt;
}

std::string describeMbarrier(uint64_t word) {
  std::optional<MbarrierState> state = decodeMbarrier(word);
  if (!state)
    return "not initialised";
  return llvm::formatv("parity {0}, {1} of {2} arrivals pending, {3} bytes outstanding", state->phase & 1,
                       state->pending, state->expected, state->tx)
      .str();
}

} // namespace gemmc::emu::sem
