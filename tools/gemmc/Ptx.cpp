/// `gemmc ptx FILE`: reads PTX, verifies it and prints it in our own style.
#include "Tool.h"
#include "gemmc/PTX/Builder.h"

using namespace llvm;

namespace gemmc::tool::ptx_cpp {
namespace {
cl::SubCommand sub("ptx", "Parse, verify and print PTX made of known instructions");
cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
cl::opt<std::string> output("o", cl::desc("Where the PTX goes; standard output if not given"), cl::value_desc("file"),
                            cl::sub(sub));
cl::opt<bool> verifyOnly("verify-only", cl::desc("Print nothing but problems"), cl::sub(sub));
cl::opt<std::string> templates("templates", cl::desc("Check the PTX templates of this directory, too"),
                               cl::value_desc("directory"), cl::sub(sub));

int run() {
  Diags diags;
  if (verifyOnly && !output.empty()) {
    diags.report(Diag::option_useless, {}, "-o", "with `--verify-only` nothing is printed");
    return finish(diags);
  }
  if (!templates.empty() && (!ptx::setTemplateDirectory(templates, diags) || !ptx::checkTemplates(diags)))
    return finish(diags);
  auto text = readCode(input, diags);
  auto module = text ? ptx::parse(*text, diags) : std::nullopt;
  if (module && ptx::verifyProgram(*module, diags, *text) && !verifyOnly)
    writeFile(output, ptx::print(*module), diags);
  return finish(diags);
}
Command command(sub, run);
} // namespace
} // namespace gemmc::tool::ptx_cpp
