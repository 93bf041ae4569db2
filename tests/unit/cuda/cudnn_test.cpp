// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/dtype.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/test_files.h"

#if __has_include("/usr/local/cuda/include/cudnn_graph.h")
#include "/usr/local/cuda/include/cudnn.h"
#define LATHE_HAS_CUDNN_HEADER 1
#endif

namespace lathe::cuda {
namespace {

using test::expectError;
using test::Variable;
using ::testing::HasSubstr;

// [batch, heads, tokens, depth], which lie as [batch, tokens, heads, depth] if they take turns.
LibraryAttention::View viewOf(int64_t heads, int64_t tokens, int64_t depth, bool turns) {
  return turns ? LibraryAttention::View{tokens * heads * depth, depth, heads * depth}
               : LibraryAttention::View{heads * tokens * depth, tokens * depth, depth};
}

LibraryAttention attentionOf(int64_t batch, int64_t heads, int64_t keyHeads, int64_t queries,
                             int64_t keys, int64_t depth, bool causal = false, bool lengths = false,
                             DType dtype = DType::BF16) {
  LibraryAttention a{.dtype = dtype,
                     .batch = batch,
                     .queryHeads = heads,
                     .keyHeads = keyHeads,
                     .queries = queries,
                     .keys = keys,
                     .depth = depth,
                     .valueDepth = depth,
                     .scale = float(1 / std::sqrt(double(depth))),
                     .causal = causal,
                     .lengths = lengths};
  a.q = viewOf(heads, queries, depth, true);
  a.k = a.v = viewOf(keyHeads, keys, depth, false);
  a.y = viewOf(heads, queries, depth, true);
  return a;
}

struct Values {
  Values(DType dtype, int64_t size, unsigned seed) : dtype(dtype), words(size_t(size) + 8) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < size; ++i) set(i, normal(random));
  }
  uint16_t* data() {
    const auto address = reinterpret_cast<uintptr_t>(words.data());
    return words.data() + (16 - address % 16) % 16 / 2;
  }
  void set(int64_t i, float x) {
    data()[i] = dtype == DType::BF16 ? floatToBf16(x) : floatToF16(x);
  }
  double at(int64_t i) {
    return dtype == DType::BF16 ? bf16ToFloat(data()[i]) : f16ToFloat(data()[i]);
  }
  DType dtype;
  std::vector<uint16_t> words;
};

class CudnnTest : public ::testing::Test {
 protected:
  CudnnTest() : library_("LATHE_CUDNN", test::mockPath("mock_cudnn")) {
    test::mockFunction<void()>("mock_cudnn", "mockDnnReset")();
  }
  size_t lines(const std::string& wanted) {
    std::istringstream in(test::mockFunction<const char*()>("mock_cudnn", "mockDnnLog")());
    size_t found = 0;
    for (std::string line; std::getline(in, line);) found += line == wanted;
    return found;
  }

  // Against plain loops in double. What lies behind a length is NaN.
  void compare(Cudnn& library, const LibraryAttention& a, std::vector<int64_t> lengths = {}) {
    Values q(a.dtype, a.batch * a.q.batch, 1), k(a.dtype, a.batch * a.k.batch, 2),
        v(a.dtype, a.batch * a.v.batch, 3), y(a.dtype, a.batch * a.y.batch, 4);
    std::vector<int32_t> counts;
    for (int64_t n : lengths) counts.push_back(int32_t(n));
    counts.resize(size_t(2 * a.batch), int32_t(a.queries));
    if (!a.lengths) lengths.assign(size_t(a.batch), a.keys);
    auto place = [](const LibraryAttention::View& view, int64_t b, int64_t h, int64_t t) {
      return b * view.batch + h * view.head + t * view.token;
    };
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.keyHeads; ++h)
        for (int64_t t = lengths[size_t(b)]; t < a.keys; ++t)
          for (int64_t d = 0; d < a.depth; ++d) {
            k.set(place(a.k, b, h, t) + d, NAN);
            v.set(place(a.v, b, h, t) + d, NAN);
          }
    library.attend(a, {q.data(), k.data(), v.data(), a.lengths ? counts.data() : nullptr, y.data()},
                   workspace_.data(), &workspace_);
    const double bound = a.dtype == DType::BF16 ? 1.0 / 64 : 1.0 / 512;
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.queryHeads; ++h)
        for (int64_t t = 0; t < a.queries; ++t) {
          const int64_t group = h * a.keyHeads / a.queryHeads, all = lengths[size_t(b)];
          const int64_t seen =
              a.causal ? std::min(all, t + 1 + (a.lengths ? all - a.queries : 0)) : all;
          std::vector<double> weights;
          double largest = -INFINITY, sum = 0;
          for (int64_t j = 0; j < seen; ++j) {
            double dot = 0;
            for (int64_t d = 0; d < a.depth; ++d)
              dot += q.at(place(a.q, b, h, t) + d) * k.at(place(a.k, b, group, j) + d);
            weights.push_back(dot * a.scale);
            largest = std::max(largest, weights.back());
          }
          for (double& w : weights) sum += w = std::exp(w - largest);
          for (int64_t d = 0; d < a.valueDepth; ++d) {
            double want = 0;
            for (int64_t j = 0; j < seen; ++j)
              want += weights[size_t(j)] / sum * v.at(place(a.v, b, group, j) + d);
            ASSERT_NEAR(y.at(place(a.y, b, h, t) + d), want, bound)
                << "batch " << b << ", head " << h << ", query " << t << ", element " << d;
          }
        }
  }

  Variable library_;
  std::vector<unsigned char> workspace_ = std::vector<unsigned char>(64);
};

TEST_F(CudnnTest, EveryMaskIsTheLoops) {
  auto library = Cudnn::open();
  ASSERT_TRUE(library);
  for (DType dtype : {DType::BF16, DType::F16})
    for (bool causal : {false, true}) {
      compare(*library, attentionOf(2, 4, 2, 5, 7, 8, causal, false, dtype));
      compare(*library, attentionOf(1, 3, 3, 7, 7, 16, causal, false, dtype));
      compare(*library, attentionOf(1, 2, 1, 1, 1, 8, causal, false, dtype));
      compare(*library, attentionOf(3, 4, 2, 3, 9, 8, causal, true, dtype), {3, 9, 5});
    }
}

TEST_F(CudnnTest, ThePlanOfAShapeIsMadeOnce) {
  auto library = Cudnn::open();
  ASSERT_TRUE(library);
  LibraryAttention a = attentionOf(1, 2, 1, 4, 4, 8, true);
  for (int i = 0; i < 3; ++i) compare(*library, a);
  EXPECT_EQ(lines("cudnnBackendFinalize of a plan"), 1u);
  EXPECT_EQ(lines("cudnnBackendExecute"), 3u);
  EXPECT_EQ(lines("cudnnSetStream"), 3u);
  a.scale = 2;
  compare(*library, a);
  compare(*library, attentionOf(1, 2, 1, 4, 5, 8, true));
  EXPECT_EQ(lines("cudnnBackendFinalize of a plan"), 3u);
  EXPECT_EQ(library->plan(a), 4096u);
  EXPECT_EQ(lines("cudnnBackendFinalize of a plan"), 3u);
}

TEST_F(CudnnTest, EverythingIsGivenBack) {
  {
    auto library = Cudnn::open();
    ASSERT_TRUE(library);
    compare(*library, attentionOf(1, 2, 1, 4, 5, 8, true, true), {4});
  }
  EXPECT_GT(lines("cudnnBackendCreateDescriptor"), 20u);
  EXPECT_EQ(lines("cudnnBackendCreateDescriptor"), lines("cudnnBackendDestroyDescriptor"));
  EXPECT_EQ(lines("cudnnCreate"), lines("cudnnDestroy"));
}

TEST_F(CudnnTest, AnAbsentOldOrGpulessLibraryIsNoError) {
  std::string why;
  {
    Variable nowhere("LATHE_CUDNN", "/nowhere/libcudnn.so.9");
    EXPECT_EQ(Cudnn::open(), nullptr);
    EXPECT_EQ(Cudnn::open(&why), nullptr);
    EXPECT_THAT(why, HasSubstr("cuDNN was not found:\n  LATHE_CUDNN=/nowhere/"));
  }
  {
    Variable other("LATHE_CUDNN", "libm.so.6");
    EXPECT_EQ(Cudnn::open(&why), nullptr);
    EXPECT_EQ(why, "libm.so.6 has no cudnnCreate");
  }
  {
    Variable old("LATHE_MOCK_DNN_VERSION", "91001");
    EXPECT_EQ(Cudnn::open(&why), nullptr);
    EXPECT_THAT(why, HasSubstr("is version 91001, expected 91002 or later"));
  }
  Variable fail("LATHE_MOCK_DNN_FAIL", "cudnnCreate:1001");
  EXPECT_EQ(Cudnn::open(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("cudnnCreate failed: mock: failed"));
}

TEST_F(CudnnTest, WhatIsDeclinedIsNotAskedForAgain) {
  auto library = Cudnn::open();
  ASSERT_TRUE(library);
  const LibraryAttention a = attentionOf(1, 2, 1, 4, 5, 8);
  const char* text =
      "cuDNN has no engine for an attention of 1 x 2/1 heads, 4 queries, 5 keys, depth 8/8, bf16";
  {
    Variable none("LATHE_MOCK_DNN_ENGINES", "0");
    expectError(ErrorCode::Unsupported, text, [&] { library->plan(a); });
  }
  expectError(ErrorCode::Unsupported, text, [&] { library->plan(a); });
  {
    Variable much("LATHE_MOCK_DNN_WORKSPACE", "33554433");
    expectError(ErrorCode::Unsupported, "wants 33554433 bytes of workspace, at most 33554432",
                [&] { library->plan(attentionOf(1, 2, 1, 4, 6, 8)); });
  }
  {
    Variable fail("LATHE_MOCK_DNN_FAIL", "cudnnBackendFinalize of a plan:3002");
    expectError(ErrorCode::Unsupported, "mock: cudnnBackendFinalize of a plan fails",
                [&] { library->plan(attentionOf(1, 2, 1, 4, 7, 8)); });
  }
  // What fails may work the next time.
  const LibraryAttention other = attentionOf(1, 2, 1, 4, 8, 8);
  {
    Variable fail("LATHE_MOCK_DNN_FAIL", "cudnnBackendFinalize of a plan:5000");
    expectError(ErrorCode::Io, "cuDNN attention of 1 x 2/1 heads, 4 queries, 8 keys",
                [&] { library->plan(other); });
  }
  compare(*library, other);
}

TEST_F(CudnnTest, RefusesWhatDoesNotFit) {
  auto library = Cudnn::open();
  ASSERT_TRUE(library);
  alignas(16) unsigned char x[32];
  auto refuses = [&](LibraryAttention a, const LibraryAttentionOperands& o, const char* text) {
    expectError(ErrorCode::InvalidArgument, text,
                [&] { library->attend(a, o, workspace_.data(), nullptr); });
  };
  const LibraryAttentionOperands all{x, x, x, nullptr, x};
  refuses(attentionOf(1, 2, 1, 0, 4, 8), all, "sizes of at least 1");
  refuses(attentionOf(1, 3, 2, 4, 4, 8), all, "a multiple of the key heads");
  refuses(attentionOf(1, 2, 1, 4, 4, 12), all, "depths that are multiples of 8");
  refuses(attentionOf(1, 2, 1, 4, 4, 8, false, false, DType::F32), all, "expected bf16 or f16");
  const LibraryAttention a = attentionOf(1, 2, 1, 4, 4, 8);
  refuses(a, {x, nullptr, x, nullptr, x}, "an operand is missing");
  refuses(a, {x, x + 2, x, nullptr, x}, "begin at multiples of 16 bytes");
  refuses(attentionOf(1, 2, 1, 4, 4, 8, true, true), all, "lengths where they are used");
}

// What cuDNN writes of an H200.
constexpr const char* kH200 =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("totalGlobalMem":150754820096,"smClockRateKHz":1980000,"memClockRateKHz":3201000,)"
    R"("l2CacheSize":62914560,"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,)"
    R"("deviceName":"NVIDIA H200"})";

TEST_F(CudnnTest, PlansForAnotherDeviceAreNotRun) {
  auto library = Cudnn::openFor(kH200);
  ASSERT_TRUE(library);
  const LibraryAttention a = attentionOf(1, 2, 1, 4, 4, 8);
  EXPECT_EQ(library->plan(a), 4096u);
  alignas(16) unsigned char x[32];
  expectError(ErrorCode::InvalidArgument, "opened to make plans alone",
              [&] { library->attend(a, {x, x, x, nullptr, x}, workspace_.data(), nullptr); });
}

// The library itself, where it is installed: it has an engine for Hopper for each of our graphs,
// and compiles it. Loading its machine code takes a driver; the toolkit's stub of one says so.
TEST(CudnnPlans, TheLibraryHasAnEngineForEveryGraph) {
  if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) &&
      !dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_GLOBAL))
    GTEST_SKIP() << "neither a driver nor a toolkit's stub of it";
  std::string why;
  auto library = Cudnn::openFor(kH200, &why);
  if (!library) GTEST_SKIP() << why;
  auto isAccepted = [&](const LibraryAttention& a) -> std::string {
    try {
      library->plan(a);
    } catch (const Error& e) {
      if (std::string(e.what()).find("cuLibraryLoadData returned") == std::string::npos)
        return e.what();
    }
    return "";
  };
  for (bool causal : {false, true})
    for (bool lengths : {false, true})
      for (int64_t depth : {64, 128})
        EXPECT_EQ(
            isAccepted(attentionOf(1, 32, 8, 2048, lengths ? 4096 : 2048, depth, causal, lengths)),
            "");
  EXPECT_EQ(isAccepted(attentionOf(2, 12, 12, 197, 197, 64, false, false, DType::F16)), "");
  EXPECT_EQ(isAccepted(attentionOf(2, 8, 1, 64, 300, 256, true, true)), "");
}

#ifdef LATHE_HAS_CUDNN_HEADER
template <class... A>
constexpr bool sameInterface(int (*)(A...), auto other) {
  return []<class... B>(cudnnStatus_t (*)(B...)) {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  }(other);
}

TEST(CudnnApiTest, IsTheLibrarysInterface) {
  dnn::Api api;
#define LATHE_COMPARE(member, name, parameters) \
  static_assert(sameInterface(decltype(api.member)(), decltype (&::name)()), #name);
  LATHE_CUDNN_FUNCTIONS(LATHE_COMPARE)
#undef LATHE_COMPARE
#define LATHE_SAME(ours, theirs) static_assert(int(dnn::ours) == int(theirs), #ours)
  LATHE_SAME(kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  LATHE_SAME(kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  LATHE_SAME(kEngineHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  LATHE_SAME(kExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  LATHE_SAME(kPointwiseOp, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  LATHE_SAME(kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  LATHE_SAME(kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  LATHE_SAME(kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  LATHE_SAME(kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  LATHE_SAME(kMatmulOp, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  LATHE_SAME(kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  LATHE_SAME(kReductionOp, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  LATHE_SAME(kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  LATHE_SAME(kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  LATHE_SAME(kPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
  LATHE_SAME(kPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
  LATHE_SAME(kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  LATHE_SAME(kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  LATHE_SAME(kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  LATHE_SAME(kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  LATHE_SAME(kPlanEngineConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  LATHE_SAME(kPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  LATHE_SAME(kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  LATHE_SAME(kPointwiseOpKind, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  LATHE_SAME(kPointwiseOpX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  LATHE_SAME(kPointwiseOpB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  LATHE_SAME(kPointwiseOpY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  LATHE_SAME(kPointwiseOpT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  LATHE_SAME(kGraphOps, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  LATHE_SAME(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  LATHE_SAME(kTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  LATHE_SAME(kTensorDims, CUDNN_ATTR_TENSOR_DIMENSIONS);
  LATHE_SAME(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  LATHE_SAME(kTensorNumber, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  LATHE_SAME(kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  LATHE_SAME(kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  LATHE_SAME(kPackNumbers, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  LATHE_SAME(kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  LATHE_SAME(kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  LATHE_SAME(kMatmulPrecision, CUDNN_ATTR_MATMUL_COMP_TYPE);
  LATHE_SAME(kMatmulPaddingValue, CUDNN_ATTR_MATMUL_PADDING_VALUE);
  LATHE_SAME(kMatmulOpA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  LATHE_SAME(kMatmulOpB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  LATHE_SAME(kMatmulOpC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  LATHE_SAME(kMatmulOpKind, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  LATHE_SAME(kMatmulOpRows, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC);
  LATHE_SAME(kMatmulOpColumns, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC);
  LATHE_SAME(kMatmulOpDepth, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC);
  LATHE_SAME(kReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
  LATHE_SAME(kReductionPrecision, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  LATHE_SAME(kReductionOpX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  LATHE_SAME(kReductionOpY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  LATHE_SAME(kReductionOpKind, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  LATHE_SAME(kDeviceText, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  LATHE_SAME(kHandleType, CUDNN_TYPE_HANDLE);
  LATHE_SAME(kDataTypeType, CUDNN_TYPE_DATA_TYPE);
  LATHE_SAME(kBooleanType, CUDNN_TYPE_BOOLEAN);
  LATHE_SAME(kInt64Type, CUDNN_TYPE_INT64);
  LATHE_SAME(kDoubleType, CUDNN_TYPE_DOUBLE);
  LATHE_SAME(kPointerType, CUDNN_TYPE_VOID_PTR);
  LATHE_SAME(kHeuristicsModeType, CUDNN_TYPE_HEUR_MODE);
  LATHE_SAME(kPointwiseModeType, CUDNN_TYPE_POINTWISE_MODE);
  LATHE_SAME(kDescriptorType, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  LATHE_SAME(kReductionOperatorType, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  LATHE_SAME(kCharType, CUDNN_TYPE_CHAR);
  LATHE_SAME(kFloat32, CUDNN_DATA_FLOAT);
  LATHE_SAME(kFloat16, CUDNN_DATA_HALF);
  LATHE_SAME(kInt32, CUDNN_DATA_INT32);
  LATHE_SAME(kBfloat16, CUDNN_DATA_BFLOAT16);
  LATHE_SAME(kBoolean, CUDNN_DATA_BOOLEAN);
  LATHE_SAME(kAdd, CUDNN_POINTWISE_ADD);
  LATHE_SAME(kMultiply, CUDNN_POINTWISE_MUL);
  LATHE_SAME(kDivide, CUDNN_POINTWISE_DIV);
  LATHE_SAME(kSubtract, CUDNN_POINTWISE_SUB);
  LATHE_SAME(kExponential, CUDNN_POINTWISE_EXP);
  LATHE_SAME(kLogarithm, CUDNN_POINTWISE_LOG);
  LATHE_SAME(kGreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
  LATHE_SAME(kLess, CUDNN_POINTWISE_CMP_LT);
  LATHE_SAME(kLogicalAnd, CUDNN_POINTWISE_LOGICAL_AND);
  LATHE_SAME(kIndexAlongAxis, CUDNN_POINTWISE_GEN_INDEX);
  LATHE_SAME(kSelect, CUDNN_POINTWISE_BINARY_SELECT);
  LATHE_SAME(kSum, CUDNN_REDUCE_TENSOR_ADD);
  LATHE_SAME(kMax, CUDNN_REDUCE_TENSOR_MAX);
  LATHE_SAME(kBestGuess, CUDNN_HEUR_MODE_A);
#undef LATHE_SAME
  SUCCEED();
}
#endif

}  // namespace
}  // namespace lathe::cuda
