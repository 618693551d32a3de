#include "Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <bit>

using namespace llvm;

namespace gemmc::ptx {
namespace {
bool isFollow(char c) { return isAlnum(c) || c == '_' || c == '$'; }
bool isStart(char c) { return isAlpha(c) || c == '_' || c == '$' || c == '%'; }
} // namespace

SMRange Lexer::from(const char *start) const {
  const char *stop = lastEnd && lastEnd > start ? lastEnd : std::min(start + 1, end);
  return {SMLoc::getFromPointer(start), SMLoc::getFromPointer(stop)};
}
SMRange Lexer::here() {
  skip();
  return {SMLoc::getFromPointer(cur), SMLoc::getFromPointer(std::min(cur + 1, end))};
}

uint32_t Lexer::lineOf(const char *at) {
  if (!lineAt)
    lineAt = begin;
  line += std::count(lineAt, std::max(at, lineAt), '\n');
  lineAt = std::max(at, lineAt);
  return line;
}

bool Lexer::onNewLine() {
  skip();
  return lastEnd && std::find(lastEnd, cur, '\n') != cur;
}

bool Lexer::comment(bool sameLine) {
  if (end - cur < 2 || cur[0] != '/' || (cur[1] != '/' && cur[1] != '*'))
    return false;
  bool block = cur[1] == '*';
  const char *start = cur;
  StringRef rest(cur + 2, end - cur - 2);
  size_t length = rest.find(block ? "*/" : "\n");
  if (block && length == StringRef::npos)
    diags.report(Diag::ptx_unterminated, {SMLoc::getFromPointer(start), SMLoc::getFromPointer(start + 2)}, "comment");
  StringRef text = rest.take_front(length);
  cur = text.end() + (block && length != StringRef::npos ? 2 : 0);
  if (!block) {
    trivia.push_back({text.rtrim(), false, sameLine});
    return true;
  }
  while (!text.empty()) {
    auto [first, tail] = text.split('\n');
    trivia.push_back({first.rtrim(), false, sameLine});
    text = tail;
  }
  return true;
}

void Lexer::skip() {
  unsigned newlines = 0;
  bool sameLine = lastEnd == cur && lastEnd;
  for (; cur != end;) {
    if (*cur == '\n') {
      sameLine = false;
      if (++newlines == 2)
        trivia.push_back({"", true, false});
      ++cur;
    } else if (isSpace(*cur)) {
      ++cur;
    } else if (comment(sameLine)) {
      newlines = 0;
    } else {
      break;
    }
  }
}

bool Lexer::take(char c) {
  if (peek() != c || cur == end)
    return false;
  lastEnd = ++cur;
  return true;
}

StringRef Lexer::identifier() {
  skip();
  const char *start = cur;
  if (cur == end || !isStart(*cur))
    return {};
  ++cur;
  while (cur != end && isFollow(*cur))
    ++cur;
  // `%tid.x`, but not the dot in front of a modifier: only special registers have components.
  if (*start == '%' && end - cur >= 2 && cur[0] == '.' && isAlpha(cur[1]) && (end - cur == 2 || !isFollow(cur[2])))
    cur += 2;
  if (cur - start == 1 && (*start == '%' || *start == '$')) {
    cur = start;
    return {};
  }
  return word(start);
}

StringRef Lexer::modifiers() {
  const char *start = cur;
  while (true) {
    while (cur != end &&
           (isFollow(*cur) || *cur == '.' || (*cur == ':' && cur + 1 != end && (cur[1] == ':' || cur[-1] == ':'))))
      ++cur;
    const char *next = cur;
    while (next != end && (*next == ' ' || *next == '\t'))
      ++next;
    if (next == cur || end - next < 2 || *next != '.' || !isFollow(next[1]))
      break;
    cur = next;
  }
  return cur == start ? StringRef() : word(start);
}

StringRef Lexer::directive() {
  skip();
  if (end - cur < 2 || *cur != '.' || !isFollow(cur[1]))
    return {};
  const char *start = ++cur;
  while (cur != end && isFollow(*cur))
    ++cur;
  return word(start);
}

StringRef Lexer::digitsAndDots() {
  skip();
  const char *start = cur;
  while (cur != end && (isDigit(*cur) || *cur == '.'))
    ++cur;
  return cur == start ? StringRef() : word(start);
}

std::optional<StringRef> Lexer::string() {
  if (peek() != '"')
    return std::nullopt;
  const char *start = ++cur;
  while (cur != end && *cur != '"' && *cur != '\n')
    ++cur;
  StringRef text(start, cur - start);
  if (cur == end || *cur != '"')
    diags.report(Diag::ptx_unterminated, {SMLoc::getFromPointer(start - 1), SMLoc::getFromPointer(cur)}, "string");
  else
    ++cur;
  lastEnd = cur;
  return text;
}

std::optional<Number> Lexer::floatBitsLiteral(const char *start, unsigned floatBits) {
  while (cur != end && isFollow(*cur))
    ++cur;
  StringRef digits = word(start).drop_front(2);
  Number number{0, static_cast<uint8_t>(floatBits)};
  if (digits.size() == floatBits / 4 && !digits.getAsInteger(16, number.bits))
    return number;
  diags.report(Diag::ptx_bad_number, from(start), word(start),
               floatBits == 32 ? "`0f` wants 8 hexadecimal digits" : "`0d` wants 16 hexadecimal digits");
  return std::nullopt;
}

std::optional<Number> Lexer::decimalFloat(const char *start) {
  while (cur != end &&
         (isFollow(*cur) || *cur == '.' || ((*cur == '+' || *cur == '-') && (cur[-1] == 'e' || cur[-1] == 'E'))))
    ++cur;
  double value = 0;
  if (!word(start).getAsDouble(value))
    return Number{std::bit_cast<uint64_t>(value), 64};
  diags.report(Diag::ptx_bad_number, from(start), word(start), "not a decimal number");
  return std::nullopt;
}

std::optional<Number> Lexer::number() {
  skip();
  const char *start = cur;
  if (cur == end || !isDigit(*cur))
    return std::nullopt;
  if (end - cur > 2 && *cur == '0' && (toLower(cur[1]) == 'f' || toLower(cur[1]) == 'd'))
    return floatBitsLiteral(start, toLower(cur[1]) == 'f' ? 32 : 64);
  bool hex = end - cur > 2 && *cur == '0' && toLower(cur[1]) == 'x';
  while (cur != end && isFollow(*cur))
    ++cur;
  StringRef text(start, cur - start);
  if (!hex && ((cur != end && *cur == '.') || text.find_first_of("eE") != StringRef::npos)) {
    cur = start;
    return decimalFloat(start);
  }
  lastEnd = cur;
  StringRef digits = text;
  if (digits.ends_with("U"))
    digits = digits.drop_back();
  unsigned radix = 10;
  if (hex)
    radix = 16, digits = digits.drop_front(2);
  else if (digits.starts_with("0b") || digits.starts_with("0B"))
    radix = 2, digits = digits.drop_front(2);
  else if (digits.size() > 1 && digits.front() == '0')
    radix = 8;
  Number number;
  if (!digits.getAsInteger(radix, number.bits))
    return number;
  diags.report(Diag::ptx_bad_number, from(start), text.take_front(40), "integers have at most 64 bits");
  return std::nullopt;
}

void Lexer::recover() {
  unsigned depth = 0;
  while (char c = peek()) {
    if (c == '}' && depth == 0)
      return;
    depth += c == '{';
    depth -= c == '}';
    lastEnd = ++cur;
    if (c == ';' && depth == 0)
      return;
  }
  if (cur != end) // a NUL byte inside the text
    lastEnd = ++cur;
}

void Lexer::skipLine() {
  while (cur != end && *cur != '\n')
    ++cur;
  lastEnd = cur;
}

void Lexer::skipBraces() {
  unsigned depth = 0;
  while (char c = peek()) {
    if (c != '{' && depth == 0)
      return;
    depth += c == '{';
    depth -= c == '}';
    lastEnd = ++cur;
    if (depth == 0)
      return;
  }
}

} // namespace gemmc::ptx
