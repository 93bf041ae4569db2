// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/meant_constants.h"

#include <set>

#include "lathe/ir/types.h"
#include "lathe/passes/match.h"

using namespace mlir;

namespace lathe {
namespace {

std::set<double> numbersAskedFor(const PatternLibrary& library) {
  std::set<double> numbers;
  for (auto& p : library)
    for (const PatternNode& n : p->nodes())
      if (n.kind == PatternNode::Kind::Constant && n.exact && std::isfinite(*n.exact))
        numbers.insert(*n.exact);
  return numbers;
}

// The number that a constant stands for; nothing if it is that number, or none of them.
std::optional<double> meantBy(ConstantOp op, const std::set<double>& numbers) {
  Type element = tensorType(op.getResult()).getElementType();
  if (!element.isBF16() && !element.isF16()) return std::nullopt;
  auto held = splatValue(op.getResult());
  if (!held || numbers.count(*held)) return std::nullopt;
  for (double number : numbers)
    if (isSplatOf(op.getResult(), number, /*tolerance=*/0)) return number;
  return std::nullopt;
}

}  // namespace

OwningOpRef<ModuleOp> withMeantConstants(ModuleOp module, const PatternLibrary& library) {
  const std::set<double> numbers = numbersAskedFor(library);
  OwningOpRef<ModuleOp> copy = module.clone();
  SmallVector<std::pair<ConstantOp, double>> rounded;
  copy->walk([&](ConstantOp op) {
    if (auto number = meantBy(op, numbers)) rounded.emplace_back(op, *number);
  });
  if (rounded.empty()) return {};
  for (auto [op, number] : rounded) {
    OpBuilder b(op);
    RankedTensorType type = tensorType(op.getResult());
    auto wide = cast<RankedTensorType>(type.clone(b.getF64Type()));
    auto exact = ConstantOp::create(b, op.getLoc(), wide, DenseElementsAttr::get(wide, number));
    // Float64 does not round in casts.
    auto narrow = CastOp::create(b, op.getLoc(), type, exact.getResult(), type.getElementType());
    op.replaceAllUsesWith(narrow.getResult());
    op.erase();
  }
  return copy;
}

}  // namespace lathe
