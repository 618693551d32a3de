// Races between clusters.
#include "CheckClusters.h"
#include "Check.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

namespace {
constexpr unsigned pageBits = 10;
/// Pages that are only read are remembered up to this number, and reads at all up to that one: all other memory of a
/// launch can be operands.
constexpr uint64_t maxReadPages = 16384, maxUses = uint64_t(1) << 22;
} // namespace

void LaunchCheck::release(uint64_t address, uint64_t cluster, const Clocks &known) {
  std::lock_guard lock(mutex);
  ForeignClocks &at = released[address];
  at.join(known.foreign); // what it knows of third ones goes along
  at.join({cluster, known[Sight::generic], known[Sight::asyncGlobal], known[Sight::looseGlobal]});
}

void LaunchCheck::acquire(uint64_t address, ForeignClocks &to) {
  std::lock_guard lock(mutex);
  if (auto found = released.find(address); found != released.end())
    to.join(found->second);
}

std::vector<LaunchCheck::Cell> *LaunchCheck::pageOf(uint64_t page, bool writes) {
  auto found = pages.find(page);
  if (found == pages.end()) {
    if (!writes && ++readPages > maxReadPages)
      return nullptr;
    found = pages.try_emplace(page, size_t(1) << (pageBits - bits)).first;
  }
  return &found->second;
}

static bool isAtomic(const Access &access) { return access.strong && !access.isAsync(); }

/// What polls takes the place of its last access, which had the same bytes.
uint32_t LaunchCheck::numberOf(const Use &now, const Cell &first) {
  if (isAtomic(now.access) && first.strong) {
    Use &last = uses[first.strong - 1].use;
    if (last.cluster == now.cluster && last.access.pc == now.access.pc) {
      last = now;
      return first.strong;
    }
  }
  bool always = now.access.write && !isAtomic(now.access);
  if (!always && uses.size() - freeNumbers.size() >= maxUses)
    return 0;
  if (freeNumbers.empty()) {
    uses.push_back({now});
    return uses.size();
  }
  uint32_t number = freeNumbers.back();
  freeNumbers.pop_back();
  uses[number - 1].use = now;
  return number;
}

void LaunchCheck::put(uint32_t &place, uint32_t number) {
  if (place == number)
    return;
  if (place && !--uses[place - 1].places)
    freeNumbers.push_back(place);
  if (number)
    ++uses[number - 1].places;
  place = number;
}

void LaunchCheck::remember(Cell &cell, const Use &now, uint32_t number) {
  if (isAtomic(now.access)) {
    put(cell.strong, number);
    return;
  }
  if (now.access.write && !now.access.strong) {
    put(cell.strong, 0);
    for (uint32_t &other : cell.others)
      put(other, 0);
    cell.next = 0;
    put(cell.write, number);
    return;
  }
  for (uint32_t &other : cell.others)
    if (!other ||
        (uses[other - 1].use.cluster == now.cluster && uses[other - 1].use.access.write == now.access.write)) {
      put(other, number);
      return;
    }
  put(cell.others[cell.next++ % Cell::numOthers], number);
}

void LaunchCheck::access(uint64_t address, uint64_t bytes, const Use &now,
                         llvm::function_ref<void(const Use &, uint64_t)> visit) {
  if (alone || !bytes)
    return;
  std::lock_guard lock(mutex);
  std::optional<uint32_t> number;
  auto look = [&](uint32_t earlier, uint64_t at) {
    const Use *before = earlier ? &uses[earlier - 1].use : nullptr;
    if (before && before->cluster != now.cluster && (before->access.write || now.access.write) &&
        !(before->access.strong && now.access.strong))
      visit(*before, at);
  };
  for (uint64_t at = address >> bits, last = (address + bytes - 1) >> bits; at <= last;) {
    uint64_t page = at >> (pageBits - bits), end = std::min(last + 1, (page + 1) << (pageBits - bits));
    std::vector<Cell> *cells = pageOf(page, now.access.write);
    for (; at < end; ++at) {
      if (!cells)
        continue;
      Cell &cell = (*cells)[at & ((uint64_t(1) << (pageBits - bits)) - 1)];
      look(cell.write, at << bits);
      look(cell.strong, at << bits);
      for (uint32_t other : cell.others)
        look(other, at << bits);
      if (!number)
        number = numberOf(now, cell);
      if (*number)
        remember(cell, now, *number);
    }
  }
}

/// Between clusters, there is one way to an order; asynchronous accesses behind generic ones want their fence, too.
std::optional<Check::Problem> Check::judgeForeign(const Agent &agent, const Access &now, uint64_t owner,
                                                  const Access &before) const {
  const ForeignClocks &known = agent.clocks->foreign;
  using Known = ForeignClocks::Known;
  bool isStore = before.isAsync() && before.write;
  if (!known.knows(&Known::generic, owner, before))
    return problem(agent, before, "DR-1",
                   formatv("data race between clusters: {0} of global bytes that another cluster {1} ({2}), and "
                           "no {3}release and acquire of .gpu scope between them",
                           now, before.write ? "wrote" : "read", before,
                           isStore ? "full cp.async.bulk.wait_group by its thread, then " : ""));
  if (!now.isAsync() || before.isAsync() || known.knows(&Known::async, owner, before))
    return std::nullopt;
  if (known.knows(&Known::loose, owner, before))
    return problem(agent, before, "PX-2",
                   formatv("the {0} by another cluster is fenced by another thread than the one that made it", before));
  return problem(
      agent, before, before.write ? "PX-7" : "PX-4",
      formatv("no fence.proxy.async between {0} by another cluster and {1} of the same global bytes", before, now));
}

void Check::acrossClusters(const Agent &agent, uint64_t address, uint64_t bytes, bool writes) {
  Access access = agent.access;
  access.write = writes;
  cluster.launch.check->access(address, bytes, {index, access}, [&](const LaunchCheck::Use &before, uint64_t at) {
    auto problem = judgeForeign(agent, access, before.cluster, before.access);
    if (problem && !problem->text.empty())
      report(agent.actor.warp, agent.actor.code, agent.actor.lane, problem->rule,
             formatv("{0} (global address {1:x})", problem->text, at), &before.access, before.cluster);
  });
}

} // namespace gemmc::emu
