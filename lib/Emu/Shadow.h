/// Shadow memory: for each granule, who wrote it last and who has read it since.
#pragma once
#include "Clock.h"
#include "llvm/ADT/DenseMap.h"

namespace gemmc::emu {

/// What touched memory. `collective`: all lanes of the warp together (ldmatrix), so that knowing one of them is enough.
struct Access {
  enum Kind : uint8_t { none, generic, copy, wgmma, bulk, mbarrier };
  Kind kind = none;
  bool strong = false, collective = false, write = false;
  bool ofCta = false;   ///< Strong, of .cta scope: among other CTAs it is a plain one (8.7.1).
  bool updates = false; ///< A write that reads first, in one step (atom, red).
  uint8_t bytes = 0;    ///< Strong and generic: of one element.
  uint32_t component = 0;
  Epoch epoch = 0;
  Epoch issued =
      0; ///< The warp's own epoch when it issued the operation; each turn of a loop has its own for its bulk copy.
  Mask lanes = 0;
  uint32_t pc = 0;    ///< Index of the instruction in the program.
  uint16_t warp = 0;  ///< Index in the cluster: who executed it (or issued the operation).
  uint16_t alias = 0; ///< By which address of the bytes (`Memory::Home`).

  bool operator==(const Access &) const = default;
  bool isAsync() const { return kind == wgmma || kind == bulk; }
  /// Ends the observation order: what was written before is not what later reads see (8.9.2).
  bool replaces() const { return write && !updates; }
  bool observes() const { return strong && kind == generic && !replaces(); }
};
/// Two strong accesses of different proxies (8.6).
inline bool areMixed(const Access &one, const Access &other) {
  return one.strong && other.strong && one.isAsync() != other.isAsync();
}
/// Whether two strong accesses, of scopes that include both, are none of a race (8.7). Of unlike sizes updates alone
/// are atomic to each other (8.7.2).
inline bool areAtomic(const Access &one, const Access &other) {
  return one.strong && other.strong && !areMixed(one, other) &&
         (one.bytes == other.bytes || (one.updates && other.updates) || one.isAsync());
}
/// Each lane has done it by itself, and who knows of one of them knows enough.
inline Access anyLane(Access access) {
  access.collective = true;
  return access;
}
/// `generic write`, `cp.async read`.
llvm::raw_ostream &operator<<(llvm::raw_ostream &out, const Access &access);

struct Cell {
  Access write;
  llvm::SmallVector<Access, 1> readers;
  /// Strong accesses in front of `write`, which is one, the oldest first: no race among each other, each is one with a
  /// plain access that it is not ordered with.
  std::unique_ptr<std::vector<Access>> earlier;
};

/// The cells of a range of addresses.
class ShadowRange {
public:
  ShadowRange(uint64_t bytes, unsigned granuleBits) : bits(granuleBits), cells((bytes >> granuleBits) + 1) {}
  /// Calls `visit(cell, offset)` for the cells of [offset, offset + bytes).
  template <typename Visit> void forEach(uint64_t offset, uint64_t bytes, Visit visit) {
    uint64_t last = std::min<uint64_t>((offset + bytes - 1) >> bits, cells.size() - 1);
    for (uint64_t i = offset >> bits; bytes && i <= last; ++i)
      visit(cells[i], i << bits);
  }

private:
  unsigned bits;
  std::vector<Cell> cells;
};

/// Global memory, page by page, made when first written (or read, when wanted).
class ShadowPages {
public:
  explicit ShadowPages(unsigned granuleBits) : bits(granuleBits) {}
  template <typename Visit> void forEach(uint64_t address, uint64_t bytes, bool make, Visit visit) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      uint64_t page = at >> pageBits, next = std::min(end, (page + 1) << pageBits);
      auto found = pages.find(page);
      if (found == pages.end() && make)
        found = pages.try_emplace(page, std::make_unique<ShadowRange>(uint64_t(1) << pageBits, bits)).first;
      if (found != pages.end())
        found->second->forEach(at & ((uint64_t(1) << pageBits) - 1), next - at,
                               [&](Cell &cell, uint64_t offset) { visit(cell, (page << pageBits) + offset); });
      at = next;
    }
  }

private:
  static constexpr unsigned pageBits = 10;
  unsigned bits;
  llvm::DenseMap<uint64_t, std::unique_ptr<ShadowRange>> pages;
};

} // namespace gemmc::emu
