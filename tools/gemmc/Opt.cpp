// gemmc opt: the passes over the tile IR, one at a time, on text.
#include "Tool.h"
#include "gemmc/Passes/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace gemmc::tool::opt_cpp {
namespace {
cl::SubCommand sub("opt", "Run passes over a kernel in tile IR");
cl::opt<std::string> input(cl::Positional, cl::desc("<kernel.tile>"), cl::sub(sub));
cl::opt<std::string> output("o", cl::desc("Write to a file"), cl::value_desc("file"), cl::sub(sub));
cl::list<std::string>
    names("pass", cl::CommaSeparated, cl::value_desc("name,..."), cl::sub(sub),
          cl::desc("Passes to run, in this order; none: the kernel is only read, checked and printed"));
cl::opt<bool> verifyEach("verify-each", cl::desc("Check the kernel after each pass, not only at the end"),
                         cl::sub(sub));
cl::opt<bool> listPasses("list", cl::desc("Print the names of all passes in the order in which gemmc runs them"),
                         cl::sub(sub));

std::string known(StringRef separator) {
  return join(map_range(tile::passes(), [](const tile::Pass &pass) { return pass.name; }), separator);
}

/// The passes that --pass names; unknown names are reported, all of them, and repeated ones: a pass
/// is written for a kernel that it has not changed yet.
std::vector<const tile::Pass *> chosen(Diags &diags) {
  std::vector<const tile::Pass *> list;
  StringMap<unsigned> times;
  for (const std::string &name : names) {
    if (unsigned before = times[name]++) {
      if (before == 1)
        diags.report(Diag::tile_pass_twice, {}, name);
      continue;
    }
    list.push_back(tile::findPass(name));
    if (!list.back())
      diags.report(Diag::tile_unknown_pass, {}, name, known(", "));
  }
  return list;
}

int run() {
  Diags diags;
  if (listPasses) {
    writeFile(output, known("\n") + "\n", diags);
    return finish(diags);
  }
  std::vector<const tile::Pass *> list = chosen(diags);
  if (diags.hasErrors())
    return finish(diags);
  auto text = readCode(input.getNumOccurrences() ? input.getValue() : "-", diags);
  auto kernel = text ? tile::parse(*text, diags) : std::nullopt;
  if (!kernel || !tile::verify(*kernel, diags))
    return finish(diags);
  const auto sound = [&](const Twine &behind) {
    if (tile::verify(*kernel, diags))
      return true;
    diags.report(Diag::tile_broken, {}, behind.str());
    return false;
  };
  for (const tile::Pass *pass : list)
    if (!tile::runPass(*pass, *kernel, diags) || (verifyEach && !sound("pass `" + pass->name + "`")))
      return finish(diags);
  if (sound("the passes"))
    writeFile(output, tile::print(*kernel), diags);
  return finish(diags);
}
Command command(sub, run);
} // namespace
} // namespace gemmc::tool::opt_cpp
