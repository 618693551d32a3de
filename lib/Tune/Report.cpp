#include "gemmc/Tune/Session.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc::tune {

void TuneReport::printTable(llvm::raw_ostream &os) const {
  os << llvm::formatv("{0} kernels measured, {1} refused by the device\n", entries.size(), refused);
  final.printTable(os);
}

void TuneReport::writeJson(llvm::json::OStream &json) const {
  json.attributeArray("measured", [&] {
    for (const TuneEntry &entry : entries)
      json.object([&] {
        json.attribute("choice", entry.choice);
        json.attribute("median_us", entry.median * 1e6);
        json.attribute("rounds", int64_t(entry.rounds));
        json.attribute("final", entry.final);
      });
  });
  json.attribute("refused", int64_t(refused));
  json.attributeBegin("final");
  std::string text;
  llvm::raw_string_ostream stream(text);
  final.printJson(stream, 2);
  json.rawValue(llvm::StringRef(text).rtrim());
  json.attributeEnd();
}

static llvm::StringRef nameOf(JobResult::State state) {
  switch (state) {
  case JobResult::measured:
    return "measured";
  case JobResult::kept:
    return "kept";
  case JobResult::failed:
    return "failed";
  }
  llvm_unreachable("unknown state");
}

static void writeEntry(llvm::json::OStream &json, const Tuned &tuned) {
  json.attribute("device", tuned.device);
  json.attribute("problem", tuned.problem);
  json.attribute("sizes", tuned.sizes);
  json.attribute("choice", tuned.choice);
  json.attribute("median_us", tuned.seconds * 1e6);
  if (auto ratio = tuned.ratio()) {
    json.attribute("cublaslt_us", tuned.cublasSeconds * 1e6);
    json.attribute("ratio", *ratio);
  }
  json.attribute("rounds", tuned.rounds);
  json.attribute("date", tuned.date);
}

void JobResult::printJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("name", job->name);
    json.attribute("state", nameOf(state));
    if (state == failed)
      json.attribute("why", llvm::json::fixUTF8(why));
    else
      json.attributeObject("entry", [&] { writeEntry(json, tuned); });
    if (report)
      report->writeJson(json);
  });
  os << "\n";
}

} // namespace gemmc::tune
