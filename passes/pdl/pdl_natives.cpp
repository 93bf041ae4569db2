// SPDX-License-Identifier: Apache-2.0
#include "passes/pdl/pdl_natives.h"

#include <optional>

#include "lathe/ir/types.h"
#include "lathe/passes/match.h"

using namespace mlir;

namespace lathe {
namespace {

std::optional<double> numberOf(const NativeArgument& a) {
  if (auto real = dyn_cast_or_null<FloatAttr>(a.attribute)) return real.getValueAsDouble();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(a.attribute)) return double(integer.getInt());
  return std::nullopt;
}
std::optional<int64_t> integerOf(const NativeArgument& a) {
  auto integer = dyn_cast_or_null<IntegerAttr>(a.attribute);
  return integer ? std::optional(integer.getInt()) : std::nullopt;
}
RankedTensorType nativeTensor(const NativeArgument& a) {
  return a.value ? dyn_cast<RankedTensorType>(a.value.getType()) : RankedTensorType();
}
// The axis from the front; nothing outside the rank.
std::optional<int64_t> axisOf(RankedTensorType type, const NativeArgument& a) {
  auto axis = integerOf(a);
  if (!type || !axis) return std::nullopt;
  int64_t i = *axis < 0 ? *axis + type.getRank() : *axis;
  return i >= 0 && i < type.getRank() ? std::optional(i) : std::nullopt;
}
Attribute real(MLIRContext* context, double value) {
  return FloatAttr::get(Float64Type::get(context), value);
}

bool splat(NativeArguments a) {
  auto wanted = numberOf(a[1]);
  return wanted && isSplatOf(a[0].value, *wanted);
}
bool splatBetween(NativeArguments a) {
  auto value = splatValue(a[0].value);
  auto low = numberOf(a[1]), high = numberOf(a[2]);
  return value && low && high && *value >= *low && *value <= *high;
}
bool weight(NativeArguments a) { return isWeight(a[0].value); }
bool oneUse(NativeArguments a) { return a[0].value.hasOneUse(); }
bool rank(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  return type && integerOf(a[1]) == type.getRank();
}
bool dtype(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  auto wanted = dyn_cast_or_null<TypeAttr>(a[1].attribute);
  return type && wanted && type.getElementType() == wanted.getValue();
}
bool dim(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  auto axis = axisOf(type, a[1]);
  return axis && integerOf(a[2]) == type.getDimSize(unsigned(*axis));
}
bool sameDim(NativeArguments a) {
  auto left = nativeTensor(a[0]), right = nativeTensor(a[2]);
  auto i = axisOf(left, a[1]), j = axisOf(right, a[3]);
  if (!i || !j) return false;
  StringAttr size = dimOf(left, *i);
  return size && size == dimOf(right, *j);
}
bool sameType(NativeArguments a) { return a[0].value.getType() == a[1].value.getType(); }
bool lastAxis(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  if (!type) return false;
  int64_t last = type.getRank() - 1;
  if (auto axes = dyn_cast_or_null<DenseI64ArrayAttr>(a[1].attribute))
    return axes.asArrayRef() == ArrayRef(last);
  return integerOf(a[1]) == last;
}

constexpr NativeConstraint kConstraints[] = {
    {{"splat", "v: Value, number: Attr",
      "v is a constant whose elements all are the number, within 1e-6 of it or as it rounds to "
      "their type; casts and broadcasts are seen through"},
     splat},
    {{"splat_between", "v: Value, low: Attr, high: Attr",
      "v is a constant whose elements are all one number from low to high"},
     splatBetween},
    {{"weight", "v: Value", "v is a checkpoint tensor, also behind casts"}, weight},
    {{"one_use", "v: Value", "v has one use"}, oneUse},
    {{"rank", "v: Value, count: Attr", "v has so many axes"}, rank},
    {{"dtype", "v: Value, type: Attr", "v has elements of this type"}, dtype},
    {{"dim", "v: Value, axis: Attr, size: Attr",
      "the axis of v (negative: from the back) has this size"},
     dim},
    {{"same_dim", "v: Value, axis: Attr, w: Value, other: Attr",
      "the two axes (negative: from the back) are provably equal"},
     sameDim},
    {{"same_type", "v: Value, w: Value", "v and w have one shape and dtype"}, sameType},
    {{"approximate", "v: Value",
      "always holds: the replacement of v computes other values on purpose (contract "
      "'approximation') and is not compared with what it replaces"},
     [](NativeArguments) { return true; },
     true},
    {{"last_axis", "v: Value, axes: Attr", "axes is exactly the last axis of v"}, lastAxis},
};

Attribute splatOf(NativeArguments a) {
  auto value = splatValue(a[0].value);
  return value ? real(a[0].value.getContext(), *value) : Attribute();
}
Attribute dtypeAttribute(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  return type ? TypeAttr::get(type.getElementType()) : Attribute();
}
Attribute shapeAttribute(NativeArguments a) {
  auto type = nativeTensor(a[0]);
  return type ? DimsAttr::get(type.getContext(), dimsOf(type)) : Attribute();
}
Attribute axisAttribute(NativeArguments a) {
  auto axis = axisOf(nativeTensor(a[0]), a[1]);
  if (!axis) return {};
  return IntegerAttr::get(IntegerType::get(a[1].attribute.getContext(), 64), *axis);
}
Attribute axesAttribute(NativeArguments a) {
  auto axis = axisOf(nativeTensor(a[0]), a[1]);
  return axis ? DenseI64ArrayAttr::get(a[1].attribute.getContext(), *axis) : Attribute();
}
Attribute product(NativeArguments a) {
  auto x = numberOf(a[0]), y = numberOf(a[1]);
  return x && y ? real(a[0].attribute.getContext(), *x * *y) : Attribute();
}
Attribute quotient(NativeArguments a) {
  auto x = numberOf(a[0]), y = numberOf(a[1]);
  return x && y && *y != 0 ? real(a[0].attribute.getContext(), *x / *y) : Attribute();
}

constexpr NativeRewrite kRewrites[] = {
    {{"splat_of", "v: Value", "the number that all elements of the constant v are, as f64"},
     splatOf},
    {{"dtype_of", "v: Value", "the type of v's elements: the dtype of a cast"}, dtypeAttribute},
    {{"shape_of", "v: Value", "the dims of v: the shape of a reshape or broadcast"},
     shapeAttribute},
    {{"axis_of", "v: Value, axis: Attr", "an axis that may count from the back, from the front"},
     axisAttribute},
    {{"axes_of", "v: Value, axis: Attr", "the same as a list, for reductions"}, axesAttribute},
    {{"product", "x: Attr, y: Attr", "x * y as f64"}, product},
    {{"quotient", "x: Attr, y: Attr", "x / y as f64; declines if y is 0"}, quotient},
};

}  // namespace

ArrayRef<NativeConstraint> nativeConstraints() { return kConstraints; }
ArrayRef<NativeRewrite> nativeRewrites() { return kRewrites; }

std::string Native::kinds() const {
  std::string letters;
  for (StringRef rest = parameters; !rest.empty();) {
    auto [one, others] = rest.split(", ");
    letters += one.ends_with("Attr") ? 'a' : 'v';
    rest = others;
  }
  return letters;
}

std::string_view whyNoArgument(std::string_view parameter, Attribute attribute) {
  auto integer = dyn_cast<IntegerAttr>(attribute);
  const bool isInteger =
      integer && !isa<BoolAttr>(attribute) && integer.getValue().getSignificantBits() <= 64;
  auto isOneOf = [&](std::initializer_list<std::string_view> names) {
    return llvm::is_contained(names, parameter);
  };
  if (isOneOf({"count", "axis", "other", "size"})) return isInteger ? "" : "an integer";
  if (parameter == "axes")
    return isInteger || isa<DenseI64ArrayAttr>(attribute) ? "" : "an axis or array<i64: ...>";
  if (parameter == "type") {
    auto type = dyn_cast<TypeAttr>(attribute);
    return type && dtypeOf(type.getValue()) ? "" : "a dtype of Lathe's: f32";
  }
  auto real = dyn_cast<FloatAttr>(attribute);
  return isInteger || (real && !real.getValue().isNaN()) ? "" : "a number";
}

std::string pdllPrelude() {
  std::string text;
  for (const NativeConstraint& c : kConstraints)
    text += "// " + std::string(c.text) + "\nConstraint " + std::string(c.name) + "(" +
            std::string(c.parameters) + ");\n";
  for (const NativeRewrite& r : kRewrites)
    text += "// " + std::string(r.text) + "\nRewrite " + std::string(r.name) + "(" +
            std::string(r.parameters) + ") -> Attr;\n";
  return text;
}

}  // namespace lathe
