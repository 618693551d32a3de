/// The parser's part for instructions and their operands.
#include "Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace gemmc::ptx {

// --- Instructions

void Parser::guarded() {
  lex.take('@');
  bool negated = lex.take('!');
  StringRef word = lex.identifier();
  auto reg = word.empty() ? std::nullopt : findReg(word);
  if (!reg) {
    if (word.empty())
      diags.report(Diag::ptx_expected, lex.here(), "a predicate register");
    else
      reportUndeclared(word, rangeOf(word));
    return recover();
  }
  if (Type type = function->regs[*reg].type; type != Type::pred)
    diags.report(Diag::ptx_guard, rangeOf(word), word, nameOf(type));
  StringRef root = lex.identifier();
  if (root.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "an instruction");
    return recover();
  }
  StringRef modifiers = lex.modifiers();
  instruction(StringRef(root.begin(), root.size() + modifiers.size()), true, negated, *reg);
}

/// Where a modifier belongs in the manual's order, in a family whose modifiers ptxas takes in others, too.
static unsigned rankInAccess(StringRef token) {
  return StringSwitch<unsigned>(token)
      .Cases("relaxed", "acquire", "release", "acq_rel", 0)
      .Cases("cta", "cluster", "gpu", "sys", 1)
      .Cases("global", "shared", "shared::cta", "shared::cluster", 2)
      .Default(3);
}
static unsigned rankInMatrixMove(StringRef token) {
  return StringSwitch<unsigned>(token).Cases("sync", "aligned", "m8n8", 0).Cases("x1", "x2", "x4", 1).Default(2);
}
static unsigned rankInMultiply(StringRef token) {
  return StringSwitch<unsigned>(token).Cases("rn", "rz", "rm", "rp", 1).Case("f64", 2).Default(0);
}
static unsigned rankInVote(StringRef token) { return token == "sync" ? 0 : 1; }

/// `mnemonic` as the manual writes it: `atom.acquire.cta.add.u32` (libcu++: `atom.add.acquire.cta.u32`),
/// `ld.acquire.gpu.global.b32` (CUTLASS: `ld.global.acquire.gpu.b32`), `ldmatrix.sync.aligned.m8n8.x4` (CUTLASS:
/// `.x4.m8n8`), `wmma.mma...rn.f64.f64.f64.f64` (nvcc: `.rn` at the end), `vote.sync.ballot` (CUB: `vote.ballot.sync`),
/// and without blanks (CUTLASS: `lop3 .b32`).
static std::string inManualOrder(StringRef mnemonic) {
  SmallVector<StringRef, 16> tokens;
  mnemonic.split(tokens, '.');
  for (StringRef &token : tokens)
    token = token.rtrim();
  auto *rank = StringSwitch<unsigned (*)(StringRef)>(tokens.front())
                   .Cases("atom", "red", "ld", "st", rankInAccess)
                   .Cases("ldmatrix", "stmatrix", rankInMatrixMove)
                   .Cases("mma", "wmma", rankInMultiply)
                   .Case("vote", rankInVote)
                   .Default(nullptr);
  if (rank)
    llvm::stable_sort(MutableArrayRef(tokens).drop_front(),
                      [&](StringRef a, StringRef b) { return rank(a) < rank(b); });
  return join(tokens, ".");
}

const SmallVector<Match, 2> &Parser::rowsFor(StringRef mnemonic) {
  auto [entry, fresh] = mnemonics.try_emplace(mnemonic);
  if (fresh)
    entry->second = matchMnemonics(mnemonic);
  if (fresh && entry->second.empty())
    entry->second = matchMnemonics(inManualOrder(mnemonic));
  return entry->second;
}

void Parser::unknownMnemonic(StringRef mnemonic) {
  StringRef root = mnemonic.take_until([](char c) { return c == '.'; });
  MnemonicFault fault = explainMnemonic(mnemonic);
  if (fault.unknownRoot) {
    diags.report(Diag::ptx_unknown_instruction, rangeOf(root), root, suggest(root, fault.expected));
    return;
  }
  if (!fault.token.empty() || mnemonic.ends_with(".")) {
    std::string hint = suggest(fault.token, fault.expected);
    if (hint.empty() && fault.expected.size() <= 8 && !fault.expected.empty())
      hint = "; possible: " + join(fault.expected, ", ");
    diags.report(Diag::ptx_unknown_modifier, rangeOf(fault.token.empty() ? mnemonic : fault.token), root, fault.token,
                 hint);
    return;
  }
  size_t listed = std::min<size_t>(fault.expected.size(), 12);
  std::string list = join(ArrayRef(fault.expected).take_front(listed), ", ");
  diags.report(Diag::ptx_missing_modifier, rangeOf(mnemonic), mnemonic,
               listed < fault.expected.size() ? list + "..." : list);
}

void Parser::instruction(StringRef mnemonic, bool isGuarded, bool negated, RegId guard) {
  if (rowsFor(mnemonic).empty()) {
    unknownMnemonic(mnemonic);
    return recover();
  }
  uint32_t line = lex.lineOf(mnemonic.begin());
  SmallVector<TextOperand, 8> given;
  unknownNames.clear();
  bool bare = all_of(rowsFor(mnemonic), [](const Match &match) { return rowOf(match.op).operands.empty(); });
  if (!bare && !operandList(given))
    return recover();
  bool complete = endStatement();
  function->body.emplace_back().kind = Stmt::Instruction;
  Inst &inst = function->body.back().inst;
  inst.line = line;
  inst.guarded = isGuarded;
  inst.guardNegated = negated;
  inst.guard = guard;
  if (!place(inst, mnemonic, given)) {
    function->body.pop_back();
    return;
  }
  noteTarget = complete;
  if (complete) // comments between the operands; those in front of a next line are its own
    for (const Trivia &trivia : lex.trivia)
      if (!trivia.isBlank)
        inst.comment += (inst.comment.empty() ? "" : " ") + trivia.text.ltrim().str();
  if (complete)
    lex.trivia.clear();
}

bool Parser::operandList(SmallVectorImpl<TextOperand> &given) {
  bool afterBar = false;
  while (given.size() < 16) {
    if (given.empty() && lex.peek() == ';')
      return true;
    auto one = operand(0);
    if (!one)
      return false;
    given.push_back({std::move(*one), afterBar});
    afterBar = lex.take('|');
    if (!afterBar && !lex.take(','))
      return true;
  }
  diags.report(Diag::ptx_limit, lex.here(), 16, "operands");
  return false;
}

/// Chooses the row and distributes the operands; names that no label explains are reported.
bool Parser::place(Inst &inst, StringRef mnemonic, MutableArrayRef<TextOperand> given) {
  const auto &rows = rowsFor(mnemonic);
  auto attempt = [&](function_ref<bool(RegId)> isPred) {
    for (const Match &match : rows) {
      inst.op = match.op;
      inst.mods = match.mods;
      if (placeOperands(inst, given, isPred))
        return true;
    }
    return false;
  };
  auto isPred = [&](RegId reg) { return function->regs[reg].type == Type::pred; };
  // Without a look at the types a wrong one is left to the verifier, which can say more about it.
  if (!attempt(isPred) && !attempt(nullptr)) {
    Problem &problem = diags.report(Diag::ptx_operands, rangeOf(mnemonic), mnemonic);
    for (const Match &match : rows)
      problem.note(Diag::ptx_syntax, {}, syntaxOf(match));
    return false;
  }
  for (unsigned i = 0; i < inst.ops.size(); ++i)
    if (inst.ops[i].kind == Operand::Label) {
      scopes.back().labelUses.push_back(
          {function->body.size() - 1, i, unknownNames.empty() ? "" : unknownNames[0].name});
      unknownNames.clear();
      if (scopes.back().labelUses.back().name.empty()) { // a variable's name where a label belongs
        scopes.back().labelUses.pop_back();
        diags.report(Diag::ptx_undefined_label, rangeOf(mnemonic), inst.ops[i].name, "");
        return false;
      }
    }
  for (const Unknown &unknown : unknownNames)
    reportUndeclared(unknown.name, unknown.range);
  return unknownNames.empty();
}

// --- Operands

std::optional<Operand> Parser::operand(unsigned depth) {
  switch (lex.peek()) {
  case '{':
    return vector(depth);
  case '(':
    if (auto list = vector(depth, '(', ')'))
      return Operand::makeList(std::move(list->elems));
    return std::nullopt;
  case '[':
    if (depth == 0)
      return address();
    break;
  case '<':
    if (holes)
      return hole();
    break;
  case '!': {
    lex.take('!');
    auto inner = lex.peek() == '<' && holes ? hole() : name(lex.identifier());
    if (inner)
      inner->negated = true;
    return inner;
  }
  default:
    break;
  }
  if (isDigit(lex.peek()) || lex.peek() == '-' || lex.peek() == '+' || lex.peek() == '~')
    return constant("+-*/%<>&^|?=!~");
  return name(lex.identifier());
}

/// A number, behind which none of `operators` may stand: expressions of constants (PTX ISA 4.5.5) are not read.
std::optional<Operand> Parser::constant(StringRef operators) {
  const char *start = lex.here().Start.getPointer();
  const bool inverted = lex.peek() == '~';
  auto value = inverted ? Operand::makeImm(0) : immediate();
  if (value && (inverted || operators.contains(lex.peek())) && lex.peek()) {
    lex.pass();
    diags.report(Diag::ptx_constant, lex.from(start));
    return std::nullopt;
  }
  return value;
}

std::optional<Operand> Parser::name(StringRef word) {
  if (word.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "an operand");
    return std::nullopt;
  }
  if (word == "_")
    return Operand::makeSink();
  if (auto reg = findReg(word))
    return Operand::makeReg(*reg);
  if (specialType(word))
    return Operand::makeSpecial(word);
  auto variable = findVariable(word);
  if (!variable && word.starts_with("%")) {
    reportUndeclared(word, rangeOf(word));
    return std::nullopt;
  }
  if (!variable)
    unknownNames.push_back({word, rangeOf(word)});
  Operand symbol = Operand::makeSymbol(variable.value_or(word));
  if ((lex.peek() == '+' || lex.peek() == '-') && !offset(symbol.imm))
    return std::nullopt;
  return symbol;
}

/// A number with its sign.
std::optional<Operand> Parser::immediate() {
  const char *start = lex.here().Start.getPointer();
  bool minus = lex.take('-');
  if (!minus)
    lex.take('+');
  unsigned before = diags.numErrors();
  auto number = lex.number();
  if (!number) {
    if (diags.numErrors() == before)
      diags.report(Diag::ptx_expected, lex.here(), "a number");
    return std::nullopt;
  }
  if (number->floatBits) {
    uint64_t sign = uint64_t(minus) << (number->floatBits - 1);
    Operand op = Operand::makeImm(static_cast<int64_t>(number->bits ^ sign));
    op.floatBits = number->floatBits;
    return op;
  }
  if (minus && number->bits > uint64_t(1) << 63) {
    diags.report(Diag::ptx_bad_number, lex.from(start), StringRef(start, lex.position() - start), "below -2^63");
    return std::nullopt;
  }
  return Operand::makeImm(static_cast<int64_t>(minus ? -number->bits : number->bits));
}

std::optional<Operand> Parser::vector(unsigned depth, char open, char close) {
  if (depth) {
    diags.report(Diag::ptx_expected, lex.here(), "no vector inside a vector");
    return std::nullopt;
  }
  lex.take(open);
  std::vector<Operand> elems;
  do {
    if (open == '(' && lex.peek() == close)
      break;
    if (elems.size() >= maxElements) {
      diags.report(Diag::ptx_limit, lex.here(), maxElements, "elements in a vector");
      return std::nullopt;
    }
    auto elem = operand(depth + 1);
    if (!elem)
      return std::nullopt;
    elems.push_back(std::move(*elem));
  } while (lex.take(','));
  if (!expect(close))
    return std::nullopt;
  return Operand::makeVector(std::move(elems));
}

/// `+ 4`, `- 4`, `+ -4`, any number of times.
bool Parser::offset(int64_t &into) {
  while (lex.peek() == '+' || lex.peek() == '-') {
    bool minus = lex.peek() == '-';
    lex.take(lex.peek());
    SMRange here = lex.here();
    auto value = constant("*/%<>&^|?");
    if (!value)
      return false;
    bool wraps = !value->floatBits && (minus ? __builtin_sub_overflow(into, value->imm, &into)
                                             : __builtin_add_overflow(into, value->imm, &into));
    if (value->floatBits || wraps) {
      diags.report(Diag::ptx_expected, here, "an integer offset");
      return false;
    }
  }
  return true;
}

/// `[base + offset]`, `[base, {c0, c1}]`.
std::optional<Operand> Parser::address() {
  lex.take('[');
  auto base = operand(1);
  if (!base)
    return std::nullopt;
  if (base->kind == Operand::Vector || base->kind == Operand::Sink || base->kind == Operand::Special || base->negated ||
      base->floatBits) {
    diags.report(Diag::ptx_expected, lex.here(), "a register, a variable or a number as the address");
    return std::nullopt;
  }
  int64_t more = 0;
  if (!offset(more))
    return std::nullopt;
  std::vector<Operand> coords;
  if (lex.take(',')) {
    if (lex.peek() != '{') {
      diags.report(Diag::ptx_expected, lex.here(), "`{` and the coordinates");
      return std::nullopt;
    }
    auto list = vector(0);
    if (!list)
      return std::nullopt;
    coords = std::move(list->elems);
  }
  if (!expect(']'))
    return std::nullopt;
  return Operand::makeAddress(*base, more, std::move(coords));
}

std::optional<Operand> Parser::hole() {
  lex.take('<');
  StringRef word = lex.identifier();
  if (word.empty() || !lex.take('>')) {
    diags.report(Diag::ptx_expected, lex.here(), "a hole `<name>`");
    return std::nullopt;
  }
  return Operand::makeHole(word);
}

} // namespace gemmc::ptx
