// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/attention/attention_calls.h"

#include "backends/cuda/lowering/kernel/steps.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// [offset, size.., stride..] of 3 or 4 axes.
struct View {
  explicit View(const ViewTerms& terms) : rank((terms.size() - 1) / 2), offset(terms[0]) {
    sizes.append(terms.begin() + 1, terms.begin() + 1 + rank);
    strides.append(terms.begin() + 1 + rank, terms.end());
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

AttentionKernel attentionOf(KernelOp call, StringRef name) {
  const auto config = configOf<AttentionConfig>(call);
  SmallVector<View> views;
  for (const ViewTerms& terms : config.views) views.emplace_back(terms);
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
  a.scale = config.scale;
  a.softcap = config.softcap;
  a.window = config.window;
  a.causal = config.causal;
  a.maskedRow = config.maskedRow;
  if (config.mask) {
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
  a.oldKeys = call.getConfig().contains(kOldKeys);
  const unsigned next = config.mask ? 4 : 3;
  if (a.causal == Causal::positions) a.positions = elementOf(call.getInputs()[next]);
  if (call.getKind() != "paged_attention") return a;
  const Value table = call.getInputs()[next + 1];
  a.table = elementOf(table);
  a.blockKeys = *a.keys.asConstant();
  a.blocks = k.sizes[0];
  a.entries = dimExprs(table)[1];
  a.keys = a.entries * DimExpr(a.blockKeys);
  return a;
}

// Of an op with operands q, k, v, positions and a mask.
template <class Op>
static std::string whyNot(Op op) {
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

std::string whyNotAttention(AttentionOp op) { return whyNot(op); }
std::string whyNotAttention(PagedAttentionOp op) {
  if (!dimExprs(op.getK())[2].asConstant())
    return "attention kernels want the number of keys in a block to be a number";
  return whyNot(op);
}

}  // namespace lathe::cuda
