/// The instruction table, readable: what each row of `Ops.def` says.
///
/// A row looks like the line in the PTX manual, with marks the printer and parser can walk:
///
///     PTX_OP(CpAsync, "cp.async.ca|cg.shared|shared::cta.global(.L2::cache_hint)(.L2::64B|L2::128B|L2::256B)"
///                     " [dst], [src], size(, srcsize)(, policy:b64)", 80, 70, AsyncCopy)
///     PTX_OP(Ldmatrix, "ldmatrix.sync.aligned.m8n8.x1|x2|x4(.trans).shared|shared::cta.b16 {=d:b32}, [src]", 75, 65, ReadShared)
///     PTX_OP(Setp, "setp.eq|ne|lt|le|gt|ge...(.ftz).b16|...|f64 =p:pred(|=q:pred), a, b", 10, 10, Pure)
///
/// `a|b` picks one, `(.x)` is an optional modifier slot, `(, x)` an optional operand. `=d` is written, `+d` read and
/// written, anything else read. `{d}` is a vector, `[x]` an address. `:type` is an operand's type; without it the
/// operand has the instruction's type (`Inst::type()`).
#pragma once
#include "gemmc/PTX/IR.h"

namespace gemmc::ptx {

/// What an instruction touches beside its registers; what the clean-up passes and the emulator may assume.
enum class Effect : uint8_t {
  Pure,        ///< Registers in, registers out: may be removed, shared, moved.
  ReadMemory,  ///< ld, ldmatrix: may be removed, not moved across writes or barriers.
  WriteMemory, ///< st, atom, red, stmatrix.
  AsyncCopy,   ///< cp.async, bulk copies.
  Tensor,      ///< wgmma, mma, wmma: mma.sync and wmma.mma are register-only but stay in place.
  Order,       ///< Barriers, fences, waits, commits, elect, setmaxnreg, griddepcontrol.
  Warp,        ///< Needs its warp together (shfl, vote...): not moved, not shared across control flow.
  Control      ///< bra, ret, exit, trap.
};

enum class Access : uint8_t { Read, Write, ReadWrite };

struct OperandForm {
  llvm::StringRef name;
  Access access = Access::Read;
  bool isVector = false, isAddress = false, optional = false;
  bool afterBar = false; ///< Written `|q` behind the operand before it.
  std::optional<Type> type; ///< nullopt = the instruction's type.
};
struct ModSlot {
  llvm::SmallVector<llvm::StringRef, 4> choices; ///< Without dots.
  bool optional = false;
};
struct Row {
  llvm::StringRef name;
  llvm::StringRef root; ///< First token of the mnemonic (`cp`, `add`): not a slot.
  llvm::SmallVector<ModSlot, 6> slots;
  llvm::SmallVector<OperandForm, 6> operands;
  unsigned minSm = 0, minPtx = 0; ///< minPtx: 70 = 7.0. minSm 900 + 'a' features: see `archSpecific`.
  bool archSpecific = false;      ///< Needs sm_90a exactly.
  Effect effect = Effect::Pure;
};
const Row &rowOf(Op op);
/// Registers that an instruction reads / writes, its guard and vector elements included.
void forEachUse(const Inst &inst, llvm::function_ref<void(RegId)> visit);
void forEachDef(const Inst &inst, llvm::function_ref<void(RegId)> visit);
/// All rows whose mnemonic matches `text` ("cp.async.cg.shared.global"): the row and its slot choices.
struct Match {
  Op op;
  llvm::SmallVector<uint8_t, 8> mods;
};
std::optional<Match> matchMnemonic(llvm::StringRef text);

} // namespace gemmc::ptx
