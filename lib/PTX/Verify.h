/// What the general checks and the per-instruction rules of the verifier share.
#pragma once
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/StringSet.h"

namespace gemmc::ptx {

/// The target of a module, `sm_90a` as {90, true}.
struct Target {
  unsigned sm = 0;
  bool a = false;
};
std::optional<Target> parseTarget(llvm::StringRef name);

/// The lines of a source, by number from 1 on, without comments; nothing for 0, which stands for what was built.
class SourceLines {
public:
  explicit SourceLines(llvm::StringRef text) : text(text) {}
  llvm::SMRange operator[](uint32_t line) const;

private:
  llvm::StringRef text;
  mutable std::vector<const char *> starts;
};

/// One run of the verifier. `inst` is the instruction being looked at.
class Checker {
public:
  Checker(const Module &module, const Function &function, Diags &diags, const SourceLines &lines,
          const llvm::StringMap<Type> *holes)
      : module(module), function(function), diags(diags), lines(lines), holes(holes) {}
  void run();
  /// Of a whole function that `run` found nothing wrong with: registers that are read before anything has written them.
  void registers();

  // For the rules.
  const Inst *inst = nullptr;
  const Row *row = nullptr;
  template <typename... Args> void fail(Diag id, Args &&...args) {
    diags.report(id, line(), std::forward<Args>(args)...);
    good = false;
  }
  /// Operand `index`; None when it is left out.
  const Operand &op(unsigned index) const { return inst->ops[index]; }
  std::string shown() const { return inst->mnemonic(); }
  /// The vector `index` must have `count` elements.
  void length(unsigned index, unsigned count);
  /// If operand `index` is an integer immediate: it must satisfy `accept`; `rule` says what that is.
  void value(unsigned index, llvm::function_ref<bool(int64_t)> accept, llvm::StringRef rule);
  /// `what` needs this target and PTX version.
  void limit(llvm::StringRef what, unsigned minSm, unsigned minPtx, bool archSpecific);
  Type typeOf(RegId reg) const { return function.regs[reg].type; }

private:
  /// Of the instruction; without one, of the function.
  llvm::SMRange line() const { return lines[inst ? inst->line : function.line]; }
  llvm::SMRange spelled(RegId reg) const;
  void setUp();
  void directives();
  void spaces();
  void labels();
  void instruction();
  void modifiers();
  void operand(unsigned index);
  void scalar(const OperandForm &form, const Operand &operand, Type type);
  void immediate(const OperandForm &form, const Operand &operand, Type type);
  void address(const OperandForm &form, const Operand &operand);
  void list(const OperandForm &form, const Operand &operand);
  void callee(const Operand &operand);
  void symbol(const Operand &operand);
  bool fits(const OperandForm &form, Type want, Type have) const;

  const Module &module;
  const Function &function;
  Diags &diags;
  const SourceLines &lines;
  const llvm::StringMap<Type> *holes;
  Target target;
  unsigned version = 0;
  bool good = true;
  llvm::StringSet<> names;
};

/// `verify<Name>` of the instruction, or nullptr when its form says everything.
using Rule = void (*)(Checker &);
Rule ruleOf(Op op);

} // namespace gemmc::ptx
