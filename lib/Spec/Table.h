/// The field table (`gemmc/Spec/Fields.def`) as data: what each field may hold, and how its text and its member of
/// `Spec` become each other. Nothing outside this room sees it.
#pragma once
#include "gemmc/Spec/Spec.h"
#include "gemmc/Support/Yaml.h"
#include <vector>

namespace gemmc::spec {

/// The values that a field may hold.
struct Domain {
  enum Kind : uint8_t { Word, Name, Extent, Integer, Power, Triple, Scale };
  Kind kind;
  int64_t lo = 0, hi = 0;             ///< Extent, Integer, Power, Triple: the smallest and largest number.
  std::vector<llvm::StringRef> words; ///< Word: all that are allowed.
  bool required = false;              ///< Must be given; `auto` is refused.

  bool numeric() const { return kind != Word && kind != Name; }
};

/// The largest extent, leading dimension and distance between matrices.
constexpr int64_t maxExtent = int64_t(1) << 40;

/// One field.
struct Row {
  llvm::StringRef path;
  Domain domain;
  llvm::StringRef doc, example;
  /// Stores the value that `node` holds; false after a report.
  bool (*read)(Spec &spec, const YamlNode &node, const Row &row, Diags &diags);
  /// Back to `auto`.
  void (*clear)(Spec &spec);
  /// The value as YAML; `auto` when it is neither given nor decided.
  std::string (*print)(const Spec &spec);
  bool (*given)(const Spec &spec);
  llvm::StringRef (*reason)(const Spec &spec);
  /// Makes a given value a decided one.
  void (*settle)(Spec &spec, llvm::StringRef reason);

  llvm::StringRef section() const { return path.contains('.') ? path.rsplit('.').first : ""; }
  llvm::StringRef key() const { return path.contains('.') ? path.rsplit('.').second : path; }
};

struct Section {
  llvm::StringRef path, doc;
};

const std::vector<Row> &rows();
const std::vector<Section> &sections();
const Row *findRow(llvm::StringRef path);
const Section *findSection(llvm::StringRef path);

/// Words for a message or a page: `` `a`, `b` ``.
std::string listed(llvm::ArrayRef<llvm::StringRef> words);
/// A line a user understands: ``a number 0..2^40 or `dynamic` ``.
std::string describe(const Domain &domain);

/// All words of an enumeration, indexed by its values.
template <typename T> llvm::ArrayRef<llvm::StringRef> wordsOf();
/// Whether a field is off or on, or more: YAML 1.1 reads these words as booleans.
bool isSwitch(const Domain &domain);

// Values.cpp: one reader a type. Each stores nothing and gives false after a report. `row` says what is allowed.
bool readValue(const YamlNode &node, const Row &row, Diags &diags, std::string &name);
bool readValue(const YamlNode &node, const Row &row, Diags &diags, Size &size);
bool readValue(const YamlNode &node, const Row &row, Diags &diags, Scale &scale);
bool readValue(const YamlNode &node, const Row &row, Diags &diags, int64_t &value);
bool readValue(const YamlNode &node, const Row &row, Diags &diags, unsigned &value);
bool readValue(const YamlNode &node, const Row &row, Diags &diags, std::array<int64_t, 3> &values);
/// The index of the word that `node` holds.
bool readWord(const YamlNode &node, const Row &row, Diags &diags, unsigned &index);
/// Reports a list, a map or nothing where `row` has a single value.
bool expectScalar(const YamlNode &node, const Row &row, Diags &diags);
bool isAuto(const YamlNode &node);
/// `text` for a message: shortened, without control characters.
std::string shown(llvm::StringRef text);
/// What a node is, for a message: `a list`, or its text in backticks.
std::string seenKind(const YamlNode &node);

/// Reserved.cpp: an instruction keyword of PTX (manual, table "Reserved Instruction Keywords").
bool isReservedName(llvm::StringRef name);
/// `[a-z_][a-z0-9_]{0,62}`, not reserved, not `_` or `auto`, without a leading `__`.
bool isGoodName(llvm::StringRef name);

std::string printValue(const std::string &name);
std::string printValue(const Size &size);
std::string printValue(const Scale &scale);
std::string printValue(int64_t value);
std::string printValue(unsigned value);
std::string printValue(const std::array<int64_t, 3> &values);

} // namespace gemmc::spec
