/// Assembled kernels on disk, so that a second process need not assemble again. A file has its key's and its content's
/// SHA-256 in its head; what does not fit is no entry and is written anew. Files appear whole (temporary file and
/// rename): processes may share a folder and may be killed at any moment.
#pragma once
#include "gemmc/Support/Diag.h"
#include <optional>
#include <string>
#include <vector>

namespace gemmc {

class CubinCache {
public:
  static constexpr uint64_t defaultLimit = uint64_t(256) << 20;
  /// `folder` is made when something is stored. `limit`: bytes of all entries, the oldest go first.
  explicit CubinCache(std::string folder, uint64_t limit = defaultLimit) : folder(std::move(folder)), limit(limit) {}
  /// The folder $GEMMC_CACHE; nullopt when that is not set or empty.
  static std::optional<CubinCache> ofUser();

  /// The key of a module: its PTX without comment lines, the driver that loads it and the device's name.
  static std::string keyOf(llvm::StringRef ptx, int driverVersion, llvm::StringRef device);

  std::optional<std::vector<char>> find(llvm::StringRef key) const;
  /// False when it could not be stored (a full disk, a folder one may not write): nothing is lost but time.
  bool store(llvm::StringRef key, llvm::ArrayRef<char> cubin) const;

private:
  std::string fileOf(llvm::StringRef key) const;
  void evict() const;
  std::string folder;
  uint64_t limit;
};

/// The cubin of PTX text: from the user's cache, where there is one and it has it, else by ptxas, and kept there. It
/// opens no device and may run while one is opened; `device`, of compute capability `sm` / 10, is the one that is
/// expected. Nullopt: no ptxas, or it failed.
std::optional<std::vector<char>> cubinOf(llvm::StringRef ptx, llvm::StringRef device, unsigned sm,
                                         llvm::StringRef driver = "libcuda.so.1");

} // namespace gemmc
