#include "gemmc/Run/Assemble.h"
#include "gemmc/Runtime/Ptxas.h"
#include "llvm/Support/ThreadPool.h"

namespace gemmc::run {

std::vector<Image> assembleAll(llvm::ArrayRef<const Code *> codes, unsigned sm) {
  std::vector<Image> images;
  for (const Code *code : codes)
    images.push_back({code, {}});
  auto program = findPtxas();
  if (codes.size() < 2 || !program)
    return images;
  PtxasOptions options;
  options.program = *program;
  llvm::DefaultThreadPool pool;
  for (Image &image : images)
    pool.async([&image, options, sm]() mutable {
      options.target = architectureOn(sm, image.code->ptx);
      if (auto result = assemblePtx(image.code->ptx, options))
        image.cubin = std::move(result->cubin);
    });
  pool.wait();
  return images;
}

} // namespace gemmc::run
