// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/attributes.h"

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"

using namespace mlir;

namespace lathe {
namespace {

template <class Attr, class Enum>
Attribute keyword(MLIRContext* context, const Keyword& k) {
  if (auto value = parseKeyword<Enum>(k.value)) return Attr::get(context, *value);
  throw Error(ErrorCode::InvalidArgument, std::string(k.enumeration) + " is one of " +
                                              choicesOf<Enum>() + "; got '" + k.value + "'");
}

Attribute fromKeyword(MLIRContext* c, const Keyword& k) {
#define LATHE_KEYWORD(Enum) \
  if (k.enumeration == Keywords<Enum>::enumeration) return keyword<Enum##Attr, Enum>(c, k);
  LATHE_KEYWORD_ENUMS(LATHE_KEYWORD)
#undef LATHE_KEYWORD
  throw Error(ErrorCode::InvalidArgument, "no enumeration '" + std::string(k.enumeration) + "'");
}

}  // namespace

DenseElementsAttr toElements(MLIRContext* context, const Array& array) {
  if (!array.defined())
    throw Error(ErrorCode::InvalidArgument, "expected values, got an undefined Array");
  if (isPacked(array.dtype()))
    throw Error(ErrorCode::Unsupported, "expected literal values of whole bytes, got " +
                                            describe(array.dtype(), array.shape()) +
                                            "; give them as i8 and cast them");
  auto type = RankedTensorType::get(array.shape(), elementTypeOf(context, array.dtype()));
  if (array.dtype() == DType::Bool) {
    SmallVector<bool> values;
    for (uint8_t v : array.as<uint8_t>()) values.push_back(v != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(static_cast<const char*>(array.data()), array.bytes()));
}

Attribute toAttribute(MLIRContext* context, const AttrValue& value) {
  Builder b(context);
  struct Visitor {
    Builder& b;
    Attribute operator()(bool v) { return b.getBoolAttr(v); }
    Attribute operator()(int64_t v) { return b.getI64IntegerAttr(v); }
    Attribute operator()(double v) { return b.getF64FloatAttr(v); }
    Attribute operator()(const std::string& v) { return b.getStringAttr(v); }
    Attribute operator()(const std::vector<int64_t>& v) { return b.getDenseI64ArrayAttr(v); }
    Attribute operator()(const Dims& v) {
      SmallVector<StringAttr> dims;
      for (const Dim& d : v) dims.push_back(dimAttr(b.getContext(), d));
      return DimsAttr::get(b.getContext(), dims);
    }
    Attribute operator()(DType v) { return TypeAttr::get(elementTypeOf(b.getContext(), v)); }
    Attribute operator()(const Keyword& v) { return fromKeyword(b.getContext(), v); }
    Attribute operator()(const Array& v) { return toElements(b.getContext(), v); }
  };
  return std::visit(Visitor{b}, value);
}

}  // namespace lathe
