/// A kernel decoded for execution: what the emulator runs instead of `ptx::Inst`.
///
/// Everything that does not change while the kernel runs is settled here once: operands are rows of the register file,
/// immediates are constant rows, modifiers have chosen the function to call, labels are indices, variables are laid
/// out.
///
/// A row holds one 32-bit value for each of the 32 lanes of a warp, a 64-bit register takes two rows, read as
/// `uint64_t[32]`, a 128-bit register four, read as two such pairs (low half first). Narrower values are stored
/// zero-extended. Predicates are 32-bit lane masks in a file of their own.
#pragma once
#include "gemmc/Emu/Mma.h"
#include "gemmc/Emu/Wgmma.h"
#include "gemmc/PTX/Ops.h"
#include <memory>
#include <string>
#include <vector>

namespace gemmc::emu {

using ptx::Type;
using Mask = uint32_t; ///< One bit a lane.
constexpr unsigned numLanes = 32;
constexpr Mask allLanes = ~Mask(0);

struct alignas(128) Row {
  uint32_t lane[numLanes];
};

/// State spaces as the emulator tells them apart.
enum class Where : uint8_t { Generic, Shared, SharedCluster, Global, Local, Param, Const };
const char *nameOf(Where where);

/// Generic addresses. A shared address is 32 bits: rank of the CTA in its cluster, shifted by `rankShift`, plus the
/// offset in the CTA's window; offsets below `sharedBase` belong to nobody, as on the hardware. Global, constant and
/// parameter addresses are generic addresses already, so `cvta` leaves them alone.
namespace window {
constexpr uint64_t shared = uint64_t(1) << 40, local = uint64_t(2) << 40, param = uint64_t(3) << 40,
                   module = uint64_t(4) << 40, size = uint64_t(1) << 40;
constexpr unsigned rankShift = 24;
constexpr uint32_t sharedBase = 1024;
/// Memory that only its thread uses, or that nobody writes.
constexpr bool isPrivate(uint64_t address) { return address - local < 2 * size; }
} // namespace window

/// An operand.
struct Arg {
  enum Kind : uint8_t { None, Value, Pred, Vector, Address };
  Kind kind = None;
  uint8_t bits = 0;              ///< Width of the register (or of the constant) behind a Value or an Address base.
  bool constant = false;         ///< The rows are the program's, not the warp's.
  bool negated = false;          ///< Pred.
  uint32_t slot = 0;             ///< First row; Pred: index in the predicate file.
  uint32_t first = 0, count = 0; ///< Vector elements or coordinates: a range of `Program::args`.
  int64_t offset = 0;            ///< Address: bytes added to the base.
};

struct Code;
class Warp;
/// What happened to the program counter of the group of lanes that executed an instruction.
enum class Step : uint8_t {
  Next,    ///< On to the next instruction.
  Jump,    ///< The group's program counter was set.
  Yield,   ///< On to the next instruction, but let other warps run first.
  Block,   ///< The same instruction must be tried again; the group's `wait` says what for.
  Regroup, ///< The warp's groups were changed, program counters included.
  Stop     ///< A finding was reported: the cluster stops.
};
/// Executes one instruction for the lanes of `mask` (never empty).
using Exec = Step (*)(Warp &warp, const Code &code, Mask mask);
/// Compares operands `first` and `first + 1`: the lanes for which it holds.
using LaneTest = Mask (*)(Warp &warp, const Code &code, unsigned first);

/// What an instruction says of order and scope; the check asks at each access.
struct Ordering {
  bool acquires = false, releases = false, relaxed = false;
  bool atCta = false, atCluster = false;               ///< Scopes; neither: .gpu, .sys or none written (atom, red).
  bool isWide() const { return !atCta && !atCluster; } ///< Goes beyond the cluster.
  explicit Ordering(const ptx::Inst *inst = nullptr);
};

/// A decoded instruction. The meaning of `flags` and `imm` is that of the function in `run`.
struct Code {
  Exec run = nullptr;
  const Arg *args = nullptr; ///< One for each operand of the row's form.
  int32_t guard = -1;        ///< Index in the predicate file; -1 = none.
  bool guardNegated = false;
  Type type = Type::none;
  Where where = Where::Generic;
  uint8_t bytes = 0; ///< Memory access: bytes of one element.
  uint32_t line = 0, target = 0, flags = 0;
  int32_t imm[3] = {};
  LaneTest test = nullptr, highTest = nullptr; ///< Comparisons; `highTest`: of the upper halves of a packed type.
  const ptx::Inst *inst = nullptr;
  Ordering ordering;
};

/// Registers of the machine that PTX reads like variables (PTX ISA 10). Filled in when a warp starts.
struct SpecialSlot {
  std::string name;
  uint32_t slot = 0;
  uint8_t bits = 32;
};
/// Whether the emulator knows it; clocks, which change while a warp runs, are read by `mov` alone.
bool isSpecialModelled(llvm::StringRef name);
struct Program;
/// Whether it asks for the workspace by which a whole grid meets (`grid.sync()` of cooperative groups).
bool isCooperative(const Program &program);
/// A row that holds the address of a shared or local variable; it depends on the CTA.
struct SymbolSlot {
  uint32_t slot = 0;
  uint8_t bits = 64;
  Where where = Where::Shared;
  uint64_t offset = 0;
  uint32_t shift = 0; ///< As in `Place`.
};
struct Place {
  Where where = Where::Global;
  uint64_t offset = 0; ///< Shared, Local: in the window. Else the generic address.
  uint64_t bytes = 0;
  uint32_t shift = 0; ///< Shared: where variables get no more alignment than they declare, it lies so much further on.
};

struct Program {
  ptx::Function function; ///< A copy: `Code::inst` points into it.
  std::vector<Code> code; ///< Ends with an exit of its own.
  std::vector<Arg> args;
  std::vector<Row> constants;
  uint32_t numRows = 0, numPreds = 2; ///< Predicate 0 is never, 1 always true.
  unsigned sm = 80;                   ///< Number in the module's target.
  std::vector<sem::MmaForm> mmaForms; ///< Of matrix instructions, by an index in their code.
  std::vector<sem::WgmmaForm> wgmmaForms;
  std::vector<SpecialSlot> specials;
  std::vector<SymbolSlot> symbols;
  std::vector<std::pair<std::string, Place>> places; ///< Variables and parameters.
  uint32_t staticShared = 0;                         ///< Bytes from `sharedBase` on, dynamic memory not counted.
  uint32_t dynamicOffset = 0;                        ///< Where dynamic shared memory begins, from `sharedBase` on.
  uint32_t exactShared = 0, exactDynamic = 0;        ///< The same two with the shifts of the variables.
  uint32_t paramBase = 0;                            ///< Where parameters begin in their window.
  uint32_t localBytes = 0, paramBytes = 0;           ///< Local: what calls pass and get is there, too.
  std::vector<std::vector<uint32_t>> jumpTables;     ///< Indices in `code`.
  std::vector<std::byte> moduleBytes; ///< Initial image of `.global` and `.const` variables at `window::module`.
  uint64_t constBytes = 0;            ///< The first of them are constants.

  /// Warps with a job of their own, from comments like `// producer: warps 0 to 3`.
  struct Role {
    std::string name;
    unsigned first = 0, last = 0;
  };
  std::vector<Role> roles;

  std::string roleOf(unsigned warp) const;
  const Place *place(llvm::StringRef name) const;
};

} // namespace gemmc::emu
