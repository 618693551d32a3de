/// The registers of a CTA as setmaxnreg moves them (PTX ISA 9.7.19.5), a pure state machine: `dec` gives registers back
/// to the CTA, `inc` takes them and waits while there are not enough.
#pragma once
#include "gemmc/Emu/Broken.h"
#include <array>
#include <cstdint>

namespace gemmc::emu::sem {

struct RegisterPoolState {
  int64_t free = 0;                      ///< Given back, in registers.
  std::array<uint32_t, 32> held{};       ///< By warp: registers a thread; 0 = nobody capped them at entry.
  std::array<uint32_t, 32> executed{};   ///< By warp: setmaxnreg so far,
  std::array<uint32_t, 32> lastWanted{}; ///< and the last one's operand.
};

struct RegisterPoolCommand {
  enum Op : uint8_t {
    dec,
    inc,
    exit ///< The last lanes of the warp have exited.
  };
  Op op = dec;
  uint32_t warp = 0, wanted = 0;
  uint32_t numWarps = 0; ///< exit: of the CTA.
};

struct RegisterPoolOutcome {
  RegisterPoolState state;
  bool blocked = false; ///< inc: not enough yet; nothing has changed.
  bool ignored = false; ///< SR-6: no cap at entry, the instruction has no effect.
  Broken broken;
};

RegisterPoolOutcome stepRegisterPool(const RegisterPoolState &state, const RegisterPoolCommand &command);

} // namespace gemmc::emu::sem
