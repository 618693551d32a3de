/// Turns one instruction at a time into `Code`. Each row of the table has one function, `exec<Row>`, that looks at the
/// modifiers, notes what it needs in the `Code` and returns the function that will execute it. A row without one does
/// not link; rows and modifiers that the emulator does not model return `unmodelled`, which ends a run as `incomplete`.
#pragma once
#include "Machine.h"

namespace gemmc::emu {

class Decoder {
public:
  Decoder(Program &program, const ptx::Module &module);
  void run();

  Program &program;
  const ptx::Inst *inst = nullptr;
  Code *code = nullptr;

  Type type() const { return inst->type(); }
  bool has(llvm::StringRef modifier) const { return inst->has(modifier); }
  /// The `n`-th type of the mnemonic, from 1.
  Type typeAt(unsigned n) const;
  /// Sets `bit` in the code's flags when the modifier is there.
  void flag(llvm::StringRef modifier, uint32_t bit) {
    if (has(modifier))
      code->flags |= bit;
  }
  /// The decoded operand; references die with the next new operand.
  Arg &arg(unsigned index) { return program.args[firstArg + index]; }
  /// The value of an operand that is an immediate.
  int64_t immediate(unsigned index) const { return inst->ops[index].imm; }
  bool present(unsigned index) const { return index < inst->ops.size() && inst->ops[index].kind != ptx::Operand::None; }
  /// Index in `Program::jumpTables` of the table that the instruction's label names.
  std::optional<unsigned> jumpTable() const;
  /// The state space among the modifiers; `otherwise` when there is none.
  Where where(Where otherwise = Where::Generic) const;

private:
  void layOut(const ptx::Module &module);
  void layOutModule(const ptx::Module &module);
  void layOutParams();
  void placeVariable(const ptx::Variable &variable);
  void resolve(const ptx::Variable &variable);
  void findLabels();
  void decodeInst(const ptx::Inst &inst);
  Arg operand(unsigned index);
  Arg scalar(const ptx::Operand &operand, Type type);
  Arg vector(const ptx::Operand &operand, Type type);
  Arg address(const ptx::Operand &operand);
  Arg constant(uint64_t value, unsigned bits);
  Arg immediateArg(const ptx::Operand &operand, Type type);
  Arg special(llvm::StringRef name, unsigned bits);
  Arg symbol(llvm::StringRef name, int64_t offset, unsigned bits);
  Arg scratch(Type type);
  uint32_t newRows(unsigned bits);

  std::vector<Arg> regs;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constants;
  std::map<std::string, uint32_t> labels;
  std::map<std::string, unsigned> jumpTables;
  size_t firstArg = 0;
};

/// Reports `incomplete` with the line.
Step unmodelled(Warp &warp, const Code &code, Mask mask);

#define PTX_OP(Name, ...) Exec exec##Name(Decoder &d);
#include "gemmc/PTX/Ops.def"

} // namespace gemmc::emu
