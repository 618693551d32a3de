#include "gemmc/Emu/Timeline.h"
#include "Check.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <bit>

using llvm::formatv;

namespace gemmc::emu {
namespace {
enum Kind : uint32_t { waiting, copies, wgmma };
constexpr uint32_t firstAside = 100; ///< Numbers of tracks below are warps.

std::string nameOf(const Warp &warp, const Wait &wait) {
  switch (wait.what) {
  case Wait::Named:
    return formatv("wait barrier {0}", wait.id);
  case Wait::Mbarrier: {
    Spot spot = spotAt(warp.cluster, wait.address & ((1u << window::rankShift) - 1));
    return "wait " + (spot ? spot.str() : describeShared(warp.cluster, wait.address));
  }
  case Wait::ClusterBarrier:
    return "wait cluster barrier";
  case Wait::Registers:
    return "wait registers";
  case Wait::Warpgroup:
    return "wait warpgroup";
  default:
    return "";
  }
}

std::string nameAt(const Warp &warp, uint32_t address) {
  Spot spot = spotAt(warp.cluster, address & ((1u << window::rankShift) - 1));
  return !spot             ? formatv("{0:x}", address).str()
         : spot.stages > 1 ? formatv("{0}[{1}]", spot.region, spot.stage).str()
                           : spot.region.str();
}
} // namespace

void Timeline::start(const Cluster &cluster) {
  *this = Timeline();
  for (const auto &cta : cluster.ctas) {
    processes.push_back(formatv("CTA ({0}, {1}, {2})", cta->id[0], cta->id[1], cta->id[2]));
    for (const auto &warp : cta->warps) {
      std::string role = cluster.program.roleOf(warp->index);
      tracks[{cta->rank, warp->index}].name = formatv("warp {0}{1}", warp->index, role.empty() ? "" : ", " + role);
    }
  }
}

size_t Timeline::add(const Cluster &cluster, Span span) {
  lastStep = cluster.steps;
  if (spans.size() == maxSpans) {
    ++dropped;
    return none;
  }
  span.begin = cluster.steps;
  spans.push_back(std::move(span));
  return spans.size() - 1;
}

/// Spans of one track do not overlap: what does goes to a second track of that name.
size_t Timeline::addAside(const Warp &warp, const std::string &name, Span span) {
  for (uint32_t number = firstAside;; ++number) {
    auto [found, fresh] = tracks.try_emplace({span.process, number});
    Track &track = found->second;
    if (fresh)
      track.name = name;
    if (track.name != name || (track.last != none && spans[track.last].end == ~uint64_t(0)))
      continue;
    span.track = number;
    return track.last = add(warp.cluster, std::move(span));
  }
}

void Timeline::end(const Cluster &cluster, size_t span) {
  lastStep = cluster.steps;
  if (span != none)
    spans[span].end = cluster.steps;
}

void Timeline::endBelow(const Cluster &cluster, uint32_t owner, uint32_t kind, uint32_t number) {
  auto first = open.lower_bound({owner, kind, 0}), last = open.lower_bound({owner, kind, number});
  for (auto it = first; it != last; ++it)
    end(cluster, it->second);
  open.erase(first, last);
}

// --- Waits

void Timeline::blocked(const Warp &warp, const Group &group) {
  Key key{warp.number(), waiting, std::countr_zero(group.mask)};
  std::string name = open.count(key) ? "" : nameOf(warp, group.wait);
  if (name.empty())
    return;
  Span span{warp.cta.rank, warp.index, name, 0, ~uint64_t(0), warp.program.code[group.pc].line, {}};
  if (group.wait.what == Wait::Mbarrier && warp.cluster.check)
    span.kStep = warp.cluster.check->kStepOf(warp, group.wait);
  open[key] = add(warp.cluster, std::move(span));
}

/// Groups may have been joined since they were blocked.
void Timeline::passed(const Warp &warp, const Group &group) {
  for (auto it = open.lower_bound({warp.number(), waiting, 0});
       it != open.lower_bound({warp.number(), waiting, numLanes});)
    if (group.mask >> std::get<2>(it->first) & 1) {
      end(warp.cluster, it->second);
      it = open.erase(it);
    } else
      ++it;
}

// --- Asynchronous operations

/// The first shared address among the operands is what is copied to (or from), the second the mbarrier.
size_t Timeline::copyIssued(const Warp &warp, const Code &code, unsigned lane) {
  Span span{warp.cta.rank, 0, "", 0, ~uint64_t(0), code.line, {}};
  for (unsigned i = 0; i < code.inst->ops.size(); ++i) {
    const Arg &arg = code.args[i];
    if (arg.kind != Arg::Address)
      continue;
    Wait at;
    at.address = warp.address(arg, lane);
    if (!at.address || at.address >> 32)
      continue;
    if (span.name.empty())
      span.name = nameAt(warp, at.address);
    else if (warp.cluster.check)
      span.kStep = warp.cluster.check->kStepOf(warp, at);
  }
  std::string place = span.name;
  span.name = formatv("{0} {1}", code.inst->has("bulk_group") ? "copy from" : "copy to", place);
  return addAside(warp, "copies " + place, std::move(span));
}

void Timeline::groupIssued(const Warp &warp, uint32_t group, uint32_t sharedAddress) {
  Key key{warp.number(), copies, group};
  if (open.count(key))
    return;
  Span span{warp.cta.rank, 0, "cp.async to " + nameAt(warp, sharedAddress), 0, ~uint64_t(0), 0, {}};
  open[key] = addAside(warp, formatv("cp.async of warp {0}", warp.index), std::move(span));
}
void Timeline::groupsWaited(const Warp &warp, uint32_t groups) {
  endBelow(warp.cluster, warp.number(), copies, groups);
}

void Timeline::wgmmaIssued(const Warp &warp, uint32_t group, uint32_t a, uint32_t b) {
  uint32_t owner = warp.number() & ~3u, first = warp.index & ~3u;
  Key key{owner, wgmma, group};
  if (open.count(key))
    return;
  std::string name = "wgmma " + (a ? nameAt(warp, a) + ", " : std::string()) + nameAt(warp, b);
  Span span{warp.cta.rank, 0, std::move(name), 0, ~uint64_t(0), 0, {}};
  open[key] = addAside(warp, formatv("wgmma of warps {0} to {1}", first, first + 3), std::move(span));
}
void Timeline::wgmmaWaited(const Warp &warp, uint32_t groups) {
  endBelow(warp.cluster, warp.number() & ~3u, wgmma, groups);
}

void Timeline::finish(const Cluster &cluster) { lastStep = cluster.steps; }

// --- The file

void Timeline::write(llvm::raw_ostream &os) const {
  const char *separator = "[\n";
  auto event = [&](llvm::json::Object one) {
    os << separator << llvm::json::Value(std::move(one));
    separator = ",\n";
  };
  auto nameIt = [&](const char *what, uint32_t process, uint32_t track, const std::string &name) {
    event(llvm::json::Object{
        {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", llvm::json::Object{{"name", name}}}});
  };
  for (uint32_t i = 0; i < processes.size(); ++i)
    nameIt("process_name", i, 0, processes[i]);
  for (const auto &[key, track] : tracks)
    nameIt("thread_name", key.first, key.second, track.name);
  for (const Span &span : spans) {
    bool ended = span.end != ~uint64_t(0);
    llvm::json::Object args;
    if (span.line)
      args["line"] = span.line;
    if (span.kStep)
      args["k_step"] = int64_t(*span.kStep);
    if (!ended)
      args["unfinished"] = true;
    uint64_t end = ended ? span.end : std::max(lastStep, span.begin);
    event(llvm::json::Object{{"ph", "X"},
                             {"name", span.name},
                             {"pid", span.process},
                             {"tid", span.track},
                             {"ts", int64_t(span.begin)},
                             {"dur", int64_t(end - span.begin)},
                             {"args", std::move(args)}});
  }
  if (dropped)
    event(llvm::json::Object{{"ph", "i"},
                             {"s", "g"},
                             {"pid", 0},
                             {"tid", 0},
                             {"ts", int64_t(lastStep)},
                             {"name", formatv("{0} later spans are left out", dropped).str()}});
  os << "\n]\n";
}

} // namespace gemmc::emu
