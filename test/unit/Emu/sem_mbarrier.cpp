// The mbarrier machine against a model that keeps the history of the phase instead of counts.
#include "gemmc/Emu/Mbarrier.h"
#include "gtest/gtest.h"
#include <map>
#include <random>
#include <vector>

using namespace gemmc::emu::sem;
using Command = MbarrierCommand;

namespace {

/// Written from the manual's words: a phase is over when all announced arrivals have come and all bytes that were
/// expected have been delivered.
struct History {
  bool valid = false;
  uint64_t phase = 0;
  int64_t announced = 0;         ///< Arrivals per phase from the next one on.
  int64_t toCome = 0;            ///< Of this phase, announced at its start and pended since.
  std::vector<int64_t> arrivals; ///< Of this phase.
  std::vector<int64_t> bytes;    ///< Expected positive, delivered negative.
  static constexpr int64_t max = 1048575;

  static int64_t total(const std::vector<int64_t> &list) {
    int64_t sum = 0;
    for (int64_t x : list)
      sum += x;
    return sum;
  }
  bool over() const { return toCome == total(arrivals) && total(bytes) == 0; }
  /// Applies a command; the rule that it breaks or "".
  std::string apply(const Command &command, bool &completed, bool &passed, uint64_t tokenPhase) {
    completed = passed = false;
    History before = *this;
    std::string rule = act(command, completed, passed, tokenPhase);
    if (!rule.empty())
      *this = before;
    return rule;
  }

private:
  std::string act(const Command &command, bool &completed, bool &passed, uint64_t tokenPhase) {
    if (command.op == Command::init) {
      if (valid)
        return "MB-2";
      if (command.count < 1 || command.count > max)
        return "MB-4";
      *this = History{true, 0, command.count, command.count, {}, {}};
      return "";
    }
    if (!valid)
      return "MB-1";
    bool mayEnd = false;
    switch (command.op) {
    case Command::inval:
      valid = false;
      return "";
    case Command::expectTx:
      bytes.push_back(command.tx);
      break;
    case Command::completeTx:
      bytes.push_back(-int64_t(command.tx));
      mayEnd = true;
      break;
    case Command::pend:
      if (toCome - total(arrivals) == max)
        return "CA-7";
      ++toCome;
      return "";
    case Command::testParity:
      passed = phase % 2 != command.parity;
      return "";
    case Command::testToken:
      if (tokenPhase != phase && tokenPhase + 1 != phase)
        return "MB-14";
      passed = tokenPhase != phase;
      return "";
    default: { // arrive, drop
      int64_t count = command.hasExpect ? 1 : command.count;
      if (count < 1 || count > max)
        return "MB-4";
      if (command.hasExpect) {
        bytes.push_back(command.tx);
        if (std::abs(total(bytes)) > max)
          return "MB-8";
      }
      if (total(arrivals) + count > toCome)
        return "MB-5";
      if (command.op == Command::drop && (announced -= count) <= 0)
        return "MB-7";
      arrivals.push_back(count);
      mayEnd = true;
      if (command.noComplete && over())
        return "MB-6";
    }
    }
    if (std::abs(total(bytes)) > max)
      return "MB-8";
    if (mayEnd && over()) {
      completed = true;
      ++phase;
      toCome = announced;
      arrivals.clear();
      bytes.clear();
    } else if (mayEnd && toCome == total(arrivals) && total(bytes) < 0) {
      return "MB-11";
    }
    return "";
  }
};

struct Token {
  uint64_t bits, phase;
};

Command randomCommand(std::mt19937 &rng, const std::vector<Token> &tokens, uint64_t &tokenPhase) {
  static const Command::Op ops[] = {Command::init,       Command::inval,     Command::arrive,     Command::arrive,
                                    Command::arrive,     Command::drop,      Command::expectTx,   Command::completeTx,
                                    Command::completeTx, Command::pend,      Command::testParity, Command::testToken,
                                    Command::arrive,     Command::testToken, Command::arrive,     Command::completeTx};
  Command command;
  command.op = ops[rng() % std::size(ops)];
  if (command.op == Command::inval && rng() % 8)
    command.op = Command::arrive;
  command.count = rng() % 40 == 0 ? uint32_t(rng() % 2 ? 0 : 1 << 20) : 1 + rng() % 3;
  if (command.op == Command::init)
    command.count = rng() % 20 ? 1 + rng() % 6 : rng() % 2 ? 0 : (1 << 20) - rng() % 2;
  command.tx = rng() % 50 ? 16 * (rng() % 4) : (1 << 20) - 1 - rng() % 2;
  command.hasExpect = rng() % 3 == 0;
  command.noComplete = !command.hasExpect && rng() % 5 == 0;
  command.parity = rng() % 2;
  if (command.op == Command::testToken) {
    Token token =
        tokens.empty() ? Token{0, ~0ull - 8} : tokens[tokens.size() - 1 - rng() % std::min<size_t>(3, tokens.size())];
    command.token = token.bits;
    tokenPhase = token.phase;
  }
  return command;
}

} // namespace

TEST(SemMbarrier, AgreesWithHistories) {
  std::mt19937 rng(1);
  std::map<std::string, unsigned> seen;
  for (unsigned sequence = 0; sequence < 3000; ++sequence) {
    History model;
    uint64_t word = sequence % 3 == 0 ? 0 : sequence % 3 == 1 ? ~uint64_t(0) : 0xffffffff00000000;
    std::vector<Token> tokens;
    for (unsigned step = 0; step < 80; ++step) {
      uint64_t tokenPhase = ~0ull - 8;
      Command command = step == 0 ? Command{} : randomCommand(rng, tokens, tokenPhase);
      if (step == 0)
        command.count = 1 + rng() % 5;
      uint64_t phase = model.phase;
      bool completed, passed;
      std::string rule = model.apply(command, completed, passed, tokenPhase);
      MbarrierOutcome out = stepMbarrier(word, command);
      // A token too old is told apart from a new one only modulo 4.
      ASSERT_EQ(out.broken ? out.broken.rule : "", rule)
          << out.broken.text << ", op " << int(command.op) << " step " << step;
      ++seen[rule];
      if (!rule.empty()) {
        ASSERT_EQ(out.word, word);
        ASSERT_FALSE(out.broken.text.empty());
        continue;
      }
      ASSERT_EQ(out.completed, completed);
      ASSERT_EQ(out.passed, passed);
      if (command.op == Command::arrive || command.op == Command::drop) {
        auto before = decodeMbarrier(word);
        ASSERT_EQ(pendingOfToken(out.token), before->pending);
        tokens.push_back({out.token, phase});
      }
      word = out.word;
      if (command.op == Command::inval || command.op == Command::init)
        tokens.clear();
      if (model.valid) {
        auto state = decodeMbarrier(word);
        ASSERT_TRUE(state);
        ASSERT_EQ(state->phase, model.phase % 4);
        ASSERT_EQ(state->pending, model.toCome - History::total(model.arrivals));
        ASSERT_EQ(state->tx, History::total(model.bytes));
        ASSERT_EQ(state->expected, model.announced);
        ASSERT_NE(word, 0u);
      }
    }
  }
  for (const char *rule : {"", "MB-1", "MB-2", "MB-4", "MB-5", "MB-6", "MB-7", "MB-8", "MB-11", "MB-14"})
    EXPECT_GT(seen[rule], 50u) << rule << " was hardly met";
}

TEST(SemMbarrier, FreshBarrierPassesOddParity) {
  uint64_t word = stepMbarrier(0, {.op = Command::init, .count = 1}).word;
  EXPECT_TRUE(stepMbarrier(word, {.op = Command::testParity, .parity = 1}).passed);
  EXPECT_FALSE(stepMbarrier(word, {.op = Command::testParity, .parity = 0}).passed);
  word = stepMbarrier(word, {.op = Command::arrive}).word;
  EXPECT_TRUE(stepMbarrier(word, {.op = Command::testParity, .parity = 0}).passed);
}

// Bytes may land before they are expected, as long as an arrival is still to come.
TEST(SemMbarrier, EarlyBytes) {
  uint64_t word = stepMbarrier(0, {.op = Command::init, .count = 1}).word;
  MbarrierOutcome out = stepMbarrier(word, {.op = Command::completeTx, .tx = 4096});
  EXPECT_FALSE(out.broken);
  EXPECT_EQ(decodeMbarrier(out.word)->tx, -4096);
  out = stepMbarrier(out.word, {.op = Command::arrive, .hasExpect = true, .tx = 4096});
  EXPECT_TRUE(out.completed);
}

// A token names its mbarrier and, where phases are counted, the phase itself and not only its number modulo 4.
TEST(SemMbarrier, TokensNameObjectAndPhase) {
  const uint64_t word = stepMbarrier(0, {.op = Command::init, .count = 2}).word;
  const uint64_t token = stepMbarrier(word, {.op = Command::arrive, .object = 7, .phases = 5}).token;
  EXPECT_EQ(pendingOfToken(token), 2u);
  auto test = [&](uint32_t object, uint32_t phases) {
    return stepMbarrier(word, {.op = Command::testToken, .token = token, .object = object, .phases = phases});
  };
  EXPECT_FALSE(test(7, 5).broken || test(7, 5).passed);
  EXPECT_TRUE(test(7, 6).passed);
  for (auto [object, phases] : {std::pair(8u, 5u), {7u, 7u}, {7u, 9u}, {7u, 4u}})
    EXPECT_STREQ(test(object, phases).broken.rule, "MB-14");
  EXPECT_EQ(pendingOfToken(word), std::nullopt);
  EXPECT_STREQ(stepMbarrier(word, {.op = Command::testToken, .token = word}).broken.rule, "MB-14");
}

TEST(SemMbarrier, PendingLimit) {
  uint64_t word = encodeMbarrier({0, 1, mbarrierMax, 0});
  EXPECT_STREQ(stepMbarrier(word, {.op = Command::pend}).broken.rule, "CA-7");
  EXPECT_EQ(describeMbarrier(encodeMbarrier({3, 4, 2, 4096})),
            "parity 1, 2 of 4 arrivals pending, 4096 bytes outstanding");
  EXPECT_EQ(describeMbarrier(0), "not initialised");
}
