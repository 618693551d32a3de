/// Shadow memory: for each granule, who wrote it last and who has read it since.
#pragma once
#include "Clock.h"
#include "llvm/ADT/DenseMap.h"
#include <algorithm>
#include <optional>
#include <utility>

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

  Cell() = default;
  Cell(Cell &&) = default;
  Cell &operator=(Cell &&) = default;
  Cell(const Cell &other)
      : write(other.write), readers(other.readers),
        earlier(other.earlier ? std::make_unique<std::vector<Access>>(*other.earlier) : nullptr) {}
};

/// The cells of a range of addresses. Neighbours mostly hold the same, and share it.
class ShadowRange {
public:
  ShadowRange(uint64_t bytes, unsigned granuleBits) : bits(granuleBits), places((bytes >> granuleBits) + 1), cells(1) {
    cells.front().users = places.size();
  }

  /// Calls `look(cell, offset)` for the cells of [offset, offset + bytes), then `change(cell)`: for those that share
  /// one once, if `look` says that its word holds for all of them. `overwrites`: what `change` makes of a cell does not
  /// depend on what was there.
  template <typename Look, typename Change>
  void use(uint64_t offset, uint64_t bytes, bool overwrites, Look look, Change change) {
    std::optional<uint32_t> from, to;
    for (uint64_t i = offset >> bits, end = endOf(offset, bytes); i < end; ++i) {
      const uint32_t was = places[i];
      if (was != from) {
        const bool holds = look(std::as_const(cells[was].cell), i << bits);
        if (!overwrites && cells[was].users == 1) {
          change(cells[was].cell);
          from.reset();
          continue;
        }
        if (!overwrites || !to)
          change(cells[*(to = overwrites ? fresh({}) : fresh(cells[was].cell))].cell);
        from = holds ? std::optional(was) : std::nullopt;
      }
      put(places[i], *to);
    }
  }
  template <typename Look> void see(uint64_t offset, uint64_t bytes, Look look) const {
    for (uint64_t i = offset >> bits, end = endOf(offset, bytes); i < end; ++i)
      look(cells[places[i]].cell);
  }

private:
  uint64_t endOf(uint64_t offset, uint64_t bytes) const {
    return bytes ? std::min<uint64_t>(((offset + bytes - 1) >> bits) + 1, places.size()) : 0;
  }
  uint32_t fresh(Cell cell) {
    if (unused.empty()) {
      cells.push_back({std::move(cell), 0});
      return cells.size() - 1;
    }
    const uint32_t number = unused.pop_back_val();
    cells[number].cell = std::move(cell);
    return number;
  }
  void put(uint32_t &place, uint32_t number) {
    ++cells[number].users;
    if (Counted &old = cells[place]; !--old.users) {
      old.cell = {};
      unused.push_back(place);
    }
    place = number;
  }

  struct Counted {
    Cell cell;
    uint32_t users = 0; ///< Places that have it.
  };
  const unsigned bits;
  std::vector<uint32_t> places; ///< By granule: which cell it has.
  std::vector<Counted> cells;
  llvm::SmallVector<uint32_t, 0> unused;
};

/// Global memory, page by page, made when first written (or read, when wanted).
class ShadowPages {
public:
  explicit ShadowPages(unsigned granuleBits) : bits(granuleBits) {}
  /// As in a range, of pages that are made if they are not there.
  template <typename Look, typename Change>
  void use(uint64_t address, uint64_t bytes, bool overwrites, Look look, Change change) {
    forEach(address, bytes, [&](uint64_t page, uint64_t offset, uint64_t part) {
      std::unique_ptr<ShadowRange> &range = pages[page];
      if (!range)
        range = std::make_unique<ShadowRange>(uint64_t(1) << pageBits, bits);
      range->use(
          offset, part, overwrites, [&](const Cell &cell, uint64_t at) { return look(cell, (page << pageBits) + at); },
          change);
    });
  }
  template <typename Look> void see(uint64_t address, uint64_t bytes, Look look) const {
    forEach(address, bytes, [&](uint64_t page, uint64_t offset, uint64_t part) {
      if (auto found = pages.find(page); found != pages.end())
        found->second->see(offset, part, look);
    });
  }

private:
  template <typename Visit> static void forEach(uint64_t address, uint64_t bytes, Visit visit) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      uint64_t page = at >> pageBits, next = std::min(end, (page + 1) << pageBits);
      visit(page, at & ((uint64_t(1) << pageBits) - 1), next - at);
      at = next;
    }
  }

  static constexpr unsigned pageBits = 10;
  unsigned bits;
  llvm::DenseMap<uint64_t, std::unique_ptr<ShadowRange>> pages;
};

} // namespace gemmc::emu
