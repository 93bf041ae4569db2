// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Lathe uses of cuDNN's graph interface, declared by hand. Values are compared with
// cudnn_graph.h in tests/unit/cuda/cudnn_test.cpp.
#include <cstddef>
#include <cstdint>

namespace lathe::cuda::dnn {

using Status = int;
using Handle = struct DnnHandleTag*;
using Descriptor = void*;
using Stream = void*;

enum DescriptorKind : int {
  kPointwise = 0,
  kEngineConfig = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kPointwiseOp = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOp = 19,
  kReduction = 21,
  kReductionOp = 22,
  kDeviceProperties = 38,
};
enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsDevice = 204,
  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceBytes = 402,
  kPlanDevice = 407,
  kPointwiseOpKind = 750,
  kPointwiseOpX = 751,
  kPointwiseOpB = 752,
  kPointwiseOpY = 753,
  kPointwiseOpT = 758,
  kGraphHandle = 800,
  kGraphOps = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorNumber = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackNumbers = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kMatmulPrecision = 1500,
  kMatmulPaddingValue = 1503,
  kMatmulOpA = 1520,
  kMatmulOpB = 1521,
  kMatmulOpC = 1522,
  kMatmulOpKind = 1523,
  kMatmulOpRows = 1525,
  kMatmulOpColumns = 1526,
  kMatmulOpDepth = 1527,
  kReductionOperator = 1600,
  kReductionPrecision = 1601,
  kReductionOpX = 1610,
  kReductionOpY = 1611,
  kReductionOpKind = 1612,
  kDeviceText = 2702,
};
enum AttributeType : int {
  kHandleType = 0,
  kDataTypeType = 1,
  kBooleanType = 2,
  kInt64Type = 3,
  kDoubleType = 5,
  kPointerType = 6,
  kHeuristicsModeType = 8,
  kPointwiseModeType = 14,
  kDescriptorType = 15,
  kReductionOperatorType = 18,
  kCharType = 24,
};
enum DataType : int { kFloat32 = 0, kFloat16 = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum PointwiseMode : int {
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExponential = 13,
  kLogarithm = 15,
  kGreaterOrEqual = 303,
  kLess = 304,
  kLogicalAnd = 400,
  kIndexAlongAxis = 501,
  kSelect = 601,
};
enum ReductionOperator : int { kSum = 0, kMax = 3 };
enum HeuristicsMode : int { kBestGuess = 3 };

// F(member, name in the library, parameters)
#define LATHE_CUDNN_FUNCTIONS(F)                                                                 \
  F(create, cudnnCreate, (Handle*))                                                              \
  F(destroy, cudnnDestroy, (Handle))                                                             \
  F(setStream, cudnnSetStream, (Handle, Stream))                                                 \
  F(createDescriptor, cudnnBackendCreateDescriptor, (DescriptorKind, Descriptor*))               \
  F(destroyDescriptor, cudnnBackendDestroyDescriptor, (Descriptor))                              \
  F(set, cudnnBackendSetAttribute, (Descriptor, Attribute, AttributeType, int64_t, const void*)) \
  F(get, cudnnBackendGetAttribute,                                                               \
    (Descriptor, Attribute, AttributeType, int64_t, int64_t*, void*))                            \
  F(finalize, cudnnBackendFinalize, (Descriptor))                                                \
  F(execute, cudnnBackendExecute, (Handle, Descriptor, Descriptor))

struct Api {
#define LATHE_CUDNN_MEMBER(member, name, parameters) Status(*member) parameters = nullptr;
  LATHE_CUDNN_FUNCTIONS(LATHE_CUDNN_MEMBER)
#undef LATHE_CUDNN_MEMBER
  size_t (*version)() = nullptr;
  const char* (*statusText)(Status) = nullptr;
  void (*lastError)(char*, size_t) = nullptr;
};

}  // namespace lathe::cuda::dnn
