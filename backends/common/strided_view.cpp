// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/strided_view.h"

#include "lathe/backends/region_plan.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe {
namespace {

// Splits and merges dims: a run of several dims has to lie dense to count as one. False if no
// strides describe the result.
bool reshape(StridedView& view, ArrayRef<DimExpr> to) {
  SmallVector<DimExpr> strides(to.size(), DimExpr(0));
  for (const ReshapeRun& run : reshapeRuns(view.sizes, to)) {
    std::optional<DimExpr> inner;  // of the run as one dim
    DimExpr whole = 1;
    for (size_t n = run.fromEnd; n-- > run.from;) {
      if (view.sizes[n] == DimExpr(1)) continue;
      if (!inner) inner = view.strides[n];
      if (!(view.strides[n] == *inner * whole)) return false;
      whole = whole * view.sizes[n];
    }
    DimExpr step = inner.value_or(DimExpr(1));
    for (size_t n = run.toEnd; n-- > run.to;) {
      strides[n] = step;
      step = step * to[n];
    }
  }
  view.sizes.assign(to.begin(), to.end());
  view.strides = std::move(strides);
  return true;
}

bool apply(Operation* op, StridedView& view) {
  if (auto t = dyn_cast<TransposeOp>(op)) {
    view.permute(t.getPermutation());
    return true;
  }
  if (auto r = dyn_cast<ReshapeOp>(op)) return reshape(view, dimExprs(r.getResult()));
  auto slice = dyn_cast<SliceOp>(op);
  if (!slice) return true;
  view.sizes = dimExprs(slice.getResult());
  for (size_t i = 0; i < view.strides.size(); ++i) {
    view.offset = view.offset + exprOf(slice.getStarts().getDims()[i]) * view.strides[i];
    view.strides[i] = view.strides[i] * DimExpr(slice.getStrides()[i]);
  }
  return true;
}

bool isNamed(Value v) { return elementCountOf(tensorType(v)).has_value(); }

}  // namespace

StridedView StridedView::dense(Value v) {
  StridedView view{v, 0, dimExprs(v), {}};
  view.strides.assign(view.sizes.size(), DimExpr(1));
  for (size_t i = view.sizes.size(); i-- > 1;)
    view.strides[i - 1] = view.strides[i] * view.sizes[i];
  return view;
}

void StridedView::permute(ArrayRef<int64_t> permutation) {
  SmallVector<DimExpr> oldSizes = sizes, oldStrides = strides;
  for (auto [i, p] : llvm::enumerate(permutation)) {
    sizes[i] = oldSizes[size_t(p)];
    strides[i] = oldStrides[size_t(p)];
  }
}

bool StridedView::denseFrom(size_t axis) const {
  DimExpr expected = 1;
  for (size_t i = sizes.size(); i-- > axis;) {
    if (!(sizes[i] == DimExpr(1)) && !(strides[i] == expected)) return false;
    expected = expected * sizes[i];
  }
  return true;
}

ViewTerms StridedView::terms() const {
  ViewTerms terms{offset};
  terms.insert(terms.end(), sizes.begin(), sizes.end());
  terms.insert(terms.end(), strides.begin(), strides.end());
  return terms;
}

StridedView viewOf(Value v, Operation* inPlace) {
  SmallVector<Value> chain{v};
  while (Operation* op = chain.back().getDefiningOp()) {
    if (op != inPlace && !isa<TransposeOp, ReshapeOp, SliceOp>(op)) break;
    if (!isNamed(op->getOperand(0))) break;
    chain.push_back(op->getOperand(0));
  }
  // The longest chain that strides describe.
  for (size_t length = chain.size() - 1; length > 0; --length) {
    StridedView view = StridedView::dense(chain[length]);
    bool fits = true;
    for (size_t i = length; fits && i-- > 0;) fits = apply(chain[i].getDefiningOp(), view);
    if (fits) return view;
  }
  return StridedView::dense(v);
}

}  // namespace lathe
