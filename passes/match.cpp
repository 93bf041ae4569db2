// SPDX-License-Identifier: Apache-2.0
#include "passes/match.h"

#include "ir/attributes.h"
#include "ir/checked_create.h"
#include "ir/types.h"
#include "passes/locations.h"

using namespace mlir;

namespace lathe {

std::optional<double> splatValue(Value value) {
  Operation* def = value.getDefiningOp();
  while (isa_and_nonnull<CastOp, BroadcastOp, ReshapeOp>(def))
    def = def->getOperand(0).getDefiningOp();
  auto constant = dyn_cast_or_null<ConstantOp>(def);
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat) return std::nullopt;
  if (isa<FloatType>(splat.getElementType())) {
    APFloat number = splat.getSplatValue<APFloat>();
    bool inexact;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    return number.convertToDouble();
  }
  APInt number = splat.getSplatValue<APInt>();
  bool isSigned = number.getBitWidth() > 1 && !splat.getElementType().isUnsignedInteger();
  return isSigned ? double(number.getSExtValue()) : double(number.getZExtValue());
}

double Match::constant(const Tensor& t) const { return *splatValue(bound_[t.id()]); }

Attribute Match::attribute(const Tensor& t, StringRef name) const {
  return bound_[t.id()].getDefiningOp()->getAttr(name);
}

Value Match::decline(const Twine& reason) {
  if (reason_.empty()) reason_ = reason.str();
  return {};
}

llvm::SmallSetVector<Operation*, 16> Match::ops() const {
  llvm::SmallSetVector<Operation*, 16> ops;
  for (size_t i = 0; i < pattern_->end_; ++i)
    if (pattern_->nodes_[i].kind == PatternNode::Kind::Op && bound_[i])
      ops.insert(bound_[i].getDefiningOp());
  for (Operation* op : consumed_) ops.insert(op);
  auto onlyUsedHere = [&](Operation* op) {
    return llvm::all_of(op->getUsers(), [&](Operation* user) { return ops.contains(user); });
  };
  SmallVector<Operation*> leaves(ops.begin(), ops.end());
  for (Operation* op : leaves) {
    for (Value operand : op->getOperands()) {
      Operation* def = operand.getDefiningOp();
      if (def && def->hasTrait<OpTrait::ConstantLike>() && onlyUsedHere(def)) ops.insert(def);
    }
  }
  return ops;
}

Location Match::location() const {
  Origins origins;
  addOrigins(origins, root_->getLoc());
  for (Operation* op : ops()) addOrigins(origins, op->getLoc());
  return fuseOrigins(root_->getContext(), origins, pattern_->name());
}

Value Match::make(std::string_view op, ArrayRef<Value> operands,
                  const std::vector<NamedAttr>& attributes) {
  SmallVector<NamedAttribute> converted;
  MLIRContext* context = root_->getContext();
  for (const NamedAttr& a : attributes)
    converted.emplace_back(StringAttr::get(context, StringRef(a.name)),
                           toAttribute(context, a.value));
  return makeWith(op, operands, converted);
}

Value Match::makeWith(std::string_view op, ArrayRef<Value> operands,
                      ArrayRef<NamedAttribute> attributes) {
  if (!reason_.empty()) return {};
  OperationState state(location(), StringRef(op));
  SmallVector<int32_t> segments;
  for (Value v : operands) {
    segments.push_back(v ? 1 : 0);
    if (v) state.addOperands(v);
  }
  state.attributes.append(attributes.begin(), attributes.end());
  if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
    state.addAttribute("operandSegmentSizes", rewriter_->getDenseI32ArrayAttr(segments));
  std::string why;
  Operation* made = createChecked(*rewriter_, state, why);
  if (!made) return decline("the replacement does not hold: " + why);
  created_.push_back(made);
  return made->getResult(0);
}

}  // namespace lathe
