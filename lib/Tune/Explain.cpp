#include "gemmc/Tune/Explain.h"
#include "gemmc/Plan/Typical.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using llvm::formatv;

namespace gemmc::tune {
namespace {
/// Three digits and a unit: `1.21 MB`.
std::string scaled(double value, llvm::ArrayRef<const char *> units, double step = 1000) {
  size_t unit = 0;
  while (unit + 1 < units.size() && value >= step)
    value /= step, ++unit;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ", value) << units[unit];
  return text;
}
std::string bytes(double value) { return scaled(value, {"bytes", "kB", "MB", "GB", "TB"}); }
std::string rate(double value) { return scaled(value, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"}); }
std::string flops(double value) { return scaled(value / 1e6, {"MFLOP", "GFLOP", "TFLOP", "PFLOP"}); }
std::string time(double seconds) {
  return seconds < 1e-3 ? formatv("{0:f1} us", seconds * 1e6).str() : formatv("{0:f2} ms", seconds * 1e3).str();
}
std::string percent(double part) { return formatv("{0:f1}%", part * 100).str(); }

/// How much longer the model takes it to take; nothing where that is not known.
std::optional<double> slowerThan(const Analysis &a, const Alternative &other) {
  return other.estimated ? std::optional(other.cost / std::max(1.0, a.clocks) - 1) : std::nullopt;
}

std::string originText(const Chosen &chosen) {
  switch (chosen.origin) {
  case Origin::given:
    return "given: the spec leaves nothing open";
  case Origin::database:
    return "the tuning database: " + chosen.measured->str();
  case Origin::table:
    return "gemmc's own table: " + chosen.measured->str();
  case Origin::model:
    break;
  }
  if (chosen.measured)
    return "the planner's model (the measured choice for this problem is not used)";
  return "the planner's model: nothing was measured for this problem" +
         (chosen.device.empty() ? std::string() : " on " + chosen.device);
}

class Page {
public:
  Page(llvm::raw_ostream &os, const Chosen &chosen, const Analysis &a)
      : os(os), chosen(chosen), spec(chosen.plan.spec), a(a) {}

  void print() {
    problem();
    plan();
    tiles();
    traffic();
    clocks();
    others();
  }

private:
  void line(llvm::StringRef key, const llvm::Twine &text) { os << llvm::left_justify(key, 12) << text << "\n"; }

  void problem() {
    auto operand = [](const char *name, const OperandSpec &operand) {
      return formatv("{0} {1} {2}", name, nameOf(*operand.type), nameOf(*operand.layout)).str();
    };
    const std::string products = isBatch(spec) ? formatv("{0} of ", typicalBatch(spec)).str() : "";
    const std::string asOne = isFolded(spec) ? formatv(" as one of {0} x {1}", a.m, a.n).str() : "";
    line("problem",
         formatv("{0}{1} x {2} x {3}{4}{5}, {6}, {7}, {8}, sums {9}", products, typicalM(spec), typicalN(spec),
                 typicalK(spec), asOne, a.assumed.empty() ? "" : " (" + a.assumed + ")", operand("a", spec.a),
                 operand("b", spec.b), operand("d", spec.d), nameOf(*spec.accumulator)));
    line("needs", formatv("{0}, {1} when each matrix is moved once: {2:f0} operations a byte", flops(a.flops),
                          bytes(a.bytes), a.intensity()));
    std::string floor =
        formatv("{0}: memory {1} at {2}, tensor cores {3} at {4:f0} TFLOP/s", a.machine.card, time(a.memoryFloor),
                rate(a.machine.bytes), time(a.tensorFloor), a.machine.flops / 1e12);
    if (a.machine.powered < 1)
      floor += formatv(", {0} at the power limit ({1:f0} TFLOP/s, an estimate)", time(a.poweredFloor),
                       a.machine.flops * a.machine.powered / 1e12);
    line("floor", floor);
  }

  void plan() {
    line("chosen by", originText(chosen));
    static constexpr llvm::StringRef shown[] = {
        "instruction",       "swap_operands",    "tile.block",         "tile.warp",      "tile.cluster",
        "pipeline.schedule", "pipeline.stages",  "pipeline.in_flight", "raster.order",   "raster.group",
        "raster.scheduler",  "split.mode",       "split.slices",       "epilogue.store", "epilogue.c",
        "epilogue.overlap",  "launch.dependent", "launch.trigger"};
    auto isShown = [this](const FieldText &field) {
      bool repack = field.path == "a.repack" || field.path == "b.repack";
      if (field.path == "fold_batch")
        return isBatch(spec);
      if (field.path == "split.owners") // nothing to tell of one
        return field.value != "1";
      return repack ? field.value != "off" : llvm::is_contained(shown, field.path);
    };
    for (const FieldText &field : fieldTexts(spec))
      if (isShown(field))
        line("", formatv("{0,-32} {1}", (field.path + ": " + field.value).str(), field.given ? "given" : field.reason));
  }

  void tiles() {
    line("tiles", formatv("{0}{6} in {1} wave{2} of {3}; the last wave fills {4} of its slots; {5} of the tiles' "
                          "elements are D's",
                          a.tiles, a.waves, a.waves == 1 ? "" : "s", a.slots, percent(a.lastWave), percent(a.tileUse),
                          a.slices > 1 ? formatv(", k in {0} slices,", a.slices).str() : ""));
  }

  void traffic() {
    line("shared",
         formatv("{0} of a CTA, {1} a stage; a tile writes {2} there and reads {3}", bytes(double(a.sharedBytes)),
                 bytes(double(a.stageBytes)), bytes(a.tileWritten), bytes(a.tileRead)));
    line("L2", formatv("{0} a tile, {1} in all: {2:f1} times what is needed", bytes(a.tileL2Bytes), bytes(a.l2Bytes),
                       a.bytes > 0 ? a.l2Bytes / a.bytes : 0));
    line("memory",
         formatv("{0} to {1}: all reuse in the L2, or only within a wave", bytes(a.bytes), bytes(a.hbmBytes)));
  }

  void clocks() {
    double all = std::max(1.0, a.clocks);
    line("model", formatv("{0:f0} clocks: main loops {1}, starts and ends {2}, empty slots of the last wave {3}",
                          a.clocks, percent(a.mainPart / all), percent(a.aroundPart / all), percent(a.idlePart / all)));
    const std::string loose =
        a.tileLoose > 0 ? formatv("; {0:f0} more for parts of lines that leave by themselves", a.tileLoose).str() : "";
    line("", formatv("a tile: main loop {0:f0}, start and epilogue {1:f0} clocks{2}{3}", a.tileMain, a.tileAround,
                     a.hidden ? ", which lie under the other warpgroup's main loop" : "", loose));
    const double clocks = std::max(a.clocks, a.bySectors);
    if (clocks > a.clocks)
      line("",
           formatv("{0:f0} clocks until D is stored, which takes the L2 and memory longer than its tiles do", clocks));
    const std::string launch = a.launch > 0 ? " with " + time(a.launch) + " of the launch" : "";
    line("predicted", formatv("{0}{1}, bound by {2}: {3:f2} times the floor; {4} at {5:f3} GHz without a power limit",
                              time(a.seconds), launch, a.bound, a.floor() > 0 ? a.seconds / a.floor() : 0,
                              time(clocks / a.machine.clock + a.launch), a.machine.clock / 1e9));
    bool copied = *spec.a.repack == Repack::on || *spec.b.repack == Repack::on,
         shifted = !a.streams && (chosen.plan.a.shifted || chosen.plan.b.shifted);
    if (copied)
      line("", formatv("of the product alone: the copy in front takes an estimated {0} besides", time(a.copies)));
    if (shifted)
      line("", "what shifts lines counts by its rate alone, not by what waits for it");
    if (!chosen.measured)
      return;
    const Tuned &tuned = *chosen.measured;
    line("measured", formatv("{0}: the prediction is {1} of it{2}", time(tuned.seconds),
                             percent(tuned.seconds > 0 ? a.seconds / tuned.seconds : 0),
                             chosen.origin == Origin::model ? " (another choice)" : ""));
  }

  void others() {
    for (const auto &[index, other] : llvm::enumerate(a.next))
      if (const auto slower = slowerThan(a, other))
        line(index ? "" : "next", formatv("{0,7} {1}", percent(*slower), other.choice));
      else
        line(index ? "" : "next", formatv("{0,7} {1}", "-", other.choice));
  }

  llvm::raw_ostream &os;
  const Chosen &chosen;
  const Spec &spec;
  const Analysis &a;
};
} // namespace

void printExplanation(llvm::raw_ostream &os, const Chosen &chosen, const Analysis &analysis) {
  Page(os, chosen, analysis).print();
}

std::string explanationJson(const Chosen &chosen, const Analysis &a) {
  using llvm::json::Array;
  using llvm::json::Object;
  Object measured;
  if (chosen.measured) {
    const Tuned &tuned = *chosen.measured;
    measured = Object{{"device", tuned.device}, {"date", tuned.date},        {"choice", tuned.choice},
                      {"sizes", tuned.sizes},   {"us", tuned.seconds * 1e6}, {"rounds", tuned.rounds}};
    if (auto ratio = tuned.ratio())
      measured["ratio"] = *ratio;
  }
  Array next;
  for (const Alternative &other : a.next)
    next.push_back(Object{{"choice", other.choice}, {"slower", slowerThan(a, other)}});
  Array fields;
  for (const FieldText &field : fieldTexts(chosen.plan.spec))
    fields.push_back(
        Object{{"path", field.path}, {"value", field.value}, {"given", field.given}, {"reason", field.reason}});
  Object page{
      {"m", typicalM(chosen.plan.spec)}, // of a batch that is planned as one product, too
      {"n", typicalN(chosen.plan.spec)},
      {"k", typicalK(chosen.plan.spec)},
      {"batch", typicalBatch(chosen.plan.spec)},
      {"assumed_sizes", !a.assumed.empty()},
      {"origin", nameOf(chosen.origin)},
      {"device", chosen.device},
      {"machine", Object{{"card", a.machine.card},
                         {"bytes_per_second", a.machine.bytes},
                         {"flops_per_second", a.machine.flops},
                         {"clock_hz", a.machine.clock},
                         {"powered_share", a.machine.powered}}},
      {"flops", a.flops},
      {"bytes", a.bytes},
      {"intensity", a.intensity()},
      {"floor_us",
       Object{{"memory", a.memoryFloor * 1e6}, {"tensor", a.tensorFloor * 1e6}, {"powered", a.poweredFloor * 1e6}}},
      {"tiles", a.tiles},
      {"slices", a.slices},
      {"waves", a.waves},
      {"slots", a.slots},
      {"last_wave", a.lastWave},
      {"tile_use", a.tileUse},
      {"shared_bytes", a.sharedBytes},
      {"stage_bytes", a.stageBytes},
      {"tile_shared_written", a.tileWritten},
      {"tile_shared_read", a.tileRead},
      {"tile_l2_bytes", a.tileL2Bytes},
      {"l2_bytes", a.l2Bytes},
      {"memory_bytes", Array{a.bytes, a.hbmBytes}},
      {"clocks", Object{{"all", a.clocks},
                        {"main_loops", a.mainPart},
                        {"starts_and_ends", a.aroundPart},
                        {"empty_slots", a.idlePart},
                        {"tile_main", a.tileMain},
                        {"tile_start_and_epilogue", a.tileAround},
                        {"tile_odd_columns", a.tileLoose},
                        {"by_sectors", a.bySectors}}},
      {"predicted_us", a.seconds * 1e6},
      {"launch_us", a.launch * 1e6},
      {"bound", a.bound},
      {"fields", std::move(fields)},
      {"next", std::move(next)}};
  if (chosen.measured)
    page["measured"] = std::move(measured);
  return formatv("{0:2}\n", llvm::json::Value(std::move(page))).str();
}

} // namespace gemmc::tune
