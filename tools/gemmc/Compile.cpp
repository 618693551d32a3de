// gemmc compile: a spec to PTX, or to what lies before and behind it.
#include "Problem.h"
#include "Tuning.h"
#include "gemmc/Driver/Compiler.h"
#include "gemmc/PTX/Builder.h"
#include "gemmc/Runtime/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;

namespace gemmc::tool::compile_cpp {
namespace {
enum class Emit { plan, tile, ptx, cubin, launch };

cl::SubCommand compile("compile", "Compile a spec to PTX");
SpecInput input(compile);
TuningInput tuning(compile);
cl::opt<Emit> emit("emit", cl::desc("What to write:"), cl::init(Emit::ptx), cl::sub(compile),
                   cl::values(clEnumValN(Emit::plan, "plan", "the complete spec, with reasons"),
                              clEnumValN(Emit::tile, "tile", "tile IR after the last pass"),
                              clEnumValN(Emit::ptx, "ptx", "PTX text (default)"),
                              clEnumValN(Emit::cubin, "cubin", "machine code, by ptxas"),
                              clEnumValN(Emit::launch, "launch", "the launch information alone")));
cl::opt<std::string> output("o", cl::desc("Write to a file"), cl::value_desc("file"), cl::sub(compile));
cl::opt<std::string> printAfter("print-after", cl::desc("Print the IR after a pass, or after `all`, to standard error"),
                                cl::value_desc("pass"), cl::sub(compile));
cl::opt<bool> verifyEach("verify-each", cl::desc("Verify the IR between all passes"), cl::sub(compile));
cl::opt<std::string> templates("templates", cl::desc("Read the PTX templates from a directory"), cl::value_desc("dir"),
                               cl::sub(compile));
cl::opt<FallbackChoice>
    fallback("fallback",
             cl::desc("Take the kernel for launches that the first one's requirements, or no workspace, exclude:"),
             cl::ValueOptional, cl::init(FallbackChoice::none), cl::sub(compile),
             cl::values(clEnumValN(FallbackChoice::plain, "", "the last one, which is right for all launches"),
                        clEnumValN(FallbackChoice::plain, "plain", "the same"),
                        clEnumValN(FallbackChoice::repack, "repack",
                                   "the first one, which copies operands at odd pitches, if there is one"),
                        clEnumValN(FallbackChoice::bare, "no-workspace",
                                   "the one that needs no workspace but for what the spec gives")));
cl::opt<bool> timing("timing", cl::desc("Print the milliseconds of each step to standard error"), cl::sub(compile));

/// Prints how long the steps took.
class Timer {
public:
  void step(StringRef name) {
    auto now = Clock::now();
    if (timing)
      errs() << format("%-8s %8.3f ms\n", name.str().c_str(),
                       std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
};

/// Passes' texts: printed as asked, the last one before lowering kept.
struct Listener {
  std::string tile;
  std::vector<std::string> names;
  bool sawLowering = false, printed = false;

  void operator()(StringRef pass, StringRef text) {
    names.push_back(pass.str());
    sawLowering |= pass == "lower";
    if (!sawLowering)
      tile = text.str();
    if (printAfter == "all" || printAfter == pass) {
      errs() << (sawLowering ? "//" : "#") << " after " << pass << "\n" << text << "\n"; // a comment of tile IR, of PTX
      printed = true;
    }
  }
};

/// The launch information as plain YAML.
std::string launchText(const ptx::LaunchInfo &info) {
  std::string text;
  for (StringRef line : ptx::toHeader(info)) {
    line.consume_front("!");
    line.consume_front(" ");
    text += line.str() + "\n";
  }
  return text;
}

int writeCubin(const Compiled &compiled, Diags &diags) {
  auto assembled = assemblePtx(compiled.ptx);
  if (!assembled)
    return finishWith(assembled.failure(), diags);
  for (const std::string &line : assembled->report.advisories)
    diags.report(Diag::runtime_hint, {}, line);
  writeFile(output, StringRef(assembled->cubin.data(), assembled->cubin.size()), diags);
  return finish(diags);
}

int run() {
  Diags diags;
  Timer timer;
  if (emit != Emit::plan && !output.empty() && sys::fs::equivalent(output, input.path())) {
    diags.report(Diag::file_is_input, {}, output.getValue());
    return finish(diags);
  }
  std::optional<Spec> spec = input.read(diags);
  if (!spec || (!templates.empty() && !ptx::setTemplateDirectory(templates, diags)))
    return finish(diags);
  timer.step("read");
  std::optional<Plan> plan = planOf(*spec, fallback, tuning, diags);
  if (!plan)
    return finish(diags);
  timer.step("plan");
  if (emit == Emit::plan) {
    writeFile(output, printSpec(plan->spec, true), diags);
    return finish(diags);
  }
  Listener listener;
  CompileOptions options;
  options.verifyEach = verifyEach;
  options.file = input.source();
  if (emit == Emit::tile || printAfter.getNumOccurrences())
    options.afterPass = std::ref(listener);
  auto compiled = compilePlan(*plan, diags, options);
  if (!compiled)
    return finish(diags);
  timer.step("compile");
  if (printAfter.getNumOccurrences() && !listener.printed) {
    diags.report(Diag::tile_unknown_pass, {}, printAfter.getValue(), join(listener.names, ", ") + ", all");
    return finish(diags);
  }
  if (emit == Emit::cubin)
    return writeCubin(*compiled, diags);
  std::string text = emit == Emit::tile     ? listener.tile
                     : emit == Emit::launch ? launchText(compiled->launch)
                                            : compiled->ptx;
  writeFile(output, text, diags);
  timer.step("write");
  return finish(diags);
}
Command command(compile, run);
} // namespace
} // namespace gemmc::tool::compile_cpp
