#include "gemmc/Tune/Tune.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace gemmc::tune {

void TuneReport::printTable(llvm::raw_ostream &os) const {
  os << llvm::formatv("{0} kernels measured, {1} refused by the device\n", entries.size(), refused);
  final.printTable(os);
}

void TuneReport::printJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
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
    final.printJson(stream);
    json.rawValue(llvm::StringRef(text).rtrim());
    json.attributeEnd();
  });
  os << "\n";
}

} // namespace gemmc::tune
