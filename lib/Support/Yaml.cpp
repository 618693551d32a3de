// An own reader for the subset, and not llvm::yaml::Stream, which takes `[1,,2]`, `[1]2`, `{a}` and an unclosed `'x`
// without a word, knows no limits, and gives maps and empty values no usable ranges.
//
// One pass, recursive descent with a bounded depth, over text that `TextCheck` has found to be printable UTF-8 in lines
// of bounded length. A syntax error ends the reading; a duplicate key does not.
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"

using llvm::SMLoc;
using llvm::SMRange;
using llvm::StringRef;

namespace gemmc {
namespace {
constexpr size_t maxLine = 16 << 10, maxScalar = 4 << 10;
constexpr unsigned maxDepth = 16, maxProblems = 20;

SMRange rangeOf(const char *begin, const char *end) {
  return {SMLoc::getFromPointer(begin), SMLoc::getFromPointer(end)};
}
std::string hexByte(unsigned char byte) { return llvm::formatv("0x{0:x-2}", unsigned(byte)).str(); }
bool isSpace(char c) { return c == ' ' || c == '\t'; }
bool isLineEnd(char c) { return c == '\n' || c == '\r'; }

/// Size, line length, control characters and encoding, before anything looks at the structure.
class TextCheck {
public:
  TextCheck(StringRef text, size_t maxBytes, Diags &diags) : text(text), maxBytes(maxBytes), diags(diags) {}

  bool run() {
    const char *begin = text.begin();
    if (text.size() > maxBytes)
      return fail(Diag::yaml_too_large, begin, begin, text.size(), maxBytes);
    const char *line = begin;
    for (const char *at = begin; at != text.end();) {
      size_t length = checkCharacter(at);
      if (!length)
        return false;
      at += length;
      if (at[-1] != '\n' && at != text.end())
        continue;
      if (size_t(at - line) > maxLine)
        return fail(Diag::yaml_line_long, line, line, at - line, maxLine);
      line = at;
    }
    return true;
  }

private:
  template <typename... Args> bool fail(Diag id, const char *begin, const char *end, Args &&...args) {
    diags.report(id, rangeOf(begin, end), std::forward<Args>(args)...);
    return false;
  }

  /// Bytes of the character at `at`; 0 after a report.
  size_t checkCharacter(const char *at) {
    unsigned char c = *at;
    bool crlf = c == '\r' && at + 1 != text.end() && at[1] == '\n';
    if ((c < 0x20 && c != '\t' && c != '\n' && !crlf) || c == 0x7f)
      return fail(Diag::yaml_control, at, at + 1, hexByte(c));
    if (c < 0x80)
      return 1;
    size_t length = llvm::getNumBytesForUTF8(c);
    if (length > size_t(text.end() - at) ||
        !llvm::isLegalUTF8Sequence(reinterpret_cast<const llvm::UTF8 *>(at),
                                   reinterpret_cast<const llvm::UTF8 *>(at) + length))
      return fail(Diag::yaml_utf8, at, at + 1, hexByte(c));
    if (c == 0xc2 && static_cast<unsigned char>(at[1]) < 0xa0) // U+0080..U+009F, terminal controls
      return fail(Diag::yaml_control, at, at + 2, hexByte(at[1]));
    return length;
  }

  StringRef text;
  size_t maxBytes;
  Diags &diags;
};

/// The parser proper. Every parse function gives false after a report and leaves `cur` behind what it read otherwise.
class YamlParser {
public:
  YamlParser(StringRef text, unsigned maxNodes, Diags &diags)
      : diags(diags), cur(withoutMark(text).begin()), end(text.end()), lineStart(cur), maxNodes(maxNodes) {}

  std::optional<YamlNode> run() {
    YamlNode root;
    if (!toContent() || !parseRoot(root) || !toContent())
      return std::nullopt;
    if (cur != end)
      report(Diag::yaml_trailing, cur, cur + 1, seen());
    return problems ? std::nullopt : std::optional(std::move(root));
  }

private:
  enum class Style { block, flow };

  // Places and characters.

  size_t column() const { return cur - lineStart; }
  char peek(size_t ahead = 0) const { return size_t(end - cur) > ahead ? cur[ahead] : '\0'; }
  bool endsWord(size_t ahead) const {
    return size_t(end - cur) <= ahead || isSpace(cur[ahead]) || isLineEnd(cur[ahead]);
  }
  bool atLineEnd() const { return cur == end || isLineEnd(*cur); }
  bool atDash() const { return peek() == '-' && endsWord(1); }
  bool atComment() const { return peek() == '#' && (cur == lineStart || isSpace(cur[-1])); }
  void skipSpaces() {
    while (cur != end && isSpace(*cur))
      ++cur;
  }

  /// Names what stands at `cur`, for messages.
  std::string seen() const {
    if (cur == end)
      return "the end of the file";
    if (atLineEnd() || atComment())
      return "the end of the line";
    return ("`" + StringRef(cur, llvm::getNumBytesForUTF8(*cur)) + "`").str();
  }
  /// The text from `cur` to the next space or line end: an anchor, a tag.
  StringRef word() const {
    return StringRef(cur, end - cur).take_until([](char c) { return isSpace(c) || isLineEnd(c); }).take_front(64);
  }

  template <typename... Args> Problem &report(Diag id, const char *begin, const char *stop, Args &&...args) {
    ++problems;
    return diags.report(id, rangeOf(begin, std::min(stop, end)), std::forward<Args>(args)...);
  }
  template <typename... Args> bool fail(Diag id, const char *begin, const char *stop, Args &&...args) {
    report(id, begin, stop, std::forward<Args>(args)...);
    return false;
  }
  bool failWord(Diag id) {
    StringRef shown = word().take_until([](char c) { return StringRef(",[]{}").contains(c); });
    return fail(id, shown.begin(), shown.end(), shown);
  }

  // Lines.

  /// Goes over white space, comments and line ends to the next character with a meaning, or to the end.
  bool toContent() {
    while (true) {
      skipSpaces();
      if (atComment())
        while (!atLineEnd())
          ++cur;
      if (cur == end)
        return true;
      if (!isLineEnd(*cur))
        return checkLineStart();
      lineStart = ++cur; // of \r\n, too: the \n then ends an empty line
    }
  }

  /// At the first character of a line's content: what a line may not begin with.
  bool checkLineStart() {
    StringRef before(lineStart, column());
    size_t tab = before.find('\t');
    if (tab != StringRef::npos && before.trim(" \t").empty())
      return fail(Diag::yaml_tab, lineStart + tab, lineStart + tab + 1);
    if (column() != 0)
      return true;
    if (*cur == '%')
      return failWord(Diag::yaml_directive);
    if (word() != "---" && word() != "...")
      return true;
    if (word() == "..." || started)
      return failWord(Diag::yaml_documents);
    started = true;
    cur += 3;
    return expectLineEnd() && toContent();
  }

  bool expectLineEnd() {
    skipSpaces();
    return atLineEnd() || atComment() || fail(Diag::yaml_after_value, cur, cur + 1, seen());
  }

  // Nodes.

  bool count(unsigned depth) {
    if (depth > maxDepth)
      return fail(Diag::yaml_too_deep, cur, cur + 1, maxDepth);
    return ++nodes <= maxNodes || fail(Diag::yaml_too_many, cur, cur + 1, maxNodes);
  }

  bool parseRoot(YamlNode &root) {
    started = true;
    if (cur != end)
      return parseBlock(root, 1);
    root.range = rangeOf(cur, cur);
    return true;
  }

  /// A list, map or single value that begins at `cur` and may go on over lines indented as deep as it.
  bool parseBlock(YamlNode &node, unsigned depth) {
    if (atDash())
      return parseBlockList(node, depth);
    if (peek() == '?' && endsWord(1))
      return fail(Diag::yaml_complex_key, cur, cur + 1);
    size_t indent = column();
    const char *begin = cur;
    if (!parseInline(node, Style::block, depth))
      return false;
    skipSpaces();
    if (!(peek() == ':' && endsWord(1)))
      return expectLineEnd();
    if (node.kind != YamlNode::Scalar)
      return fail(Diag::yaml_complex_key, begin, cur);
    return count(depth) && parseBlockMap(node, indent, depth);
  }

  bool parseBlockList(YamlNode &list, unsigned depth) {
    if (!count(depth))
      return false;
    list.kind = YamlNode::List;
    const char *begin = cur;
    size_t indent = column();
    while (cur != end && column() == indent && atDash()) {
      YamlNode &item = list.items.emplace_back();
      ++cur;
      item.range = rangeOf(cur, cur);
      while (peek() == ' ')
        ++cur;
      bool sameLine = !atLineEnd() && !atComment();
      if (!toContent())
        return false;
      if ((sameLine || column() > indent) && cur != end && !parseBlock(item, depth + 1))
        return false;
      list.range = rangeOf(begin, item.range.End.getPointer());
      if (!toContent())
        return false;
    }
    return true;
  }

  /// `map` holds the first key, `cur` is at its colon.
  bool parseBlockMap(YamlNode &map, size_t indent, unsigned depth) {
    YamlNode key = std::exchange(map, YamlNode());
    map.kind = YamlNode::Map;
    const char *begin = key.range.Start.getPointer();
    llvm::StringMap<SMRange> known;
    while (true) {
      ++cur; // the colon
      YamlNode value;
      if (!checkKey(key, known) || !parseMapValue(value, indent, depth))
        return false;
      map.range = rangeOf(begin, value.range.End.getPointer());
      map.entries.push_back({std::move(key), std::move(value)});
      if (!toContent())
        return false;
      if (cur == end || column() < indent)
        return true;
      if (column() > indent)
        return fail(Diag::yaml_indent, cur, cur + 1, column(), indent);
      key = YamlNode();
      if (!parseKey(key, Style::block, depth))
        return false;
    }
  }

  /// The value behind a block map's colon: on the same line, on deeper lines, or a list on lines as deep as the key.
  bool parseMapValue(YamlNode &value, size_t indent, unsigned depth) {
    value.range = rangeOf(cur, cur);
    skipSpaces();
    if (!atLineEnd() && !atComment()) {
      if (atDash())
        return fail(Diag::yaml_list_inline, cur, cur + 1);
      if (!parseInline(value, Style::block, depth + 1))
        return false;
      skipSpaces();
      if (peek() == ':' && endsWord(1))
        return fail(Diag::yaml_second_colon, cur, cur + 1);
      return expectLineEnd();
    }
    if (!toContent())
      return false;
    if (cur != end && (column() > indent || (column() == indent && atDash())))
      return parseBlock(value, depth + 1);
    return count(depth + 1);
  }

  /// A key and the spaces behind it, up to its colon.
  bool parseKey(YamlNode &key, Style style, unsigned depth) {
    if (peek() == '[' || peek() == '{' || (peek() == '?' && endsWord(1)))
      return fail(Diag::yaml_complex_key, cur, cur + 1);
    if (!parseScalar(key, style, depth))
      return false;
    skipSpaces();
    bool separated = endsWord(1) || (style == Style::flow && (key.quoted || StringRef(",[]{}").contains(peek(1))));
    return (peek() == ':' && separated) || fail(Diag::yaml_expected_colon, cur, cur + 1, key.text, seen());
  }

  bool checkKey(const YamlNode &key, llvm::StringMap<SMRange> &known) {
    const char *begin = key.range.Start.getPointer(), *stop = key.range.End.getPointer();
    if (key.text == "<<")
      return fail(Diag::yaml_merge, begin, stop);
    auto [first, isNew] = known.try_emplace(key.text, key.range);
    if (!isNew)
      report(Diag::yaml_duplicate_key, begin, stop, key.text).note(Diag::yaml_first_given, first->second);
    return problems < maxProblems || fail(Diag::too_many_problems, begin, stop, maxProblems);
  }

  /// A flow list or map, or a scalar.
  bool parseInline(YamlNode &node, Style style, unsigned depth) {
    if (peek() == '[' || peek() == '{')
      return parseFlow(node, depth);
    return parseScalar(node, style, depth);
  }

  bool parseFlow(YamlNode &node, unsigned depth) {
    if (!count(depth))
      return false;
    bool isMap = *cur == '{';
    char close = isMap ? '}' : ']';
    node.kind = isMap ? YamlNode::Map : YamlNode::List;
    const char *begin = cur++;
    llvm::StringMap<SMRange> known;
    while (true) {
      if (!toContent())
        return false;
      if (peek() == close)
        break;
      if (peek() == ',')
        return fail(Diag::yaml_missing_value, cur, cur + 1, seen());
      if (cur != end && !(isMap ? parseFlowEntry(node, known, depth) : parseFlowItem(node, depth)))
        return false;
      if (!toContent())
        return false;
      if (cur == end)
        return fail(Diag::yaml_unclosed, begin, begin + 1, StringRef(begin, 1), StringRef(&close, 1));
      if (peek() == ',')
        ++cur;
      else if (peek() != close)
        return fail(Diag::yaml_expected_separator, cur, cur + 1, StringRef(&close, 1), seen());
    }
    node.range = rangeOf(begin, ++cur);
    return true;
  }

  bool parseFlowItem(YamlNode &list, unsigned depth) {
    return parseInline(list.items.emplace_back(), Style::flow, depth + 1);
  }

  bool parseFlowEntry(YamlNode &map, llvm::StringMap<SMRange> &known, unsigned depth) {
    auto &[key, value] = map.entries.emplace_back();
    if (!parseKey(key, Style::flow, depth) || !checkKey(key, known))
      return false;
    ++cur; // the colon
    value.range = rangeOf(cur, cur);
    if (!toContent())
      return false;
    if (cur == end || peek() == ',' || peek() == '}')
      return count(depth + 1);
    return parseInline(value, Style::flow, depth + 1);
  }

  // Scalars.

  bool parseScalar(YamlNode &node, Style style, unsigned depth) {
    if (!count(depth) || !checkScalarStart(style))
      return false;
    node.kind = YamlNode::Scalar;
    const char *begin = cur;
    node.quoted = *cur == '"' || *cur == '\'';
    if (!node.quoted)
      node.text = plain(style).str();
    else if (!(*cur == '"' ? parseDoubleQuoted(node.text) : parseSingleQuoted(node.text)))
      return false;
    node.range = rangeOf(begin, cur);
    size_t size = cur - begin;
    return size <= maxScalar || fail(Diag::yaml_scalar_long, begin, cur, size, maxScalar);
  }

  bool checkScalarStart(Style style) {
    switch (peek()) {
    case '&':
      return failWord(Diag::yaml_anchor);
    case '*':
      return failWord(Diag::yaml_alias);
    case '!':
      return failWord(Diag::yaml_tag);
    case '|':
    case '>':
      return failWord(Diag::yaml_block_scalar);
    case ']':
    case '}':
    case ',':
      return fail(Diag::yaml_missing_value, cur, cur + 1, seen());
    case '#':
    case '%':
    case '@':
    case '`':
      return fail(Diag::yaml_bad_start, cur, cur + 1, seen());
    case '-':
    case '?':
    case ':':
      if (endsWord(1) || (style == Style::flow && StringRef(",[]{}").contains(peek(1))))
        return fail(Diag::yaml_bad_start, cur, cur + 1, seen());
    }
    return true;
  }

  StringRef plain(Style style) {
    const char *begin = cur;
    for (; !atLineEnd() && !atComment(); ++cur) {
      bool flowEnd = style == Style::flow && StringRef(",[]{}").contains(*cur);
      bool colonEnd = *cur == ':' && (endsWord(1) || (style == Style::flow && StringRef(",[]{}").contains(peek(1))));
      if (flowEnd || colonEnd)
        break;
    }
    StringRef text = StringRef(begin, cur - begin).rtrim(" \t");
    cur = text.end();
    return text;
  }

  bool parseSingleQuoted(std::string &text) {
    const char *begin = cur++;
    for (; !atLineEnd(); ++cur) {
      if (*cur == '\'' && peek(1) != '\'')
        return ++cur;
      cur += *cur == '\''; // '' is one quote
      text += *cur;
    }
    return fail(Diag::yaml_quote_unclosed, begin, cur);
  }

  bool parseDoubleQuoted(std::string &text) {
    const char *begin = cur++;
    while (!atLineEnd()) {
      if (*cur == '"')
        return ++cur;
      if (*cur != '\\')
        text += *cur++;
      else if (!parseEscape(text))
        return false;
    }
    return fail(Diag::yaml_quote_unclosed, begin, cur);
  }

  bool parseEscape(std::string &text) {
    static constexpr StringRef simple = "\\\"/tn", meaning = "\\\"/\t\n";
    if (size_t index = simple.find(peek(1)); peek(1) && index != StringRef::npos) {
      text += meaning[index];
      cur += 2;
      return true;
    }
    size_t digits = peek(1) == 'x' ? 2 : peek(1) == 'u' ? 4 : peek(1) == 'U' ? 8 : 0;
    StringRef number = StringRef(cur, end - cur).substr(2, digits);
    unsigned code = 0;
    bool legal = digits && number.size() == digits && llvm::all_of(number, llvm::isHexDigit) &&
                 !number.getAsInteger(16, code) && code >= 0x20 && (code < 0x7f || code >= 0xa0);
    char bytes[4], *stop = bytes;
    if (!legal || !llvm::ConvertCodePointToUTF8(code, stop)) {
      size_t shown = llvm::StringRef(cur, end - cur).take_until(isLineEnd).take_front(2 + digits).size();
      return fail(Diag::yaml_escape, cur, cur + shown, StringRef(cur, shown));
    }
    text.append(bytes, stop);
    cur += 2 + digits;
    return true;
  }

  Diags &diags;
  const char *cur, *end, *lineStart;
  unsigned nodes = 0, problems = 0, maxNodes;
  bool started = false; ///< Content or a first `---` was seen.
};
} // namespace

const YamlNode *YamlNode::find(StringRef key) const {
  for (const auto &[entry, value] : entries)
    if (entry.text == key)
      return &value;
  return nullptr;
}

std::optional<YamlNode> parseYaml(StringRef text, Diags &diags) { return parseYaml(text, diags, YamlLimits()); }

std::optional<YamlNode> parseYaml(StringRef text, Diags &diags, const YamlLimits &limits) {
  if (!TextCheck(text, limits.bytes, diags).run())
    return std::nullopt;
  return YamlParser(text, limits.nodes, diags).run();
}

} // namespace gemmc
