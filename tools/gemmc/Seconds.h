/// Options in seconds: a number from 0 to `most`.
#pragma once
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

namespace gemmc::tool {

template <int most> struct SecondsParser : llvm::cl::parser<double> {
  using llvm::cl::parser<double>::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, double &value) {
    const bool plain = !text.empty() && text.find_first_not_of("0123456789.eE+-") == text.npos;
    if (plain && llvm::to_float(text, value) && value >= 0 && value <= most)
      return false;
    return option.error("`" + text + "` is no number of seconds from 0 to " + llvm::Twine(most));
  }
};
template <int most> using Seconds = llvm::cl::opt<double, false, SecondsParser<most>>;

} // namespace gemmc::tool
