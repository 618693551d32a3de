/// Questions that the manual leaves open, each a small bounded program for the card (rules.md 5.14).
#pragma once
#include "Machines.h"
#include "llvm/Support/JSON.h"

namespace gemmc::microtests {

struct Question {
  std::string name; ///< protocol/7 ...
  std::string asks, rule;
  /// What the card did; `agrees` whether our rule says so, `open` when it proves nothing.
  struct Answer {
    std::string card;
    enum { agrees, differs, open } verdict = open;
  };
  std::function<Answer(Card &)> ask;
};
std::vector<Question> allQuestions();
void addTensorMapQuestions(std::vector<Question> &questions);
void addWgmmaQuestions(std::vector<Question> &questions);
void addSyncQuestions(std::vector<Question> &questions);

} // namespace gemmc::microtests
