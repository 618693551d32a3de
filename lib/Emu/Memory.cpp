#include "gemmc/Emu/Emulator.h"
#include <cstring>

namespace gemmc::emu {

/// Between two allocations stay at least this many unmapped bytes.
static constexpr uint64_t gap = 1 << 16;

uint64_t Memory::allocate(uint64_t bytes, uint64_t align, uint64_t misalign) {
  assert(align && !(align & (align - 1)) && "the alignment is a power of two");
  uint64_t address = ((next + align - 1) & ~(align - 1)) + misalign;
  next = (address + bytes + 2 * gap - 1) & ~(gap - 1);
  auto data = std::make_unique<std::byte[]>(bytes + 16);
  std::byte *aligned = data.get() + address % 16;
  blocks.emplace(address, Block{bytes, aligned, std::move(data), {address, 0}});
  return address;
}

uint64_t Memory::alias(uint64_t address) {
  const Block &block = blocks.at(address);
  uint64_t made = (next & ~uint64_t(255)) + address % 256;
  next = (made + block.size + 2 * gap - 1) & ~(gap - 1);
  blocks.emplace(made, Block{block.size, block.bytes, nullptr, {block.home.address, ++numAliases}});
  return made;
}

Memory::Home Memory::findHome(uint64_t address) const {
  auto above = blocks.upper_bound(address);
  if (above == blocks.begin())
    return {address, 0};
  const auto &[begin, block] = *std::prev(above);
  return {address - begin + block.home.address, block.home.alias};
}

void Memory::free(uint64_t address) { blocks.erase(address); }

std::optional<Memory::Span> Memory::blockOf(uint64_t address) const {
  auto above = blocks.upper_bound(address);
  if (above == blocks.begin())
    return std::nullopt;
  const auto &[begin, block] = *std::prev(above);
  if (address - begin >= block.size)
    return std::nullopt;
  return Span{begin, block.size, block.bytes};
}

std::byte *Memory::find(uint64_t address, uint64_t bytes) {
  std::optional<Span> span = blockOf(address);
  if (!span || bytes > span->size - (address - span->begin))
    return nullptr;
  return span->data + (address - span->begin);
}

std::optional<Memory::Span> Memory::nearest(uint64_t address) const {
  auto above = blocks.upper_bound(address);
  auto spanOf = [](const auto &entry) { return Span{entry->first, entry->second.size, entry->second.bytes}; };
  if (above == blocks.begin())
    return above == blocks.end() ? std::nullopt : std::optional(spanOf(above));
  Span below = spanOf(std::prev(above));
  if (above == blocks.end())
    return below;
  uint64_t end = below.begin + below.size;
  return address < end || address - end <= above->first - address ? below : spanOf(above);
}

} // namespace gemmc::emu
