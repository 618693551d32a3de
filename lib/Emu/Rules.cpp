#include "Rules.h"

namespace gemmc::emu {
namespace {
enum class Severity : uint8_t { Error, Review, Ours, Info, Build };
struct Rule {
  llvm::StringRef id;
  Severity severity;
};
constexpr Rule rules[] = {
#define EMU_RULE(Id, Sev, Section, Text) {Id, Severity::Sev},
#include "Rules.def"
};
} // namespace

Verdict severityOf(llvm::StringRef id, bool foreign) {
  for (const Rule &rule : rules)
    if (rule.id == id)
      return rule.severity == Severity::Info                                                     ? Verdict::clean
             : rule.severity == Severity::Review || (rule.severity == Severity::Ours && foreign) ? Verdict::review
                                                                                                 : Verdict::error;
  return Verdict::error;
}

} // namespace gemmc::emu
