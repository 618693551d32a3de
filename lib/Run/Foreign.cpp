#include "gemmc/Run/Foreign.h"
#include "Once.h"
#include "Sample.h"
#include "gemmc/Run/Verify.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using llvm::formatv;

namespace gemmc::run {
namespace {
using ptx::Type;

bool isSigned(Type type) { return type >= Type::s8 && type <= Type::s64; }
Elem elemOf(Type type) { return *parseElem(ptx::nameOf(type)); }

/// Elements of a buffer as numbers.
class Elements {
public:
  Elements(const ForeignBuffer &buffer, std::byte *data) : buffer(buffer), data(data), width(buffer.width()) {}

  uint64_t bits(uint64_t i) const {
    uint64_t value = 0;
    std::memcpy(&value, data + i * width, width);
    return value;
  }
  int64_t integer(uint64_t i) const {
    unsigned unused = 64 - 8 * width;
    return isSigned(buffer.type) ? static_cast<int64_t>(bits(i) << unused) >> unused : static_cast<int64_t>(bits(i));
  }
  double number(uint64_t i) const {
    if (buffer.isFloat())
      return decode(elemOf(buffer.type), bits(i));
    return isSigned(buffer.type) ? double(integer(i)) : double(bits(i));
  }
  void set(uint64_t i, int64_t value) {
    uint64_t made = buffer.isFloat() ? encode(elemOf(buffer.type), double(value)) : static_cast<uint64_t>(value);
    std::memcpy(data + i * width, &made, width);
  }
  void setNumber(uint64_t i, double value) {
    if (!buffer.isFloat())
      return set(i, static_cast<int64_t>(value));
    uint64_t made = encode(elemOf(buffer.type), value);
    std::memcpy(data + i * width, &made, width);
  }
  /// `1.5`, `-3`.
  std::string text(uint64_t i) const {
    if (buffer.isFloat())
      return formatNumber(number(i));
    return isSigned(buffer.type) ? std::to_string(integer(i)) : std::to_string(bits(i));
  }
  static std::string formatNumber(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", value);
    return text;
  }

private:
  const ForeignBuffer &buffer;
  std::byte *data;
  unsigned width;
};

void fill(const ForeignBuffer &buffer, std::byte *data) {
  Elements elements(buffer, data);
  Random random(buffer.seed);
  std::memset(data, buffer.fill == ForeignBuffer::nan ? 0xff : 0, buffer.bytes());
  for (uint64_t i = 0; i < buffer.count; ++i)
    switch (buffer.fill) {
    case ForeignBuffer::zero:
    case ForeignBuffer::nan:
      return;
    case ForeignBuffer::random:
      if (buffer.isFloat())
        elements.setNumber(i, random.normal());
      else
        elements.set(i, static_cast<int64_t>(random.next()));
      break;
    case ForeignBuffer::integer: // unsigned ones from 0
      elements.set(i, int64_t(random.below(9)) - (buffer.isFloat() || isSigned(buffer.type) ? 4 : 0));
      break;
    case ForeignBuffer::formula:
      elements.set(i, *elementOf(buffer.value, i, buffer.count));
      break;
    case ForeignBuffer::listed:
      elements.setNumber(i, buffer.values[i % buffer.values.size()]);
      break;
    }
}

/// One launch: memory, arguments, results.
class Session {
public:
  Session(const ptx::Module &module, const ForeignLaunch &launch) : module(module), launch(launch) {
    for (const ForeignBuffer &buffer : launch.buffers) {
      addresses.push_back(buffer.aliasOf ? memory.alias(addresses[*buffer.aliasOf]) : memory.allocate(buffer.bytes()));
      if (!buffer.aliasOf)
        fill(buffer, at(addresses.size() - 1));
      before.emplace_back(at(addresses.size() - 1), at(addresses.size() - 1) + buffer.bytes());
    }
  }

  emu::Result run(const emu::Options &options);
  /// A line for each expectation; `wrong` is set when one is not met.
  std::vector<std::string> verify(bool &wrong);
  std::vector<std::string> print();

private:
  std::byte *at(uint32_t buffer) { return memory.find(addresses[buffer], launch.buffers[buffer].bytes()); }
  std::vector<std::byte> parameters();
  std::vector<std::byte> bytesOf(const ForeignArg &arg);
  std::string compare(const ForeignExpect &expect, bool &wrong);
  std::string gemm(const ForeignExpect &expect, bool &wrong);
  HostMatrix matrix(const ForeignExpect::Matrix &of, int64_t rows, int64_t cols, const std::byte *data);

  const ptx::Module &module;
  const ForeignLaunch &launch;
  emu::Memory memory;
  std::vector<uint64_t> addresses;
  std::vector<std::vector<std::byte>> before; ///< What the buffers held.
};

/// An argument with its addresses.
std::vector<std::byte> Session::bytesOf(const ForeignArg &arg) {
  std::vector<std::byte> bytes = arg.bytes;
  auto put = [&](uint32_t at, uint64_t address) { std::memcpy(bytes.data() + at, &address, sizeof(address)); };
  for (const ForeignArg::Pointer &pointer : arg.pointers)
    put(pointer.at, addresses[pointer.buffer] + pointer.offset);
  for (const ForeignArg::Map &map : arg.maps) {
    emu::TensorMapValues values = map.values;
    values.address = addresses[map.buffer] + map.offset;
    auto encoded = emu::encodeTensorMap(values);
    std::memcpy(bytes.data() + map.at, encoded.bytes.data(), encoded.bytes.size());
  }
  for (const ForeignArg::InMemory &one : arg.inMemory) {
    std::vector<std::byte> copy = bytesOf(one.what);
    uint64_t address = memory.allocate(copy.size());
    std::memcpy(memory.find(address, copy.size()), copy.data(), copy.size());
    put(one.at, address);
  }
  return bytes;
}

/// The parameter block as the entry declares it.
std::vector<std::byte> Session::parameters() {
  std::vector<std::byte> block;
  const ptx::Function &entry = *module.find(launch.kernel);
  for (auto [arg, param] : llvm::zip(launch.args, entry.params)) {
    size_t align = param.alignment();
    size_t start = (block.size() + align - 1) / align * align;
    block.resize(start);
    std::vector<std::byte> bytes = bytesOf(arg);
    block.insert(block.end(), bytes.begin(), bytes.end());
  }
  return block;
}

emu::Result Session::run(const emu::Options &options) {
  emu::LaunchParams params;
  params.grid = launch.grid;
  params.block = launch.block;
  params.cluster = launch.cluster;
  params.dynamicShared = launch.shared;
  params.params = parameters();
  return emu::Kernel::load(module, launch.kernel)->launch(params, memory, options);
}

HostMatrix Session::matrix(const ForeignExpect::Matrix &of, int64_t rows, int64_t cols, const std::byte *data) {
  HostMatrix made;
  const ForeignBuffer &buffer = launch.buffers[of.buffer];
  made.name = buffer.name;
  made.type = elemOf(buffer.type);
  made.order = of.order;
  made.rows = rows, made.cols = cols;
  made.ld = of.ld.value_or(of.order == Order::row ? cols : rows);
  made.data.assign(data, data + *matrixBytes(made.type, made.order, rows, cols, made.ld));
  return made;
}

std::string Session::gemm(const ForeignExpect &expect, bool &wrong) {
  GemmProblem problem;
  problem.args.m = expect.m, problem.args.n = expect.n, problem.args.k = expect.k;
  problem.args.alpha = factorBeside(expect.accumulator, expect.alpha);
  problem.args.beta = factorBeside(expect.accumulator, expect.beta);
  problem.accumulator = expect.accumulator;
  problem.exact = expect.exact;
  problem.randomSigns = false; // nobody knows
  problem.exactResult = expect.exact;
  problem.a = matrix(expect.a, expect.m, expect.k, before[expect.a.buffer].data());
  problem.b = matrix(expect.b, expect.k, expect.n, before[expect.b.buffer].data());
  if (expect.beta != 0)
    problem.c = matrix(expect.c, expect.m, expect.n, before[expect.c.buffer].data());
  problem.d = matrix(expect.d, expect.m, expect.n, before[expect.d.buffer].data());
  HostMatrix result = matrix(expect.d, expect.m, expect.n, at(expect.d.buffer));
  Verification verification = run::verify(Reference(problem), result);
  wrong |= !verification.ok;
  return formatv("gemm `{0}`: {1}", result.name, verification.str());
}

std::string Session::compare(const ForeignExpect &expect, bool &wrong) {
  const ForeignBuffer &buffer = launch.buffers[expect.buffer];
  Elements elements(buffer, at(expect.buffer));
  uint64_t bad = 0;
  std::string first;
  for (uint64_t n = 0; n < expect.count; ++n) {
    uint64_t i = expect.from + n;
    double wanted = 0;
    if (expect.kind == ForeignExpect::Values)
      wanted = expect.values[n % expect.values.size()];
    else if (expect.kind == ForeignExpect::Same)
      wanted = Elements(launch.buffers[expect.other], at(expect.other)).number(i);
    else
      wanted = double(*elementOf(expect.value, i, buffer.count));
    double got = elements.number(i);
    bool good = got == wanted || (std::isnan(got) && std::isnan(wanted)) ||
                std::fabs(got - wanted) <= expect.tolerance * std::max(1.0, std::fabs(wanted));
    if (!good && !bad++)
      first = formatv("; first {0}[{1}] = {2}, expected {3}", buffer.name, i, elements.text(i),
                      Elements::formatNumber(wanted));
  }
  wrong |= bad != 0;
  if (bad)
    return formatv("`{0}`: NOT verified: {1} of {2} elements are wrong{3}", buffer.name, bad, expect.count, first);
  return formatv("`{0}`: verified: {1} elements", buffer.name, expect.count);
}

std::vector<std::string> Session::verify(bool &wrong) {
  std::vector<std::string> lines;
  for (const ForeignExpect &expect : launch.expect)
    lines.push_back(expect.kind == ForeignExpect::Gemm ? gemm(expect, wrong) : compare(expect, wrong));
  return lines;
}

std::vector<std::string> Session::print() {
  std::vector<std::string> lines;
  for (const ForeignPrint &print : launch.print) {
    const ForeignBuffer &buffer = launch.buffers[print.buffer];
    Elements elements(buffer, at(print.buffer));
    std::string line = formatv("{0}[{1}..{2}]:", buffer.name, print.from, print.from + print.count - 1);
    for (uint64_t i = 0; i < print.count; ++i)
      line += " " + elements.text(print.from + i);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// What `clean` says nothing of.
std::string remarkOn(const std::map<uint32_t, std::string> &idle) {
  constexpr size_t mostListed = 6;
  std::string list;
  size_t listed = 0;
  for (const auto &[line, mnemonic] : idle)
    if (listed++ < mostListed)
      list += formatv("{0}`{1}` (ptx {2})", list.empty() ? "" : ", ", mnemonic, line);
  return formatv("never executed, so that nothing is known of {0}: {1}{2}", idle.size() == 1 ? "it" : "them", list,
                 idle.size() > mostListed ? formatv(" and {0} more", idle.size() - mostListed).str() : "");
}
} // namespace

std::optional<int64_t> elementOf(const Expr &formula, uint64_t i, uint64_t size) {
  return formula.eval([&](llvm::StringRef name) -> std::optional<int64_t> { return name == "i" ? i : size; });
}

ForeignReport runForeign(const ptx::Module &module, const ForeignLaunch &launch, const CheckRequest &request) {
  ForeignReport report;
  CheckReport &check = report.check;
  Once seen;
  std::map<uint32_t, std::string> idle;
  auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < std::max(1u, request.schedules); ++i) {
    emu::Options options;
    options.threads = request.run.threads;
    options.timeline = i ? nullptr : request.timeline;
    options.maxSteps = request.run.maxInstructions;
    if (request.schedules)
      options.check = optionsOf(i, request);
    check.clustersTotal = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2] /
                          (launch.cluster[0] * launch.cluster[1] * launch.cluster[2]);
    uint64_t wanted = request.run.ctas.value_or(0);
    bool sampled = wanted && wanted < check.clustersTotal;
    if (sampled)
      options.clusters = sampleOf(check.clustersTotal, wanted, 1);
    check.clustersRun = sampled ? options.clusters.size() : check.clustersTotal;
    Session session(module, launch);
    emu::Result result = session.run(options);
    std::string schedule = scheduleName(options.check);
    check.schedules.push_back(schedule);
    if (!i)
      idle = std::move(result.idle);
    else
      std::erase_if(idle, [&](const auto &one) { return !result.idle.count(one.first); });
    check.verdict = emu::worse(check.verdict, result.verdict);
    for (const emu::Finding &finding : result.findings)
      if (seen.isNew(finding))
        check.findings.push_back({finding, schedule});
    bool ended = result.verdict == emu::Verdict::error || result.verdict == emu::Verdict::incomplete;
    bool wrong = false;
    std::vector<std::string> lines;
    if (sampled && !launch.expect.empty() && !i)
      check.remarks.push_back("a sample of the clusters ran: what the launch file expects is not verified");
    else if (!sampled)
      lines = session.verify(wrong);
    if (wrong && !ended && !report.wrong) {
      CheckFinding found;
      found.schedule = schedule;
      found.finding.code = "value";
      found.finding.message = lines.front();
      for (const std::string &line : lines)
        if (llvm::StringRef(line).contains("NOT verified"))
          found.finding.message = line;
      check.findings.push_back(std::move(found));
      check.verdict = emu::worse(check.verdict, emu::Verdict::error);
    }
    if (wrong && ended && !report.wrong)
      check.remarks.push_back("errors and limits may end a launch early: what is NOT verified may only be missing");
    report.wrong |= wrong;
    if (!i) {
      report.results = std::move(lines);
      llvm::append_range(report.results, session.print());
    }
    if (isEnough(check, request))
      break;
  }
  if (!idle.empty() && check.verdict != emu::Verdict::error && check.verdict != emu::Verdict::incomplete)
    check.remarks.push_back(remarkOn(idle));
  check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

} // namespace gemmc::run
