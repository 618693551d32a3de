// Operands that TMA cannot read as they lie: whether a kernel in front copies them to rows that it can read. The copy
// costs the bytes of the operand twice; what it buys is wgmma instead of mma fed by narrow copies.
#include "Draft.h"
#include <cmath>

using llvm::formatv;

namespace gemmc::plan {
namespace {
constexpr int64_t assumedSize = 4096; // of a dynamic extent
constexpr double copyRate = 4e12;     // bytes a second, read and written (H200: 4.3e12 at best)
constexpr double launchTime = 3e-6;   // seconds that one more kernel takes
constexpr double wgmmaRate = 650e12;  // operations a second of a large product, under sustained load
constexpr int64_t tileEdge = 64;      // the smallest block tiles: the SMs of a partial wave stand still

/// Operations a second of mma kernels whose copies move so many bytes at a time.
double mmaRate(unsigned copyBytes) {
  return copyBytes >= 16 ? 400e12 : copyBytes >= 8 ? 300e12 : copyBytes >= 4 ? 150e12 : 50e12;
}

double sizeOf(std::optional<int64_t> extent) { return double(extent.value_or(assumedSize)); }

/// Seconds of the product alone.
double productTime(const Draft &draft, double rate) {
  double tiles = std::ceil(sizeOf(draft.extentM()) / tileEdge) * std::ceil(sizeOf(draft.extentN()) / tileEdge);
  double waves = std::ceil(tiles / draft.limits.sms);
  return waves * 2 * tileEdge * tileEdge * sizeOf(draft.extentK()) / (rate / draft.limits.sms);
}

double bytesOfOperand(const Spec &s, const OperandInfo &info) {
  return sizeOf((s.*info.rows).value.fixed) * sizeOf((s.*info.cols).value.fixed) * bytesOf(*(s.*info.operand).type);
}

/// Whether TMA can read the rows as they lie; those of a dynamic ld by a requirement of the launch.
bool readable(const OperandSpec &operand) {
  constexpr int64_t maxPitch = (int64_t(1) << 40) - 1;
  bool near = operand.ld.value.dynamic() || *operand.ld.value.fixed <= maxPitch / int64_t(bytesOf(*operand.type));
  return near && promisedAlign(operand) % 16 == 0;
}
} // namespace

void refuseRepack(Draft &draft, const std::string &why, bool reported) {
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    Field<Persistence> &repack = (draft.spec().*info.operand).repack;
    repack.decide(Persistence::off, why);
    if (*repack == Persistence::on && !reported)
      draft.diags.report(Diag::plan_repack, repack.range, info.name, why).fix(repack.range, "off");
  }
}

void decideRepack(Draft &draft, llvm::StringRef asked) {
  Spec &s = draft.spec();
  constexpr const char *fine = "TMA reads it as it lies";
  double bytes = 0;
  bool refused = false; // by the spec: then TMA is out of the question
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    const OperandSpec &operand = s.*info.operand;
    if (readable(operand))
      continue;
    bytes += bytesOfOperand(s, info);
    refused |= operand.repack.given && *operand.repack == Persistence::off;
  }
  unsigned narrow = std::min(promisedAlign(s.a), promisedAlign(s.b));
  double copy = 2 * bytes / copyRate + launchTime, fast = productTime(draft, wgmmaRate),
         slow = productTime(draft, mmaRate(narrow));
  bool pays = copy + fast < slow;
  std::string times = formatv("a copy of {0:f1} MB takes {1:f1} us (read and written at 4 TB/s, 3 us to launch) and "
                              "wgmma then {2:f1} us; mma by {3}-byte copies {4:f1} us",
                              bytes / 1e6, copy * 1e6, fast * 1e6, narrow, slow * 1e6);
  for (const OperandInfo &info : llvm::ArrayRef(operandInfos).take_front(2)) {
    OperandSpec &operand = s.*info.operand;
    std::string rows =
        formatv("rows start at multiples of {0} bytes, TMA reads multiples of 16", promisedAlign(operand));
    if (readable(operand))
      operand.repack.decide(Persistence::off, fine);
    else if (!asked.empty())
      operand.repack.decide(Persistence::on, formatv("{0}, and `{1}` asks for it", rows, asked));
    else if (refused)
      operand.repack.decide(Persistence::off, "the spec leaves an operand in rows that TMA cannot read");
    else
      operand.repack.decide(pays ? Persistence::on : Persistence::off, formatv("{0}; {1}", rows, times));
  }
}

} // namespace gemmc::plan
