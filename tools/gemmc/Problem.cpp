#include "Problem.h"
#include "Stop.h"
#include "gemmc/Plan/Analysis.h"
#include "gemmc/Plan/Typical.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <condition_variable>
#include <cstdlib>
#include <thread>

using namespace llvm;

namespace gemmc::tool {
namespace {
template <typename Option> auto given(const Option &option) {
  return option.getNumOccurrences() ? std::optional(option.getValue()) : std::nullopt;
}
run::Code codeOf(Compiled compiled) { return {std::move(compiled.ptx), std::move(compiled.launch)}; }
} // namespace

ProblemInput::ProblemInput(cl::SubCommand &sub, run::InputKind defaultKind, bool mayBeInPlace)
    : m("m", cl::desc("Rows of D"), cl::sub(sub)), n("n", cl::desc("Columns of D"), cl::sub(sub)),
      k("k", cl::desc("Columns of A, rows of B"), cl::sub(sub)),
      batch("batch", cl::desc("Products of a batch"), cl::sub(sub)),
      lda("lda", cl::desc("Leading dimension of A, in elements (default: packed)"), cl::sub(sub)),
      ldb("ldb", cl::desc("Leading dimension of B"), cl::sub(sub)),
      ldc("ldc", cl::desc("Leading dimension of C"), cl::sub(sub)),
      ldd("ldd", cl::desc("Leading dimension of D"), cl::sub(sub)),
      strideA("stride-a", cl::desc("Elements from one product's A to the next one's (default: they lie end to end)"),
              cl::sub(sub)),
      strideB("stride-b", cl::desc("The same of B"), cl::sub(sub)),
      strideC("stride-c", cl::desc("The same of C"), cl::sub(sub)),
      strideD("stride-d", cl::desc("The same of D"), cl::sub(sub)),
      alpha("alpha", cl::desc("Factor of the product (default: 1)"), cl::sub(sub)),
      beta("beta", cl::desc("Factor of C (default: 0)"), cl::sub(sub)),
      seed("seed", cl::desc("Of the random inputs"), cl::init(1), cl::sub(sub)),
      misalign("misalign", cl::desc("Bytes that all matrices start behind a multiple of 256"), cl::init(0),
               cl::sub(sub)),
      kind(
          "input",
          cl::desc(defaultKind == run::InputKind::integer ? "Inputs (default: integer):" : "Inputs (default: normal):"),
          cl::init(defaultKind), cl::sub(sub),
          cl::values(
              clEnumValN(run::InputKind::normal, "normal", "random normal numbers, checked within an error bound"),
              clEnumValN(run::InputKind::integer, "integer", "small integers, checked bit for bit"),
              clEnumValN(run::InputKind::special, "special", "normal with NaN, infinities and subnormals"))) {
  if (mayBeInPlace)
    inPlace.emplace("in-place", cl::desc("C and D share memory"), cl::sub(sub));
}

run::ProblemOptions ProblemInput::get() const {
  run::ProblemOptions options;
  options.m = given(m), options.n = given(n), options.k = given(k), options.batch = given(batch);
  options.lda = given(lda), options.ldb = given(ldb), options.ldc = given(ldc), options.ldd = given(ldd);
  options.strideA = given(strideA), options.strideB = given(strideB);
  options.strideC = given(strideC), options.strideD = given(strideD);
  options.alpha = given(alpha), options.beta = given(beta);
  options.seed = seed;
  options.misalign = misalign;
  options.kind = kind;
  options.inPlace = inPlace && *inPlace;
  return options;
}

StringRef ProblemInput::firstGiven() const {
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &m, &n, &k, &batch, &lda, &ldb, &ldc, &ldd, &strideA, &strideB, &strideC, &strideD, &alpha, &beta, &seed,
           &misalign, &kind, inPlace ? &*inPlace : nullptr})
    if (option && option->getNumOccurrences())
      return option->ArgStr;
  return "";
}

KernelInput::KernelInput(cl::SubCommand &sub) : input(sub), tuning(sub) {}

/// The lines of a file as the header of a module has them.
static std::vector<std::string> headerFrom(StringRef text) {
  std::vector<std::string> lines;
  SmallVector<StringRef> split;
  text.rtrim().split(split, '\n');
  for (StringRef line : split)
    lines.push_back(("! " + line).str());
  return lines;
}

/// A module that says itself how it is launched, or in `launchFile`. What the instruction table forbids is said here,
/// with its place, and not when a warp comes to it.
static std::optional<run::Code> codeFrom(StringRef ptxFile, StringRef launchFile, Diags &diags) {
  auto text = readCode(ptxFile, diags);
  auto module = text ? ptx::parse(*text, diags) : std::nullopt;
  if (module && !launchFile.empty()) {
    auto launch = readFile(launchFile, diags);
    if (!launch)
      return std::nullopt;
    module->header = headerFrom(*launch);
  }
  bool good = module && ptx::verifyProgram(*module, diags, *text);
  StringRef says = launchFile.empty() ? ptxFile : "launch information"; // who has the block at these places
  auto info = good ? ptx::fromHeader(*module, diags, says) : std::nullopt;
  if (!info || diags.hasErrors())
    return std::nullopt;
  return run::Code{text->str(), std::move(*info)};
}

bool KernelInput::allUsed(StringRef launchFile, Diags &diags) const {
  const bool ptx = input.path().ends_with(".ptx");
  if (ptx && !input.words().empty())
    diags.report(Diag::option_useless, {}, "--set", "PTX is compiled already; give the spec that it came from");
  if (!ptx && !launchFile.empty())
    diags.report(Diag::option_useless, {}, "--launch", "a spec says how its kernel is launched; it is for a .ptx file");
  return !diags.hasErrors();
}

std::optional<run::Code> KernelInput::compile(Diags &diags, StringRef launchFile) {
  if (input.path().ends_with(".ptx"))
    return codeFrom(input.path(), launchFile, diags);
  spec = input.read(diags);
  return spec ? compileChosen(*spec, diags) : std::nullopt;
}

std::optional<Plan> KernelInput::choose(const Spec &spec, Diags &diags) const {
  tune::ChooseOptions choice = tuning.get();
  if (choice.device.empty())
    choice.device = deviceName;
  return tune::choosePlan(spec, choice, diags);
}

std::optional<run::Code> KernelInput::compileChosen(const Spec &spec, Diags &diags) const {
  auto plan = choose(spec, diags);
  auto compiled = plan ? compilePlan(*plan, diags, options()) : std::nullopt;
  return compiled ? std::optional(codeOf(std::move(*compiled))) : std::nullopt;
}

std::vector<run::Rival> KernelInput::compileNext(const Spec &spec, unsigned count) const {
  Diags scratch;
  std::vector<run::Rival> out;
  auto plan = count ? choose(spec, scratch) : std::nullopt;
  if (!plan)
    return out;
  for (const Alternative &other : othersThan(*plan, spec, count)) {
    if (stopWanted())
      break;
    if (auto compiled = compileChoice(spec, other.choice))
      out.push_back({other.choice, codeOf(std::move(*compiled)), /*optional=*/true});
  }
  return out;
}

std::vector<run::Rival> KernelInput::compileNext(unsigned count) const {
  return spec ? compileNext(*spec, count) : std::vector<run::Rival>();
}

CompileOptions KernelInput::options() const {
  CompileOptions options;
  options.file = input.source();
  return options;
}

std::optional<run::Code> KernelInput::compileFallback(Fallback kind, Diags &diags) const {
  auto compiled = spec ? gemmc::compileFallback(*spec, kind, diags, options()) : std::nullopt;
  return compiled ? std::optional(codeOf(std::move(*compiled))) : std::nullopt;
}

std::optional<run::Code> KernelInput::compileVariant(StringRef words, Diags &diags) const {
  if (words.ends_with(".ptx") && !words.contains('='))
    return codeFrom(words, "", diags);
  auto variant = input.readVariant(words, diags);
  return variant ? compileChosen(*variant, diags) : std::nullopt;
}

void warnOfOtherSizes(const Spec &spec, const run::ProblemOptions &sizes, Diags &diags) {
  if (std::string others = typicalFor(spec, {sizes.m, sizes.n, sizes.k}); !others.empty())
    diags.report(Diag::bench_other_sizes, {}, assumedSizes(spec), others);
}

int finishWith(const Failure &failure, Diags &diags) {
  failure.report(diags);
  finish(diags);
  if (failure.id == Diag::device_endless) { // the driver's own end would wait for the kernel
    outs().flush();
    std::_Exit(No);
  }
  if (failure.contextDead || failure.id == Diag::bench_wrong)
    return No;
  switch (failure.id) {
  case Diag::driver_missing:
  case Diag::driver_incomplete:
  case Diag::driver_failed:
  case Diag::device_missing:
  case Diag::device_too_old:
  case Diag::device_target:
  case Diag::device_shared:
  case Diag::ptxas_missing:
    return NotHere;
  case Diag::ptx_rejected:
  case Diag::ptxas_failed:
  case Diag::ptxas_crashed:
  case Diag::ptxas_limit:
  case Diag::measuring_stopped:
    return No;
  default:
    return BadInput;
  }
}

void writeTimeline(const emu::Timeline &timeline, StringRef file, Diags &diags) {
  if (file.empty())
    return;
  if (wasRead(file)) {
    diags.report(Diag::file_is_input, {}, file);
    return;
  }
  std::string text;
  raw_string_ostream os(text);
  timeline.write(os);
  writeFile(file, text, diags);
  if (!timeline.complete())
    diags.report(
        Diag::runtime_hint, {},
        formatv("the timeline has its first {0} spans, later ones are left out", emu::Timeline::maxSpans).str());
}

struct Progress::State {
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  std::thread thread;
};

Progress::Progress(std::string what) {
  if (!sys::Process::StandardErrIsDisplayed())
    return;
  state = std::make_unique<State>();
  state->thread = std::thread([state = state.get(), what = std::move(what)] {
    std::unique_lock<std::mutex> lock(state->mutex);
    int seconds = 2;
    for (auto wait = std::chrono::seconds(2); !state->done.wait_for(lock, wait, [&] { return state->finished; });
         wait = std::chrono::seconds(1))
      errs() << "\r" << what << ": " << seconds++ << " s";
    if (seconds > 2)
      errs() << "\r\033[K";
  });
}

Progress::~Progress() {
  if (!state)
    return;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->finished = true;
  }
  state->done.notify_one();
  state->thread.join();
}

} // namespace gemmc::tool
