// What cuBLASLt is told: every layout as a column-major product, types, scales.
#include "gemmc/Runtime/CublasLt.h"
#include "Fake.h"
#include <cstring>

using namespace gemmc;

namespace {
class CublasLtTest : public FakeTest {
protected:
  std::shared_ptr<const CublasLt> library() {
    auto loaded = CublasLt::load(device(), fakeLibrary);
    EXPECT_TRUE(bool(loaded));
    return *loaded;
  }
  /// 30 x 20 x 10, no padding.
  static CublasProblem problem(Order a, Order b, Order d) {
    CublasProblem problem;
    problem.m = 30, problem.n = 20, problem.k = 10;
    problem.a = {Elem::f16, a, a == Order::row ? 10 : 30};
    problem.b = {Elem::f16, b, b == Order::row ? 20 : 10};
    problem.c = problem.d = {Elem::f16, d, d == Order::row ? 20 : 30};
    return problem;
  }
  FakeMatmul run(const CublasProblem &problem) {
    auto matmul = CublasMatmul::create(library(), problem);
    EXPECT_TRUE(bool(matmul)) << matmul.failure().str();
    MaybeFailure failed = (*matmul)->run(0, nullptr, 0xa000, 0xb000, 0xc000, 0xd000, 0x10000);
    EXPECT_FALSE(failed);
    FakeMatmul seen = fake->matmuls.back();
    return seen;
  }
};

/// Element (i, j) of op(X) is at X + i + j * ld of the column-major layout, or at X + j + i * ld when transposed. The
/// product cuBLASLt then computes is D(i, j) = sum op(A)(i, k) op(B)(k, j), D at D + i + j * ld.
struct Place {
  uint64_t address;
  int64_t offset;
  bool operator==(const Place &) const = default;
};
Place placeOf(uint64_t address, const FakeMatmul::Layout &layout, bool transposed, int64_t i, int64_t j) {
  EXPECT_LT(uint64_t(transposed ? j : i), layout.rows);
  EXPECT_LT(uint64_t(transposed ? i : j), layout.cols);
  return {address, transposed ? j + i * layout.ld : i + j * layout.ld};
}
int64_t offsetOf(const CublasOperand &operand, int64_t i, int64_t j) {
  return operand.order == Order::row ? i * operand.ld + j : j * operand.ld + i;
}
} // namespace

// For each of the eight layouts: D element (7, 5) is the sum over k of A(7, k) and B(k, 5), at the right places.
TEST_F(CublasLtTest, EveryLayoutIsTheRightProduct) {
  for (Order a : {Order::row, Order::col})
    for (Order b : {Order::row, Order::col})
      for (Order d : {Order::row, Order::col}) {
        CublasProblem wanted = problem(a, b, d);
        FakeMatmul seen = run(wanted);
        bool swapped = d == Order::row; // then cuBLASLt's row is our column
        int64_t i = swapped ? 5 : 7, j = swapped ? 7 : 5;
        EXPECT_EQ(placeOf(seen.dAddress, seen.d, false, i, j), (Place{0xd000, offsetOf(wanted.d, 7, 5)}));
        for (int64_t k : {0, 9}) {
          Place left = placeOf(seen.aAddress, seen.a, seen.transA == 1, i, k);
          Place right = placeOf(seen.bAddress, seen.b, seen.transB == 1, k, j);
          if (swapped)
            std::swap(left, right);
          EXPECT_EQ(left, (Place{0xa000, offsetOf(wanted.a, 7, k)}))
              << nameOf(a).str() << nameOf(b).str() << nameOf(d).str();
          EXPECT_EQ(right, (Place{0xb000, offsetOf(wanted.b, k, 5)}));
        }
      }
}

TEST_F(CublasLtTest, SinglePrecisionScalesForF32) {
  CublasProblem wanted = problem(Order::row, Order::col, Order::row);
  wanted.alpha = 1.5f;
  FakeMatmul seen = run(wanted);
  EXPECT_EQ(seen.compute, 68);  // CUBLAS_COMPUTE_32F
  EXPECT_EQ(seen.scaleType, 0); // CUDA_R_32F
  EXPECT_EQ(seen.a.type, 2);    // CUDA_R_16F
  EXPECT_EQ(seen.alpha, (std::vector<unsigned char>{0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(seen.cAddress, seen.dAddress); // no beta: C is not ours to read
}

// cublasLt.h: BATCH_COUNT is 5, STRIDED_BATCH_OFFSET 6, and a stride of 0 is one matrix for all.
TEST_F(CublasLtTest, ABatchIsOfEachLayout) {
  CublasProblem wanted = problem(Order::row, Order::col, Order::row);
  EXPECT_EQ(run(wanted).a.batch, 1);
  wanted.batch = 7;
  wanted.a.batchStride = 300, wanted.b.batchStride = 0, wanted.d.batchStride = 640;
  FakeMatmul seen = run(wanted); // D in rows: B is the first operand
  for (const FakeMatmul::Layout *layout : {&seen.a, &seen.b, &seen.c, &seen.d})
    EXPECT_EQ(layout->batch, 7);
  EXPECT_EQ(seen.a.batchStride, 0);
  EXPECT_EQ(seen.b.batchStride, 300);
  EXPECT_EQ(seen.c.batchStride, 640);
  EXPECT_EQ(seen.d.batchStride, 640);
}

TEST_F(CublasLtTest, HalfScalesForF16Accumulation) {
  CublasProblem wanted = problem(Order::row, Order::col, Order::col);
  wanted.accumulator = Elem::f16;
  wanted.beta = 2;
  FakeMatmul seen = run(wanted);
  EXPECT_EQ(seen.compute, 64);  // CUBLAS_COMPUTE_16F
  EXPECT_EQ(seen.scaleType, 2); // CUDA_R_16F
  EXPECT_EQ(seen.alpha, (std::vector<unsigned char>{0x00, 0x3c}));
  EXPECT_EQ(seen.beta, (std::vector<unsigned char>{0x00, 0x40}));
  EXPECT_EQ(seen.cAddress, 0xc000u);
}

// Names and numbers of library_types.h and cublasLt.h. Sums of 8-bit floats stay in the tensor cores, as ours do.
TEST_F(CublasLtTest, TypesOfEightAndThirtyTwoBits) {
  struct Row {
    Elem input, output, sum;
    int inputType, outputType, compute, scaleType;
    bool fast;
  };
  constexpr int f32 = 0, s8 = 3, s32 = 10, bf16 = 14, e4m3 = 28, e5m2 = 29; // CUDA_R_32F, ..., CUDA_R_8F_E5M2
  constexpr int compute32F = 68, compute32I = 72, computeTf32 = 77;
  const Row rows[] = {
      {Elem::e4m3, Elem::bf16, Elem::f32, e4m3, bf16, compute32F, f32, true},
      {Elem::e5m2, Elem::f32, Elem::f32, e5m2, f32, compute32F, f32, true},
      {Elem::s8, Elem::s32, Elem::s32, s8, s32, compute32I, s32, false},
      {Elem::tf32, Elem::f32, Elem::f32, f32, f32, computeTf32, f32, false},
      {Elem::bf16, Elem::bf16, Elem::f32, bf16, bf16, compute32F, f32, false},
  };
  for (const Row &row : rows) {
    SCOPED_TRACE(nameOf(row.input).str());
    CublasProblem wanted = problem(Order::row, Order::col, Order::row);
    wanted.a.type = wanted.b.type = row.input;
    wanted.c.type = wanted.d.type = row.output;
    wanted.accumulator = row.sum;
    wanted.alpha = 2;
    FakeMatmul seen = run(wanted);
    EXPECT_EQ(seen.a.type, row.inputType);
    EXPECT_EQ(seen.b.type, row.inputType);
    EXPECT_EQ(seen.c.type, row.outputType);
    EXPECT_EQ(seen.d.type, row.outputType);
    EXPECT_EQ(seen.compute, row.compute);
    EXPECT_EQ(seen.scaleType, row.scaleType);
    EXPECT_EQ(seen.fastAccumulation, row.fast ? 1 : 0);
    const std::vector<unsigned char> two =
        row.scaleType == s32 ? std::vector<unsigned char>{2, 0, 0, 0} : std::vector<unsigned char>{0, 0, 0, 0x40};
    EXPECT_EQ(seen.alpha, two);
  }
}

TEST_F(CublasLtTest, AllAlgorithmsAreOffered) {
  auto matmul = CublasMatmul::create(library(), problem(Order::row, Order::col, Order::row));
  ASSERT_TRUE(bool(matmul));
  EXPECT_EQ((*matmul)->algorithms(), 3u);
  EXPECT_EQ((*matmul)->algorithmId(2), 62);
}

// Of C and D it looks at one pitch: where they differ it is told how lines of each start.
TEST_F(CublasLtTest, PitchesThatDifferAreToldAsAlignments) {
  CublasProblem one = problem(Order::row, Order::col, Order::row);
  one.beta = 1;
  one.c.ld = one.d.ld = 21;
  ASSERT_TRUE(bool(CublasMatmul::create(library(), one)));
  EXPECT_EQ(fake->alignments[cuda::ltAlignC], 16u);
  EXPECT_EQ(fake->alignments[cuda::ltAlignD], 16u);
  one.c.ld = 24;
  ASSERT_TRUE(bool(CublasMatmul::create(library(), one)));
  EXPECT_EQ(fake->alignments[cuda::ltAlignC], 16u);
  EXPECT_EQ(fake->alignments[cuda::ltAlignD], 2u);
  EXPECT_EQ(fake->alignments[cuda::ltAlignA], 16u);
}

TEST_F(CublasLtTest, WhatItCannotDoIsSaid) {
  CublasProblem wanted = problem(Order::row, Order::col, Order::row);
  wanted.beta = 1;
  wanted.c.order = Order::col;
  auto matmul = CublasMatmul::create(library(), wanted);
  ASSERT_FALSE(matmul);
  EXPECT_EQ(matmul.failure().id, Diag::cublas_unsupported);
  wanted = problem(Order::row, Order::col, Order::row);
  wanted.a.type = Elem::u8;
  EXPECT_EQ(CublasMatmul::create(library(), wanted).failure().id, Diag::cublas_unsupported);
  fake->algorithmMicroseconds.clear();
  matmul = CublasMatmul::create(library(), problem(Order::row, Order::col, Order::row));
  ASSERT_FALSE(matmul);
  EXPECT_NE(matmul.failure().str().find("no algorithm"), std::string::npos);
}

TEST_F(CublasLtTest, FailuresHaveTheStatusName) {
  auto matmul = CublasMatmul::create(library(), problem(Order::row, Order::col, Order::row));
  ASSERT_TRUE(bool(matmul));
  fake->failing["cublasLtMatmul"] = 13;
  MaybeFailure failed = (*matmul)->run(1, nullptr, 1, 2, 3, 4, 5);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->str(), "running cuBLASLt algorithm 1 failed: CUBLAS_STATUS_EXECUTION_FAILED (13)");
}

TEST_F(CublasLtTest, MissingAndWrongLibraries) {
  auto missing = CublasLt::load(device(), "libcublasLt-that-is-not-there.so");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().id, Diag::cublas_missing);
  auto wrong = CublasLt::load(device(), "libc.so.6");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.failure().id, Diag::cublas_incomplete);
}
