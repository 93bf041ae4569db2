// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/padded_rows.h"

#include <map>

#include "lathe/runtime/axis_piece.h"

using namespace mlir;

namespace lathe {

// The axis in front of the features is that of a text's or an image's positions. A step that makes
// a token has one there, for as many texts as there are, and pays for messages, not for bytes.
std::optional<Cut> PaddedRows::cutOf(RankedTensorType type, std::string* why) {
  const int64_t axis = type.getRank() - 2;
  const StringAttr dim = axis < 0 ? StringAttr() : dimOf(type, axis);
  const std::optional<int64_t> most = dim ? mostOf(exprOf(dim)) : std::nullopt;
  if (!most) {
    *why = "the number of rows of " + shortType(type) + " has no range";
    return std::nullopt;
  }
  if (*most > 1)
    for (int64_t i = 0; i <= axis; ++i)
      if (!type.isDynamicDim(i) && type.getDimSize(i) > 0 && type.getDimSize(i) % ranks_ == 0)
        return Cut{i, ranks_};
  if (*most < ranks_) {
    *why = std::to_string(*most) + " along axis " + std::to_string(axis) + " of " +
           shortType(type) + " is less than one for each of " + std::to_string(ranks_) + " ranks";
    return std::nullopt;
  }
  return Cut{.axis = axis, .parts = ranks_, .whole = dim, .part = partOf(dim)};
}

std::optional<int64_t> PaddedRows::mostOf(const DimExpr& size) {
  std::map<std::string, int64_t, std::less<>> most;
  for (const std::string& name : size.symbols())
    if (auto symbol = module_.lookupSymbol<DimOp>(name)) most[name] = int64_t(symbol.getHi());
  return size.evaluate(most);
}

StringAttr PaddedRows::partOf(StringAttr dim) {
  MLIRContext* context = module_.getContext();
  const DimExpr size = exprOf(dim);
  if (auto number = size.asConstant()) return dimAttr(context, sizeOfPart(*number, ranks_));
  StringAttr& part = parts_[dim];
  if (part) return part;
  std::string name;
  DimOp last;
  for (const std::string& symbol : size.symbols()) {
    name += symbol + "_";
    last = module_.lookupSymbol<DimOp>(symbol);
  }
  name += "part";
  while (module_.lookupSymbol(name)) name += "_";
  OpBuilder b(context);
  b.setInsertionPointAfter(last);
  DimPartOp::create(b, last.getLoc(), StringRef(name), DimsAttr::get(context, {dim}),
                    uint64_t(ranks_));
  return part = StringAttr::get(context, name);
}

Value withPadding(OpMaker& m, Value v, const Cut& cut) {
  if (!cut.isPadded()) return v;
  auto type = tensorType(v);
  auto dims = dimsOf(type);
  StringAttr& along = dims[size_t(cut.axis)];
  const DimExpr padding = exprOf(cut.part) * DimExpr(cut.parts) - exprOf(cut.whole);
  if (padding == DimExpr(0)) return v;
  along = m.dim(padding);
  const Value zeros = m.broadcast(m.scalar(type.getElementType(), 0), dims);
  return m.make<ConcatOp>(SmallVector<Value>{v, zeros}, m.b.getI64IntegerAttr(cut.axis));
}

// A slice would have to be proved inside, which takes more than sums of products.
Value withoutPadding(OpMaker& m, Value v, const Cut& cut) {
  if (!cut.isPadded()) return v;
  const Value rows = m.iota({cut.whole}, 0, m.b.getI64Type());
  return m.make<GatherOp>(v, rows, m.b.getI64IntegerAttr(cut.axis));
}

}  // namespace lathe
