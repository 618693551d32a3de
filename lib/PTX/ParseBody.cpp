/// The parser's part for the bodies of kernels: scopes, registers, labels.
#include "Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace gemmc::ptx {

// --- Statements and scopes

void Parser::body(Function &made) {
  function = &made;
  scopes.assign(1, {});
  while (!scopes.empty() && !tooMany()) {
    if (lex.atEnd()) {
      diags.report(Diag::ptx_expected, lex.here(), "`}` at the end of the kernel");
      break;
    }
    statement();
  }
  scopes.clear();
  function = nullptr;
}

bool Parser::statements(Function &made) {
  function = &made;
  scopes.assign(1, {});
  while (!lex.atEnd() && !tooMany() && !scopes.empty())
    statement();
  flushTrivia();
  if (scopes.size() == 1)
    closeScope();
  else if (scopes.empty() || lex.atEnd())
    diags.report(Diag::ptx_expected, lex.here(), scopes.empty() ? "the end of the text" : "`}`");
  scopes.clear();
  function = nullptr;
  return !errors();
}

/// Comments and blank lines in front of a statement become statements; a comment on the line of the last instruction
/// becomes its note.
void Parser::flushTrivia() {
  lex.skip();
  auto &body = function->body;
  for (const Trivia &trivia : lex.trivia) {
    bool behind = trivia.sameLine && noteTarget && body.back().kind == Stmt::Instruction;
    if (trivia.isBlank) {
      if (!body.empty() && body.back().kind != Stmt::Blank)
        body.emplace_back();
    } else if (behind) {
      std::string &comment = body.back().inst.comment;
      if (!comment.empty())
        comment += ' ';
      comment += trivia.text.ltrim().str();
    } else {
      body.emplace_back().kind = Stmt::Comment;
      body.back().text = trivia.text.str();
    }
  }
  lex.trivia.clear();
}

void Parser::statement() {
  flushTrivia();
  if (++statementCount > maxStatements) {
    diags.report(Diag::ptx_limit, lex.here(), maxStatements, "statements");
    limitHit = true;
    return;
  }
  noteTarget = false;
  const char *start = lex.here().Start.getPointer();
  switch (lex.peek()) {
  case '{':
    return openScope();
  case '}':
    lex.take('}');
    return closeScope();
  case ';':
    lex.take(';');
    return;
  case '.':
    return bodyDirective(start);
  case '@':
    return guarded();
  default:
    break;
  }
  StringRef word = lex.identifier();
  if (word.empty() || word.starts_with("%")) {
    diags.report(Diag::ptx_expected, word.empty() ? lex.here() : rangeOf(word), "an instruction");
    return recover();
  }
  StringRef modifiers = lex.modifiers();
  if (modifiers.empty() && lex.take(':'))
    return label(word);
  instruction(StringRef(word.begin(), word.size() + modifiers.size()), false, false, 0);
}

void Parser::openScope() {
  if (scopes.size() >= maxDepth) {
    diags.report(Diag::ptx_limit, lex.here(), maxDepth, "nested scopes");
    limitHit = true;
    return;
  }
  lex.take('{');
  scopes.emplace_back();
}

void Parser::closeScope() {
  flushTrivia();
  Scope closed = std::move(scopes.back());
  scopes.pop_back();
  for (const Scope::LabelUse &use : closed.labelUses) {
    auto found = closed.labels.find(use.name);
    if (found != closed.labels.end()) {
      function->body[use.stmt].inst.ops[use.operand].name = found->second;
    } else if (!scopes.empty()) {
      scopes.back().labelUses.push_back(use);
    } else {
      if (tooMany())
        return;
      SmallVector<StringRef, 16> known;
      for (const auto &label : closed.labels)
        if (known.size() < 500)
          known.push_back(label.first());
      diags.report(Diag::ptx_undefined_label, rangeOf(use.name), use.name, suggest(use.name, known));
    }
  }
}

void Parser::label(StringRef name) {
  std::string unique = function->uniqueLabel(name);
  if (!scopes.back().labels.try_emplace(name, unique).second) {
    diags.report(Diag::ptx_redeclared, rangeOf(name), name);
    return;
  }
  Stmt &stmt = function->body.emplace_back();
  stmt.kind = Stmt::Label;
  stmt.text = std::move(unique);
}

/// The labels behind the name of a jump table.
void Parser::branchTargets() {
  std::vector<Operand> targets;
  std::vector<Scope::LabelUse> uses; // of a statement that is there only when all of it was read
  do {
    StringRef word = lex.identifier();
    if (word.empty()) {
      diags.report(Diag::ptx_expected, lex.here(), "a label");
      return recover();
    }
    uses.push_back({function->body.size(), static_cast<unsigned>(targets.size()), word});
    targets.push_back(Operand::makeLabel(word));
  } while (lex.take(',') && targets.size() < maxElements);
  Stmt &stmt = function->body.emplace_back();
  stmt.kind = Stmt::Targets;
  stmt.inst.ops.assign(targets.begin(), targets.end());
  llvm::append_range(scopes.back().labelUses, uses);
  endStatement();
}

void Parser::bodyDirective(const char *start) {
  StringRef word = lex.directive();
  if (word == "reg")
    return registers();
  if (word == "loc" || word == "file")
    return lex.skipLine();
  if (word == "pragma") {
    if (auto text = lex.string()) {
      Stmt &stmt = function->body.emplace_back();
      stmt.kind = Stmt::Pragma;
      stmt.text = text->str();
    }
    endStatement();
    return;
  }
  Variable linkage;
  if (word == "extern") {
    linkage.isExtern = true;
    word = lex.directive();
  }
  if (word == "shared")
    return variables(Space::shared, linkage, function->vars);
  if (word == "local")
    return variables(Space::local, linkage, function->vars);
  if (word == "global")
    return variables(Space::global, linkage, function->vars);
  if (word == "const")
    return variables(Space::constant, linkage, function->vars);
  if (word == "param")
    return variables(Space::param, linkage, function->vars);
  if (word == "branchtargets")
    return branchTargets();
  if (is_contained({"calltargets", "callprototype"}, word)) {
    diags.report(Diag::ptx_unsupported, rangeOf(word), ("`." + word + "` in a body").str());
  } else {
    static constexpr StringRef known[] = {"reg",    "shared", "local", "global", "const",
                                          "extern", "pragma", "loc",   "file"};
    diags.report(Diag::ptx_unknown_directive, word.empty() ? lex.here() : rangeOf(word), word, suggest(word, known));
  }
  recover();
}

// --- Registers

void Parser::registers() {
  StringRef word = lex.directive();
  auto type = parseType(word);
  bool good = type && *type != Type::bf16 && *type != Type::bf16x2 && *type != Type::tf32 && *type <= Type::f64;
  if (!good) {
    diags.report(Diag::ptx_bad_type, word.empty() ? lex.here() : rangeOf(word), word, "a register");
    return recover();
  }
  do {
    if (lex.peek() == '.' || lex.peek() == ';')
      break;
    registerName(*type);
  } while (lex.take(',') && !tooMany());
  endStatement();
}

/// `name` or `name<count>`.
void Parser::registerName(Type type) {
  StringRef name = lex.identifier();
  if (name.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "a register's name");
    return;
  }
  Scope &scope = scopes.back();
  bool fresh;
  if (lex.take('<')) {
    auto count = integer("a number of registers");
    fresh = scope.ranges.try_emplace(name, Scope::Range{type, count.value_or(UINT32_MAX)}).second;
    if (count)
      expect('>');
  } else {
    fresh = !scope.regs.contains(name) && !specialType(name);
    if (fresh)
      scope.regs[name] = function->addReg(type, name);
  }
  if (!fresh)
    diags.report(Diag::ptx_redeclared, rangeOf(name), name);
}

std::optional<RegId> Parser::findReg(StringRef word) {
  for (Scope &scope : reverse(scopes)) {
    auto found = scope.regs.find(word);
    if (found != scope.regs.end())
      return found->second;
    // `%r12` may come from `%r<20>` or `%r1<5>`.
    for (size_t digits = 1; digits <= 9 && digits < word.size() && isDigit(word[word.size() - digits]); ++digits) {
      StringRef number = word.take_back(digits);
      if (digits > 1 && number.front() == '0')
        continue;
      auto range = scope.ranges.find(word.drop_back(digits));
      uint64_t value = 0;
      if (range == scope.ranges.end() || number.getAsInteger(10, value) || value >= range->second.count)
        continue;
      RegId reg = function->addReg(range->second.type, word);
      scope.regs[word] = reg;
      return reg;
    }
  }
  return std::nullopt;
}

std::optional<StringRef> Parser::findVariable(StringRef word) {
  for (Scope &scope : reverse(scopes)) {
    auto found = scope.vars.find(word);
    if (found != scope.vars.end())
      return StringRef(found->second);
  }
  if (paramNames.contains(word) || moduleNames.contains(word))
    return word;
  return std::nullopt;
}

void Parser::reportUndeclared(StringRef word, SMRange range) {
  SmallVector<StringRef, 32> known;
  for (const Scope &scope : scopes) {
    for (const auto &entry : scope.regs)
      known.push_back(entry.first());
    for (const auto &entry : scope.vars)
      known.push_back(entry.first());
  }
  for (const auto &entry : paramNames)
    known.push_back(entry.first());
  if (known.size() > 500) // the hint is not worth more
    known.truncate(500);
  diags.report(Diag::ptx_undeclared, range, word, suggest(word, known));
}

} // namespace gemmc::ptx
