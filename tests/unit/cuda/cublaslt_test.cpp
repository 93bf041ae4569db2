// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/cublaslt.h"

#include <cmath>
#include <random>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/test_files.h"

#if __has_include("/usr/local/cuda/include/cublasLt.h")
#include "/usr/local/cuda/include/cublasLt.h"
#define LATHE_HAS_CUBLASLT_HEADER 1
#endif

namespace lathe::cuda {
namespace {

using test::expectError;
using test::Variable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Values of a matrix as the dtype holds them, and as doubles.
struct Matrix {
  Matrix(DType dtype, size_t size, unsigned seed) : dtype(dtype), values(size) {
    bytes.resize(size * sizeOf(dtype) + 512);
    std::mt19937 random(seed);
    for (size_t i = 0; i < size; ++i) set(i, double(int(random() % 17) - 8) / 4);
  }
  void set(size_t i, double value) {
    values[i] = value;
    if (dtype == DType::F32)
      reinterpret_cast<float*>(data())[i] = float(value);
    else
      reinterpret_cast<uint16_t*>(data())[i] =
          dtype == DType::BF16 ? floatToBf16(float(value)) : floatToF16(float(value));
  }
  double get(size_t i) {
    if (dtype == DType::F32) return reinterpret_cast<float*>(data())[i];
    const uint16_t bits = reinterpret_cast<uint16_t*>(data())[i];
    return dtype == DType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
  }
  unsigned char* data() {
    auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + ((256 - address % 256) % 256);
  }
  DType dtype;
  std::vector<double> values;
  std::vector<unsigned char> bytes;
};

class CublasLtTest : public ::testing::Test {
 protected:
  CublasLtTest() : library_("LATHE_CUBLASLT", test::mockPath("mock_cublaslt")) { reset(); }
  void reset() { test::mockFunction<void()>("mock_cublaslt", "mockBlasReset")(); }
  std::vector<std::string> lines(const std::string& part) {
    std::istringstream in(test::mockFunction<const char*()>("mock_cublaslt", "mockBlasLog")());
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);)
      if (line.find(part) != std::string::npos) found.push_back(line);
    return found;
  }

  // Against plain loops in double; the values are such that sums are exact in f32.
  void compare(CublasLt& library, LibraryMatmul p, bool bias, bool inPlace = false) {
    const auto m = size_t(p.rows), n = size_t(p.columns), k = size_t(p.depth);
    Matrix x(p.dtype, m * k, 1), w(p.dtype, n * k, 2), b(p.result, n, 3), c(p.result, m * n, 4);
    Matrix out(p.result, m * n, 5);
    LibraryOperands o{x.data(), w.data(), bias ? b.data() : nullptr,
                      p.beta != 0 ? (inPlace ? out.data() : c.data()) : nullptr, out.data()};
    if (inPlace) c = out;
    library.matmul(p, o, workspace_.data(), &workspace_);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (size_t l = 0; l < k; ++l)
          sum += x.values[i * k + l] * w.values[p.weightInOut ? l * n + j : j * k + l];
        sum = sum * p.alpha + (p.beta != 0 ? p.beta * c.values[i * n + j] : 0);
        if (bias) sum += b.values[j];
        const double ulp = p.result == DType::F32 ? 0 : p.result == DType::F16 ? 1e-3 : 8e-3;
        ASSERT_NEAR(out.get(i * n + j), sum, std::abs(sum) * ulp / 2)
            << m << " x " << n << " x " << k << " at " << i << ", " << j;
      }
  }

  Variable library_;
  std::vector<unsigned char> workspace_ = std::vector<unsigned char>(CublasLt::kWorkspaceBytes);
};

TEST_F(CublasLtTest, LayoutsAndLeadingDimensionsAreRight) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  for (bool inOut : {false, true})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {1, 31, 33}, {33, 1, 31}, {31, 33, 1}, {17, 257, 8}, {64, 48, 96}})
      compare(*library, {m, n, k, DType::F32, DType::F32, inOut}, false);
}

TEST_F(CublasLtTest, EveryDtypeWithBiasAndResidual) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (DType result : {dtype, DType::F32})
      for (bool bias : {false, true})
        for (float beta : {0.0f, 1.0f, 0.5f})
          compare(*library, {5, 31, 33, dtype, result, false, 0.5f, beta}, bias);
}

TEST_F(CublasLtTest, TheResidualMayBeTheResult) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  compare(*library, {5, 31, 33, DType::BF16, DType::BF16, false, 1, 1}, true, true);
}

TEST_F(CublasLtTest, OldContentsOfTheResultDoNotMatter) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  Matrix x(DType::F32, 3, 1), w(DType::F32, 6, 2), out(DType::F32, 2, 3);
  for (size_t i = 0; i < 2; ++i) out.set(i, NAN);
  LibraryMatmul p{1, 2, 3, DType::F32, DType::F32};
  library->matmul(p, {x.data(), w.data(), nullptr, nullptr, out.data()}, workspace_.data(),
                  nullptr);
  for (size_t j = 0; j < 2; ++j) {
    double sum = 0;
    for (size_t l = 0; l < 3; ++l) sum += x.values[l] * w.values[j * 3 + l];
    EXPECT_EQ(out.get(j), sum);
  }
}

TEST_F(CublasLtTest, TheAlgorithmOfAShapeIsChosenOnce) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  const LibraryMatmul p{4, 8, 16, DType::F32, DType::F32};
  for (int i = 0; i < 3; ++i) compare(*library, p, true);
  EXPECT_THAT(lines("Heuristic"),
              ElementsAre("cublasLtMatmulAlgoGetHeuristic workspace 33554432 alignments "
                          "256,256,256,256 reductions 2"));
  EXPECT_EQ(lines("cublasLtMatmul on a stream").size(), 3u);
  // Another alpha is the same plan; another epilogue, shape or alignment is not.
  compare(*library, {4, 8, 16, DType::F32, DType::F32, false, 2}, true);
  EXPECT_EQ(lines("Heuristic").size(), 1u);
  compare(*library, p, false);
  compare(*library, {4, 8, 17, DType::F32, DType::F32}, true);
  compare(*library, {4, 8, 16, DType::F32, DType::F32, false, 1, 1}, true);
  EXPECT_EQ(lines("Heuristic").size(), 4u);
  Matrix x(DType::F32, 65, 1), w(DType::F32, 128, 2), out(DType::F32, 32, 3);
  library->matmul(p, {x.data() + 4, w.data(), nullptr, nullptr, out.data()}, workspace_.data(),
                  nullptr);
  EXPECT_EQ(lines("Heuristic").back(),
            "cublasLtMatmulAlgoGetHeuristic workspace 33554432 alignments 256,4,256,256 "
            "reductions 2");
}

TEST_F(CublasLtTest, AnAlgorithmIsTakenByItsRank) {
  Variable three("LATHE_MOCK_BLAS_MATCHES", "3");
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  LibraryMatmul p{4, 8, 16, DType::F32, DType::F32};
  for (int rank : {2, 0, 1}) {
    p.rank = rank;
    compare(*library, p, true);
  }
  EXPECT_THAT(lines("cublasLtMatmul on"),
              ElementsAre("cublasLtMatmul on a stream, algorithm 2", "cublasLtMatmul on a stream",
                          "cublasLtMatmul on a stream, algorithm 1"));
  p.rank = 3;
  expectError(ErrorCode::Unsupported,
              "cuBLASLt has 3 algorithms for a product 4 x 8 x 16, f32 to f32, none of rank 3",
              [&] { compare(*library, p, true); });
  p.rank = 8;
  expectError(ErrorCode::InvalidArgument, "expected a rank from 0 to 7",
              [&] { compare(*library, p, true); });
}

TEST_F(CublasLtTest, EverythingIsGivenBack) {
  {
    auto library = CublasLt::open();
    ASSERT_TRUE(library);
    compare(*library, {4, 8, 16, DType::F32, DType::F32}, true);
    compare(*library, {4, 8, 17, DType::F32, DType::F32}, true);
  }
  for (const char* what : {"MatmulDesc", "MatrixLayout", "MatmulPreference", ""})
    EXPECT_EQ(lines("cublasLt" + std::string(what) + "Create").size(),
              lines("cublasLt" + std::string(what) + "Destroy").size())
        << what;
}

TEST_F(CublasLtTest, AnAbsentLibraryIsNoError) {
  Variable nowhere("LATHE_CUBLASLT", "/nowhere/libcublasLt.so");
  EXPECT_EQ(CublasLt::open(), nullptr);
  std::string why;
  EXPECT_EQ(CublasLt::open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("cuBLASLt was not found:\n  LATHE_CUBLASLT=/nowhere/"));
  Variable other("LATHE_CUBLASLT", "libm.so.6");
  EXPECT_EQ(CublasLt::open(&why), nullptr);
  EXPECT_EQ(why, "libm.so.6 has no cublasLtCreate");
}

TEST_F(CublasLtTest, ALibraryWithoutAGpuIsAsAbsent) {
  Variable fail("LATHE_MOCK_BLAS_FAIL", "cublasLtCreate:1");
  std::string why;
  EXPECT_EQ(CublasLt::open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("cublasLtCreate failed: mock: failed"));
}

TEST_F(CublasLtTest, FailuresTellTheProduct) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  const LibraryMatmul p{4, 8, 16, DType::BF16, DType::F32},
      declined{5, 8, 16, DType::BF16, DType::F32};
  {
    Variable none("LATHE_MOCK_BLAS_MATCHES", "0");
    expectError(ErrorCode::Unsupported,
                "cuBLASLt has no algorithm for a product 5 x 8 x 16, bf16 to f32",
                [&] { compare(*library, declined, false); });
  }
  // It is not asked again.
  expectError(ErrorCode::Unsupported, "no algorithm for a product 5 x 8 x 16",
              [&] { compare(*library, declined, false); });
  {
    Variable fail("LATHE_MOCK_BLAS_FAIL", "cublasLtMatmul:13");
    expectError(ErrorCode::Io, "cublasLtMatmul failed for a product 4 x 8 x 16, bf16 to f32",
                [&] { compare(*library, p, false); });
  }
  {
    Variable fail("LATHE_MOCK_BLAS_FAIL", "cublasLtMatmul:15");
    expectError(ErrorCode::Unsupported,
                "cublasLtMatmul failed for a product 4 x 8 x 16, bf16 to f32: mock: not supported",
                [&] { compare(*library, p, false); });
  }
  compare(*library, p, false);
}

TEST_F(CublasLtTest, RefusesWhatDoesNotFit) {
  auto library = CublasLt::open();
  ASSERT_TRUE(library);
  int x = 0;
  auto refuses = [&](const LibraryMatmul& p, const LibraryOperands& o, const char* text) {
    expectError(ErrorCode::InvalidArgument, text,
                [&] { library->matmul(p, o, workspace_.data(), nullptr); });
  };
  const LibraryOperands all{&x, &x, nullptr, nullptr, &x};
  refuses({0, 1, 1}, all, "sizes of at least 1");
  refuses({1, 1, 1, DType::F32, DType::BF16}, all, "operands' dtype or f32");
  refuses({1, 1, 1, DType::I8, DType::I8}, all, "1 x 1 x 1, i8 to i8: expected f32, bf16 or f16");
  refuses({1, 1, 1}, {&x, nullptr, nullptr, nullptr, &x}, "an operand is missing");
  refuses({1, 1, 1, DType::BF16, DType::BF16, false, 1, 1}, all, "an addend with beta");
  refuses({1, 1, 1}, {&x, &x, nullptr, &x, &x}, "none without");
}

#ifdef LATHE_HAS_CUBLASLT_HEADER
template <class... A>
constexpr bool sameInterface(int (*)(A...), auto other) {
  return []<class... B>(cublasStatus_t (*)(B...)) {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  }(other);
}

TEST(CublasLtApiTest, IsTheToolkitsInterface) {
  blas::Api api;
#define LATHE_COMPARE(member, name, parameters) \
  static_assert(sameInterface(decltype(api.member)(), decltype (&::name)()), #name);
  LATHE_CUBLASLT_FUNCTIONS(LATHE_COMPARE)
#undef LATHE_COMPARE
  static_assert(sizeof(blas::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(blas::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
  static_assert(offsetof(blas::Heuristic, workspaceBytes) ==
                offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  static_assert(offsetof(blas::Heuristic, state) ==
                offsetof(cublasLtMatmulHeuristicResult_t, state));
  static_assert(blas::kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
  static_assert(int(blas::kFloat32) == CUDA_R_32F);
  static_assert(int(blas::kFloat16) == CUDA_R_16F);
  static_assert(int(blas::kBfloat16) == CUDA_R_16BF);
  static_assert(int(blas::kCompute32) == CUBLAS_COMPUTE_32F);
  static_assert(int(blas::kAsItIs) == CUBLAS_OP_N);
  static_assert(int(blas::kTransposed) == CUBLAS_OP_T);
  static_assert(int(blas::kNothing) == CUBLASLT_EPILOGUE_DEFAULT);
  static_assert(int(blas::kAddBias) == CUBLASLT_EPILOGUE_BIAS);
  static_assert(int(blas::kTransposeFirst) == CUBLASLT_MATMUL_DESC_TRANSA);
  static_assert(int(blas::kTransposeSecond) == CUBLASLT_MATMUL_DESC_TRANSB);
  static_assert(int(blas::kEpilogue) == CUBLASLT_MATMUL_DESC_EPILOGUE);
  static_assert(int(blas::kBiasPointer) == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  static_assert(int(blas::kMaxWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  static_assert(int(blas::kReductionSchemes) == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  static_assert(blas::kReducedInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  static_assert(int(blas::kMinAlignmentA) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  static_assert(int(blas::kMinAlignmentB) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  static_assert(int(blas::kMinAlignmentC) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  static_assert(int(blas::kMinAlignmentD) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(sizeof(blas::Heuristic), 96u);
}
#endif

}  // namespace
}  // namespace lathe::cuda
