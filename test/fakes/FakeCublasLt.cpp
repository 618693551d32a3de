// cuBLASLt, as far as gemmc calls it: what it is asked is noted, its algorithms take the time that the test says.
#include "FakeShared.h"
#include <cstring>

using namespace gemmc::cuda;
using fake::state;

namespace {
struct FakeDesc {
  int compute, scaleType;
  int32_t trans[2];
  int8_t fastAccumulation = 0;
};
} // namespace

EXPORT size_t cublasLtGetVersion() { return 130001; }
EXPORT const char *cublasLtGetStatusName(LtStatus status) {
  return status == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OTHER";
}
EXPORT LtStatus cublasLtCreate(LtHandle *handle) {
  ENTER("cublasLtCreate");
  *handle = reinterpret_cast<LtHandle>(&state);
  return 0;
}
EXPORT LtStatus cublasLtDestroy(LtHandle) { return 0; }
EXPORT LtStatus cublasLtMatmulDescCreate(LtMatmulDesc *desc, int compute, int scaleType) {
  *desc = reinterpret_cast<LtMatmulDesc>(new FakeDesc{compute, scaleType, {0, 0}, 0});
  return 0;
}
EXPORT LtStatus cublasLtMatmulDescDestroy(LtMatmulDesc desc) {
  delete reinterpret_cast<FakeDesc *>(desc);
  return 0;
}
EXPORT LtStatus cublasLtMatmulDescSetAttribute(LtMatmulDesc desc, int attribute, const void *value, size_t bytes) {
  if (attribute == ltFastAccumulation && bytes == 1) {
    memcpy(&reinterpret_cast<FakeDesc *>(desc)->fastAccumulation, value, 1);
    return 0;
  }
  if (bytes != 4 || (attribute != ltTransA && attribute != ltTransB))
    return 7;
  memcpy(&reinterpret_cast<FakeDesc *>(desc)->trans[attribute - ltTransA], value, 4);
  return 0;
}
EXPORT LtStatus cublasLtMatrixLayoutCreate(LtLayout *layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = reinterpret_cast<LtLayout>(new FakeMatmul::Layout{type, rows, cols, ld});
  return 0;
}
EXPORT LtStatus cublasLtMatrixLayoutSetAttribute(LtLayout layout, int attribute, const void *value, size_t bytes) {
  auto &of = *reinterpret_cast<FakeMatmul::Layout *>(layout);
  if (attribute == ltBatchCount && bytes == 4)
    memcpy(&of.batch, value, 4);
  else if (attribute == ltBatchStride && bytes == 8)
    memcpy(&of.batchStride, value, 8);
  else
    return 7;
  return 0;
}
EXPORT LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete reinterpret_cast<FakeMatmul::Layout *>(layout);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceCreate(LtPreference *preference) {
  *preference = reinterpret_cast<LtPreference>(new int);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete reinterpret_cast<int *>(preference);
  return 0;
}
EXPORT LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference, int attribute, const void *value, size_t bytes) {
  if (bytes == sizeof(uint32_t))
    memcpy(&state.alignments[attribute], value, bytes);
  return bytes == (attribute == ltMaxWorkspace ? 8 : 4) ? 0 : 7;
}
EXPORT LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmulDesc, LtLayout, LtLayout, LtLayout, LtLayout,
                                               LtPreference, int wanted, LtHeuristic *results, int *count) {
  ENTER("cublasLtMatmulAlgoGetHeuristic");
  *count = 0;
  for (size_t i = 0; i < state.algorithmMicroseconds.size() && *count < wanted; ++i) {
    results[i] = LtHeuristic{};
    results[i].algo.data[0] = i;
    ++*count;
  }
  return 0;
}
EXPORT LtStatus cublasLtMatmulAlgoConfigGetAttribute(const LtAlgo *algo, int, void *value, size_t, size_t *written) {
  int id = 60 + static_cast<int>(algo->data[0]);
  memcpy(value, &id, sizeof(id));
  *written = sizeof(id);
  return 0;
}
EXPORT LtStatus cublasLtMatmul(LtHandle, LtMatmulDesc desc, const void *alpha, const void *a, LtLayout aLayout,
                               const void *b, LtLayout bLayout, const void *beta, const void *c, LtLayout cLayout,
                               void *d, LtLayout dLayout, const LtAlgo *algo, void *, size_t, Stream stream) {
  ENTER("cublasLtMatmul");
  auto layout = [](LtLayout l) { return *reinterpret_cast<FakeMatmul::Layout *>(l); };
  auto address = [](const void *p) { return reinterpret_cast<uint64_t>(p); };
  auto bytes = [](const void *p, size_t n) {
    const auto *start = static_cast<const unsigned char *>(p);
    return std::vector<unsigned char>(start, start + n);
  };
  const FakeDesc &product = *reinterpret_cast<FakeDesc *>(desc);
  size_t scaleBytes = product.scaleType == ltF16 ? 2 : 4;
  int algorithm = static_cast<int>(algo->data[0]);
  state.matmuls.push_back(FakeMatmul{product.compute, product.scaleType, product.trans[0], product.trans[1],
                                     layout(aLayout), layout(bLayout), layout(cLayout), layout(dLayout), address(a),
                                     address(b), address(c), address(d), bytes(alpha, scaleBytes),
                                     bytes(beta, scaleBytes), algorithm, product.fastAccumulation});
  if (state.onMatmul)
    state.onMatmul(state.matmuls.back());
  return fake::passTime(stream, state.algorithmMicroseconds[algorithm]);
}
