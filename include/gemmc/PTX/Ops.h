/// The instruction table, readable: what each row of `Ops.def` says.
///
/// A form looks like the syntax line of the manual, with marks that printer and parser can walk. Up to the first space
/// stands the mnemonic: the root, then one slot for each dot.
///
///     .a|b            one of them                          (.a|b)       one of them or nothing
///     $class          the choices of a PTX_CLASS           m64n#8..256/8#k16   m64n8k16, m64n16k16, ... m64n256k16
///     x@80/71         x needs sm_80 and PTX 7.1            x[f32,f64]   x only beside one of these modifiers
///     x[!f64]         x beside none of these               x[a][b]      both conditions
///
/// Behind it the operands, in the order of the text:
///
///     a               read; a register or an immediate     =d, +d       written; read and written
///     #n              an immediate only                    [a]          an address;  [m, {c}]  with coordinates;
///                                                          [a:b64]      its register must have 64 bits
///     {a}, {a}?       a vector; a vector or a scalar       |q           stands behind a bar: `p|q`
///     <a>             a list `(x, y)` of a call's parameters
///     !p              may be negated                       _=d          may be the sink `_`
///     ~a              may be a wider register              %a, &a       may be a special register; a symbol
///     (, x)           optional                             (, x with m|n)   there exactly if modifier m or n is
///     a:type          the operand's type; without it, the instruction's type (`Inst::type()`), or s32 for `#n`
///
/// Types beside those of `Type`: `T2` the second type in the mnemonic; `frag2` the register type in which a matrix
/// fragment of it travels (f16, bf16, tf32, 8-bit and smaller: b32); `wide` twice the instruction's type; `part` an
/// equal part of it; `address` b32 or b64; `flag` a predicate or an immediate 0 or 1; `label`; `function` the name of
/// one.
#pragma once
#include "gemmc/PTX/IR.h"

namespace gemmc::ptx {

/// What an instruction touches beside its registers; what the clean-up passes and the emulator may assume.
enum class Effect : uint8_t {
  Pure,        ///< Registers in, registers out: may be removed, shared, moved.
  ReadMemory,  ///< ld, ldmatrix: may be removed unless volatile or ordered, not moved across writes or barriers.
  WriteMemory, ///< st, atom, red, stmatrix.
  AsyncCopy,   ///< cp.async, bulk copies.
  Tensor,      ///< wgmma, mma, wmma: mma.sync and wmma.mma are register-only but stay in place.
  Order,       ///< Barriers, fences, waits, commits, elect, setmaxnreg, griddepcontrol.
  Warp,        ///< Needs its warp together (shfl, vote...): not moved, not shared across control flow.
  Control      ///< bra, ret, exit, trap.
};
llvm::StringRef nameOf(Effect effect);

enum class Access : uint8_t { Read, Write, ReadWrite };

/// How an operand's type follows from the instruction.
enum class TypeRule : uint8_t {
  Inst,    ///< `Inst::type()`.
  Fixed,   ///< `OperandForm::type`.
  Nth,     ///< `T2`: the type of the `typeIndex`-th type slot.
  Frag,    ///< `frag2`: the register type of a fragment of that type.
  Wide,    ///< Twice the instruction's width.
  Part,    ///< The instruction's width divided by the vector's length.
  Address, ///< b32 or b64.
  Flag,    ///< A predicate, or an immediate 0 or 1.
  Label,
  Function
};

struct OperandForm {
  llvm::StringRef name;
  Access access = Access::Read;
  bool isVector = false, isAddress = false, isList = false, optional = false;
  bool afterBar = false;    ///< Written `|q` behind the operand before it.
  bool mayBeScalar = false; ///< `{a}?`
  bool hasCoords = false;   ///< `[m, {c}]`
  bool immediate = false;   ///< `#n`
  bool negatable = false, sinkable = false, widerOk = false, special = false, symbol = false;
  TypeRule rule = TypeRule::Inst;
  uint8_t typeIndex = 0;                      ///< Nth, Frag: 1 = the first type of the mnemonic.
  std::optional<Type> type;                   ///< Fixed only.
  llvm::SmallVector<llvm::StringRef, 0> with; ///< There exactly if one of these modifiers is.
};

/// What one choice of a slot demands.
struct ChoiceLimit {
  unsigned minSm = 0, minPtx = 0;
  Type type = Type::none; ///< The type that it spells.
  /// Each condition: one of these modifiers (or none of them, when negated) must be in the instruction.
  struct Condition {
    bool negated = false;
    llvm::SmallVector<llvm::StringRef, 0> any;
  };
  llvm::SmallVector<Condition, 0> conditions;
};
struct ModSlot {
  llvm::SmallVector<llvm::StringRef, 0> choices; ///< Without dots; `Inst::mods` counts them from 1.
  llvm::SmallVector<ChoiceLimit, 0> limits;      ///< One a choice.
  bool optional = false;
  bool isType = false; ///< Its choices are types.
};
struct Row {
  llvm::StringRef name;
  llvm::StringRef form; ///< The text in `Ops.def`.
  llvm::StringRef root; ///< First token of the mnemonic (`cp`, `add`): not a slot.
  llvm::SmallVector<ModSlot, 0> slots;
  llvm::SmallVector<OperandForm, 0> operands;
  unsigned minSm = 0, minPtx = 0; ///< minPtx: 70 = 7.0. minSm 90 with archSpecific: sm_90a.
  bool archSpecific = false;      ///< Needs sm_90a exactly.
  Effect effect = Effect::Pure;
};
/// A row is parsed when it is first asked for; thread-safe, and the reference stays valid.
const Row &rowOf(Op op);
/// The row's name without parsing it ("CpAsync").
llvm::StringRef nameOf(Op op);
Effect effectOf(Op op);

/// Registers that an instruction reads / writes, its guard and vector elements included.
void forEachUse(const Inst &inst, llvm::function_ref<void(RegId)> visit);
void forEachDef(const Inst &inst, llvm::function_ref<void(RegId)> visit);
/// All operands that hold registers, and which access it is; for renaming. The guard is not an operand.
void forEachOperand(Inst &inst, llvm::function_ref<void(Operand &, Access)> visit);

/// Whether operand `index` must be there (true), must be missing (false), or is free (nullopt: a plain optional).
std::optional<bool> operandPresence(const Inst &inst, unsigned index);
/// The type of operand `index` of a complete instruction; of one element when it is a vector. `none` for labels,
/// addresses of memory and coordinates (b32).
Type operandType(const Inst &inst, unsigned index);

/// A row whose mnemonic matches, with its slot choices.
struct Match {
  Op op;
  llvm::SmallVector<uint8_t, 8> mods;
};
/// The first row whose mnemonic matches `text` ("cp.async.cg.shared.global").
std::optional<Match> matchMnemonic(llvm::StringRef text);
/// All such rows in the order of the table.
llvm::SmallVector<Match, 2> matchMnemonics(llvm::StringRef text);
/// All rows whose mnemonic begins with `root`.
llvm::SmallVector<Op, 4> rowsWithRoot(llvm::StringRef root);
/// The roots of all rows, sorted, each once.
llvm::ArrayRef<llvm::StringRef> allRoots();

/// Operands as they stand in the text: those of the form that are there, in order; whatever stood behind a bar is
/// marked.
struct TextOperand {
  Operand op;
  bool afterBar = false;
};
/// Distributes `given` over the form of `inst.op` (whose mods are set) into `inst.ops`. False when it fits not: count,
/// kinds (vector, address, immediate, label, sink) or predicate-ness. `isPred` tells predicate registers.
bool placeOperands(Inst &inst, llvm::MutableArrayRef<TextOperand> given, llvm::function_ref<bool(RegId)> isPred);

/// The row as a person reads it: "mbarrier.init.b64 [a], count" with `mods`' choices, "(, x)" for optional operands.
std::string syntaxOf(const Match &match);
/// Why no row matches `text`: the token at fault and what could stand there instead.
struct MnemonicFault {
  bool unknownRoot = false;
  llvm::StringRef token;                           ///< Empty when the mnemonic ends too early.
  llvm::SmallVector<llvm::StringRef, 16> expected; ///< Roots or modifiers.
};
MnemonicFault explainMnemonic(llvm::StringRef text);

/// Type of a special register (`%tid.x`: u32), `WARP_SZ` included; nullopt when there is none of that name.
std::optional<Type> specialType(llvm::StringRef name);

} // namespace gemmc::ptx
