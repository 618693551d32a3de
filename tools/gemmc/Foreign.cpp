#include "Foreign.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace gemmc::tool {

/// A launch block as gemmc writes it, in a file of its own.
static bool isLaunchBlock(StringRef text) { return text.ltrim().starts_with("gemmc launch"); }

std::optional<ForeignInput> readForeignInput(StringRef path, StringRef launchFile, Diags &diags, bool &failed) {
  if (!path.ends_with(".ptx"))
    return std::nullopt;
  SmallString<128> beside(path);
  sys::path::replace_extension(beside, "yaml");
  std::optional<StringRef> text;
  if (launchFile.empty()) {
    if (!sys::fs::exists(beside))
      return std::nullopt;
    text = readCode(path, diags);
    if (text && text->contains("//! gemmc launch"))
      return std::nullopt;
    launchFile = beside;
  }
  auto launchText = readFile(launchFile, diags);
  if (launchText && isLaunchBlock(*launchText))
    return std::nullopt;
  if (!text)
    text = readCode(path, diags);
  failed = true;
  if (!text || !launchText)
    return std::nullopt;
  auto module = ptx::parse(*text, diags);
  if (!module || !ptx::verifyProgram(*module, diags, *text))
    return std::nullopt;
  auto launch = run::readForeign(*launchText, *module, diags);
  if (!launch || diags.hasErrors())
    return std::nullopt;
  failed = false;
  return ForeignInput{std::move(*module), std::move(*launch)};
}

bool checkLaunchOptions(const ProblemInput &problem, Diags &diags) {
  if (StringRef option = problem.firstGiven(); !option.empty())
    diags.report(Diag::option_useless, {}, (option.size() > 1 ? "--" : "-") + option.str(),
                 "the launch file says what is launched on which data");
  return !diags.hasErrors();
}

} // namespace gemmc::tool
