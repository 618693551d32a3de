/// The two machines that run a kernel: the card through the driver, and the emulator.
#pragma once
#include "Family.h"
#include "gemmc/Runtime/Device.h"
#include "gemmc/Support/Types.h"
#include <memory>
#include <optional>

namespace gemmc::microtests {

/// Grid and block of `k(.param .u64 in, .param .u64 out)`; `map` is passed as a third parameter where there is one.
struct Shape {
  unsigned grid = 1, threads = 32, cluster = 1, dynamicShared = 0;
};

/// A tiled tensor map over `in`, with what the emulator cannot encode too.
struct MapRequest {
  Elem type = Elem::f16;
  int driverType = -1; ///< CUtensorMapDataType where `type` does not say it.
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box, elementStrides;
  int swizzle = 0, oobNaN = 0;
};

/// Empty = it worked.
using Trouble = std::string;

class Card {
public:
  /// Null with the reason in `error` when there is no GPU.
  static std::unique_ptr<Card> open(Trouble &error);
  std::string name() const { return device->name; }
  /// The output, or an error. After a sticky one `dead` is true and nothing works any more.
  Trouble run(const std::string &ptx, Shape shape, ConstBytes in, Bytes out, const MapRequest *map = nullptr);
  bool dead = false;
  std::vector<std::string> recorded; ///< Without a device, `run` only keeps the texts: they can be assembled anywhere.
  double jitSeconds = 0;

private:
  Trouble launch(cuda::Function function, Shape shape, uint64_t in, uint64_t out, const MapRequest *map);
  Trouble check(cuda::Result code, const char *what);
  std::shared_ptr<const Device> device;
};

/// Runs it on the emulator with `threads` host threads.
Trouble emulate(const std::string &ptx, Shape shape, ConstBytes in, Bytes out, unsigned threads,
                const MapRequest *map = nullptr);

/// What one family came to.
struct Tally {
  std::string name;
  uint64_t vectors = 0, mismatches = 0;
  double worst = 0; ///< Of approximations: the largest error, 1 being what is allowed.
  std::vector<std::string> examples;
  Trouble error;
  double seconds = 0, jitSeconds = 0, emulatorSeconds = 0;
  bool bad = false; ///< Mismatches beyond what is allowed, or an error.
};
struct Settings {
  uint64_t vectors = 1000000, seed = 1;
  unsigned threads = 1;
  unsigned examples = 5; ///< Of a family, at most.
};
/// `card` may be null: then only the emulator runs, and nothing is compared.
Tally compare(const Family &family, Card *card, const Settings &settings);

} // namespace gemmc::microtests
