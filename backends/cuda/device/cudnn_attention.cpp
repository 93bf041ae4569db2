// SPDX-License-Identifier: Apache-2.0
// An attention as a graph of cuDNN's ops. Its engines recognize a fused attention by this order of
// ops: product, scale, masks as selections by indices, softmax in five parts, product.
#include <array>
#include <limits>

#include "backends/cuda/device/cudnn.h"

namespace lathe::cuda {
namespace {

using Sizes = std::array<int64_t, 4>;

class AttentionGraph {
 public:
  AttentionGraph(const dnn::Api& api, const LibraryAttention& a) : api_(api), a_(a) {}

  DnnGraph build() {
    const dnn::DataType type = a_.dtype == DType::F16 ? dnn::kFloat16 : dnn::kBfloat16;
    const Tensor q = operand(kDnnQ, type, {a_.batch, a_.queryHeads, a_.queries, a_.depth},
                             {a_.q.batch, a_.q.head, a_.q.token, 1}),
                 // Keys are the second matrix of a product, whose rows are the depth.
        k = operand(kDnnK, type, {a_.batch, a_.keyHeads, a_.depth, a_.keys},
                    {a_.k.batch, a_.k.head, 1, a_.k.token}),
                 v = operand(kDnnV, type, {a_.batch, a_.keyHeads, a_.keys, a_.valueDepth},
                             {a_.v.batch, a_.v.head, a_.v.token, 1}),
                 y = operand(kDnnY, type, {a_.batch, a_.queryHeads, a_.queries, a_.valueDepth},
                             {a_.y.batch, a_.y.head, a_.y.token, 1});
    if (a_.lengths) {
      keyLengths_ = operand(kDnnKeyLengths, dnn::kInt32, {a_.batch, 1, 1, 1}, {1, 1, 1, 1});
      queryLengths_ = operand(kDnnQueryLengths, dnn::kInt32, {a_.batch, 1, 1, 1}, {1, 1, 1, 1});
    }
    Tensor s = scores();
    multiply(q, k, s, {dnn::kMatmulOpColumns, keyLengths_});
    s = pointwise(dnn::kMultiply, {s, number(a_.scale)}, scores());
    if (a_.lengths) s = masked(s, insideLengths(s));
    if (a_.causal) s = masked(s, inFront(s));
    const Tensor largest = reduce(dnn::kMax, s);
    const Tensor power =
        pointwise(dnn::kExponential, {pointwise(dnn::kSubtract, {s, largest}, scores())}, scores());
    const Tensor sum = reduce(dnn::kSum, power);
    // Nobody reads the logarithm of the sum, but the engines look for it.
    pointwise(dnn::kAdd, {largest, pointwise(dnn::kLogarithm, {sum}, rows())}, rows());
    const Tensor weights = pointwise(dnn::kDivide, {power, sum}, scores(type));
    multiply(weights, v, y, {dnn::kMatmulOpDepth, keyLengths_});
    return std::move(graph_);
  }

 private:
  using Tensor = int;  // its place in graph_.others; -1: none

  DnnDescriptor& make(dnn::DescriptorKind kind) {
    graph_.others.emplace_back(api_, kind);
    return graph_.others.back();
  }
  const DnnDescriptor& at(Tensor t) const { return graph_.others[size_t(t)]; }

  Tensor tensor(int64_t number, dnn::DataType type, const Sizes& dims, const Sizes& strides,
                bool isVirtual, bool isByValue = false) {
    DnnDescriptor& t = make(dnn::kTensor);
    t.set<dnn::DataType>(dnn::kTensorType, dnn::kDataTypeType, {type});
    t.setRaw(dnn::kTensorDims, dnn::kInt64Type, 4, dims.data());
    t.setRaw(dnn::kTensorStrides, dnn::kInt64Type, 4, strides.data());
    t.set<int64_t>(dnn::kTensorNumber, dnn::kInt64Type, {number});
    t.set<int64_t>(dnn::kTensorAlignment, dnn::kInt64Type, {16});
    t.setRaw(dnn::kTensorIsVirtual, dnn::kBooleanType, 1, &isVirtual);
    if (isByValue) t.setRaw(dnn::kTensorIsByValue, dnn::kBooleanType, 1, &isByValue);
    t.finalize();
    return Tensor(graph_.others.size()) - 1;
  }
  Tensor operand(DnnOperand which, dnn::DataType type, const Sizes& dims, const Sizes& strides) {
    return tensor(which, type, dims, strides, false);
  }
  // Of every query and key.
  Tensor scores(dnn::DataType type = dnn::kFloat32) {
    const int64_t row = a_.keys, head = a_.queries * row;
    return tensor(next_++, type, {a_.batch, a_.queryHeads, a_.queries, a_.keys},
                  {a_.queryHeads * head, head, row, 1}, true);
  }
  // Of every query.
  Tensor rows() {
    return tensor(next_++, dnn::kFloat32, {a_.batch, a_.queryHeads, a_.queries, 1},
                  {a_.queryHeads * a_.queries, a_.queries, 1, 1}, true);
  }
  Tensor number(float value) {
    graph_.numbers.push_back({.tensor = next_, .value = value});
    return tensor(next_++, dnn::kFloat32, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
  }

  // `length`, if there is one, bounds the product: its columns, or its depth.
  struct Bound {
    dnn::Attribute attribute;
    Tensor length;
  };
  void multiply(Tensor x, Tensor y, Tensor result, const Bound& bound) {
    DnnDescriptor& kind = make(dnn::kMatmul);
    kind.set<dnn::DataType>(dnn::kMatmulPrecision, dnn::kDataTypeType, {dnn::kFloat32});
    // What lies behind the lengths counts as 0.
    if (bound.attribute == dnn::kMatmulOpColumns && bound.length >= 0)
      kind.set<double>(dnn::kMatmulPaddingValue, dnn::kDoubleType, {0});
    kind.finalize();
    const Tensor ofKind = Tensor(graph_.others.size()) - 1;
    DnnDescriptor& op = graph_.ops.emplace_back(api_, dnn::kMatmulOp);
    op.set(dnn::kMatmulOpKind, at(ofKind));
    op.set(dnn::kMatmulOpA, at(x));
    op.set(dnn::kMatmulOpB, at(y));
    op.set(dnn::kMatmulOpC, at(result));
    if (bound.length >= 0) {
      op.set(dnn::kMatmulOpRows, at(queryLengths_));
      op.set(bound.attribute, at(bound.length));
    }
    op.finalize();
  }

  // Operands are x, b and the condition of a selection.
  Tensor pointwise(dnn::PointwiseMode mode, const std::vector<Tensor>& operands, Tensor result,
                   dnn::DataType precision = dnn::kFloat32, int64_t axis = -1) {
    DnnDescriptor& kind = make(dnn::kPointwise);
    kind.set<dnn::PointwiseMode>(dnn::kPointwiseMode, dnn::kPointwiseModeType, {mode});
    kind.set<dnn::DataType>(dnn::kPointwisePrecision, dnn::kDataTypeType, {precision});
    if (axis >= 0) kind.set<int64_t>(dnn::kPointwiseAxis, dnn::kInt64Type, {axis});
    kind.finalize();
    const Tensor ofKind = Tensor(graph_.others.size()) - 1;
    DnnDescriptor& op = graph_.ops.emplace_back(api_, dnn::kPointwiseOp);
    op.set(dnn::kPointwiseOpKind, at(ofKind));
    constexpr dnn::Attribute kOperands[] = {dnn::kPointwiseOpX, dnn::kPointwiseOpB,
                                            dnn::kPointwiseOpT};
    for (size_t i = 0; i < operands.size(); ++i) op.set(kOperands[i], at(operands[i]));
    op.set(dnn::kPointwiseOpY, at(result));
    op.finalize();
    return result;
  }
  Tensor index(Tensor like, int64_t axis) {
    return pointwise(dnn::kIndexAlongAxis, {like}, scores(dnn::kInt32), dnn::kInt32, axis);
  }
  Tensor whole(dnn::PointwiseMode mode, Tensor a, Tensor b) {
    return pointwise(mode, {a, b}, scores(dnn::kInt32), dnn::kInt32, 3);
  }
  Tensor truth(dnn::PointwiseMode mode, Tensor a, Tensor b) {
    return pointwise(mode, {a, b}, scores(dnn::kBoolean), dnn::kBoolean);
  }
  Tensor masked(Tensor s, Tensor visible) {
    return pointwise(dnn::kSelect, {s, number(-std::numeric_limits<float>::infinity()), visible},
                     scores());
  }
  Tensor insideLengths(Tensor s) {
    const Tensor row = index(s, 2), column = index(s, 3);
    const Tensor rows = truth(dnn::kLess, row, queryLengths_),
                 columns = truth(dnn::kLess, column, keyLengths_);
    return truth(dnn::kLogicalAnd, rows, columns);
  }
  Tensor inFront(Tensor s) {
    Tensor row = index(s, 2);
    const Tensor column = index(s, 3);
    if (a_.lengths) row = whole(dnn::kSubtract, whole(dnn::kAdd, row, keyLengths_), queryLengths_);
    return truth(dnn::kGreaterOrEqual, row, column);
  }

  Tensor reduce(dnn::ReductionOperator which, Tensor x) {
    const Tensor y = rows();
    DnnDescriptor& kind = make(dnn::kReduction);
    kind.set<dnn::ReductionOperator>(dnn::kReductionOperator, dnn::kReductionOperatorType, {which});
    kind.set<dnn::DataType>(dnn::kReductionPrecision, dnn::kDataTypeType, {dnn::kFloat32});
    kind.finalize();
    const Tensor ofKind = Tensor(graph_.others.size()) - 1;
    DnnDescriptor& op = graph_.ops.emplace_back(api_, dnn::kReductionOp);
    op.set(dnn::kReductionOpKind, at(ofKind));
    op.set(dnn::kReductionOpX, at(x));
    op.set(dnn::kReductionOpY, at(y));
    op.finalize();
    return y;
  }

  const dnn::Api& api_;
  const LibraryAttention& a_;
  DnnGraph graph_;
  Tensor keyLengths_ = -1, queryLengths_ = -1;
  int64_t next_ = 100;  // numbers of tensors that are no operands
};

}  // namespace

DnnGraph attentionGraph(const dnn::Api& api, const LibraryAttention& attention) {
  return AttentionGraph(api, attention).build();
}

}  // namespace lathe::cuda
