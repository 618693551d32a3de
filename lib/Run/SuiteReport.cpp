#include "gemmc/Run/SuiteReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace gemmc::run {
namespace {
constexpr unsigned nameWidth = 34, groupWidth = 9;

std::string column(std::optional<double> value) {
  return value ? llvm::formatv("{0,8:f3}", *value).str() : std::string(7, ' ') + "-";
}

void writeEntry(llvm::json::OStream &json, const SuiteEntry &entry, unsigned indent) {
  json.object([&] {
    json.attribute("name", entry.name);
    json.attribute("class", entry.group);
    json.attribute("took_s", entry.seconds);
    if (!entry.failure.empty()) {
      json.attribute("failure", entry.failure);
      return;
    }
    if (auto behind = entry.report.ofFastest())
      json.attribute("of_fastest", *behind);
    std::string text;
    llvm::raw_string_ostream stream(text);
    entry.report.printJson(stream, indent);
    json.attributeBegin("report");
    json.rawValue(llvm::StringRef(text).rtrim());
    json.attributeEnd();
  });
}
} // namespace

std::vector<GroupMean> SuiteReport::means() const {
  std::vector<GroupMean> out;
  for (const SuiteEntry &entry : entries) {
    if (!entry.failure.empty())
      continue;
    auto ratio = entry.report.ratio(), behind = entry.report.ofFastest();
    if (!ratio && !behind)
      continue;
    auto found = llvm::find_if(out, [&](const GroupMean &mean) { return mean.group == entry.group; });
    GroupMean &mean = found == out.end() ? out.emplace_back(GroupMean{.group = entry.group}) : *found;
    if (ratio) { // sums of logarithms until all are there
      mean.worst = mean.problems++ ? std::min(mean.worst, *ratio) : *ratio;
      mean.ratio += std::log(*ratio);
      mean.ratioToFirst += std::log(entry.report.ratioToFirst().value_or(*ratio));
    }
    if (behind) {
      ++mean.compared;
      mean.ofFastest += std::log(*behind);
      mean.worstOfFastest = std::max(mean.worstOfFastest, *behind);
    }
  }
  for (GroupMean &mean : out) {
    if (mean.problems) {
      mean.ratio = std::exp(mean.ratio / mean.problems);
      mean.ratioToFirst = std::exp(mean.ratioToFirst / mean.problems);
    }
    if (mean.compared)
      mean.ofFastest = std::exp(mean.ofFastest / mean.compared);
  }
  return out;
}

void SuiteReport::printHead(llvm::raw_ostream &os) {
  os << llvm::left_justify("problem", nameWidth) << llvm::left_justify("class", groupWidth)
     << "       us  TFLOP/s  cuBLASLt us   ratio  to first\n";
}

void SuiteReport::printLine(llvm::raw_ostream &os, const SuiteEntry &entry) {
  os << llvm::left_justify(entry.name, nameWidth) << llvm::left_justify(entry.group, groupWidth);
  if (!entry.failure.empty()) {
    os << entry.failure << "\n";
    return;
  }
  const BenchReport &report = entry.report;
  os << llvm::format("%9.2f%9.1f", report.ours.median * 1e6, report.ours.flops / 1e12);
  if (report.cublas.empty())
    os << "            -";
  else
    os << llvm::format("%13.2f", report.cublas.front().median * 1e6);
  os << column(report.ratio()) << "  " << column(report.ratioToFirst());
  if (auto behind = report.ofFastest())
    os << llvm::formatv("  {0:f3} of the fastest of {1}{2}{3}", *behind, report.also.size() + 1,
                        *behind > 1 ? ": " : "", *behind > 1 ? report.fastest().name : "");
  if (report.verified)
    os << "  verified";
  if (!report.remarks.empty())
    os << "  " << report.remark();
  os << "\n";
}

void SuiteReport::printJsonLine(llvm::raw_ostream &os, const SuiteEntry &entry) {
  llvm::json::OStream json(os);
  writeEntry(json, entry, 0);
  os << "\n";
}

void SuiteReport::printMeans(llvm::raw_ostream &os) const {
  for (const GroupMean &mean : means()) {
    os << (mean.group.empty() ? "no class" : mean.group) << ": ";
    if (mean.problems)
      os << llvm::formatv("geometric mean {0:f3} of {1} problem{2}, worst {3:f3}, to the first choice {4:f3}",
                          mean.ratio, mean.problems, mean.problems == 1 ? "" : "s", mean.worst, mean.ratioToFirst);
    if (mean.compared)
      os << llvm::formatv("{0}{1:f3} of the fastest kernel, at most {2:f3}", mean.problems ? "; " : "", mean.ofFastest,
                          mean.worstOfFastest);
    os << "\n";
  }
}

void SuiteReport::printJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeArray("problems", [&] {
      for (const SuiteEntry &entry : entries)
        writeEntry(json, entry, 2);
    });
    json.attributeArray("classes", [&] {
      for (const GroupMean &mean : means())
        json.object([&] {
          json.attribute("class", mean.group);
          json.attribute("problems", int64_t(mean.problems));
          if (mean.problems) {
            json.attribute("ratio", mean.ratio);
            json.attribute("ratio_to_first", mean.ratioToFirst);
            json.attribute("worst", mean.worst);
          }
          if (mean.compared) {
            json.attribute("of_fastest", mean.ofFastest);
            json.attribute("worst_of_fastest", mean.worstOfFastest);
          }
        });
    });
  });
  os << "\n";
}

} // namespace gemmc::run
