#include "Protocol.h"
namespace gemmc::microtests {
void addTensorMapQuestions(std::vector<Question> &) {}
void addWgmmaQuestions(std::vector<Question> &) {}
void addSyncQuestions(std::vector<Question> &) {}
}
