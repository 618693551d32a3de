/// Writes a kernel's body the way one writes PTX:
///
///     Val addr = b.reg(Type::b32, "a_addr");
///     b("add.u32", addr, base, 64);
///     b("cp.async.cg.shared.global", at(addr), at(src, 16), 16);
///     b.when(p)("bra", label);
///
/// Mnemonics are looked up once and cached. A mnemonic or operand that fits no row is our own fault: the program ends
/// with the row's form, in release builds, too.
#pragma once
#include "gemmc/PTX/Ops.h"

namespace gemmc::ptx {

/// An operand under construction; converts from registers, integers and labels.
struct Val {
  Operand op;
  Val() = default;
  Val(Operand op) : op(std::move(op)) {}
  Val(int64_t value) : op(Operand::makeImm(value)) {}
  Val(int value) : op(Operand::makeImm(value)) {}
  Val(unsigned value) : op(Operand::makeImm(value)) {}
  Val(uint64_t value) : op(Operand::makeImm(static_cast<int64_t>(value))) {}
  Val(llvm::ArrayRef<Val> elems); ///< Vector `{...}`.
  bool twin = false;              ///< Made by `pair`: a vector that stands for two operands.
  Val(const std::vector<Val> &elems) : Val(llvm::ArrayRef<Val>(elems)) {}
  bool isImm() const { return op.isImm(); }
  bool isImm(int64_t value) const { return op.isImm() && !op.floatBits && op.imm == value; }
  bool isReg() const { return op.isReg(); }
};
inline Val operator!(Val p) { ///< `!p`
  p.op.negated = !p.op.negated;
  return p;
}
Val at(const Val &base, int64_t offset = 0);                         ///< `[base + offset]`
Val at(const Val &base, int64_t offset, llvm::ArrayRef<Val> coords); ///< `[base, {coords}]`
Val pair(const Val &first, const Val &second); ///< `d|p` destinations: fills two operands of the form.

class Builder {
public:
  explicit Builder(Function &function) : function(function) {}
  Function &fn() { return function; }

  /// A new register; its name gets a leading `%` unless it has one, and a number when it is taken.
  Val reg(Type type, llvm::StringRef name);
  std::vector<Val> regs(Type type, llvm::StringRef stem, unsigned count); ///< stem0, stem1, ... (stem_1_0... if taken)
  Val special(llvm::StringRef name) { return Operand::makeSpecial(name); }
  Val symbol(llvm::StringRef name, int64_t offset = 0) { return Operand::makeSymbol(name, offset); }
  Val sink() { return Operand::makeSink(); }
  /// A label operand with a fresh name; `place` puts it here.
  Val label(llvm::StringRef stem);
  void place(const Val &label);

  template <typename... Args> Inst &operator()(llvm::StringRef mnemonic, Args &&...args) {
    Val list[] = {Val(std::forward<Args>(args))..., Val()};
    return emit(mnemonic, llvm::ArrayRef<Val>(list, sizeof...(Args)));
  }
  /// The returned reference is good until the next statement.
  Inst &emit(llvm::StringRef mnemonic, llvm::ArrayRef<Val> args);

  /// Guards the next emitted instruction with `p` (or `!p`).
  Builder &when(const Val &p, bool negated = false);
  Builder &unless(const Val &p) { return when(p, true); }
  /// A comment line of its own; `note` goes behind the last instruction.
  void comment(const llvm::Twine &text);
  void note(const llvm::Twine &text);
  void blank();
  /// A directive to ptxas; "nounroll" stands behind the label of its loop (PTX ISA, Pragma Strings).
  void pragma(llvm::StringRef text);
  /// Origin (a range of the spec) of all instructions emitted from now on.
  void setOrigin(llvm::SMRange range);

  /// Instantiates the template `name` (a file of ptx_templates without `.ptx`): its own registers and labels get fresh
  /// names, its holes take `holes` by name. A missing or extra hole, or an operand of the wrong width, ends the
  /// program.
  void expand(llvm::StringRef name, llvm::ArrayRef<std::pair<llvm::StringRef, Val>> holes);

private:
  const llvm::SmallVector<Match, 2> &lookup(llvm::StringRef mnemonic);
  Stmt &append(Stmt::Kind kind);

  Function &function;
  llvm::StringMap<llvm::SmallVector<Match, 2>> known; ///< Mnemonics used so far.
  bool pending = false, pendingNegated = false;
  RegId pendingGuard = 0;
  uint32_t origin = 0;
};

/// The templates: embedded in the binary, or read from a directory when one is set (`--templates DIR`).
/// A template file declares its holes, `//! hole bar: b32` a line each (a type or `label`), and is parsed before holes
/// are filled; the comments in front of its first statement describe it and are not expanded. A file of the directory
/// must be called like a built-in template and have the same holes. For the whole process; to be called before any
/// `expand`.
bool setTemplateDirectory(llvm::StringRef directory, Diags &diags);
/// Parses and verifies all templates; the unit tests and `--templates` call it.
bool checkTemplates(Diags &diags);

} // namespace gemmc::ptx
