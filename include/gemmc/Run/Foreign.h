/// PTX that gemmc did not make, launched on the emulator as a side file says: grid, buffers, arguments, and what must
/// come out. docs/foreign-ptx.md describes the file.
#pragma once
#include "gemmc/Run/Check.h"
#include "gemmc/Support/Yaml.h"

namespace gemmc::run {

/// Global memory that a kernel gets.
struct ForeignBuffer {
  std::string name;
  ptx::Type type = ptx::Type::f32; ///< u8 to f64, f16 and bf16 among them.
  uint64_t count = 0;              ///< Elements.
  enum Fill : uint8_t { zero, random, integer, nan, formula, listed } fill = zero;
  Expr value;                 ///< formula: over i, the element's index, and size.
  std::vector<double> values; ///< listed: again from the first when there are fewer.
  uint64_t seed = 1;
  std::optional<uint32_t> aliasOf; ///< Another address of that buffer.
  llvm::SMRange range;

  unsigned width() const { return ptx::bitsOf(type) / 8; }
  uint64_t bytes() const { return count * width(); }
  bool isFloat() const { return type >= ptx::Type::f16; }
};

/// One parameter: its bytes, and where in them addresses and tensor maps stand.
struct ForeignArg {
  struct Pointer {
    uint32_t at = 0, buffer = 0;
    int64_t offset = 0; ///< Bytes.
  };
  struct Map {
    uint32_t at = 0, buffer = 0;
    int64_t offset = 0;
    emu::TensorMapValues values; ///< All but the address.
    llvm::SMRange range;
  };
  struct InMemory;
  std::vector<std::byte> bytes;
  uint32_t align = 1;
  std::vector<Pointer> pointers;
  std::vector<Map> maps;
  std::vector<InMemory> inMemory;
  llvm::SMRange range;
};

/// The address of a copy in global memory.
struct ForeignArg::InMemory {
  uint32_t at = 0;
  ForeignArg what;
};

/// What a buffer must hold in the end.
struct ForeignExpect {
  enum Kind : uint8_t { Formula, Values, Same, Gemm } kind = Formula;
  uint32_t buffer = 0, other = 0; ///< Same: the other one.
  Expr value;
  std::vector<double> values;
  double tolerance = 0;         ///< Of max(1, |expected|).
  uint64_t from = 0, count = 0; ///< Elements that are looked at.
  struct Matrix {
    uint32_t buffer = 0;
    Order order = Order::row;
    std::optional<int64_t> ld;
  };
  Matrix a, b, c, d; ///< Gemm. `c` is what its buffer holds before the launch.
  int64_t m = 0, n = 0, k = 0;
  double alpha = 1, beta = 0;
  Elem accumulator = Elem::f32;
  bool exact = false;
};

struct ForeignPrint {
  uint32_t buffer = 0;
  uint64_t from = 0, count = 0;
};

struct ForeignLaunch {
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t shared = 0; ///< Dynamic.
  std::vector<ForeignBuffer> buffers;
  std::vector<ForeignArg> args;
  std::vector<ForeignExpect> expect;
  std::vector<ForeignPrint> print;
};

/// All buffers together.
constexpr uint64_t maxForeignBytes = uint64_t(4) << 30;

/// Reads a side file (`text` is a source held by `diags`) for `module`; nullopt after reported errors.
std::optional<ForeignLaunch> readForeign(llvm::StringRef text, const ptx::Module &module, Diags &diags);

/// A formula's value for element `i` of `size`; readForeign sees to it that there is one wherever it is asked for.
std::optional<int64_t> elementOf(const Expr &formula, uint64_t i, uint64_t size);

struct ForeignReport {
  CheckReport check;
  std::vector<std::string> results; ///< A line for each expectation and for each buffer to print, of the first run.
  bool wrong = false;               ///< An expectation was not met.
};

/// Runs the kernel under `request.schedules` schedules with the search for races, or (0) once without.
ForeignReport runForeign(const ptx::Module &module, const ForeignLaunch &launch, const CheckRequest &request);

} // namespace gemmc::run
