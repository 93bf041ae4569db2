// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult MatmulOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  auto ta = tensorType(a.getA()), tb = tensorType(a.getB());
  if (ta.getRank() < 2 || tb.getRank() < 2 || ta.getElementType() != tb.getElementType())
    return emitOptionalError(loc,
                             "'lathe.matmul' [C1] needs two operands of rank 2 or more and one ",
                             "element type, got ", shortType(ta), " and ", shortType(tb));
  StringAttr ka = dimOf(ta, ta.getRank() - 1), kb = dimOf(tb, tb.getRank() - 2);
  if (!ka || ka != kb)
    return emitOptionalError(
        loc, "'lathe.matmul' [C2] inner dims cannot be proved equal: ", ka ? ka.getValue() : "?",
        " in ", shortType(ta), " and ", kb ? kb.getValue() : "?", " in ", shortType(tb),
        ka && ka == dimOf(tb, tb.getRank() - 1) ? "; transpose the right operand?" : "");
  SmallVector<StringAttr> da = dimsOf(ta), db = dimsOf(tb), dims;
  StringAttr m = da[da.size() - 2], n = db.back();
  da.truncate(da.size() - 2);
  db.truncate(db.size() - 2);
  size_t rank = std::max(da.size(), db.size());
  for (size_t i = 0; i < rank; ++i) {
    bool hasA = i + da.size() >= rank, hasB = i + db.size() >= rank;
    StringAttr x = hasA ? da[i + da.size() - rank] : StringAttr();
    StringAttr y = hasB ? db[i + db.size() - rank] : StringAttr();
    if (!hasA || (hasB && isOne(x)))
      dims.push_back(y);
    else if (!hasB || isOne(y) || (x && x == y))
      dims.push_back(x);
    else
      return emitOptionalError(loc, "'lathe.matmul' [C3] leading dim ", i,
                               " cannot be proved equal in ", shortType(ta), " and ",
                               shortType(tb));
  }
  dims.append({m, n});
  r.push_back(tensorOf(dims, ta.getElementType()));
  return success();
}

LogicalResult ConvolutionOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc,
                                              Adaptor a, SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), w = tensorType(a.getW());
  if (x.getRank() != 4 || w.getRank() != 4 || x.getElementType() != w.getElementType())
    return emitOptionalError(loc,
                             "'lathe.convolution' [C1] needs two rank-4 operands of one element ",
                             "type, got ", shortType(x), " and ", shortType(w));
  if (!dimOf(x, 1) || dimOf(x, 1) != dimOf(w, 1) || x.isDynamicDim(2) || x.isDynamicDim(3) ||
      w.isDynamicDim(2) || w.isDynamicDim(3))
    return emitOptionalError(loc, "'lathe.convolution' [C2] channels differ or sizes are unknown: ",
                             shortType(x), " and ", shortType(w));
  auto strides = a.getStrides(), padding = a.getPadding();
  if (strides.size() != 2 || padding.size() != 4 ||
      llvm::any_of(strides, [](int64_t s) { return s < 1; }) ||
      llvm::any_of(padding, [](int64_t p) { return p < 0 || p > (int64_t(1) << 48); }))
    return emitOptionalError(loc,
                             "'lathe.convolution' [C3] needs two strides of at least 1 and four ",
                             "non-negative paddings of at most 2^48");
  SmallVector<StringAttr> dims{dimOf(x, 0), dimOf(w, 0)};
  for (int i = 0; i < 2; ++i) {
    int64_t room = 0;
    const bool isTooLarge =
        __builtin_add_overflow(x.getDimSize(2 + i),
                               padding[2 * i] + padding[2 * i + 1] - w.getDimSize(2 + i), &room) ||
        room == std::numeric_limits<int64_t>::max();
    if (isTooLarge)
      return emitOptionalError(loc, "'lathe.convolution' [C4] the padded image ", shortType(x),
                               " has too many elements");
    if (room < 0)
      return emitOptionalError(loc, "'lathe.convolution' [C4] kernel ", shortType(w),
                               " is larger than the padded image ", shortType(x));
    dims.push_back(dimAttr(c, DimExpr(room / strides[i] + 1)));
  }
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/contraction.cpp.inc"
