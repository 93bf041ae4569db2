// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/call_facts.h"

#include "passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// [offset, size.., stride..] of 3 or 4 axes.
struct View {
  explicit View(ArrayAttr list) : rank((list.size() - 1) / 2), offset(sizeIn(list, 0)) {
    for (size_t i = 0; i < rank; ++i) {
      sizes.push_back(sizeIn(list, 1 + i));
      strides.push_back(sizeIn(list, 1 + rank + i));
    }
  }
  // Without heads a view is [batch, tokens, depth].
  AttentionView toAttention() const {
    return rank == 3 ? AttentionView{offset, strides[0], 0, strides[1]}
                     : AttentionView{offset, strides[0], strides[1], strides[2]};
  }
  int64_t heads() const { return rank == 3 ? 1 : *sizes[1].asConstant(); }

  size_t rank;
  DimExpr offset;
  SmallVector<DimExpr> sizes, strides;
};

}  // namespace

DimExpr sizeIn(ArrayAttr list, size_t i) {
  return *DimExpr::parse(cast<StringAttr>(list[i]).getValue().str());
}

DType elementOf(Value v) { return *dtypeOf(tensorType(v).getElementType()); }

DimExpr productOf(ArrayRef<DimExpr> sizes) {
  DimExpr product = 1;
  for (const DimExpr& d : sizes) product = product * d;
  return product;
}

SmallVector<DimExpr> denseStrides(ArrayRef<DimExpr> sizes) {
  SmallVector<DimExpr> strides(sizes.size(), DimExpr(1));
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

SmallVector<DimExpr> broadcastStrides(ArrayRef<DimExpr> sizes) {
  SmallVector<DimExpr> strides = denseStrides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == DimExpr(1)) strides[i] = 0;
  return strides;
}

AttentionKernel attentionOf(KernelOp call, StringRef name) {
  DictionaryAttr config = call.getConfig();
  auto text = [&](StringRef key) { return config.getAs<StringAttr>(key).getValue(); };
  auto number = [&](StringRef key) { return config.getAs<FloatAttr>(key).getValueAsDouble(); };
  SmallVector<View> views;
  for (Attribute a : config.getAs<ArrayAttr>("views")) views.emplace_back(cast<ArrayAttr>(a));
  const View &q = views[0], &k = views[1], &v = views[2];
  AttentionKernel a;
  a.name = name.str();
  a.dtype = elementOf(call.getInputs()[0]);
  a.batch = q.sizes[0];
  a.queries = q.sizes[q.rank - 2];
  a.keys = k.sizes[k.rank - 2];
  a.queryHeads = q.heads();
  a.keyHeads = k.heads();
  a.depth = *q.sizes.back().asConstant();
  a.valueDepth = *v.sizes.back().asConstant();
  a.q = q.toAttention();
  a.k = k.toAttention();
  a.v = v.toAttention();
  a.y = views[3].toAttention();
  a.scale = number("scale");
  a.softcap = number("softcap");
  a.window = config.getAs<IntegerAttr>("window").getInt();
  using Causal = AttentionKernel::Causal;
  a.causal = llvm::StringSwitch<Causal>(text("causal"))
                 .Case("top_left", Causal::TopLeft)
                 .Case("bottom_right", Causal::BottomRight)
                 .Case("positions", Causal::Positions)
                 .Default(Causal::None);
  using MaskedRow = AttentionKernel::MaskedRow;
  a.maskedRow = llvm::StringSwitch<MaskedRow>(text("masked_row"))
                    .Case("zero", MaskedRow::Zero)
                    .Case("uniform", MaskedRow::Uniform)
                    .Default(MaskedRow::Nan);
  const bool masked = config.getAs<BoolAttr>("mask").getValue();
  if (masked) {
    Value mask = call.getInputs()[3];
    a.mask = elementOf(mask);
    // Aligned at the last axis of [batch, heads, queries, keys], or of the same without heads.
    SmallVector<DimExpr> strides = broadcastStrides(dimExprs(mask));
    a.maskStrides = {0, 0, 0, 0};
    for (size_t i = 0; i < strides.size(); ++i) {
      size_t axis = 3 - i;
      if (q.rank == 3 && axis == 1) axis = 0;
      a.maskStrides[axis] = strides[strides.size() - 1 - i];
    }
  }
  if (a.causal == Causal::Positions) a.positions = elementOf(call.getInputs()[masked ? 4 : 3]);
  return a;
}

std::string whyNotAttention(AttentionOp op) {
  auto q = dimExprs(op.getQ()), v = dimExprs(op.getV()), k = dimExprs(op.getK());
  const bool heads = q.size() == 4;
  auto number = [](const DimExpr& d) { return d.asConstant().value_or(0); };
  AttentionKernel a;
  a.dtype = elementOf(op.getQ());
  a.queryHeads = heads ? number(q[1]) : 1;
  a.keyHeads = heads ? number(k[1]) : 1;
  a.depth = number(q.back());
  a.valueDepth = number(v.back());
  if (!a.queryHeads || !a.keyHeads || !a.depth || !a.valueDepth)
    return "attention kernels want the numbers of heads and the depths to be numbers";
  a.scale = op.getScale().convertToDouble();
  a.softcap = op.getSoftcap().convertToDouble();
  if (Value mask = op.getMask()) a.mask = elementOf(mask);
  if (Value positions = op.getPositions()) a.positions = elementOf(positions);
  return whyNotAttention(a);
}

bool isEmpty(Value tensor) {
  const auto count = elementCountOf(tensorType(tensor));
  return count && *count == DimExpr(0);
}

}  // namespace lathe::cuda
