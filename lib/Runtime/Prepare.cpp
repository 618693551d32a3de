#include "gemmc/Runtime/Launch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

namespace gemmc {
namespace {
using ptx::KernelInfo;
using ptx::ParamInfo;
using ptx::TensorMapInfo;

constexpr int64_t maxOffset = (int64_t(1) << 47) - 1; // no device address has more bits

/// One kernel's preparation: the arguments all its steps need.
class Preparation {
public:
  Preparation(const KernelInfo &kernel, const LaunchArgs &args, int64_t sms, PreparedKernel &out)
      : kernel(kernel), args(args), sms(sms), out(out) {}

  MaybeFailure grid();
  MaybeFailure params(MapEncoder encode);

private:
  MaybeFailure valueOf(const Expr &expr, const llvm::Twine &what, int64_t low, int64_t high, int64_t &value) const;
  MaybeFailure param(const ParamInfo &param, MapEncoder encode, std::byte *place) const;
  MaybeFailure integer(const ParamInfo &param, std::byte *place) const;
  MaybeFailure tensorMap(const TensorMapInfo &info, MapEncoder encode, std::byte *place) const;
  std::optional<uint64_t> buffer(llvm::StringRef name) const;

  const KernelInfo &kernel;
  const LaunchArgs &args;
  int64_t sms;
  PreparedKernel &out;
};

MaybeFailure Preparation::valueOf(const Expr &expr, const llvm::Twine &what, int64_t low, int64_t high,
                                  int64_t &value) const {
  auto result = expr.eval([&](llvm::StringRef name) { return launchVariable(args, sms, name); });
  if (!result)
    return Failure::make(Diag::launch_no_value, what.str(), kernel.name, expr.str());
  if (*result < low || *result > high)
    return Failure::make(Diag::launch_value_range, what.str(), kernel.name, *result,
                         llvm::formatv("{0} to {1}", low, high).str());
  value = *result;
  return std::nullopt;
}

MaybeFailure Preparation::grid() {
  // CUDA C Programming Guide, compute capabilities: 2^31 - 1 CTAs along x, 65535 along y and z.
  const int64_t limits[] = {INT32_MAX, 65535, 65535};
  const char *names[] = {"grid.x", "grid.y", "grid.z"};
  for (unsigned axis = 0; axis < 3; ++axis) {
    int64_t value = 0;
    if (auto failed = valueOf(kernel.grid[axis], names[axis], 0, limits[axis], value))
      return failed;
    out.grid[axis] = static_cast<uint32_t>(value);
  }
  out.empty = llvm::is_contained(out.grid, 0u);
  return std::nullopt;
}

std::optional<uint64_t> Preparation::buffer(llvm::StringRef name) const {
  return llvm::StringSwitch<std::optional<uint64_t>>(name)
      .Case("a", args.a)
      .Case("b", args.b)
      .Case("c", args.c)
      .Case("d", args.d)
      .Case("workspace", args.workspace)
      .Default(std::nullopt);
}

/// Bytes and alignment of a parameter (PTX ISA 5.1.6 and 4.5.2).
std::pair<unsigned, unsigned> layoutOf(const ParamInfo &param) {
  if (param.kind == ParamInfo::TensorMap)
    return {128, 64};
  unsigned bytes = std::max(1u, ptx::bitsOf(param.type) / 8);
  return {bytes, bytes};
}

MaybeFailure Preparation::integer(const ParamInfo &param, std::byte *place) const {
  bool isSigned = param.type == ptx::Type::s32 || param.type == ptx::Type::s64;
  bool wide = ptx::bitsOf(param.type) == 64;
  int64_t low = isSigned ? (wide ? INT64_MIN : INT32_MIN) : 0;
  int64_t high = wide ? INT64_MAX : isSigned ? int64_t(INT32_MAX) : int64_t(UINT32_MAX);
  int64_t value = 0;
  if (auto failed = valueOf(param.value, param.name, low, high, value))
    return failed;
  std::memcpy(place, &value, wide ? 8 : 4); // little-endian, as every host of a CUDA device is
  return std::nullopt;
}

MaybeFailure Preparation::tensorMap(const TensorMapInfo &info, MapEncoder encode, std::byte *place) const {
  TensorMapArgs map;
  map.type = info.type;
  map.swizzle = info.swizzle;
  auto address = buffer(info.buffer);
  bool ranked = !info.dims.empty() && info.dims.size() <= 5 && info.strides.size() + 1 == info.dims.size() &&
                info.box.size() == info.dims.size();
  if (!address || !ranked)
    return Failure::make(Diag::launch_source, info.name, kernel.name, ranked ? info.buffer : "a malformed tensor map");
  // A null operand is never read (checkArgs), but the driver encodes no null address: D's neighbourhood serves.
  map.address = *address ? *address : args.d & ~uint64_t(255);
  int64_t offset = 0;
  // In the workspace checkArgs knows how far: a map that starts behind its end would read somebody else's bytes.
  int64_t most = info.buffer == "workspace" ? int64_t(std::min<uint64_t>(args.workspaceBytes, INT64_MAX)) : maxOffset;
  if (auto failed = valueOf(info.offset, "offset of tensor map " + llvm::Twine(info.name), 0, most, offset))
    return failed;
  map.address += static_cast<uint64_t>(offset);
  for (const Expr &dim : info.dims) {
    int64_t value = 0;
    if (auto failed = valueOf(dim, "extent of tensor map " + llvm::Twine(info.name), 1, int64_t(1) << 32, value))
      return failed;
    map.dims.push_back(static_cast<uint64_t>(value));
  }
  for (const Expr &extent : info.box) {
    int64_t value = 0;
    if (auto failed = valueOf(extent, "box of tensor map " + llvm::Twine(info.name), 0, UINT32_MAX, value))
      return failed;
    map.box.push_back(static_cast<uint32_t>(value));
  }
  for (const Expr &stride : info.strides) {
    int64_t value = 0;
    if (auto failed =
            valueOf(stride, "stride of tensor map " + llvm::Twine(info.name), 0, (int64_t(1) << 40) - 1, value))
      return failed;
    map.strides.push_back(static_cast<uint64_t>(value));
  }
  return encode(info.name, map, place);
}

MaybeFailure Preparation::param(const ParamInfo &param, MapEncoder encode, std::byte *place) const {
  auto unknown = [&] { return Failure::make(Diag::launch_source, param.name, kernel.name, param.source); };
  switch (param.kind) {
  case ParamInfo::Pointer: {
    auto address = buffer(param.source);
    if (!address)
      return unknown();
    std::memcpy(place, &*address, 8);
    return std::nullopt;
  }
  case ParamInfo::Int:
    return integer(param, place);
  case ParamInfo::Float: {
    if (param.source != "alpha" && param.source != "beta")
      return unknown();
    // Infinity times an empty sum would be NaN.
    double value = param.source == "beta" ? args.beta : args.readsInputs() ? args.alpha : 0;
    float narrow = static_cast<float>(value);
    param.type == ptx::Type::f64 ? std::memcpy(place, &value, 8) : std::memcpy(place, &narrow, 4);
    return std::nullopt;
  }
  case ParamInfo::TensorMap: {
    auto map = llvm::find_if(kernel.maps, [&](const TensorMapInfo &info) { return info.name == param.source; });
    if (map == kernel.maps.end())
      return unknown();
    return tensorMap(*map, encode, place);
  }
  }
  llvm_unreachable("unknown parameter kind");
}

MaybeFailure Preparation::params(MapEncoder encode) {
  uint64_t offset = 0;
  for (const ParamInfo &info : kernel.params) {
    auto [bytes, align] = layoutOf(info);
    offset = llvm::alignTo(offset, align);
    if (offset + bytes > PreparedKernel::maxParamBytes)
      return Failure::make(Diag::launch_params, kernel.name, PreparedKernel::maxParamBytes);
    std::memset(out.params.data() + out.paramBytes, 0, offset - out.paramBytes); // gaps are defined
    if (auto failed = param(info, encode, out.params.data() + offset))
      return failed;
    out.offsets.push_back(static_cast<uint16_t>(offset));
    offset += bytes;
    out.paramBytes = static_cast<unsigned>(offset);
  }
  return std::nullopt;
}
} // namespace

MaybeFailure prepareKernel(const KernelInfo &kernel, const LaunchArgs &args, int64_t sms, MapEncoder encode,
                           PreparedKernel &out) {
  out.offsets.clear();
  out.paramBytes = 0;
  Preparation preparation(kernel, args, sms, out);
  if (auto failed = preparation.grid())
    return failed;
  if (out.empty)
    return std::nullopt;
  return preparation.params(encode);
}

} // namespace gemmc
