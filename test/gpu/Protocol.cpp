#include "Protocol.h"

namespace gemmc::microtests {

std::vector<Question> allQuestions() {
  std::vector<Question> questions;
  addTensorMapQuestions(questions);
  addWgmmaQuestions(questions);
  addSyncQuestions(questions);
  return questions;
}

} // namespace gemmc::microtests
