/// The PTX parser, shared by modules and templates. Recursive descent; a bad statement is reported and left out, and
/// reading goes on behind the next `;`.
#pragma once
#include "Lexer.h"
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/StringSet.h"

namespace gemmc::ptx {

class Parser {
public:
  /// With `holes`, operands may be `<name>`.
  Parser(llvm::StringRef text, Diags &diags, bool holes) : lex(text, diags), diags(diags), holes(holes) {}
  std::optional<Module> module();
  /// Reads the whole text as the statements of a body. False after an error.
  bool statements(Function &into);

private:
  // Limits that keep hostile input cheap.
  static constexpr unsigned maxErrors = 50, maxDepth = 64, maxElements = 1024;
  static constexpr size_t maxStatements = 200'000, maxInit = 1 << 20;

  /// One `{ }` of the source. Names are found innermost first.
  struct Scope {
    llvm::StringMap<RegId> regs;
    struct Range {
      Type type;
      uint64_t count;
    };
    llvm::StringMap<Range> ranges; ///< `%r<10>` under `%r`; its registers come to be when they are first used.
    llvm::StringMap<std::string> labels, vars; ///< Name in the source -> name in the function.
    struct LabelUse {
      size_t stmt;
      unsigned operand;
      llvm::StringRef name; ///< In the source.
    };
    std::vector<LabelUse> labelUses; ///< Not yet resolved.
  };

  // Modules
  void moduleItem(Module &module);
  void version(Module &module);
  void target(Module &module);
  void linkage(llvm::StringRef word, Module &module);
  void entry(Module &module, Variable linkage);
  void func(Module &module, Variable linkage);
  void signatureAndBody(Module &module, Function &made);
  /// `ofFunction`: whose name none may have.
  void params(std::vector<Variable> &into, llvm::StringRef ofFunction = "");
  void functionDirectives(Function &function);
  bool functionDirective(llvm::StringRef word, Function &function);
  std::array<unsigned, 3> triple();
  // Variables
  void variables(Space space, const Variable &linkage, std::vector<Variable> &into);
  std::optional<Variable> variableType(Space space, const Variable &linkage);
  bool variableName(Variable &variable);
  bool initialiser(Variable &variable, unsigned depth);
  bool reference(Variable &variable, llvm::StringRef word, uint64_t mask);
  bool alignment(unsigned &into);
  void declareVariable(Variable variable, std::vector<Variable> &into, llvm::SMRange range);
  // Bodies
  void body(Function &function);
  void statement();
  void bodyDirective(const char *start);
  void registers();
  void registerName(Type type);
  void label(llvm::StringRef name);
  void branchTargets();
  void openScope();
  void closeScope();
  void flushTrivia();
  // Instructions
  void guarded();
  void instruction(llvm::StringRef mnemonic, bool isGuarded, bool negated, RegId guard);
  bool operandList(llvm::SmallVectorImpl<TextOperand> &given);
  bool place(Inst &inst, llvm::StringRef mnemonic, llvm::MutableArrayRef<TextOperand> given);
  std::optional<Operand> operand(unsigned depth);
  std::optional<Operand> name(llvm::StringRef word);
  std::optional<Operand> immediate();
  std::optional<Operand> constant(llvm::StringRef operators);
  std::optional<Operand> vector(unsigned depth, char open = '{', char close = '}');
  std::optional<Operand> address();
  std::optional<Operand> hole();
  bool offset(int64_t &into);
  void unknownMnemonic(llvm::StringRef mnemonic);
  const llvm::SmallVector<Match, 2> &rowsFor(llvm::StringRef mnemonic);
  // Names
  std::optional<RegId> findReg(llvm::StringRef word);
  std::optional<llvm::StringRef> findVariable(llvm::StringRef word);
  void reportUndeclared(llvm::StringRef word, llvm::SMRange range);

  bool expect(char c);
  bool endStatement();
  std::optional<uint64_t> integer(llvm::StringRef what);
  void recover() { lex.recover(); }
  bool tooMany() const { return errors() >= maxErrors || limitHit; }
  unsigned errors() const { return diags.numErrors() - errorsBefore; }
  void takeComments(std::vector<std::string> &into);

  Lexer lex;
  Diags &diags;
  bool holes;
  bool limitHit = false;
  bool noteTarget = false; ///< The last statement was an instruction: a comment behind it is its note.
  unsigned errorsBefore = diags.numErrors();
  Function *function = nullptr;
  std::vector<Scope> scopes;
  llvm::StringSet<> moduleNames, paramNames, declaredOnly;
  llvm::StringMap<llvm::SmallVector<Match, 2>> mnemonics;
  struct Unknown {
    llvm::StringRef name;
    llvm::SMRange range;
  };
  llvm::SmallVector<Unknown, 2> unknownNames; ///< Names in the current instruction that may yet prove to be labels.
  size_t statementCount = 0;
};

/// The nearest of `known` as ", did you mean `x`?", or nothing.
std::string suggest(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

} // namespace gemmc::ptx
