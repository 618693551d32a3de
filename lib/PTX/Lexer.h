/// Characters to words for the PTX parser. It reads on demand, since what a word is depends on where it stands (a
/// mnemonic holds dots, a tensor address braces), and collects comments and blank lines on the way.
#pragma once
#include "gemmc/Support/Diag.h"
#include <optional>

namespace gemmc::ptx {

/// A comment or a blank line between two words.
struct Trivia {
  llvm::StringRef text; ///< Of the comment, without its marks; empty for a blank line.
  bool isBlank = false;
  bool sameLine = false; ///< Begins on the line of the word before it.
};

struct Number {
  uint64_t bits = 0;     ///< The value, or the bit pattern of a float.
  uint8_t floatBits = 0; ///< 0 = integer.
};

class Lexer {
public:
  Lexer(llvm::StringRef text, Diags &diags) : begin(text.begin()), cur(text.begin()), end(text.end()), diags(diags) {}

  /// Passes white space and comments, which go to `trivia`.
  void skip();
  bool atEnd() {
    skip();
    return cur == end;
  }
  /// The next character behind white space; 0 at the end.
  char peek() {
    skip();
    return cur == end ? 0 : *cur;
  }
  /// Takes `c` if it comes next.
  bool take(char c);
  /// Takes the identifier that comes next (PTX ISA 4.4), `%name.x` included; empty when there is none.
  llvm::StringRef identifier();
  /// The rest of a mnemonic behind its root: `.async.cg.shared`; there may be blanks in front of a dot.
  llvm::StringRef modifiers();
  /// `.word` (also `.word::word`), without the dot; empty when something else comes next.
  llvm::StringRef directive();
  /// `"text"`; nullopt when there is none. An unterminated one is reported.
  std::optional<llvm::StringRef> string();
  /// An unsigned literal (PTX ISA 4.5); nullopt when there is none, or after a report.
  std::optional<Number> number();
  /// `8.3` as it stands; empty when something else comes next.
  llvm::StringRef digitsAndDots();
  /// Passes one character.
  void pass() {
    skip();
    if (cur != end)
      lastEnd = ++cur;
  }
  /// Skips to behind the next `;`, or in front of a `}` that closes the scope around, whichever is first.
  void recover();
  void skipLine();
  /// Skips a balanced `{...}`.
  void skipBraces();

  const char *position() const { return cur; }
  /// The place behind the last word.
  llvm::SMLoc behind() const { return llvm::SMLoc::getFromPointer(lastEnd ? lastEnd : cur); }
  /// From `start` to behind the last word; at least one character where there is one.
  llvm::SMRange from(const char *start) const;
  /// The next character, for "expected" messages.
  llvm::SMRange here();
  /// 1-based line of `at`; positions must be asked in rising order.
  uint32_t lineOf(const char *at);
  /// Whether the next word stands on a later line than the last one.
  bool onNewLine();

  llvm::SmallVector<Trivia, 4> trivia;

private:
  llvm::StringRef word(const char *start) {
    lastEnd = cur;
    return llvm::StringRef(start, cur - start);
  }
  bool comment(bool sameLine);
  std::optional<Number> floatBitsLiteral(const char *start, unsigned floatBits);
  std::optional<Number> decimalFloat(const char *start);

  const char *begin, *cur, *end;
  const char *lastEnd = nullptr;
  const char *lineAt = nullptr;
  uint32_t line = 1;
  Diags &diags;
};

} // namespace gemmc::ptx
