// "Did you mean": the known word that a misspelt one probably stands for.
#include "gemmc/Support/Yaml.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using llvm::StringRef;

namespace gemmc {
namespace {
constexpr size_t maxLength = 64; ///< Longer words are no typing errors, and their distance costs time.

/// Letters to insert, delete, replace or exchange with their neighbour (optimal string alignment), case ignored.
unsigned distanceOf(StringRef a, StringRef b) {
  std::vector<unsigned> beforeLast, last(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  auto same = [](char x, char y) { return llvm::toLower(x) == llvm::toLower(y); };
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        current[j] = std::min(current[j], beforeLast[j - 2] + 1);
    }
    beforeLast = std::exchange(last, current);
  }
  return last[b.size()];
}

/// `row_major` means `row`.
bool extends(StringRef longer, StringRef shorter) {
  return shorter.size() >= 3 && longer.starts_with_insensitive(shorter);
}

size_t commonPrefix(StringRef a, StringRef b) {
  size_t length = 0;
  while (length < std::min(a.size(), b.size()) && llvm::toLower(a[length]) == llvm::toLower(b[length]))
    ++length;
  return length;
}
} // namespace

StringRef nearest(StringRef word, llvm::ArrayRef<StringRef> known) {
  if (word.empty() || word.size() > maxLength)
    return "";
  // Farther than a third of the word is another word. Of equally near ones (`wgma`: `wmma` or `wgmma`) the one that
  // begins alike is meant.
  unsigned most = word.size() == 1 ? 0 : std::max<size_t>(1, word.size() / 3);
  StringRef best;
  std::pair<unsigned, size_t> least;
  for (StringRef candidate : known) {
    unsigned distance = distanceOf(word, candidate);
    if (distance > most && !extends(candidate, word) && !extends(word, candidate))
      continue;
    std::pair<unsigned, size_t> rank(std::min(distance, most), maxLength - commonPrefix(word, candidate));
    if (best.empty() || rank < least) {
      least = rank;
      best = candidate;
    }
  }
  return best;
}

} // namespace gemmc
