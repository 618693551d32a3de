/// Registers that wgmma uses asynchronously (PTX ISA 9.7.15.3, 9.7.15.7): accumulators and fragments of A belong to the
/// operation until it has been waited for (WG-2), and what was touched before an operation is ordered before it by a
/// wgmma.fence only (WG-1), be it by a wgmma; accumulators handed from wgmma to wgmma of the same shape need none, and
/// fragments that are only read again.
#pragma once
#include "Program.h"
#include <optional>

namespace gemmc::emu {

class WgmmaRegisters {
public:
  explicit WgmmaRegisters(const Program &program);
  bool touches(const Code &code) const { return !touched[&code - program.code.data()].empty(); }

  /// Of one warp.
  struct State {
    static constexpr int32_t touchedShape = -2, fragmentShape = -1;
    struct Register {
      uint32_t touchedAt = 0; ///< Sequence number of the last touch by something else than wgmma.
      uint32_t touchedPc = 0;
      int32_t shape = touchedShape; ///< Of the last wgmma that used it; `fragmentShape`: not as accumulator.
      uint32_t group = 0;           ///< Its group plus 1 while it is in flight.
      uint32_t pc = 0;
      uint32_t issuedAt = 0;
    };
    std::vector<Register> registers;
    uint32_t sequence = 1, fencedAt = 0, waitedAt = 0;
    uint32_t highestGroup = 0; ///< In flight, plus 1.
  };
  struct Broken {
    const char *rule;
    std::string reg;
    uint32_t pc; ///< Of the other instruction.
  };
  State start() const;
  std::optional<Broken> touch(State &state, const Code &code) const;
  std::optional<Broken> issue(State &state, const Code &code, uint32_t group) const;
  static void fence(State &state) { state.fencedAt = state.sequence++; }
  static void wait(State &state, uint32_t groups);

private:
  const Program &program;
  std::vector<std::vector<uint16_t>> touched; ///< By instruction: registers of wgmma that others touch.
  struct Wgmma {
    std::vector<uint16_t> accumulators, fragments;
  };
  std::vector<Wgmma> wgmmas; ///< By instruction; empty for others.
  std::vector<std::string> names;
};

} // namespace gemmc::emu
