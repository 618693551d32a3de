#include "gemmc/Runtime/CublasLt.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <dlfcn.h>

namespace gemmc {
namespace {
std::optional<cuda::LtDataType> dataTypeOf(Elem type) {
  switch (type) {
  case Elem::f16:
    return cuda::ltF16;
  case Elem::bf16:
    return cuda::ltBF16;
  case Elem::f32:
  case Elem::tf32:
    return cuda::ltF32;
  case Elem::f64:
    return cuda::ltF64;
  case Elem::e4m3:
    return cuda::ltE4M3;
  case Elem::e5m2:
    return cuda::ltE5M2;
  case Elem::s8:
    return cuda::ltS8;
  case Elem::s32:
    return cuda::ltS32;
  default:
    return std::nullopt;
  }
}

/// What a product is summed in, and the type of alpha and beta.
struct Arithmetic {
  cuda::LtCompute compute;
  cuda::LtDataType scale;
};
Arithmetic arithmeticOf(const CublasProblem &problem) {
  switch (problem.accumulator) {
  case Elem::f16:
    return {cuda::ltCompute16F, cuda::ltF16};
  case Elem::f64:
    return {cuda::ltCompute64F, cuda::ltF64};
  case Elem::s32:
    return {cuda::ltCompute32I, cuda::ltS32};
  default:
    return {problem.a.type == Elem::tf32 ? cuda::ltComputeTF32 : cuda::ltCompute32F, cuda::ltF32};
  }
}

/// alpha or beta as cuBLASLt reads it.
struct Factor {
  alignas(8) std::byte bytes[8] = {};
  template <typename T> void put(T value) { std::memcpy(bytes, &value, sizeof(value)); }
  Factor(cuda::LtDataType type, double value) {
    if (type == cuda::ltF16)
      put(static_cast<_Float16>(value)); // a number one writes by hand
    else if (type == cuda::ltF64)
      put(value);
    else if (type == cuda::ltS32)
      put(static_cast<int32_t>(value));
    else
      put(static_cast<float>(value));
  }
};
} // namespace

CublasLt::~CublasLt() {
  if (device->driver().gaveUp()) // its end, and that of the library, would wait, too
    return;
  if (handle)
    table.destroy(handle);
  if (library)
    dlclose(library);
}

Outcome<std::shared_ptr<const CublasLt>> CublasLt::load(std::shared_ptr<const Device> device, llvm::StringRef library) {
  std::vector<std::string> names{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                 "/usr/local/cuda/lib64/libcublasLt.so.12"};
  if (!library.empty())
    names = {library.str()};
  std::shared_ptr<CublasLt> lt(new CublasLt);
  lt->device = std::move(device);
  std::string used, why;
  for (const std::string &name : names) {
    lt->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    used = name;
    if (lt->library)
      break;
    if (const char *text = dlerror())
      why = text;
  }
  if (!lt->library)
    return Failure::make(Diag::cublas_missing, why).hint("install libcublas of CUDA 12 or 13, or set LD_LIBRARY_PATH");
#define GEMMC_CUBLASLT(Member, Symbol, Params)                                                                         \
  lt->table.Member = reinterpret_cast<cuda::LtStatus(*) Params>(dlsym(lt->library, Symbol));                           \
  if (!lt->table.Member)                                                                                               \
    return Failure::make(Diag::cublas_incomplete, used, Symbol);
  {
    using namespace cuda;
#include "gemmc/Runtime/CudaFunctions.def"
  }
  lt->table.getVersion = reinterpret_cast<size_t (*)()>(dlsym(lt->library, "cublasLtGetVersion"));
  lt->table.getStatusName =
      reinterpret_cast<const char *(*)(cuda::LtStatus)>(dlsym(lt->library, "cublasLtGetStatusName"));
  if (lt->table.getVersion)
    lt->versionNumber = lt->table.getVersion();
  Device::Scope scope(*lt->device);
  if (cuda::LtStatus status = lt->table.create(&lt->handle)) {
    lt->handle = nullptr;
    return lt->failure(status, "opening cuBLASLt");
  }
  return std::shared_ptr<const CublasLt>(std::move(lt));
}

Failure CublasLt::failure(cuda::LtStatus status, const llvm::Twine &what) const {
  const char *name = table.getStatusName ? table.getStatusName(status) : nullptr;
  Failure failure = Failure::make(Diag::cublas_failed, what.str(), name ? name : "unknown status", status);
  failure.code = status;
  return failure;
}

Outcome<std::unique_ptr<CublasMatmul>> CublasMatmul::create(std::shared_ptr<const CublasLt> library,
                                                            const CublasProblem &problem) {
  if (problem.batch > INT32_MAX)
    return Failure::make(Diag::cublas_unsupported, llvm::formatv("{0} products", problem.batch).str());
  if (problem.beta != 0 && problem.c.order != problem.d.order)
    return Failure::make(Diag::cublas_unsupported, "`c` and `d` have different layouts");
  for (const CublasOperand *operand : {&problem.a, &problem.b, &problem.c, &problem.d})
    if (!dataTypeOf(operand->type))
      return Failure::make(Diag::cublas_unsupported,
                           llvm::formatv("elements of type `{0}`", nameOf(operand->type)).str());
  std::unique_ptr<CublasMatmul> matmul(new CublasMatmul);
  matmul->lib = std::move(library);
  matmul->problem = problem;
  matmul->swapped = problem.d.order == Order::row;
  Device::Scope scope(*matmul->lib->device);
  if (auto failed = matmul->describe())
    return *failed;
  if (auto failed = matmul->search())
    return *failed;
  return matmul;
}

CublasMatmul::~CublasMatmul() {
  const cuda::LtTable &api = lib->api();
  for (cuda::LtLayout layout : {first, second, c, d})
    if (layout)
      api.layoutDestroy(layout);
  if (desc)
    api.descDestroy(desc);
}

/// Fills the descriptors for D' = first * second, all column-major: (D, A, B), or (D^T, B^T, A^T) when D is row-major.
MaybeFailure CublasMatmul::describe() {
  const cuda::LtTable &api = lib->api();
  Arithmetic arithmetic = arithmeticOf(problem);
  cuda::LtStatus status = api.descCreate(&desc, arithmetic.compute, arithmetic.scale);
  if (status)
    return lib->failure(status, "describing the product");

  // A rows x cols matrix in row order is, in memory, the column-major cols x rows transpose.
  auto layout = [&](cuda::LtLayout &out, const CublasOperand &operand, int64_t rows, int64_t cols) {
    if (operand.order == Order::row)
      std::swap(rows, cols);
    cuda::LtStatus made =
        api.layoutCreate(&out, *dataTypeOf(operand.type), rows, cols, std::max<int64_t>(operand.ld, 1));
    const int32_t batch = static_cast<int32_t>(problem.batch);
    if (!made && batch != 1)
      made = api.layoutSet(out, cuda::ltBatchCount, &batch, sizeof(batch));
    if (!made && batch != 1)
      made = api.layoutSet(out, cuda::ltBatchStride, &operand.batchStride, sizeof(operand.batchStride));
    return made;
  };
  // What an operand of the product needs, minus what its memory already is. Swapped products need the transposes.
  auto operation = [&](const CublasOperand &operand) {
    bool isTransposed = operand.order == Order::row;
    return isTransposed == swapped ? cuda::ltN : cuda::ltT;
  };
  const CublasOperand &left = swapped ? problem.b : problem.a, &right = swapped ? problem.a : problem.b;
  cuda::LtOperation ops[] = {operation(left), operation(right)};
  cuda::LtLayout aLayout = nullptr, bLayout = nullptr;
  status = layout(aLayout, problem.a, problem.m, problem.k);
  if (!status)
    status = layout(bLayout, problem.b, problem.k, problem.n);
  first = swapped ? bLayout : aLayout;
  second = swapped ? aLayout : bLayout;
  CublasOperand source = problem.beta != 0 ? problem.c : problem.d; // without beta, C is D itself: never read
  if (!status)
    status = layout(c, source, problem.m, problem.n);
  if (!status)
    status = layout(d, problem.d, problem.m, problem.n);
  if (!status)
    status = api.descSet(desc, cuda::ltTransA, &ops[0], sizeof(ops[0]));
  if (!status)
    status = api.descSet(desc, cuda::ltTransB, &ops[1], sizeof(ops[1]));
  // Without it sums of 8-bit floats are promoted to f32 by other units, step by step.
  const int8_t fast = problem.fast && isFloat8(problem.a.type);
  if (!status && fast)
    status = api.descSet(desc, cuda::ltFastAccumulation, &fast, sizeof(fast));
  if (status)
    return lib->failure(status, "describing the matrices");
  return std::nullopt;
}

MaybeFailure CublasMatmul::search() {
  const cuda::LtTable &api = lib->api();
  cuda::LtPreference preference = nullptr;
  if (cuda::LtStatus status = api.preferenceCreate(&preference))
    return lib->failure(status, "preparing the search for algorithms");
  uint64_t workspace = CublasLt::workspaceLimit;
  // It judges lines of C and D by one of their pitches: where they differ an algorithm may be found that dies of a
  // misaligned address (C 4096 apart, D 4097). Then the search is told how lines of both start.
  const bool lines = problem.beta != 0 && problem.c.ld != problem.d.ld;
  auto alignment = [&](const CublasOperand &operand) {
    uint64_t bytes = std::min<uint64_t>(operand.align, 256);
    if (lines && (&operand == &problem.c || &operand == &problem.d))
      bytes = llvm::MinAlign(bytes, uint64_t(operand.ld) * bytesOf(operand.type));
    if (problem.batch != 1) // of matrices behind the first one it is not told
      bytes = llvm::MinAlign(bytes, uint64_t(operand.batchStride) * bytesOf(operand.type));
    return static_cast<uint32_t>(bytes);
  };
  uint32_t aligns[] = {alignment(swapped ? problem.b : problem.a), alignment(swapped ? problem.a : problem.b),
                       alignment(problem.beta != 0 ? problem.c : problem.d), alignment(problem.d)};
  const int attributes[] = {cuda::ltAlignA, cuda::ltAlignB, cuda::ltAlignC, cuda::ltAlignD};
  cuda::LtStatus status = api.preferenceSet(preference, cuda::ltMaxWorkspace, &workspace, sizeof(workspace));
  for (unsigned i = 0; i < 4 && !status; ++i)
    status = api.preferenceSet(preference, attributes[i], &aligns[i], sizeof(aligns[i]));

  std::vector<cuda::LtHeuristic> found(CublasLt::wantedAlgorithms);
  int count = 0;
  if (!status)
    status = api.heuristic(lib->handle, desc, first, second, c, d, preference, CublasLt::wantedAlgorithms, found.data(),
                           &count);
  api.preferenceDestroy(preference);
  if (status == cuda::ltNotSupported || (!status && count == 0))
    return Failure::make(Diag::cublas_unsupported, "no algorithm for these types, layouts and sizes");
  if (status)
    return lib->failure(status, "searching algorithms");
  for (int i = 0; i < count; ++i)
    if (found[i].state == 0 && found[i].workspace <= CublasLt::workspaceLimit)
      results.push_back(found[i]);
  if (results.empty())
    return Failure::make(Diag::cublas_unsupported, "no usable algorithm for these types, layouts and sizes");
  return std::nullopt;
}

int CublasMatmul::algorithmId(unsigned index) const {
  int id = -1;
  size_t written = 0;
  lib->api().algoConfig(&results[index].algo, cuda::ltAlgoId, &id, sizeof(id), &written);
  return id;
}

MaybeFailure CublasMatmul::run(unsigned index, cuda::Stream stream, uint64_t a, uint64_t b, uint64_t cAddress,
                               uint64_t dAddress, uint64_t workspace) const {
  auto pointer = [](uint64_t address) { return reinterpret_cast<void *>(address); };
  Factor alpha(arithmeticOf(problem).scale, problem.alpha), beta(arithmeticOf(problem).scale, problem.beta);
  if (problem.beta == 0)
    cAddress = dAddress;
  Device::Scope scope(*lib->device);
  cuda::LtStatus status =
      lib->api().matmul(lib->handle, desc, alpha.bytes, pointer(swapped ? b : a), first, pointer(swapped ? a : b),
                        second, beta.bytes, pointer(cAddress), c, pointer(dAddress), d, &results[index].algo,
                        pointer(workspace), CublasLt::workspaceLimit, stream);
  if (status)
    return lib->failure(status, llvm::Twine("running cuBLASLt algorithm ") + llvm::Twine(index));
  return std::nullopt;
}

} // namespace gemmc
