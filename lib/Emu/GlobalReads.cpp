#include "GlobalReads.h"
#include "Lanes.h"

namespace gemmc::emu {

/// Null: no allocation, but a variable of the module.
GlobalReads::Allocation *GlobalReads::find(const Memory &memory, uint64_t address) {
  auto holds = [&](const Allocation &one) { return address - one.begin < one.size; };
  if (last && holds(*last))
    return last;
  for (auto &one : allocations)
    if (holds(*one))
      return last = one.get();
  std::optional<Memory::Span> span = memory.blockOf(address);
  if (!span)
    return nullptr;
  allocations.push_back(std::make_unique<Allocation>());
  last = allocations.back().get();
  last->begin = span->begin, last->size = span->size;
  return last;
}

void GlobalReads::enterAll(Allocation &allocation, Enter enter) {
  for (const Note &note : allocation.notes) {
    Read read{note.address, note.bytes, allocation.accesses[note.access]};
    if (!note.lanes)
      enter(read);
    forLanes(note.lanes, [&](unsigned l) {
      read.access.lanes = laneBits[l];
      enter(read);
      read.address += note.bytes;
    });
  }
  allocation.hasShadow = true;
  allocation.accesses = {};
  allocation.notes = {};
}

/// The same operation, but for its lanes.
static bool isSame(const Access &a, const Access &b) {
  return a.pc == b.pc && a.epoch == b.epoch && a.component == b.component && a.issued == b.issued && a.kind == b.kind &&
         a.alias == b.alias;
}

bool GlobalReads::noted(const Memory &memory, const Read &read, Enter enter) {
  Allocation *allocation = find(memory, read.address);
  if (!allocation || allocation->hasShadow)
    return false;
  std::vector<Note> &notes = allocation->notes;
  const Access &access = read.access;
  const bool oneLane = access.lanes && !(access.lanes & (access.lanes - 1));
  const bool known = !allocation->accesses.empty() && isSame(allocation->accesses.back(), access) &&
                     (oneLane || allocation->accesses.back().lanes == access.lanes);
  if (known && oneLane && !notes.empty()) {
    Note &before = notes.back();
    uint64_t end = before.address + uint64_t(before.bytes) * llvm::popcount(before.lanes);
    if (before.lanes && before.lanes < access.lanes && before.bytes == read.bytes && end == read.address) {
      before.lanes |= access.lanes;
      return true;
    }
  }
  constexpr size_t few = 64;
  constexpr unsigned bytesPerNote = 8; // of shadow, roughly: at least one cell for so many bytes
  if (notes.size() > few + allocation->size / bytesPerNote) {
    enterAll(*allocation, enter);
    return false;
  }
  if (!known)
    allocation->accesses.push_back(access);
  notes.push_back({read.address, static_cast<uint32_t>(read.bytes),
                   static_cast<uint32_t>(allocation->accesses.size() - 1), oneLane ? access.lanes : 0});
  return true;
}

void GlobalReads::written(const Memory &memory, uint64_t address, Enter enter) {
  if (Allocation *allocation = find(memory, address); allocation && !allocation->hasShadow)
    enterAll(*allocation, enter);
}

} // namespace gemmc::emu
