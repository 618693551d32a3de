/// Questions that the manual leaves open, each a small bounded program for the card (rules.md 5.14).
#pragma once
#include "Machines.h"
#include "llvm/Support/FormatVariadic.h"

namespace gemmc::microtests {

struct Question {
  std::string name; ///< protocol/7 ...
  std::string asks, rule;
  /// What the card did; `agrees` whether our rule says so, `open` when it proves nothing.
  struct Answer {
    std::string card;
    enum Verdict { agrees, differs, open } verdict = open;
  };
  std::function<Answer(Card &)> ask;
};
inline Question::Answer verdict(bool agrees, std::string text) {
  return {std::move(text), agrees ? Question::Answer::agrees : Question::Answer::differs};
}
inline Question::Answer unsettled(std::string text) { return {std::move(text), Question::Answer::open}; }

std::vector<Question> allQuestions();
void addTensorMapQuestions(std::vector<Question> &questions);
void addWgmmaQuestions(std::vector<Question> &questions);
void addSyncQuestions(std::vector<Question> &questions);
void addReduceQuestions(std::vector<Question> &questions);
void addAlignmentQuestions(std::vector<Question> &questions);
void addRaceQuestions(std::vector<Question> &questions);

// --- Pieces of kernels

/// The head up to the addresses: `%in`, `%out`, `%map` (with `hasMap`), `%t` thread, `%cta`, `%img` the address of
/// `imageBytes` of shared memory aligned to 1024, `%bar` that of eight mbarriers. Scratch: %u0-%u15, %x0-%x15, %p0-%p7.
std::string begin(bool hasMap, unsigned imageBytes, const std::string &directives = "");
/// `%p0` = the phase of parity 0 of the mbarrier at `%bar + offset` has ended; gives up after `tries`.
std::string boundedWait(const std::string &label, unsigned offset = 0, unsigned tries = 200000);
/// Fills the image with a pattern, thread 0 makes the mbarriers (count 1), then a barrier. For 128 threads.
std::string prepare(unsigned imageBytes, uint32_t pattern);
/// Copies the image to `out` + `offset`.
std::string dump(unsigned imageBytes, unsigned offset);

struct Words {
  std::vector<uint32_t> data;
  explicit Words(size_t count, uint32_t value = 0) : data(count, value) {}
  Bytes bytes() { return {reinterpret_cast<std::byte *>(data.data()), data.size() * 4}; }
  uint32_t &operator[](size_t i) { return data[i]; }
};

} // namespace gemmc::microtests
