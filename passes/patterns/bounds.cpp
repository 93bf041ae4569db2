// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/bounds.h"

#include <algorithm>
#include <cmath>

#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr double kLongest = 2147483648.0;  // of an axis
constexpr double kOverflow = 1e37;         // f32 and bf16 hold more
constexpr int kDepth = 40;

std::optional<double> bound(Value v, int depth);

// c^e of a positive constant c.
std::optional<double> boundOfPower(PowOp power, int depth) {
  auto base = splatValue(power.getA());
  auto exponent = bound(power.getB(), depth);
  if (!base || !exponent || *base <= 0) return std::nullopt;
  return std::pow(std::max(*base, 1 / *base), *exponent);
}

std::optional<double> boundOf(Operation* op, int depth) {
  auto of = [&](unsigned i) { return bound(op->getOperand(i), depth); };
  auto both = [&](auto combine) -> std::optional<double> {
    auto a = of(0), b = of(1);
    return a && b ? std::optional<double>(combine(*a, *b)) : std::nullopt;
  };
  if (auto ramp = dyn_cast<IotaOp>(op)) {
    const int64_t size = tensorType(ramp).getDimSize(int64_t(ramp.getAxis()));
    return ShapedType::isDynamic(size) ? kLongest : double(size);
  }
  if (op->hasTrait<fact::IsMovement>() && op->getNumOperands() == 1) return of(0);
  if (isa<GatherOp, NegOp, AbsOp>(op)) return of(0);
  if (auto cast = dyn_cast<CastOp>(op)) {
    if (tensorType(cast).getElementType().isF16()) return std::nullopt;
    return of(0);
  }
  if (isa<AddOp, SubOp>(op)) return both([](double a, double b) { return a + b; });
  if (isa<MulOp>(op)) return both([](double a, double b) { return a * b; });
  if (isa<MaxOp, MinOp>(op)) return both([](double a, double b) { return std::max(a, b); });
  if (isa<ReduceSumOp>(op)) {
    auto one = of(0);
    return one ? std::optional<double>(*one * kLongest) : std::nullopt;
  }
  if (auto power = dyn_cast<PowOp>(op)) return boundOfPower(power, depth);
  if (isa<ReciprocalOp>(op)) {
    auto power = op->getOperand(0).getDefiningOp<PowOp>();
    return power ? boundOfPower(power, depth) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> bound(Value v, int depth) {
  std::optional<double> found;
  if (auto number = splatValue(v))
    found = std::abs(*number);
  else if (Operation* op = v.getDefiningOp(); op && depth > 0)
    found = boundOf(op, depth - 1);
  return found && *found < kOverflow ? found : std::nullopt;
}

}  // namespace

std::optional<double> largestMagnitude(Value v) { return bound(v, kDepth); }

}  // namespace lathe
