/// Why this plan, and what bounds it: as text for people and as JSON.
#pragma once
#include "gemmc/Plan/Analysis.h"
#include "gemmc/Tune/Choose.h"

namespace gemmc::tune {

void printExplanation(llvm::raw_ostream &os, const Chosen &chosen, const Analysis &analysis);
std::string explanationJson(const Chosen &chosen, const Analysis &analysis);

} // namespace gemmc::tune
