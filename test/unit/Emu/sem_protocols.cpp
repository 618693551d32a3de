// The protocol state machines against models that are written another way: with sets of threads and lists of groups
// instead of counts, and with everything recomputed from the history at each step.
#include "gemmc/Emu/ClusterBarrier.h"
#include "gemmc/Emu/Groups.h"
#include "gemmc/Emu/NamedBarrier.h"
#include "gemmc/Emu/RegisterPool.h"
#include "gemmc/Emu/Warpgroup.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <vector>

using namespace gemmc::emu::sem;

namespace {
struct Random {
  std::mt19937_64 engine;
  uint64_t below(uint64_t n) { return engine() % n; }
  bool chance(unsigned oneIn) { return below(oneIn) == 0; }
};
} // namespace

// --- Named barriers

namespace {
/// The manual's words: a barrier opens when as many threads as it was told of have arrived, a warp as a whole. Threads
/// that have exited are not waited for when nobody else is left, but (the card's word) only where nobody told a count.
struct NamedModel {
  std::set<unsigned> arrived, alive; ///< Threads.
  unsigned expected = 0, opened = 0, warps = 0;
  std::vector<bool> votes;      ///< Of those that arrived with bar.red.
  unsigned yes = 0, voters = 0; ///< When it last opened.
  bool red = false, told = false;

  bool warpIsIn(unsigned warp) const {
    bool any = false;
    for (unsigned t = warp * 32; t < warp * 32 + 32; ++t) {
      any |= arrived.count(t);
      if (alive.count(t) && !arrived.count(t))
        return false;
    }
    return any;
  }
  bool lives(unsigned warp) const {
    auto it = alive.lower_bound(warp * 32);
    return it != alive.end() && *it < warp * 32 + 32;
  }
  std::string arrive(unsigned warp, uint32_t lanes, unsigned count, bool isRed) {
    if (count % 32)
      return "NB-11";
    bool tells = count > 0;
    count = tells ? count : warps * 32;
    if (expected && expected != count)
      return "NB-3";
    if (expected && red != isRed)
      return "NB-5";
    if (warpIsIn(warp))
      return "NB-4";
    for (unsigned l = 0; l < 32; ++l)
      if (lanes >> l & 1 && arrived.count(warp * 32 + l))
        return "NB-4";
    expected = count;
    red = isRed;
    told = told || tells;
    for (unsigned l = 0; l < 32; ++l)
      if (lanes >> l & 1)
        arrived.insert(warp * 32 + l);
    return "";
  }
  bool settle() {
    unsigned in = 0, gone = 0;
    bool others = false;
    for (unsigned warp = 0; warp < warps; ++warp) {
      if (warpIsIn(warp))
        in += 32;
      else if (lives(warp))
        others = true;
      else if (!told)
        gone += 32;
    }
    if (!expected || (in < expected && (others || in + gone < expected)))
      return false;
    arrived.clear();
    expected = 0;
    told = false;
    ++opened;
    yes = std::count(votes.begin(), votes.end(), true);
    voters = votes.size();
    votes.clear();
    return true;
  }
};
} // namespace

TEST(SemProtocols, NamedBarrierLikeAModel) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random{std::mt19937_64(seed)};
    unsigned warps = 1 + random.below(6);
    std::vector<uint32_t> alive(warps, ~0u);
    NamedModel model;
    model.warps = warps;
    for (unsigned t = 0; t < warps * 32; ++t)
      model.alive.insert(t);
    NamedBarrierState state;
    unsigned favourite = 32 * random.below(warps + 1);
    for (unsigned step = 0; step < 60; ++step) {
      NamedBarrierCommand command;
      command.warp = random.below(warps);
      command.lanes = random.chance(3) ? static_cast<uint32_t>(random.engine()) : ~0u;
      command.lanes &= alive[command.warp];
      if (!command.lanes)
        continue;
      std::string rule;
      if (random.chance(12)) {
        command.op = NamedBarrierCommand::exit;
        alive[command.warp] &= ~command.lanes;
        for (unsigned l = 0; l < 32; ++l)
          if (command.lanes >> l & 1)
            model.alive.erase(command.warp * 32 + l);
      } else {
        command.count = random.chance(8) ? random.below(7) * 16 : favourite;
        if (command.count == warps * 32 && random.chance(3))
          command.count = 0; // the same, but nobody told a count
        command.isRed = random.chance(16);
        rule = model.arrive(command.warp, command.lanes, command.count, command.isRed);
        unsigned lanes = std::popcount(command.lanes);
        command.yes = random.below(lanes + 1);
        for (unsigned i = 0; rule.empty() && i < lanes; ++i)
          model.votes.push_back(i < command.yes);
      }
      bool opened = rule.empty() && model.settle();
      command.alive = alive;
      NamedBarrierOutcome outcome = stepNamedBarrier(state, command);
      ASSERT_EQ(outcome.broken ? outcome.broken.rule : "", rule) << "seed " << seed << " step " << step;
      ASSERT_EQ(outcome.opened, opened) << "seed " << seed << " step " << step;
      state = outcome.state;
      ASSERT_EQ(state.generation, model.opened);
      if (opened) {
        ASSERT_EQ(state.result, model.yes) << "seed " << seed << " step " << step;
        ASSERT_EQ(state.resultThreads, model.voters);
      }
    }
  }
}

// --- The cluster's barrier

TEST(SemProtocols, ClusterBarrierLikeAModel) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random{std::mt19937_64(seed)};
    unsigned warps = 1 + random.below(5);
    ClusterBarrierState state;
    struct Thread {
      bool alive = true;
      int arrivedIn = -1; ///< Generation whose wait it owes.
    };
    std::vector<Thread> threads(warps * 32);
    int generation = 0;
    for (unsigned i = 0; i < warps; ++i)
      state.warps.push_back({~0u, 0, 0, 0});
    auto settle = [&] {
      bool any = false;
      for (const Thread &thread : threads) {
        if (thread.alive && thread.arrivedIn != generation)
          return false;
        any |= thread.alive && thread.arrivedIn == generation;
      }
      generation += any;
      return any;
    };
    for (unsigned step = 0; step < 80; ++step) {
      ClusterBarrierCommand command;
      command.warp = random.below(warps);
      command.lanes = random.chance(2) ? ~0u : static_cast<uint32_t>(random.engine());
      for (unsigned l = 0; l < 32; ++l)
        if (!threads[command.warp * 32 + l].alive)
          command.lanes &= ~(1u << l);
      if (!command.lanes)
        continue;
      command.op = random.chance(20)  ? ClusterBarrierCommand::exit
                   : random.chance(2) ? ClusterBarrierCommand::wait
                                      : ClusterBarrierCommand::arrive;
      std::string rule;
      bool blocked = false, opened = false;
      auto each = [&](auto visit) {
        for (unsigned l = 0; l < 32; ++l)
          if (command.lanes >> l & 1)
            visit(threads[command.warp * 32 + l]);
      };
      if (command.op == ClusterBarrierCommand::arrive) {
        each([&](Thread &t) { rule = t.arrivedIn >= 0 ? "CL-1" : rule; });
        if (rule.empty()) {
          each([&](Thread &t) { t.arrivedIn = generation; });
          opened = settle();
        }
      } else if (command.op == ClusterBarrierCommand::wait) {
        each([&](Thread &t) {
          rule = t.arrivedIn < 0 ? "CL-2" : rule;
          blocked |= t.arrivedIn == generation;
        });
        blocked &= rule.empty();
        if (rule.empty() && !blocked)
          each([&](Thread &t) { t.arrivedIn = -1; });
      } else {
        each([&](Thread &t) { t.alive = false; });
        opened = settle();
      }
      ClusterBarrierOutcome outcome = stepClusterBarrier(state, command);
      ASSERT_EQ(outcome.broken ? outcome.broken.rule : "", rule) << "seed " << seed << " step " << step;
      ASSERT_EQ(outcome.blocked, blocked) << "seed " << seed << " step " << step;
      ASSERT_EQ(outcome.opened, opened) << "seed " << seed << " step " << step;
      ASSERT_EQ(state.generation, uint64_t(generation));
    }
  }
}

// --- Groups of copies

TEST(SemProtocols, GroupsLikeAListOfOperations) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random{std::mt19937_64(seed)};
    GroupsState state;
    std::vector<std::vector<int>> groups; ///< Operations of each committed group.
    std::vector<int> open;
    std::set<int> unread, undone;
    int next = 0;
    std::vector<uint32_t> groupOf;
    for (unsigned step = 0; step < 60; ++step) {
      auto op = static_cast<GroupsCommand::Op>(random.below(step % 8 ? 5 : 6)); // finish now and then
      uint32_t keep = random.below(4);
      GroupsOutcome outcome = stepGroups(state, {op, keep});
      state = outcome.state;
      auto commit = [&] {
        groups.push_back(open);
        open.clear();
      };
      auto finish = [&](uint32_t but, bool readOnly) {
        for (size_t i = 0; i + but < groups.size(); ++i)
          for (int one : groups[i]) {
            unread.erase(one);
            if (!readOnly)
              undone.erase(one);
          }
      };
      if (op == GroupsCommand::issue) {
        open.push_back(next);
        unread.insert(next);
        undone.insert(next++);
        groupOf.push_back(outcome.group);
      } else if (op == GroupsCommand::commit)
        commit();
      else if (op == GroupsCommand::waitAll || op == GroupsCommand::finish)
        commit(), finish(0, false);
      else
        finish(keep, op == GroupsCommand::waitRead);
      for (int one = 0; one < next; ++one) {
        ASSERT_EQ(groupOf[one] >= state.done, undone.count(one) == 1) << "seed " << seed << " step " << step;
        ASSERT_EQ(groupOf[one] >= state.read, unread.count(one) == 1) << "seed " << seed << " step " << step;
      }
      ASSERT_EQ(state.open, open.size());
    }
  }
}

// --- wgmma

TEST(SemProtocols, WarpgroupLikeFourLists) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random{std::mt19937_64(seed)};
    struct One {
      uint64_t key;
      uint32_t group;
    };
    std::vector<One> issued[4];
    uint32_t committed[4] = {}, waited[4] = {};
    WarpgroupState state;
    for (unsigned step = 0; step < 120; ++step) {
      WarpgroupCommand command;
      command.op = static_cast<WarpgroupCommand::Op>(random.below(step % 8 ? 3 : 4)); // exit now and then
      command.warp = random.below(4);
      auto &mine = issued[command.warp];
      command.key = mine.size() / 3 + (random.chance(40) ? 1 : 0); // three of each key
      command.keep = random.below(3);
      std::string rule;
      bool blocked = false;
      uint32_t due = 0;
      if (command.op == WarpgroupCommand::issue) {
        One one{command.key, committed[command.warp]};
        for (auto &list : issued)
          if (list.size() > mine.size() && (list[mine.size()].key != one.key || list[mine.size()].group != one.group))
            rule = "WG-4";
        if (rule.empty())
          mine.push_back(one);
      } else if (command.op == WarpgroupCommand::commit) {
        ++committed[command.warp];
      } else if (command.op == WarpgroupCommand::exit) {
        rule = mine.size() > waited[command.warp] ? "WG-8" : "";
      } else {
        for (size_t i = 0; i < mine.size() && mine[i].group + command.keep < committed[command.warp]; ++i) {
          ++due;
          for (auto &list : issued)
            blocked |= list.size() <= i;
        }
      }
      WarpgroupOutcome outcome = stepWarpgroup(state, command);
      ASSERT_EQ(outcome.broken ? outcome.broken.rule : "", rule) << "seed " << seed << " step " << step;
      ASSERT_EQ(outcome.blocked, blocked) << "seed " << seed << " step " << step;
      if (command.op == WarpgroupCommand::wait && !blocked) {
        waited[command.warp] = std::max(waited[command.warp], due);
        ASSERT_EQ(outcome.due, waited[command.warp]) << "seed " << seed << " step " << step;
        ASSERT_EQ(state.warps[command.warp].waited, waited[command.warp]);
      }
    }
  }
}

// --- setmaxnreg

TEST(SemProtocols, RegistersAreConserved) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random{std::mt19937_64(seed)};
    RegisterPoolState state;
    std::vector<uint32_t> held(12, 168);
    std::vector<std::vector<uint32_t>> history(12); ///< By warp: what it has asked for and got.
    for (unsigned i = 0; i < 12; ++i)
      state.held[i] = 168;
    int64_t total = 12 * 168;
    for (unsigned step = 0; step < 60; ++step) {
      unsigned group = random.below(3);
      uint32_t wanted = 24 + 8 * random.below(30);
      bool inc = random.chance(2);
      for (unsigned warp = group * 4; warp < group * 4 + 4; ++warp) { // each warpgroup as one
        int64_t used = 0;
        for (uint32_t one : held)
          used += one;
        bool wrong = inc ? wanted < held[warp] : wanted > held[warp];
        bool fits = used - held[warp] + wanted <= total;
        auto outcome =
            stepRegisterPool(state, {inc ? RegisterPoolCommand::inc : RegisterPoolCommand::dec, warp, wanted, 12});
        std::string rule; // the others of the warpgroup come first
        for (unsigned other = group * 4; other < group * 4 + 4 && rule.empty(); ++other) {
          size_t ahead = history[other].size(), own = history[warp].size();
          if (ahead < own)
            rule = "SR-4";
          else if (ahead == own + 1 && history[other].back() != wanted)
            rule = "SR-2";
        }
        if (rule.empty() && wrong)
          rule = "SR-3";
        ASSERT_EQ(outcome.broken ? outcome.broken.rule : "", rule) << "seed " << seed << " step " << step;
        if (outcome.broken)
          break;
        ASSERT_EQ(outcome.blocked, !fits) << "seed " << seed << " step " << step;
        if (outcome.blocked)
          break;
        state = outcome.state;
        held[warp] = wanted;
        history[warp].push_back(wanted);
      }
    }
  }
}

TEST(SemProtocols, RegistersOfAWholeWarpgroup) {
  RegisterPoolState state;
  for (unsigned i = 0; i < 8; ++i)
    state.held[i] = 168;
  using Command = RegisterPoolCommand;
  for (unsigned warp = 0; warp < 3; ++warp)
    state = stepRegisterPool(state, {Command::dec, warp, 40, 8}).state;
  EXPECT_STREQ(stepRegisterPool(state, {Command::dec, 3, 48, 8}).broken.rule, "SR-2");
  EXPECT_STREQ(stepRegisterPool(state, {Command::dec, 0, 32, 8}).broken.rule, "SR-4");
  EXPECT_STREQ(stepRegisterPool(state, {Command::exit, 3, 0, 8}).broken.rule, "SR-2");
  EXPECT_STREQ(stepRegisterPool(state, {Command::dec, 3, 41, 8}).broken.rule, "SR-1");
  EXPECT_STREQ(stepRegisterPool(state, {Command::dec, 3, 176, 8}).broken.rule, "SR-2");
  EXPECT_STREQ(stepRegisterPool(state, {Command::inc, 4, 160, 8}).broken.rule, "SR-3");
  EXPECT_TRUE(stepRegisterPool(state, {Command::inc, 4, 256, 8}).blocked == false);
}
