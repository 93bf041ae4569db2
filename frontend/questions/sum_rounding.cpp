// SPDX-License-Identifier: Apache-2.0
#include "frontend/questions/sum_rounding.h"

#include <cmath>

#include "ir/types.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace lathe {
namespace {

int64_t sizeOf(Value v, int64_t axis, const Symbols& sizes) {
  auto type = tensorType(v);
  auto dim = dimExprOf(type, axis < 0 ? axis + type.getRank() : axis);
  return dim ? dim->evaluate(sizes).value_or(1) : 1;
}

// How many terms each element of the op's result adds; 0 for an op that is no product.
int64_t termsOf(Operation* op, const Symbols& sizes) {
  if (isa<MatmulOp, LinearOp, AttentionOp>(op)) return sizeOf(op->getOperand(0), -1, sizes);
  if (isa<ConvolutionOp>(op)) {
    Value w = op->getOperand(1);
    return sizeOf(w, 1, sizes) * sizeOf(w, 2, sizes) * sizeOf(w, 3, sizes);
  }
  return 0;
}

}  // namespace

double roundingOfSums(func::FuncOp function, const Symbols& sizes) {
  llvm::DenseMap<Value, int64_t> depths;  // products on the longest way to a value
  int64_t longest = 0, deepest = 0;
  for (Operation& op : function.getBody().front()) {
    int64_t depth = 0;
    for (Value v : op.getOperands()) depth = std::max(depth, depths.lookup(v));
    const int64_t terms = termsOf(&op, sizes);
    longest = std::max(longest, terms);
    depth += terms > 0;
    deepest = std::max(deepest, depth);
    for (Value v : op.getResults()) depths[v] = depth;
  }
  return std::sqrt(double(longest)) * double(deepest) * 0x1p-24;
}

}  // namespace lathe
