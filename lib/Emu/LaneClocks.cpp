#include "LaneClocks.h"

namespace gemmc::emu {

Mask LaneClocks::lanes() const {
  Mask all = 0;
  for (const Part &part : parts)
    all |= part.lanes;
  return all;
}

const Clocks &LaneClocks::of(unsigned lane) const {
  static const Clocks nothing;
  for (const Part &part : parts)
    if (part.lanes >> lane & 1)
      return part.clocks;
  return nothing;
}

void LaneClocks::cut(Mask mask) {
  for (size_t i = 0, count = parts.size(); i < count; ++i) {
    Mask inside = parts[i].lanes & mask;
    if (!inside || inside == parts[i].lanes)
      continue;
    Part part{inside, parts[i].clocks};
    parts[i].lanes &= ~inside;
    parts.push_back(std::move(part));
  }
}

void LaneClocks::join(Mask mask, const Clocks &clocks) {
  if (Mask fresh = mask & ~lanes())
    parts.push_back({fresh, {}});
  each(mask, [&](Part &part) { part.clocks.join(clocks); });
}

void LaneClocks::unite(Mask mask) {
  Part whole;
  each(mask, [&](Part &part) {
    whole.lanes |= part.lanes;
    whole.clocks.join(part.clocks);
    part.lanes = 0;
  });
  llvm::erase_if(parts, [](const Part &part) { return !part.lanes; });
  parts.push_back(std::move(whole));
}

Clocks LaneClocks::joined() const {
  Clocks all;
  for (const Part &part : parts)
    all.join(part.clocks);
  return all;
}

} // namespace gemmc::emu
