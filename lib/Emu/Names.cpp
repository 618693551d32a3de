#include "Names.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::formatv;

namespace gemmc::emu {
namespace {
/// Calls `visit(spot)` for the regions and variables that hold the byte at `offset`.
template <typename Visit> void forEachSpot(const Cluster &cluster, uint32_t offset, Visit visit) {
  auto offer = [&](llvm::StringRef name, uint64_t begin, uint64_t bytes, uint32_t stages) {
    if (offset < begin || !bytes || offset - begin >= bytes * stages)
      return;
    uint64_t inside = offset - begin;
    visit(Spot{name, uint32_t(inside / bytes), stages, uint32_t(inside % bytes)});
  };
  uint64_t dynamic = window::sharedBase + cluster.dynamicOffset();
  for (const Region &region : cluster.launch.params.regions)
    offer(region.name, dynamic + region.offset, region.bytes, region.stages);
  for (const auto &[name, place] : cluster.program.places)
    if (place.where == Where::Shared)
      offer(name, place.offset + (cluster.exact ? place.shift : 0), place.bytes, 1);
}
uint32_t inWindow(uint64_t address) { return address & ((1u << window::rankShift) - 1); }

std::string namesAt(const Cluster &cluster, uint64_t address) {
  std::string names;
  forEachSpot(cluster, inWindow(address),
              [&](const Spot &spot) { names += (names.empty() ? "" : " = ") + spot.str(); });
  return names;
}
} // namespace

std::string Spot::str() const {
  std::string text = region.str();
  if (stages > 1)
    text += formatv("[{0}]", stage);
  if (offset)
    text += formatv(" + {0}", offset);
  return text;
}

void Spot::mark(Finding &finding) const {
  finding.memory = region.str();
  if (*this && stages > 1)
    finding.stage = stage;
}

Spot spotAt(const Cluster &cluster, uint32_t offset) {
  Spot found;
  forEachSpot(cluster, offset, [&](const Spot &spot) { found = found ? found : spot; });
  return found;
}

std::string describeShared(const Cluster &cluster, uint64_t address) {
  std::string names = namesAt(cluster, address);
  return formatv(names.empty() ? "{0}shared address {1:x}" : "{0} (shared address {1:x})", names, address);
}

std::string describeObject(const Cluster &cluster, uint64_t address) {
  std::string names = namesAt(cluster, address);
  return (names.empty() ? "the mbarrier at " : "the mbarrier ") + describeShared(cluster, address);
}

} // namespace gemmc::emu
