/// What the lanes of a warp know, or have handed over: lanes with the same clocks share them.
#pragma once
#include "Clock.h"

namespace gemmc::emu {

class LaneClocks {
public:
  struct Part {
    Mask lanes = 0;
    Clocks clocks;
  };
  /// `lanes` know nothing; others, until they learn something, have no clocks.
  explicit LaneClocks(Mask lanes = 0) {
    if (lanes)
      parts.push_back({lanes, {}});
  }
  Mask lanes() const;
  const Clocks &of(unsigned lane) const;
  /// Calls `visit(part)` for the parts whose lanes are in `mask`, cutting those that lie in it only partly.
  template <typename Visit> void each(Mask mask, Visit visit) {
    cut(mask);
    for (Part &part : parts)
      if (part.lanes & mask)
        visit(part);
  }
  template <typename Visit> void each(Mask mask, Visit visit) const {
    for (const Part &part : parts)
      if (part.lanes & mask)
        visit(part);
  }
  /// The lanes of `mask` know `clocks` as well; those without clocks get some.
  void join(Mask mask, const Clocks &clocks);
  /// The lanes of `mask` know what one of them knows.
  void unite(Mask mask);
  Clocks joined() const;
  bool differ() const { return parts.size() > 1; }

private:
  void cut(Mask mask);
  llvm::SmallVector<Part, 2> parts;
};

} // namespace gemmc::emu
