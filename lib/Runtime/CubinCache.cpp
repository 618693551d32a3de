#include "gemmc/Runtime/CubinCache.h"
#include "gemmc/Runtime/CudaApi.h"
#include "gemmc/Runtime/Ptxas.h"
#include "gemmc/Support/UniqueFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace gemmc {
namespace {
constexpr StringRef magic = "gemmc cubin 1\n";
constexpr size_t digestBytes = 32, headBytes = magic.size() + 2 * digestBytes;
constexpr StringRef suffix = ".cubin", temporary = ".part";

std::string digestOf(StringRef bytes) {
  SHA256 hash;
  hash.update(bytes);
  return toStringRef(hash.final()).str();
}

struct Entry {
  std::string path;
  sys::TimePoint<> used;
  uint64_t bytes;
};
} // namespace

std::optional<CubinCache> CubinCache::ofUser() {
  const char *folder = std::getenv("GEMMC_CACHE");
  return folder && *folder ? std::optional<CubinCache>(folder) : std::nullopt;
}

std::string CubinCache::keyOf(StringRef ptx, int driverVersion, StringRef device) {
  SHA256 hash;
  hash.update((Twine(driverVersion) + "\n" + device + "\n").str());
  while (!ptx.empty()) { // comments say where a spec lies: they change nothing
    auto [line, rest] = ptx.split('\n');
    if (!line.ltrim().starts_with("//"))
      hash.update(line), hash.update("\n");
    ptx = rest;
  }
  return toStringRef(hash.final()).str();
}

std::string CubinCache::fileOf(StringRef key) const {
  SmallString<128> path(folder);
  sys::path::append(path, toHex(key, /*LowerCase=*/true) + suffix);
  return path.str().str();
}

std::optional<std::vector<char>> CubinCache::find(StringRef key) const {
  std::string path = fileOf(key);
  // What has no end, or waits for a writer (a FIFO), is no entry; it is asked of what was opened.
  const int handle = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0)
    return std::nullopt;
  auto close = make_scope_exit([&] { ::close(handle); });
  sys::fs::file_status status;
  if (sys::fs::status(handle, status) || status.type() != sys::fs::file_type::regular_file || status.getSize() > limit)
    return std::nullopt;
  // Read, not mapped: somebody may cut it off meanwhile.
  auto file = MemoryBuffer::getOpenFile(handle, path, status.getSize(), /*RequiresNullTerminator=*/false,
                                        /*IsVolatile=*/true);
  if (!file)
    return std::nullopt;
  StringRef text = (*file)->getBuffer();
  if (text.size() <= headBytes || !text.starts_with(magic) || text.substr(magic.size(), digestBytes) != key)
    return std::nullopt;
  StringRef content = text.drop_front(headBytes);
  if (text.substr(magic.size() + digestBytes, digestBytes) != digestOf(content))
    return std::nullopt;
  // The age of an entry is that of its last use.
  (void)sys::fs::setLastAccessAndModificationTime(handle, std::chrono::system_clock::now());
  return std::vector<char>(content.begin(), content.end());
}

bool CubinCache::store(StringRef key, ArrayRef<char> cubin) const {
  if (sys::fs::create_directories(folder, /*IgnoreExisting=*/true, sys::fs::owner_all))
    return false;
  StringRef content(cubin.data(), cubin.size());
  std::string path;
  int handle = -1;
  if (createUniqueFile(folder + "/", temporary, sys::fs::owner_read | sys::fs::owner_write, handle, path))
    return false;
  raw_fd_ostream os(handle, /*shouldClose=*/true);
  os << magic << key << digestOf(content) << content;
  os.close();
  bool failed = os.has_error();
  os.clear_error();
  if (failed || sys::fs::rename(path, fileOf(key))) {
    sys::fs::remove(path);
    return false;
  }
  evict();
  return true;
}

/// Takes away the entries that have not been used for longest, and what killed writers left.
void CubinCache::evict() const {
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  std::error_code failed;
  auto hourAgo = std::chrono::system_clock::now() - std::chrono::hours(1);
  for (sys::fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    sys::fs::file_status status;
    if (sys::fs::status(it->path(), status) || status.type() != sys::fs::file_type::regular_file)
      continue;
    StringRef path = it->path();
    if (path.ends_with(temporary) && status.getLastModificationTime() < hourAgo)
      sys::fs::remove(path);
    if (!path.ends_with(suffix))
      continue;
    entries.push_back({path.str(), status.getLastModificationTime(), status.getSize()});
    bytes += status.getSize();
  }
  llvm::sort(entries, [](const Entry &x, const Entry &y) { return x.used < y.used; });
  for (const Entry &entry : entries) {
    if (bytes <= limit)
      return;
    sys::fs::remove(entry.path);
    bytes -= entry.bytes;
  }
}

/// The version of the driver, which it tells without being initialised; 0: there is none. It stays loaded: somebody
/// else is about to initialise it.
static int versionOf(StringRef driver) {
  void *library = dlopen(driver.str().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return 0;
  int version = 0;
  if (auto *ask = reinterpret_cast<cuda::Result (*)(int *)>(dlsym(library, "cuDriverGetVersion")))
    if (ask(&version) != cuda::success)
      version = 0;
  return version;
}

std::optional<std::vector<char>> cubinOf(StringRef ptx, StringRef device, unsigned sm, StringRef driver) {
  auto cache = CubinCache::ofUser();
  int version = cache ? versionOf(driver) : 0;
  std::string key = version ? CubinCache::keyOf(ptx, version, device) : "";
  if (version)
    if (auto cubin = cache->find(key))
      return cubin;
  PtxasOptions options;
  options.target = architectureOn(sm, ptx);
  auto assembled = assemblePtx(ptx, options);
  if (!assembled)
    return std::nullopt;
  if (version)
    cache->store(key, assembled->cubin);
  return std::move(assembled->cubin);
}

} // namespace gemmc
