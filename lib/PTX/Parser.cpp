#include "Parser.h"
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace gemmc::ptx {

std::string suggest(StringRef word, ArrayRef<StringRef> known) {
  if (word.size() > 64) // edit distances of long words are dear and say nothing
    return "";
  StringRef best = nearest(word, known);
  return best.empty() ? "" : ("; did you mean `" + best + "`?").str();
}

static std::optional<Space> parseSpace(StringRef word) {
  return StringSwitch<std::optional<Space>>(word)
      .Case("global", Space::global)
      .Case("shared", Space::shared)
      .Case("const", Space::constant)
      .Case("local", Space::local)
      .Case("param", Space::param)
      .Default(std::nullopt);
}

bool Parser::expect(char c) {
  if (lex.take(c))
    return true;
  diags.report(Diag::ptx_expected, lex.here(), std::string("`") + c + "`");
  return false;
}

/// `;`, or a report that says where it is missing; a next statement on a new line is then read all the same.
bool Parser::endStatement() {
  if (lex.take(';'))
    return true;
  SMLoc place = lex.behind();
  bool newLine = lex.onNewLine();
  diags.report(Diag::ptx_expected, newLine ? SMRange(place, place) : lex.here(), "`;`").fix({place, place}, ";");
  if (!newLine)
    recover();
  return false;
}

std::optional<uint64_t> Parser::integer(StringRef what) {
  SMRange here = lex.here();
  unsigned before = diags.numErrors();
  auto number = lex.number();
  if (number && !number->floatBits)
    return number->bits;
  if (diags.numErrors() == before)
    diags.report(Diag::ptx_expected, here, what);
  return std::nullopt;
}

/// Comments that stand in front of the next word; blank lines are let go.
void Parser::takeComments(std::vector<std::string> &into) {
  lex.skip();
  for (const Trivia &trivia : lex.trivia)
    if (!trivia.isBlank)
      into.push_back(trivia.text.str());
  lex.trivia.clear();
}

std::optional<Module> Parser::module() {
  Module module;
  module.versionMajor = 0;
  module.target.clear();
  takeComments(module.header);
  while (!lex.atEnd() && !tooMany())
    moduleItem(module);
  if (tooMany() && !limitHit)
    diags.report(Diag::ptx_limit, lex.here(), maxErrors - 1, "errors");
  else if (!errors() && !module.versionMajor)
    diags.report(Diag::ptx_missing_directive, lex.here(), "version");
  else if (!errors() && module.target.empty())
    diags.report(Diag::ptx_missing_directive, lex.here(), "target");
  if (errors())
    return std::nullopt;
  return module;
}

void Parser::moduleItem(Module &module) {
  const char *start = lex.here().Start.getPointer();
  StringRef word = lex.directive();
  if (word.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "a directive");
    recover();
    lex.take('}');
    return;
  }
  if (word == "version")
    return version(module);
  if (word == "target")
    return target(module);
  if (word == "address_size") {
    if (auto bits = integer("32 or 64")) {
      module.addressSize = *bits;
      if (*bits != 64)
        diags.report(Diag::ptx_unsupported, lex.from(start), "an address size other than 64");
    }
    return;
  }
  if (word == "file" || word == "loc")
    return lex.skipLine();
  if (word == "section") {
    lex.directive();
    return lex.skipBraces();
  }
  if (word == "pragma") {
    lex.string();
    endStatement();
    return;
  }
  linkage(word, module);
}

void Parser::version(Module &module) {
  StringRef text = lex.digitsAndDots();
  module.versionLine = lex.lineOf(text.begin());
  auto [major, minor] = text.split('.');
  if (major.getAsInteger(10, module.versionMajor) || minor.getAsInteger(10, module.versionMinor) ||
      !module.versionMajor || module.versionMajor > 99 || module.versionMinor > 9) {
    diags.report(Diag::ptx_bad_version, text.empty() ? lex.here() : rangeOf(text), text);
    module.versionMajor = 1;
  }
}

void Parser::target(Module &module) {
  do {
    StringRef word = lex.identifier();
    if (word.empty()) {
      diags.report(Diag::ptx_expected, lex.here(), "a target such as `sm_90a`");
      return;
    }
    if (!module.target.empty())
      continue; // what follows are modes: texmode_independent, debug
    module.target = word.str();
    module.targetLine = lex.lineOf(word.begin());
  } while (lex.take(','));
}

/// `.visible .entry`, `.extern .shared`...
void Parser::linkage(StringRef word, Module &module) {
  Variable linkage;
  for (;; word = lex.directive()) {
    if (word == "visible")
      linkage.isVisible = true;
    else if (word == "extern")
      linkage.isExtern = true;
    else if (word == "weak")
      linkage.isWeak = true;
    else
      break;
  }
  if (word == "entry")
    return entry(module, linkage);
  if (word == "func")
    return func(module, linkage);
  if (auto space = parseSpace(word); space && *space != Space::param)
    return variables(*space, linkage, module.vars);
  if (is_contained({"common", "alias", "tex", "surf", "sampler"}, word)) {
    diags.report(Diag::ptx_unsupported, word.empty() ? lex.here() : rangeOf(word), ("`." + word + "`").str());
    while (!lex.atEnd() && lex.peek() != ';' && lex.peek() != '{')
      if (lex.identifier().empty())
        lex.pass();
    if (!lex.take(';'))
      lex.skipBraces();
    return;
  }
  static constexpr StringRef known[] = {"version", "target", "address_size", "visible", "extern", "weak",
                                        "entry",   "file",   "global",       "shared",  "const",  "local",
                                        "pragma",  "loc",    "section",      "func"};
  diags.report(Diag::ptx_unknown_directive, word.empty() ? lex.here() : rangeOf(word), word, suggest(word, known));
  recover();
  lex.take('}');
}

// --- Kernels

void Parser::entry(Module &module, Variable linkage) {
  Function made;
  takeComments(made.comments);
  made.visible = linkage.isVisible;
  made.weak = linkage.isWeak;
  StringRef name = lex.identifier();
  if (name.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "the kernel's name");
    return recover();
  }
  made.name = name.str();
  made.line = lex.lineOf(name.begin());
  if (!moduleNames.insert(name).second)
    diags.report(Diag::ptx_redeclared, rangeOf(name), name);
  paramNames.clear();
  signatureAndBody(module, made);
}

/// `.func (results) name(params)`; without a body it is declared only, and its body may follow.
void Parser::func(Module &module, Variable linkage) {
  Function made;
  takeComments(made.comments);
  made.isEntry = false;
  made.visible = linkage.isVisible;
  made.weak = linkage.isWeak;
  made.isExtern = linkage.isExtern;
  paramNames.clear();
  if (lex.take('('))
    params(made.results);
  StringRef name = lex.identifier();
  if (name.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "the function's name");
    return recover();
  }
  made.name = name.str();
  made.line = lex.lineOf(name.begin());
  if (!moduleNames.insert(name).second && !declaredOnly.contains(name))
    diags.report(Diag::ptx_redeclared, rangeOf(name), name);
  declaredOnly.insert(name);
  signatureAndBody(module, made);
  if (module.find(name) && module.find(name)->hasBody)
    declaredOnly.erase(name);
}

void Parser::signatureAndBody(Module &module, Function &made) {
  if (lex.take('('))
    params(made.params, made.name);
  functionDirectives(made);
  if (lex.peek() == ';') {
    if (made.isEntry)
      diags.report(Diag::ptx_unsupported, lex.here(), "a kernel without a body");
    lex.take(';');
    made.hasBody = false;
    if (!made.isEntry)
      module.functions.push_back(std::move(made));
    return;
  }
  if (!expect('{'))
    return recover();
  body(made);
  module.functions.push_back(std::move(made));
}

void Parser::params(std::vector<Variable> &into, StringRef ofFunction) {
  if (lex.take(')'))
    return;
  do {
    std::vector<std::string> comments;
    takeComments(comments);
    if (lex.directive() != "param") {
      diags.report(Diag::ptx_expected, lex.here(), "`.param`");
      break;
    }
    auto param = variableType(Space::param, {});
    const char *start = lex.here().Start.getPointer();
    if (!param || !variableName(*param))
      break;
    if (!paramNames.insert(param->name).second)
      diags.report(Diag::ptx_redeclared, lex.from(start), param->name);
    if (param->name == ofFunction)
      diags.report(Diag::ptx_own_name, lex.from(start), param->name);
    bool more = lex.peek() == ',';
    param->comments = std::move(comments);
    into.push_back(std::move(*param));
    if (!more)
      break;
  } while (lex.take(',') && !tooMany());
  if (expect(')'))
    return;
  while (!lex.atEnd() && lex.peek() != ')' && lex.peek() != '{' && lex.peek() != ';')
    lex.pass();
  lex.take(')');
}

void Parser::functionDirectives(Function &function) {
  while (lex.peek() == '.' && !tooMany()) {
    StringRef word = lex.directive();
    if (functionDirective(word, function))
      continue;
    static constexpr StringRef known[] = {"maxntid",           "reqntid",        "minnctapersm",    "maxnreg",
                                          "reqnctapercluster", "maxclusterrank", "explicitcluster", "pragma"};
    diags.report(Diag::ptx_unknown_directive, word.empty() ? lex.here() : rangeOf(word), word, suggest(word, known));
    while (!lex.atEnd() && lex.peek() != '.' && lex.peek() != '{' && lex.peek() != ';')
      lex.pass();
  }
}

bool Parser::functionDirective(StringRef word, Function &function) {
  auto number = [&](unsigned &into) { into = std::min<uint64_t>(integer("a number").value_or(0), UINT32_MAX); };
  if (word == "maxntid")
    function.maxntid = triple();
  else if (word == "reqntid")
    function.reqntid = triple();
  else if (word == "reqnctapercluster")
    function.reqnctapercluster = triple();
  else if (word == "minnctapersm")
    number(function.minnctapersm);
  else if (word == "maxnreg")
    number(function.maxnreg);
  else if (word == "maxclusterrank")
    number(function.maxclusterrank);
  else if (word == "explicitcluster")
    function.explicitcluster = true;
  else if (word == "noreturn" && !function.isEntry)
    function.noreturn = true;
  else if (word == "pragma") {
    if (auto text = lex.string())
      function.pragmas.push_back(text->str());
    endStatement();
  } else
    return false;
  return true;
}

std::array<unsigned, 3> Parser::triple() {
  std::array<unsigned, 3> values{1, 1, 1};
  for (unsigned i = 0; i < 3 && (i == 0 || lex.take(',')); ++i)
    values[i] = std::min<uint64_t>(integer("a number").value_or(1), UINT32_MAX);
  return values;
}

// --- Variables

void Parser::variables(Space space, const Variable &linkage, std::vector<Variable> &into) {
  auto base = variableType(space, linkage);
  if (!base)
    return recover();
  takeComments(base->comments);
  do {
    Variable one = *base;
    const char *start = lex.here().Start.getPointer();
    if (!variableName(one))
      return recover();
    SMRange range = rangeOf(StringRef(start, one.name.size()));
    if (lex.take('=') && !initialiser(one, 0))
      return recover();
    declareVariable(std::move(one), into, range);
    base->comments.clear();
  } while (lex.take(',') && !tooMany());
  endStatement();
}

bool Parser::alignment(unsigned &into) {
  const char *start = lex.here().Start.getPointer();
  auto value = integer("an alignment in bytes");
  if (!value)
    return false;
  if (isPowerOf2_64(*value) && *value <= (1u << 30)) {
    into = *value;
    return true;
  }
  diags.report(Diag::ptx_bad_alignment, lex.from(start), *value);
  return false;
}

/// `.align 16 .b8`, `.u64 .ptr .global .align 16`.
std::optional<Variable> Parser::variableType(Space space, const Variable &linkage) {
  Variable made = linkage;
  made.space = space;
  made.type = Type::none;
  while (lex.peek() == '.') {
    StringRef word = lex.directive();
    if (word == "align") {
      if (!alignment(made.ptrSpace ? made.ptrAlign : made.align))
        return std::nullopt;
    } else if (word == "ptr" && space == Space::param) {
      made.ptrSpace = Space::reg;
    } else if (auto pointee = parseSpace(word); pointee && made.ptrSpace) {
      made.ptrSpace = *pointee;
    } else if (auto type = parseType(word); type && made.type == Type::none && *type >= Type::b8 &&
                                            *type <= Type::f64 && *type != Type::tf32 && *type != Type::bf16 &&
                                            *type != Type::bf16x2) {
      made.type = *type;
    } else {
      diags.report(Diag::ptx_bad_type, word.empty() ? lex.here() : rangeOf(word), word, "a variable");
      return std::nullopt;
    }
  }
  if (made.type != Type::none)
    return made;
  diags.report(Diag::ptx_expected, lex.here(), "a type");
  return std::nullopt;
}

/// `name[4][8]`.
bool Parser::variableName(Variable &variable) {
  const char *start = lex.here().Start.getPointer();
  StringRef name = lex.identifier();
  if (name.empty()) {
    diags.report(Diag::ptx_expected, lex.here(), "a name");
    return false;
  }
  variable.name = name.str();
  variable.line = lex.lineOf(name.begin());
  bool good = true;
  while (lex.take('[')) {
    bool open = lex.take(']');
    auto count = open ? std::optional<uint64_t>(0) : integer("an array's extent");
    if (!count || (!open && !expect(']')))
      return false;
    good &= open ? variable.extent.empty() : *count != 0;
    variable.extent.push_back(*count);
  }
  if (good && variable.extent.size() <= 4 && variable.bytes() < (uint64_t(1) << 40))
    return true;
  diags.report(Diag::ptx_bad_extent, lex.from(start));
  return false;
}

bool Parser::initialiser(Variable &variable, unsigned depth) {
  if (depth > 4 || variable.init.size() >= maxInit) {
    diags.report(Diag::ptx_limit, lex.here(), depth > 4 ? 4 : maxInit, depth > 4 ? "nested braces" : "initial values");
    return false;
  }
  if (lex.take('{')) {
    do {
      if (lex.peek() == '}')
        break;
      if (!initialiser(variable, depth + 1))
        return false;
    } while (lex.take(','));
    return expect('}');
  }
  if (StringRef word = lex.identifier(); !word.empty())
    return reference(variable, word, ~uint64_t(0));
  auto value = immediate();
  if (!value)
    return false;
  uint64_t bits = value->imm;
  if (!value->floatBits && bits && lex.take('(')) // a mask: these bits of an address
    return reference(variable, lex.identifier(), bits) && expect(')');
  if (variable.type == Type::f32 && value->floatBits == 64)
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  variable.init.push_back(bits);
  return true;
}

/// `name`, `name+8`, `generic(name)+8`: the address of a variable, a number once it is known.
bool Parser::reference(Variable &variable, StringRef word, uint64_t mask) {
  Reference made;
  made.index = variable.init.size();
  made.mask = mask;
  made.isGeneric = word == "generic" && lex.take('(');
  if (made.isGeneric)
    word = lex.identifier();
  if (word.empty() || !moduleNames.contains(word)) {
    if (word.empty())
      diags.report(Diag::ptx_expected, lex.here(), "a number or the name of a variable");
    else
      reportUndeclared(word, rangeOf(word));
    return false;
  }
  made.name = word.str();
  if ((made.isGeneric && !expect(')')) || !offset(made.offset))
    return false;
  variable.init.push_back(0);
  variable.references.push_back(std::move(made));
  return true;
}

void Parser::declareVariable(Variable variable, std::vector<Variable> &into, SMRange range) {
  if (holes) {
    diags.report(Diag::ptx_template_variable, range, variable.name);
    return;
  }
  bool fresh = true;
  if (scopes.empty()) {
    fresh = moduleNames.insert(variable.name).second;
  } else {
    // Names of inner scopes become names of the kernel.
    fresh = !scopes.back().vars.contains(variable.name);
    if (fresh)
      variable.name = scopes.back().vars[variable.name] = function->uniqueLabel(variable.name);
  }
  if (!fresh)
    diags.report(Diag::ptx_redeclared, range, variable.name);
  else
    into.push_back(std::move(variable));
}

std::optional<Module> parse(StringRef text, Diags &diags) { return Parser(text, diags, false).module(); }

} // namespace gemmc::ptx
