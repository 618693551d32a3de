/// PTX as data: a module of variables and kernels, a kernel of labels and instructions.
///
/// The same structures serve the compiler (which builds them), the parser (which reads any PTX made of known
/// instructions, templates included), the printer, the verifier, the clean-up passes and the emulator. An instruction
/// is an opcode (one row of `Ops.def`), one choice for each modifier slot of that row, and operands in the order of the
/// row's form. Nested scopes of a source are flattened by the parser (registers and labels renamed where needed).
#pragma once
#include "gemmc/Support/Diag.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gemmc::ptx {

/// Fundamental and packed types (PTX ISA 5.2).
enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  e4m3x2,
  e5m2x2,
  e4m3,
  e5m2,
  s4,
  u4,
  b1 // elements of matrix fragments: in mnemonics only
};
unsigned bitsOf(Type type); ///< pred: 1.
llvm::StringRef nameOf(Type type);
std::optional<Type> parseType(llvm::StringRef name);

enum class Space : uint8_t { reg, param, shared, global, constant, local };

enum class Op : uint16_t {
#define PTX_OP(Name, ...) Name,
#include "gemmc/PTX/Ops.def"
#undef PTX_OP
};
constexpr unsigned numOps = 0
#define PTX_OP(Name, ...) +1
#include "gemmc/PTX/Ops.def"
#undef PTX_OP
    ;

/// A virtual register of one kernel; operands name it by its index in `Function::regs`.
struct Reg {
  std::string name; ///< With the leading `%` if the source has one.
  Type type;
};
using RegId = uint32_t;

/// One operand. A hole stands for an operand that a template's user fills in.
struct Operand {
  enum Kind : uint8_t {
    None,
    Reg,     ///< `reg`; `negated` for `!p`.
    Imm,     ///< `imm`: the value, or the bit pattern of a `0f...`/`0d...` literal (then `floatBits` is 32 or 64).
    Symbol,  ///< The address of variable or parameter `name`, plus `imm`.
    Special, ///< `name`: `%tid.x`, `%cluster_ctarank`, `WARP_SZ`...
    Label,   ///< `name`.
    Vector,  ///< `elems`: `{a, b}`.
    List,    ///< `elems`: `(a, b)`, what a call passes or gets.
    Address, ///< `[base + imm]` or `[base + imm, {coords}]`: base is `reg`, else `name`, else an absolute `imm`;
             ///< `elems` holds the coordinates of a tensor access.
    Sink,    ///< `_`.
    Hole     ///< `<name>` in a template.
  };
  Kind kind = None;
  bool negated = false;
  bool hasReg = false;   ///< Address: the base is `reg`.
  uint8_t floatBits = 0; ///< Imm: 0 = integer.
  RegId reg = 0;
  int64_t imm = 0;
  std::string name;
  std::vector<Operand> elems;

  static Operand makeReg(RegId reg, bool negated = false);
  static Operand makeImm(int64_t value);
  static Operand makeF32(float value);
  static Operand makeF64(double value);
  static Operand makeSymbol(llvm::StringRef name, int64_t offset = 0);
  static Operand makeSpecial(llvm::StringRef name);
  static Operand makeLabel(llvm::StringRef name);
  static Operand makeVector(std::vector<Operand> elems);
  static Operand makeList(std::vector<Operand> elems);
  static Operand makeAddress(const Operand &base, int64_t offset = 0, std::vector<Operand> coords = {});
  static Operand makeSink();
  static Operand makeHole(llvm::StringRef name);
  bool isReg() const { return kind == Reg; }
  bool isImm() const { return kind == Imm; }
  friend bool operator==(const Operand &, const Operand &) = default;
};

/// One instruction. `mods[i]` is the choice for slot i of the row's form: 0 = absent, j = the j-th alternative.
struct Inst {
  Op op{};
  llvm::SmallVector<uint8_t, 8> mods;
  llvm::SmallVector<Operand, 4> ops; ///< One for each operand of the form; a left-out optional operand is None.
  bool guarded = false;              ///< `@p` / `@!p`.
  bool guardNegated = false;
  RegId guard = 0;
  uint32_t line = 0;   ///< Line of the PTX text it was read from; 0 when built.
  uint32_t origin = 0; ///< Index into `Function::origins`: what in the spec caused it; 0 = unknown.
  std::string comment; ///< Printed behind the instruction.

  llvm::StringRef mod(unsigned slot) const; ///< Spelling of slot's choice, without the dot; empty when absent.
  bool has(llvm::StringRef modifier) const; ///< Whether any slot holds `modifier`.
  /// The last modifier that is a type (`add.s32` -> s32; `cvt.f16.f32` -> f32); none when there is no such.
  Type type() const;
  std::string mnemonic() const; ///< `cp.async.cg.shared.global`
};

/// A line of a kernel's body.
struct Stmt {
  enum Kind : uint8_t { Instruction, Label, Comment, Blank, Pragma, Targets };
  Kind kind = Blank;
  Inst inst;        ///< Targets: its operands are the labels of `.branchtargets`, whose name is the label before it.
  std::string text; ///< Label: its name. Comment: the text without `//`. Pragma: the string ("nounroll").
};

/// An element of an initialiser that is the address of a variable: `generic(x)+8`, `0xFF00(x)`.
struct Reference {
  size_t index = 0; ///< Of the element.
  std::string name;
  int64_t offset = 0;
  bool isGeneric = false;
  uint64_t mask = ~uint64_t(0); ///< The bits that are taken, shifted down to bit 0.
};

/// A module- or kernel-level variable or a kernel parameter.
struct Variable {
  Space space = Space::global;
  Type type = Type::b8;
  unsigned align = 0; ///< Bytes; 0 = natural.
  std::string name;
  std::vector<uint64_t> extent; ///< Array extents; empty = scalar; a first extent 0 = `[]` (dynamic shared memory).
  bool isExtern = false, isVisible = false, isWeak = false;
  std::vector<uint64_t> init;        ///< Element values (bit patterns); 0 for those in `references`.
  std::vector<Reference> references; ///< In the order of their elements.
  unsigned ptrAlign = 0;             ///< Parameter: `.ptr` with this alignment of the pointee; 0 = not said.
  std::optional<Space> ptrSpace;     ///< Parameter: `.ptr` and the space it points to (reg = generic).
  std::vector<std::string> comments; ///< Lines above it, without `//`.
  uint32_t line = 0;                 ///< In the source, from 1 on; 0: it was built.
  uint64_t bytes() const;
  unsigned alignment() const; ///< Bytes: what it declares, an element's size at least.
};

/// A kernel (`.entry`), or a function that kernels call (`.func`). Directives are 0 when absent.
struct Function {
  std::string name;
  bool isEntry = true, hasBody = true; ///< Without a body: declared only, `.extern` or further down.
  bool visible = true, weak = false, isExtern = false, noreturn = false;
  std::vector<Variable> params, results;
  std::array<unsigned, 3> reqntid{}, maxntid{}, reqnctapercluster{};
  unsigned minnctapersm = 0, maxnreg = 0, maxclusterrank = 0;
  bool explicitcluster = false;
  std::vector<std::string> pragmas;
  std::vector<Reg> regs;
  std::vector<Variable> vars; ///< Shared, local... declared in the body.
  std::vector<Stmt> body;
  std::vector<llvm::SMRange> origins{llvm::SMRange()};
  std::vector<std::string> comments; ///< Lines above the kernel, without `//`.
  uint32_t line = 0;                 ///< Of its name in the source, from 1 on; 0: it was built.

  RegId addReg(Type type, llvm::StringRef name); ///< Makes the name unique by a number when it is taken.
  /// A label name that no statement of this function has: `L_stem`, `L_stem_1`...
  std::string freshLabel(llvm::StringRef stem);
  std::string uniqueLabel(llvm::StringRef name); ///< `name` itself, or with a number.

  /// Names in use, so that making one unique needs no search; rebuilt when `regs` or `body` changed size elsewhere.
  struct Names {
    llvm::StringMap<unsigned> regs, labels; ///< Name -> the number to try next behind it.
    size_t seenRegs = 0;
    bool seenLabels = false;
  } names;
};

struct Module {
  unsigned versionMajor = 8, versionMinor = 3;
  std::string target = "sm_80";
  unsigned addressSize = 64;
  uint32_t versionLine = 0, targetLine = 0; ///< In the source, from 1 on; 0: it was built.
  std::vector<std::string> header;          ///< Comment lines at the head, without `//`: holds the launch information.
  std::vector<Variable> vars;
  std::vector<Function> functions;
  /// The one with a body, if there is one.
  Function *find(llvm::StringRef name);
  const Function *find(llvm::StringRef name) const;
};

/// Reads PTX. `text` must be a source held by `diags`.
/// Unknown instructions, modifiers and directives are located errors that name the nearest known one.
std::optional<Module> parse(llvm::StringRef text, Diags &diags);
/// print(parse(print(m))) == print(m), byte for byte. Registers that no statement uses are not declared.
std::string print(const Module &module);
/// Checks each instruction against its row: target and PTX version, operand kinds and register widths, and what a form
/// cannot say (`verify<Name>`). Problems carry the line of the text when the module was parsed.
bool verify(const Module &module, Diags &diags, llvm::StringRef source = "");
/// The same for whole programs: no register is read, either, that no path from its function's start can have written. A
/// guarded write counts, as does the comment `// implicit-def: %r`, with which LLVM says that any value will do.
bool verifyProgram(const Module &module, Diags &diags, llvm::StringRef source = "");

} // namespace gemmc::ptx
