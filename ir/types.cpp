// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe {

StringAttr dimOf(RankedTensorType type, int64_t axis) {
  if (!type.isDynamicDim(axis))
    return StringAttr::get(type.getContext(), std::to_string(type.getDimSize(axis)));
  if (auto dims = dyn_cast_or_null<DimsAttr>(type.getEncoding())) return dims.getDims()[axis];
  return {};
}

SmallVector<StringAttr> dimsOf(RankedTensorType type) {
  SmallVector<StringAttr> dims;
  for (int64_t i = 0; i < type.getRank(); ++i) dims.push_back(dimOf(type, i));
  return dims;
}

DimExpr exprOf(StringAttr dim) { return *DimExpr::parse(std::string_view(dim.data(), dim.size())); }

std::optional<DimExpr> dimExprOf(RankedTensorType type, int64_t axis) {
  if (!type.isDynamicDim(axis)) return DimExpr(type.getDimSize(axis));
  StringAttr dim = dimOf(type, axis);
  if (!dim) return std::nullopt;
  return exprOf(dim);
}

StringAttr dimAttr(MLIRContext* context, const DimExpr& expr) {
  return StringAttr::get(context, expr.text());
}

bool isOne(StringAttr dim) { return dim && dim.getValue() == "1"; }

RankedTensorType tensorOf(ArrayRef<StringAttr> dims, Type element) {
  SmallVector<int64_t> shape;
  bool dynamic = false, named = true;
  for (StringAttr d : dims) {
    int64_t value;
    if (d && !d.getValue().getAsInteger(10, value) && value >= 0) {
      shape.push_back(value);
    } else {
      shape.push_back(ShapedType::kDynamic);
      dynamic = true;
      named &= bool(d);
    }
  }
  Attribute encoding =
      dynamic && named ? Attribute(DimsAttr::get(element.getContext(), dims)) : Attribute();
  return RankedTensorType::get(shape, element, encoding);
}

RankedTensorType tensorOf(DimsAttr dims, Type element) { return tensorOf(dims.getDims(), element); }

RankedTensorType withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

std::optional<DimExpr> elementCountOf(RankedTensorType type) {
  DimExpr product(1);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    auto dim = dimExprOf(type, i);
    if (!dim) return std::nullopt;
    product = product * *dim;
  }
  return product;
}

std::string shortType(Type type) {
  std::string s;
  llvm::raw_string_ostream os(s);
  auto t = dyn_cast<RankedTensorType>(type);
  if (!t) {
    os << type;
    return s;
  }
  if (auto dtype = dtypeOf(t.getElementType()))
    os << std::string(nameOf(*dtype));
  else
    os << t.getElementType();
  os << "[";
  llvm::interleaveComma(dimsOf(t), os, [&](StringAttr d) { os << (d ? d.getValue() : "?"); });
  os << "]";
  return s;
}

Type computeType(Type element) {
  return element.isF64() ? element : Float32Type::get(element.getContext());
}

Type elementTypeOf(MLIRContext* context, DType dtype) {
  (void)nameOf(dtype);  // throws for a value outside the enumeration
  Builder b(context);
  switch (dtype) {
    case DType::F64:
      return b.getF64Type();
    case DType::F32:
      return b.getF32Type();
    case DType::BF16:
      return b.getBF16Type();
    case DType::F16:
      return b.getF16Type();
    case DType::I64:
      return b.getI64Type();
    case DType::I32:
      return b.getI32Type();
    case DType::I16:
      return b.getI16Type();
    case DType::I8:
      return b.getI8Type();
    case DType::U8:
      return b.getIntegerType(8, /*isSigned=*/false);
    case DType::Bool:
      return b.getI1Type();
    case DType::I4:
      return b.getIntegerType(4);
    case DType::U4:
      return b.getIntegerType(4, /*isSigned=*/false);
  }
  return {};
}

std::optional<DType> dtypeOf(Type element) {
  if (element.isF64()) return DType::F64;
  if (element.isF32()) return DType::F32;
  if (element.isBF16()) return DType::BF16;
  if (element.isF16()) return DType::F16;
  if (element.isUnsignedInteger(8)) return DType::U8;
  if (element.isUnsignedInteger(4)) return DType::U4;
  if (element.isSignlessInteger(64)) return DType::I64;
  if (element.isSignlessInteger(32)) return DType::I32;
  if (element.isSignlessInteger(16)) return DType::I16;
  if (element.isSignlessInteger(8)) return DType::I8;
  if (element.isSignlessInteger(4)) return DType::I4;
  if (element.isSignlessInteger(1)) return DType::Bool;
  return std::nullopt;
}

static StringRef spell(StringAttr dim) { return dim ? dim.getValue() : "?"; }

LogicalResult inferBroadcast(std::optional<Location> loc, StringRef op, ArrayRef<Value> operands,
                             Type element, SmallVectorImpl<Type>& result, bool firstIsCondition) {
  auto typed = operands.drop_front(firstIsCondition ? 1 : 0);
  auto first = tensorType(typed[0]);
  for (Value v : typed.drop_front())
    if (tensorType(v).getElementType() != first.getElementType())
      return emitOptionalError(loc, "'", op, "' [C1] element types differ: ", shortType(first),
                               " and ", shortType(v.getType()), "; insert a cast");
  auto dims = dimsOf(tensorType(operands[0]));
  for (Value v : operands.drop_front()) {
    auto type = tensorType(v);
    SmallVector<StringAttr> other = dimsOf(type);
    size_t rank = std::max(dims.size(), other.size());
    SmallVector<StringAttr> joined(rank);
    for (size_t i = 0; i < rank; ++i) {
      bool hasA = i + dims.size() >= rank, hasB = i + other.size() >= rank;
      StringAttr a = hasA ? dims[i + dims.size() - rank] : StringAttr();
      StringAttr b = hasB ? other[i + other.size() - rank] : StringAttr();
      if (!hasA || (hasB && isOne(a)))
        joined[i] = b;
      else if (!hasB || isOne(b) || (a && a == b))
        joined[i] = a;
      else
        return emitOptionalError(
            loc, "'", op, "' [C2] dim ", i, " cannot be proved equal: ", spell(a), " in ",
            shortType(operands[0].getType()), " and ", spell(b), " in ", shortType(type));
    }
    dims = joined;
  }
  result.push_back(tensorOf(dims, element ? element : first.getElementType()));
  return success();
}

bool broadcastsTo(RankedTensorType from, ArrayRef<StringAttr> to) {
  auto dims = dimsOf(from);
  if (dims.size() > to.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    StringAttr want = to[to.size() - dims.size() + i];
    if (!isOne(dims[i]) && (!dims[i] || dims[i] != want)) return false;
  }
  return true;
}

LogicalResult inferReduce(std::optional<Location> loc, StringRef op, Value x,
                          ArrayRef<int64_t> axes, bool keepDims, SmallVectorImpl<Type>& result) {
  auto type = tensorType(x);
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= type.getRank())
      return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " is outside rank ",
                               type.getRank(), " of ", shortType(type));
    if (axis <= last) return emitOptionalError(loc, "'", op, "' [C2] the axes do not ascend");
    last = axis;
  }
  SmallVector<StringAttr> dims;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (!llvm::is_contained(axes, i))
      dims.push_back(dimOf(type, i));
    else if (keepDims)
      dims.push_back(StringAttr::get(type.getContext(), "1"));
  }
  result.push_back(tensorOf(dims, type.getElementType()));
  return success();
}

LogicalResult inferArgReduce(std::optional<Location> loc, StringRef op, Value x, int64_t axis,
                             SmallVectorImpl<Type>& result) {
  auto type = tensorType(x);
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " is outside rank ",
                             type.getRank(), " of ", shortType(type));
  if (type.getDimSize(axis) == 0)
    return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " of ", shortType(type),
                             " has no elements");
  auto dims = dimsOf(type);
  dims.erase(dims.begin() + axis);
  result.push_back(tensorOf(dims, IntegerType::get(type.getContext(), 64)));
  return success();
}

}  // namespace lathe
