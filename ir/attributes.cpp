// SPDX-License-Identifier: Apache-2.0
#include "ir/attributes.h"

#include "ir/types.h"
#include "runtime/error.h"

using namespace mlir;

namespace lathe {
namespace {

template <class Attr, class FromText, class FromNumber>
Attribute keyword(MLIRContext* context, const Keyword& k, FromText fromText,
                  FromNumber fromNumber) {
  if (auto value = fromText(k.value)) return Attr::get(context, *value);
  std::string choices;
  for (uint32_t i = 0; auto value = fromNumber(i); ++i)
    choices += (i ? ", " : "") + stringifyEnum(*value).str();
  throw Error(ErrorCode::InvalidArgument,
              std::string(k.enumeration) + " is one of " + choices + "; got '" + k.value + "'");
}

// The two overloads of the generated symbolize functions have one name.
#define LATHE_KEYWORD(Enum)                                             \
  keyword<Enum##Attr>(                                                  \
      c, k, [](llvm::StringRef text) { return symbolize##Enum(text); }, \
      [](uint32_t number) { return symbolize##Enum(number); })

Attribute fromKeyword(MLIRContext* c, const Keyword& k) {
  if (k.enumeration == "predicate") return LATHE_KEYWORD(Predicate);
  if (k.enumeration == "masked_row") return LATHE_KEYWORD(MaskedRow);
  if (k.enumeration == "causal") return LATHE_KEYWORD(Causal);
  if (k.enumeration == "pairing") return LATHE_KEYWORD(Pairing);
  if (k.enumeration == "activation") return LATHE_KEYWORD(Activation);
  if (k.enumeration == "weight_layout") return LATHE_KEYWORD(WeightLayout);
  if (k.enumeration == "rounding") return LATHE_KEYWORD(GainRounding);
  if (k.enumeration == "norm") return LATHE_KEYWORD(Norm);
  throw Error(ErrorCode::InvalidArgument, "no enumeration '" + std::string(k.enumeration) + "'");
}

}  // namespace

DenseElementsAttr toElements(MLIRContext* context, const Array& array) {
  if (!array.defined())
    throw Error(ErrorCode::InvalidArgument, "expected values, got an undefined Array");
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
