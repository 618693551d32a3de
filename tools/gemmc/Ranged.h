/// Options that are numbers of a range, for which LLVM's own take what is empty, too large or no number of the kind.
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
/// From 0 to `most`.
template <int most> using Seconds = llvm::cl::opt<double, false, SecondsParser<most>>;

template <unsigned least, unsigned most> struct CountParser : llvm::cl::parser<unsigned> {
  using llvm::cl::parser<unsigned>::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, unsigned &value) {
    if (!text.getAsInteger(10, value) && value >= least && value <= most)
      return false;
    return option.error("`" + text + "` is no whole number from " + llvm::Twine(least) + " to " + llvm::Twine(most));
  }
};
template <unsigned least, unsigned most> using Count = llvm::cl::opt<unsigned, false, CountParser<least, most>>;
using Threads = Count<0, 1024>; ///< 0: all cores.

struct RealParser : llvm::cl::parser<double> {
  using llvm::cl::parser<double>::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, double &value) {
    if (!text.empty() && llvm::to_float(text, value))
      return false;
    return option.error("`" + text + "` is no number");
  }
};
/// Any number, infinities and NaN too.
using Real = llvm::cl::opt<double, false, RealParser>;

} // namespace gemmc::tool
