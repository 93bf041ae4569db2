// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/numbers.h"

#include <cmath>

#include "lathe/ir/types.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace lathe {
namespace {

Value behindLayout(Value value) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

bool isSignedInteger(Type element) { return !element.isInteger(1) && !element.isUnsignedInteger(); }

std::optional<double> asDouble(TypedAttr element) {
  if (auto number = dyn_cast<FloatAttr>(element)) {
    APFloat value = number.getValue();
    bool inexact;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    return value.convertToDouble();
  }
  const APInt& value = cast<IntegerAttr>(element).getValue();
  const bool isSigned = isSignedInteger(element.getType());
  if ((isSigned ? value.getSignificantBits() : value.getActiveBits()) > 63) return std::nullopt;
  const int64_t integer = isSigned ? value.getSExtValue() : int64_t(value.getZExtValue());
  if (std::abs(integer) > int64_t(1) << 53) return std::nullopt;
  return double(integer);
}

// What a cast that does more than round makes of a number; nothing where the type does not hold it.
std::optional<double> converted(double number, Type to) {
  if (isa<FloatType>(to)) return number;
  if (to.isInteger(1)) return number != 0;
  const double whole = std::trunc(number);
  const bool isSigned = isSignedInteger(to);
  const double end = std::ldexp(1, int(to.getIntOrFloatBitWidth()) - isSigned);
  const bool fits = whole < end && whole >= (isSigned ? -end : 0) && std::abs(whole) <= 0x1p53;
  return fits ? std::optional(whole) : std::nullopt;
}

}  // namespace

TypedAttr splatElement(Value value) {
  auto constant = behindLayout(value).getDefiningOp<ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat ? cast<TypedAttr>(splat.getSplatValue<Attribute>()) : TypedAttr();
}

std::optional<APInt> splatInteger(Value value) {
  auto element = dyn_cast_or_null<IntegerAttr>(splatElement(value));
  return element ? std::optional(element.getValue()) : std::nullopt;
}

std::optional<double> splatValue(Value value, bool throughCasts) {
  SmallVector<CastOp> casts;  // from the outermost
  while (throughCasts) {
    value = behindLayout(value);
    auto cast = value.getDefiningOp<CastOp>();
    if (!cast) break;
    casts.push_back(cast);
    value = cast.getX();
  }
  TypedAttr element = splatElement(value);
  std::optional<double> number = element ? asDouble(element) : std::nullopt;
  for (CastOp cast : llvm::reverse(casts))
    if (number && !onlyRounds(cast)) number = converted(*number, cast.getDtype());
  return number;
}

bool isSplatOf(Value value, double wanted, double tolerance) {
  auto number = splatValue(value);
  if (!number) return false;
  if (*number == wanted) return true;
  Type element = tensorType(value).getElementType();
  if (!isa<FloatType>(element)) return false;
  // An infinity has no tolerance: every number would be within it.
  if (std::isfinite(wanted) && std::abs(*number - wanted) <= tolerance * std::abs(wanted))
    return true;
  return roundedTo(element, wanted) == *number;
}

double roundedTo(Type element, double number) {
  auto type = dyn_cast<FloatType>(element);
  if (!type || type.isF64()) return number;
  APFloat v(number);
  bool inexact;
  v.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return v.convertToDouble();
}

TypedAttr asElement(Type element, double number) {
  if (isa<FloatType>(element)) return FloatAttr::get(element, number);
  auto held = converted(number, element);
  if (!held || *held != number) return {};
  const unsigned width = element.getIntOrFloatBitWidth();
  return IntegerAttr::get(element,
                          APInt(width, uint64_t(int64_t(*held)), isSignedInteger(element)));
}

bool onlyRounds(CastOp cast) {
  return isa<FloatType>(cast.getDtype()) &&
         isa<FloatType>(tensorType(cast.getX()).getElementType());
}

}  // namespace lathe
