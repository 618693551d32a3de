#include "FindingText.h"
#include "gemmc/Run/Bench.h"
#include "gemmc/Run/Harness.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc::run {
namespace {
/// `m x n x k`, `16 of m x n x k`
std::string shapeOf(const LaunchArgs &args) {
  const std::string products = args.batch == 1 ? "" : std::to_string(args.batch) + " of ";
  return products + llvm::formatv("{0} x {1} x {2}", args.m, args.n, args.k).str();
}

std::string typesOf(const ptx::LaunchInfo &info, bool withC) {
  auto one = [](const ptx::OperandInfo &operand) {
    return llvm::formatv("{0} {1}", nameOf(operand.type), nameOf(operand.order)).str();
  };
  std::string c = withC ? "c " + one(info.c) + ", " : std::string();
  return llvm::formatv("a {0}, b {1}, {2}d {3}, accumulator {4}", one(info.a), one(info.b), c, one(info.d),
                       nameOf(info.accumulator))
      .str();
}

std::string timeOf(double seconds) {
  const char *unit = "s";
  if (seconds < 1e-3) {
    seconds *= 1e6;
    unit = "us";
  } else if (seconds < 1) {
    seconds *= 1e3;
    unit = "ms";
  }
  std::string out;
  llvm::raw_string_ostream(out) << llvm::format("%.4g ", seconds) << unit;
  return out;
}

double flopsOf(const LaunchArgs &args) {
  return 2.0 * double(args.batch) * double(args.m) * double(args.n) * double(args.k);
}

/// Bank conflicts of shared memory that are worth a word: one for ten instructions and more. Empty on a GPU, which
/// counts none.
std::string conflictsOf(const emu::Stats &stats) {
  constexpr uint64_t tenth = 10;
  const uint64_t all = stats.loads.bankConflicts + stats.stores.bankConflicts + stats.atomics.bankConflicts;
  if (all == 0 || all * tenth < stats.warpInstructions)
    return "";
  auto fewer = [](const emu::Traffic &a, const emu::Traffic &b) { return a.bankConflicts < b.bankConflicts; };
  const auto most = llvm::max_element(stats.lines, fewer);
  return llvm::formatv(
             "{0} conflicts beside {1} instructions, most of them, {2}, of line {3} of the PTX text (`--json` "
             "has each line)",
             all, stats.warpInstructions, most->bankConflicts, most - stats.lines.begin())
      .str();
}
} // namespace

void RunReport::printTable(llvm::raw_ostream &os) const {
  auto line = [&](llvm::StringRef key, const llvm::Twine &value) {
    os << llvm::left_justify(key, 10) << value << "\n";
  };
  line("shape", shapeOf(args));
  line("types", typesOf(info, args.beta != 0));
  line("where", where);
  if (!launched)
    line("time", "nothing to launch");
  else if (launch.sampled)
    line("time",
         llvm::formatv("{0} for {1} of {2} clusters", timeOf(launch.seconds), launch.clustersRun, launch.clustersTotal)
             .str());
  else if (launch.seconds > 0 && launch.clustersTotal == 0 && args.k > 0) // a GPU: its rate is worth a word
    line("time",
         llvm::formatv("{0} ({1:f1} TFLOP/s)", timeOf(launch.seconds), flopsOf(args) / launch.seconds / 1e12).str());
  else if (launch.seconds > 0)
    line("time", timeOf(launch.seconds));
  if (launch.loadSeconds > 0)
    line("start", "verified after " + timeOf(totalSeconds) + ": device opened in " + timeOf(deviceSeconds) +
                      ", meanwhile compiled in " + timeOf(compileSeconds) + ", waited " + timeOf(assembleSeconds) +
                      " for ptxas, inputs made in " + timeOf(inputSeconds) + ", loaded in " +
                      timeOf(launch.loadSeconds) + ", first launch in " + timeOf(launch.firstSeconds) +
                      ", verified in " + timeOf(verifySeconds));
  if (launch.stressed)
    line("stress", launch.different ? llvm::formatv("{0} of {1} launches under load gave other bits than the first",
                                                    launch.different, launch.stressed)
                                          .str()
                                    : llvm::formatv("{0} launches under load, all bits equal", launch.stressed).str());
  if (std::string conflicts = conflictsOf(launch.stats); !conflicts.empty())
    line("banks", conflicts);
  if (!fallback.empty())
    line("kernel", "fallback, because `" + fallback + "` does not hold");
  for (const std::string &remark : remarks)
    line("note", remark);
  line("inputs", nameOf(kind));
  line("verified", verification.ok ? "yes: " + verification.how : "no");
  if (!ok())
    os << verification.str() << "\n";
  for (const std::string &finding : launch.findings)
    os << finding << "\n";
  for (const emu::Finding &finding : launch.witnesses)
    if (std::string spec = specPlaceOf(finding, info).str(); !spec.empty())
      os << "spec: " << spec << "\n";
}

namespace {
void write(llvm::json::OStream &json, llvm::StringRef name, const emu::Traffic &traffic) {
  json.attributeObject(name, [&] {
    json.attribute("bank_conflicts", int64_t(traffic.bankConflicts));
    json.attribute("sectors", int64_t(traffic.sectors));
    json.attribute("parts_of_sectors", int64_t(traffic.parts));
  });
}
/// Those that cost something, by their line in the PTX text.
void writeLines(llvm::json::OStream &json, llvm::ArrayRef<emu::Traffic> lines) {
  json.attributeArray("instructions", [&] {
    for (size_t line = 0; line < lines.size(); ++line)
      if (lines[line].bankConflicts || lines[line].sectors)
        json.object([&] {
          json.attribute("line", int64_t(line));
          json.attribute("bank_conflicts", int64_t(lines[line].bankConflicts));
          json.attribute("sectors", int64_t(lines[line].sectors));
        });
  });
}
} // namespace

void RunReport::printJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("m", args.m);
    json.attribute("n", args.n);
    json.attribute("k", args.k);
    if (args.batch != 1)
      json.attribute("products", args.batch);
    json.attribute("types", typesOf(info, args.beta != 0));
    json.attribute("where", where);
    json.attribute("kernel", info.kernels.empty() ? "" : info.kernels.front().name);
    json.attribute("fallback", fallback);
    json.attribute("inputs", nameOf(kind));
    json.attribute("runs", int64_t(runs));
    json.attribute("seconds", launch.seconds);
    json.attributeObject("start", [&] {
      json.attribute("compile_ms", compileSeconds * 1e3);
      json.attribute("device_ms", deviceSeconds * 1e3);
      json.attribute("assemble_wait_ms", assembleSeconds * 1e3);
      json.attribute("inputs_ms", inputSeconds * 1e3);
      json.attribute("load_ms", launch.loadSeconds * 1e3);
      json.attribute("first_launch_ms", launch.firstSeconds * 1e3);
      json.attribute("verify_ms", verifySeconds * 1e3);
      // From the spec to a kernel that can be launched, without what the driver takes to open the device.
      json.attribute("host_ms", (compileSeconds + assembleSeconds + launch.loadSeconds) * 1e3);
      json.attribute("verified_after_ms", totalSeconds * 1e3);
    });
    json.attribute("stressed", int64_t(launch.stressed));
    json.attribute("different", int64_t(launch.different));
    json.attribute("clusters_run", int64_t(launch.clustersRun));
    json.attribute("clusters_total", int64_t(launch.clustersTotal));
    if (launch.stats.warpInstructions) { // the emulator counts, a GPU does not
      json.attribute("warp_instructions", int64_t(launch.stats.warpInstructions));
      write(json, "loads", launch.stats.loads);
      write(json, "stores", launch.stats.stores);
      write(json, "copies", launch.stats.copies);
      write(json, "atomics", launch.stats.atomics);
      writeLines(json, launch.stats.lines);
    }
    if (!launch.sampled) // of a whole D: bits to compare with another device's
      json.attribute("d_hash", llvm::utohexstr(dHash, true));
    json.attribute("verified", ok());
    json.attribute("verification", verification.str());
    json.attributeArray("notes", [&] {
      for (const std::string &remark : remarks)
        json.value(remark);
    });
    json.attributeArray("findings", [&] {
      for (const std::string &finding : launch.findings)
        json.value(finding);
    });
    json.attributeArray("witnesses", [&] {
      for (const emu::Finding &finding : launch.witnesses)
        json.value(toJson(finding, info));
    });
  });
  os << "\n";
}

void BenchReport::printTable(llvm::raw_ostream &os) const {
  os << llvm::formatv(
      "{0}, {1}\n{2}: medians of {3} rounds{4} over {5} buffer sets{6}\n", shapeOf(args), typesOf(info, args.beta != 0),
      device, rounds, turnSeconds > 0 ? llvm::formatv(" of {0:f2} s turns", turnSeconds).str() : "", sets,
      batch > 1 ? llvm::formatv(", {0} launches a timing{1}", batch, graphs ? " (graph)" : "").str() : "");
  size_t width = 36;
  for (const BenchEntry &entry : also)
    width = std::max(width, entry.name.size() + 1);
  auto row = [&](const BenchEntry &entry) {
    os << llvm::left_justify(entry.name, width) << llvm::right_justify(timeOf(entry.median), 12)
       << llvm::format("%10.1f TFLOP/s", entry.flops / 1e12) << "   (" << timeOf(entry.best) << " to "
       << timeOf(entry.worst) << ")";
    if (auto value = also.empty() ? std::nullopt : ratioOf(entry))
      os << llvm::format("%8.3f", *value);
    os << "\n";
  };
  row(ours);
  for (const BenchEntry &entry : also)
    row(entry);
  for (const BenchEntry &entry : cublas)
    row(entry);
  if (auto value = ratio())
    os << llvm::format("ratio to the best of %u cuBLASLt algorithms: %.3f", algorithms, *value);
  if (auto value = ratioToFirst())
    os << llvm::format(", to its first choice: %.3f", *value);
  if (ratio())
    os << "\n";
  os << "host time of a launch: " << timeOf(hostSeconds) << "\n";
  if (verified)
    os << llvm::formatv("verified: {0} result{1}, {2}\n", verified, verified == 1 ? "" : "s each", verification);
  for (const std::string &remark : remarks)
    os << "note: " << remark << "\n";
}

void BenchReport::printJson(llvm::raw_ostream &os, unsigned indent) const {
  llvm::json::OStream json(os, indent);
  auto entry = [&](const BenchEntry &value) {
    json.object([&] {
      json.attribute("name", value.name);
      json.attribute("median_us", value.median * 1e6);
      json.attribute("best_us", value.best * 1e6);
      json.attribute("worst_us", value.worst * 1e6);
      json.attribute("tflops", value.flops / 1e12);
    });
  };
  json.object([&] {
    json.attribute("m", args.m);
    json.attribute("n", args.n);
    json.attribute("k", args.k);
    if (args.batch != 1)
      json.attribute("products", args.batch);
    json.attribute("types", typesOf(info, args.beta != 0));
    json.attribute("device", device);
    json.attribute("rounds", int64_t(rounds));
    json.attribute("turn_s", turnSeconds);
    json.attribute("sets", int64_t(sets));
    json.attribute("batch", int64_t(batch));
    json.attribute("graphs", graphs);
    json.attribute("algorithms", int64_t(algorithms));
    json.attributeBegin("gemmc");
    entry(ours);
    json.attributeEnd();
    json.attributeArray("also", [&] {
      for (const BenchEntry &value : also)
        entry(value);
    });
    json.attributeArray("cublaslt", [&] {
      for (const BenchEntry &value : cublas)
        entry(value);
    });
    if (auto value = ratio())
      json.attribute("ratio", *value);
    if (auto value = ratioToFirst())
      json.attribute("ratio_to_first", *value);
    json.attribute("host_us", hostSeconds * 1e6);
    json.attributeObject("spent_ms", [&] {
      json.attribute("inputs", spent.inputs * 1e3);
      json.attribute("load", spent.load * 1e3);
      json.attribute("cublaslt", spent.cublas * 1e3);
      json.attribute("verify", spent.verify * 1e3);
      json.attribute("warm_up", spent.warmUp * 1e3);
      json.attribute("host_cost", spent.hostCost * 1e3);
      json.attribute("rounds", spent.rounds * 1e3);
    });
    json.attribute("verified", int64_t(verified));
    json.attribute("verification", verification);
    json.attribute("remark", remark());
  });
  os << "\n";
}

} // namespace gemmc::run
