// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/bounds.h"

#include <algorithm>
#include <cmath>

#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/rewrite/asked_once.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr double kLongest = 2147483648.0;  // of an axis
constexpr double kOverflow = 1e37;         // f32 and bf16 hold more
constexpr size_t kMost = 512;              // values that are followed

class Bounds {
 public:
  std::optional<double> of(Value v) {
    return asked_.of(v, [&] {
      std::optional<double> found;
      if (auto number = splatValue(v))
        found = std::abs(*number);
      else if (Operation* op = v.getDefiningOp())
        found = ofOp(op);
      return found && *found < kOverflow ? found : std::nullopt;
    });
  }

 private:
  // c^e of a positive constant c.
  std::optional<double> ofPower(PowOp power) {
    auto base = splatValue(power.getA());
    auto exponent = of(power.getB());
    if (!base || !exponent || *base <= 0) return std::nullopt;
    return std::pow(std::max(*base, 1 / *base), *exponent);
  }

  std::optional<double> ofOp(Operation* op) {
    auto operand = [&](unsigned i) { return of(op->getOperand(i)); };
    auto both = [&](auto combine) -> std::optional<double> {
      auto a = operand(0), b = operand(1);
      return a && b ? std::optional<double>(combine(*a, *b)) : std::nullopt;
    };
    if (auto ramp = dyn_cast<IotaOp>(op)) {
      const int64_t size = tensorType(ramp).getDimSize(int64_t(ramp.getAxis()));
      return ShapedType::isDynamic(size) ? kLongest : double(size);
    }
    if (op->hasTrait<fact::IsMovement>() && op->getNumOperands() == 1) return operand(0);
    if (isa<GatherOp, NegOp, AbsOp>(op)) return operand(0);
    if (auto cast = dyn_cast<CastOp>(op)) {
      if (tensorType(cast).getElementType().isF16()) return std::nullopt;
      return operand(0);
    }
    if (isa<AddOp, SubOp>(op)) return both([](double a, double b) { return a + b; });
    if (isa<MulOp>(op)) return both([](double a, double b) { return a * b; });
    if (isa<MaxOp, MinOp>(op)) return both([](double a, double b) { return std::max(a, b); });
    if (isa<ReduceSumOp>(op)) {
      auto one = operand(0);
      return one ? std::optional<double>(*one * kLongest) : std::nullopt;
    }
    if (auto power = dyn_cast<PowOp>(op)) return ofPower(power);
    if (isa<ReciprocalOp>(op)) {
      auto power = op->getOperand(0).getDefiningOp<PowOp>();
      return power ? ofPower(power) : std::nullopt;
    }
    return std::nullopt;
  }

  AskedOnce<std::optional<double>> asked_{kMost, std::nullopt};
};

}  // namespace

std::optional<double> largestMagnitude(Value v) { return Bounds().of(v); }

}  // namespace lathe
