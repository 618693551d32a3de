#include "gemmc/Run/Check.h"
#include "FindingText.h"
#include "Once.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>

using llvm::formatv;

namespace gemmc::run {

emu::CheckOptions optionsOf(unsigned index, const CheckRequest &request) {
  using Kind = emu::ScheduleKind;
  constexpr Kind fixed[] = {Kind::lazy, Kind::eager, Kind::reversed};
  emu::CheckOptions options;
  options.enabled = true;
  options.foreign = request.foreign;
  options.schedule = index < 3 ? fixed[index] : Kind::random;
  options.seed = request.seed + index;
  return options;
}

std::string scheduleName(const emu::CheckOptions &options) {
  std::string name = nameOf(options.schedule).str();
  return options.schedule == emu::ScheduleKind::random ? name + formatv(" {0}", options.seed).str() : name;
}

bool isEnough(const CheckReport &report, const CheckRequest &request) {
  return (report.verdict == emu::Verdict::error && request.stopAtError) ||
         llvm::any_of(report.findings, [](const CheckFinding &each) { return each.finding.code == "limit"; });
}

namespace {

/// `1 schedule`, `4 schedules`
std::string counted(size_t count, llvm::StringRef what) {
  return formatv("{0} {1}{2}", count, what, count == 1 ? "" : "s");
}

/// What the verification says that no finding has said.
void addWrongValues(CheckReport &report, const RunReport &run, const std::string &schedule) {
  auto isProblem = [](const emu::Finding &finding) { return finding.verdict != emu::Verdict::clean; };
  if (llvm::any_of(run.launch.witnesses, isProblem) || run.ok())
    return;
  CheckFinding found;
  found.schedule = schedule;
  found.finding.code = "value";
  const Verification &result = run.verification;
  found.finding.message = !result.problem.empty() ? result.problem : "D differs from the reference";
  report.findings.push_back(std::move(found));
  report.verdict = emu::worse(report.verdict, emu::Verdict::error);
}
} // namespace

Outcome<CheckReport> checkGemm(const Code &code, FallbackCompiler fallback, const CheckRequest &request) {
  CheckReport report;
  Once seen;
  auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < request.schedules; ++i) {
    emu::CheckOptions options = optionsOf(i, request);
    std::string schedule = scheduleName(options);
    auto executor = makeEmulator(request.run.threads, options, request.sms, "", i ? nullptr : request.timeline);
    auto run = runGemm(code, fallback, request.run, *executor);
    if (!run)
      return run.failure();
    report.schedules.push_back(schedule);
    report.remarks = run->remarks;
    report.info = run->info;
    report.clustersRun = run->launch.clustersRun;
    report.clustersTotal = run->launch.clustersTotal;
    for (const emu::Finding &finding : run->launch.witnesses) {
      report.verdict = emu::worse(report.verdict, finding.verdict);
      if (seen.isNew(finding))
        report.findings.push_back({finding, schedule});
    }
    if (!request.foreign) // else nobody knows what D should be
      addWrongValues(report, *run, schedule);
    if (isEnough(report, request))
      break;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

namespace {
/// Findings of one rule, in one stage, whose instructions differ in their lines only: one mistake in an unrolled loop.
/// The first three are printed, of the others their lines.
class Alike {
public:
  explicit Alike(llvm::ArrayRef<CheckFinding> findings) {
    for (const CheckFinding &found : findings)
      groups[keyOf(found)].push_back(&found);
  }
  bool isPrinted(const CheckFinding &found) const { return placeIn(found) < printed || !isLarge(found); }
  /// What follows the finding: the lines of those that are not printed.
  std::string rest(const CheckFinding &found) const {
    if (!isLarge(found) || placeIn(found) + 1 != printed)
      return "";
    llvm::ArrayRef<const CheckFinding *> left = llvm::ArrayRef(groupOf(found)).drop_front(printed);
    std::vector<std::string> lines;
    for (const CheckFinding *one : left.take_front(mostListed))
      lines.push_back(one->finding.other.line ? formatv("{0} and {1}", one->finding.line, one->finding.other.line).str()
                                              : std::to_string(one->finding.line));
    return formatv("  {0} more [{1}] with the same instructions: ptx {2}{3}\n", left.size(), found.finding.code,
                   llvm::join(lines, ", "), left.size() > mostListed ? "... (all with --json)" : "");
  }

private:
  static constexpr size_t printed = 3, leastLarge = 6, mostListed = 8;
  static std::string keyOf(const CheckFinding &found) {
    const emu::Finding &finding = found.finding;
    return formatv("{0} {1} {2} {3} {4} {5} {6}", finding.code, finding.mnemonic, finding.role, finding.other.mnemonic,
                   finding.other.role, finding.memory, finding.stage.value_or(0));
  }
  const std::vector<const CheckFinding *> &groupOf(const CheckFinding &found) const {
    return groups.find(keyOf(found))->second;
  }
  bool isLarge(const CheckFinding &found) const { return groupOf(found).size() >= leastLarge; }
  size_t placeIn(const CheckFinding &found) const {
    return llvm::find(groupOf(found), &found) - groupOf(found).begin();
  }
  llvm::StringMap<std::vector<const CheckFinding *>> groups;
};
} // namespace

void CheckReport::printText(llvm::raw_ostream &os) const {
  const Alike alike(findings);
  for (const CheckFinding &found : findings) {
    if (!alike.isPrinted(found))
      continue;
    const emu::Finding &finding = found.finding;
    os << (finding.verdict == emu::Verdict::clean ? "info" : nameOf(finding.verdict)) << " [" << finding.code << "] "
       << finding.message << "\n";
    if (finding.line)
      os << "  " << str(finding) << "\n";
    if (finding.other.line)
      os << "  " << str(finding.other) << "\n";
    if (std::string spec = specPlaceOf(finding, info).str(); !spec.empty())
      os << "  spec: " << spec << "\n";
    os << "  schedule: " << found.schedule << "\n" << alike.rest(found);
  }
  for (const std::string &remark : remarks)
    os << "remark: " << remark << "\n";
  os << formatv("{0}: {1}, {2}, {3} of {4} clusters, {5:f1} s\n", nameOf(verdict), counted(findings.size(), "finding"),
                counted(schedules.size(), "schedule"), clustersRun, clustersTotal, seconds);
}

void CheckReport::printJson(llvm::raw_ostream &os) const {
  llvm::json::Array list;
  for (const CheckFinding &found : findings) {
    llvm::json::Object one = toJson(found.finding, info);
    one["schedule"] = found.schedule;
    list.push_back(std::move(one));
  }
  llvm::json::Object all{
      {"verdict", nameOf(verdict)},  {"findings", std::move(list)},     {"schedules", llvm::json::Array(schedules)},
      {"clusters_run", clustersRun}, {"clusters_total", clustersTotal}, {"seconds", seconds}};
  os << formatv("{0:2}", llvm::json::Value(std::move(all))) << "\n";
}

} // namespace gemmc::run
