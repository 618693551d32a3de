// Races between clusters.
#include "Check.h"
#include "Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {

namespace {
constexpr unsigned pageBits = 10;
/// Pages that are only read are remembered up to this number, and reads at all up to that one: all other memory of a
/// launch can be operands.
constexpr uint64_t maxReadPages = 16384, maxUses = uint64_t(1) << 22;
} // namespace

ForeignClocks LaunchCheck::foreignOf(uint64_t cluster, const Clocks &known) {
  ForeignClocks handed = known.foreign; // what it knows of third ones goes along
  handed.join({cluster, known[Sight::generic], known[Sight::asyncGlobal], known[Sight::looseGlobal], {}});
  return handed;
}

void LaunchCheck::release(uint64_t address, uint64_t cluster, ReleaseBy by, const Clocks &known) {
  ForeignClocks handed = foreignOf(cluster, known);
  constexpr unsigned threadBits = 20;
  by.thread |= cluster << threadBits;
  std::lock_guard lock(mutex);
  released[address].written(by, handed);
}

void LaunchCheck::acquire(uint64_t address, ForeignClocks &to) {
  std::lock_guard lock(mutex);
  if (auto found = released.find(address); found != released.end())
    to.join(found->second.handed);
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

/// What polls takes the place of its last access, which had the same bytes; the lanes of a warp that read one place are
/// one use.
uint32_t LaunchCheck::numberOf(const Use &now, const Cell &first, uint64_t cells) {
  if (isAtomic(now.access) && first.strong) {
    uint32_t number = links[first.strong - 1].use;
    Numbered &last = uses[number - 1];
    Access &access = last.use.access;
    const bool same = last.use.cluster == now.cluster && access.pc == now.access.pc &&
                      access.component == now.access.component && access.write == now.access.write;
    if (same && access.lanes == now.access.lanes) {
      last.use = now;
      return number;
    }
    if (same && !access.write && access.epoch == now.access.epoch && last.places <= cells) {
      access.lanes |= now.access.lanes;
      return number;
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

void LaunchCheck::unlink(uint32_t &place) {
  Link &link = links[place - 1];
  put(link.use, 0);
  freeLinks.push_back(place);
  place = std::exchange(link, Link()).before;
}

/// Those stay that are the last of their kind by some lane.
uint32_t LaunchCheck::thinStrong(Cell &cell) {
  std::map<std::tuple<uint64_t, uint32_t, bool>, Mask> seen;
  uint32_t left = 0;
  for (uint32_t *place = &cell.strong; *place;) {
    const Use &use = uses[links[*place - 1].use - 1].use;
    Mask &later = seen[{use.cluster, use.access.component, use.access.write}];
    if (!(use.access.lanes & ~std::exchange(later, later | use.access.lanes))) {
      unlink(*place);
      continue;
    }
    ++left;
    place = &links[*place - 1].before;
  }
  return left;
}

/// Now and then those go for which a later one stands, so that none costs more than its own place.
void LaunchCheck::putStrong(Cell &cell, const Use &now, uint32_t number) {
  const Link last = cell.strong ? links[cell.strong - 1] : Link();
  if (last.use == number)
    return;
  cell.strongBytes = !cell.strong || cell.strongBytes == now.access.bytes ? now.access.bytes : Cell::mixed;
  uint32_t fresh = links.size() + 1;
  if (freeLinks.empty())
    links.emplace_back();
  else {
    fresh = freeLinks.back();
    freeLinks.pop_back();
  }
  Link &link = links[fresh - 1];
  put(link.use, number);
  link.before = std::exchange(cell.strong, fresh);
  link.length = last.length + 1, link.most = last.most;
  if (link.length < link.most)
    return;
  link.length = thinStrong(cell);
  link.most = std::max(link.most, 2 * link.length);
}

void LaunchCheck::remember(Cell &cell, const Use &now, uint32_t number) {
  if (isAtomic(now.access))
    return putStrong(cell, now, number);
  if (now.access.write && !now.access.strong) {
    while (cell.strong)
      unlink(cell.strong);
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
                         llvm::function_ref<void(const Use &, uint64_t, Observers)> visit) {
  if (!bytes)
    return;
  std::optional<uint32_t> number;
  const uint64_t count = ((address + bytes - 1) >> bits) - (address >> bits) + 1;
  llvm::SmallVector<const Use *, 4> observers;
  auto look = [&](uint32_t earlier, uint64_t at) -> const Use * {
    const Use *before = earlier ? &uses[earlier - 1].use : nullptr;
    if (before && before->cluster != now.cluster && (before->access.write || now.access.write) &&
        !areAtomic(before->access, now.access))
      visit(*before, at, observers);
    return before;
  };
  for (uint64_t at = address >> bits, last = (address + bytes - 1) >> bits; at <= last;) {
    uint64_t page = at >> (pageBits - bits), end = std::min(last + 1, (page + 1) << (pageBits - bits));
    std::vector<Cell> *cells = pageOf(page, now.access.write);
    for (; at < end; ++at) {
      if (!cells)
        continue;
      Cell &cell = (*cells)[at & ((uint64_t(1) << (pageBits - bits)) - 1)];
      observers.clear();
      // Strong accesses of one size are no race: nearly always, all are that.
      const bool agree = isAtomic(now.access) && cell.strongBytes == now.access.bytes;
      for (uint32_t link = agree ? 0 : cell.strong; link; link = links[link - 1].before) {
        const Use *strong = look(links[link - 1].use, at << bits);
        if (strong->access.replaces())
          observers.clear();
        if (strong->access.observes())
          observers.push_back(strong);
      }
      observers.clear();
      look(cell.write, at << bits);
      for (uint32_t other : cell.others)
        look(other, at << bits);
      if (!number)
        number = numberOf(now, cell, count);
      if (*number)
        remember(cell, now, *number);
    }
  }
}

bool isReleased(const Access &write, const std::array<Epoch, numLanes> &released) {
  Mask lanes = 0;
  forLanes(write.lanes, [&](unsigned l) { lanes |= released[l] >= write.epoch ? laneBits[l] : 0; });
  return write.collective ? lanes != 0 : lanes == write.lanes;
}

void LaunchCheck::mapReleased(const Use &by, Mask lanes) {
  std::lock_guard lock(mutex);
  auto &at = mapReleases[{by.cluster, by.access.component}];
  forLanes(lanes, [&](unsigned l) { at[l] = by.access.epoch; });
}

void LaunchCheck::writes(uint64_t address, uint64_t bytes, llvm::function_ref<void(const Use &, bool)> visit) {
  std::lock_guard lock(mutex);
  for (uint64_t at = address >> bits, last = (address + bytes - 1) >> bits; at <= last; ++at) {
    auto page = pages.find(at >> (pageBits - bits));
    uint32_t number = page == pages.end() ? 0 : page->second[at & ((uint64_t(1) << (pageBits - bits)) - 1)].write;
    if (!number)
      continue;
    const Use &write = uses[number - 1].use;
    auto found = mapReleases.find({write.cluster, write.access.component});
    visit(write, found != mapReleases.end() && isReleased(write.access, found->second));
  }
}

/// Between clusters, there is one way to an order; asynchronous accesses behind generic ones want their fence, too.
std::optional<Check::Problem> Check::judgeForeign(const Agent &agent, const Access &now, uint64_t owner,
                                                  const Access &before) const {
  const ForeignClocks &known = agent.clocks->foreign;
  using Known = ForeignClocks::Known;
  bool isStore = before.isAsync() && before.write;
  if (areMixed(before, now) &&
      !(known.knows(&Known::generic, owner, before) && (before.isAsync() || known.knows(&Known::async, owner, before))))
    return problem(agent, before, "PX-10", describeMixed(now, before));
  if (!known.knows(&Known::generic, owner, before)) {
    if (std::string lines = now.isAsync() ? "" : whereCounted(agent, before, owner); !lines.empty())
      return problem(agent, before, "DR-5", describeCounted(now, before, lines));
    return problem(agent, before, "DR-1",
                   formatv("data race between clusters: {0} of global bytes that another cluster {1} ({2}), and "
                           "no {3}release and acquire of .gpu scope between them",
                           now, before.write ? "wrote" : "read", before,
                           isStore ? "full cp.async.bulk.wait_group by its thread, then " : ""));
  }
  if (!now.isAsync() || before.isAsync() || known.knows(&Known::async, owner, before))
    return std::nullopt;
  if (known.knows(&Known::loose, owner, before))
    return problem(agent, before, "PX-2",
                   formatv("the {0} by another cluster is fenced by another thread than the one that made it", before));
  return problem(
      agent, before, before.write ? "PX-7" : "PX-4",
      formatv("no fence.proxy.async between {0} by another cluster and {1} of the same global bytes", before, now));
}

void Check::acrossClusters(llvm::ArrayRef<GlobalUse> uses, bool writes) {
  LaunchCheck &check = *cluster.launch.check;
  if (check.isAlone() || uses.empty())
    return;
  using Use = LaunchCheck::Use;
  const auto held = check.hold();
  for (const auto &[by, range] : uses) {
    const Agent &agent = *by;
    Access access = agent.access;
    access.write = writes;
    auto observed = [&](const Use *use) {
      const Access one = anyLane(use->access);
      return use->cluster == index ? ordered(agent, Sight::generic, one)
                                   : agent.clocks->foreign.knows(&ForeignClocks::Known::generic, use->cluster, one);
    };
    check.access(range.address, range.bytes, {index, access}, [&](const Use &before, uint64_t at, auto observers) {
      auto problem = judgeForeign(agent, access, before.cluster, before.access);
      bool isSeen = before.access.write && !access.isAsync() && llvm::any_of(observers, observed);
      if (problem && !problem->text.empty() && !isSeen)
        report(agent.actor.warp, agent.actor.code, agent.actor.lane, problem->rule,
               formatv("{0} (global address {1:x})", problem->text, at), &before.access, before.cluster);
    });
  }
}

} // namespace gemmc::emu
