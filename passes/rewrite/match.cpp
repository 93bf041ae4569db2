// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/match.h"

#include "ir/checked_create.h"
#include "lathe/ir/attributes.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/exactness.h"
#include "passes/rewrite/locations.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/value_check.h"

using namespace mlir;

namespace lathe {

std::optional<int64_t> axisOf(RankedTensorType type, int64_t axis) {
  if (axis < 0) axis += type.getRank();
  return axis < 0 || axis >= type.getRank() ? std::nullopt : std::optional(axis);
}

bool isWeight(Value value) {
  while (isa_and_nonnull<CastOp, ReshapeOp, DequantizeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return bool(value.getDefiningOp<WeightOp>());
}

Attribute axesFromFront(NamedAttribute attribute, ValueRange operands) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if ((name != "axis" && name != "axes" && name != "permutation") || operands.empty() ||
      !operands[0])
    return value;
  auto type = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!type) return value;
  auto resolved = [&](int64_t axis) { return axis < 0 ? axis + type.getRank() : axis; };
  if (auto axis = dyn_cast<IntegerAttr>(value))
    return IntegerAttr::get(axis.getType(), resolved(axis.getInt()));
  auto axes = dyn_cast<DenseI64ArrayAttr>(value);
  if (!axes) return value;
  SmallVector<int64_t> all = llvm::to_vector(llvm::map_range(axes.asArrayRef(), resolved));
  return DenseI64ArrayAttr::get(value.getContext(), all);
}

Value Match::operator[](const Tensor& t) const {
  if (t.recorder() != pattern_ || t.id() >= bound_.size())
    throw Error(ErrorCode::InvalidArgument, "the tensor does not belong to the pattern");
  return bound_[t.id()];
}

double Match::constant(const Tensor& t) const {
  Value value = (*this)[t];
  auto number = value ? splatValue(value) : std::nullopt;
  if (!number)
    throw Error(ErrorCode::InvalidArgument,
                "expected a tensor matched to a constant, got one that was not");
  return *number;
}

Attribute Match::attribute(const Tensor& t, StringRef name) const {
  Value value = (*this)[t];
  Operation* op = value ? value.getDefiningOp() : nullptr;
  if (!op)
    throw Error(ErrorCode::InvalidArgument,
                "'" + name.str() + "' of a tensor that was not matched to an op");
  return op->getAttr(name);
}

Value Match::decline(const Twine& reason) {
  if (reason_.empty()) reason_ = reason.str();
  return {};
}

bool Match::weakens(Contract contract) {
  MLIRContext* context = root_->getContext();
  declared_ = true;
  if (weaken(context, contract)) return true;
  decline(refusalOf(contract, numericsModeOf(context)));
  return false;
}

bool Match::approximates() {
  approximates_ = true;
  return weakens(Contract::Approximation);
}

// Where one cut value is computed from another, they are drawn apart: then further ops belong to
// both sides.
static std::optional<std::string> differenceOf(Replacements replaced, ArrayRef<Operation*> matched,
                                               ArrayRef<Operation*> created,
                                               const Evaluator& evaluate, bool special) {
  Value first = replaced.front().first;
  auto graph = first.getParentRegion()->getParentOfType<ModuleOp>();
  std::optional<std::string> words;
  for (int reach : {0, 2, 6}) {
    words = valueDifference(cutOut(replaced, matched, created, reach), graph, evaluate, special);
    if (!words) break;
  }
  return words;
}

bool Match::checkNumerics(ArrayRef<std::pair<Value, Value>> replaced) {
  auto* dialect = root_->getContext()->getLoadedDialect<LatheDialect>();
  NumericsPolicy* policy = dialect ? dialect->numerics : nullptr;
  if (!policy) return true;
  auto matched = ops();
  if (!checkValues(*policy, replaced, matched.getArrayRef())) return false;
  bool strict = policy->mode == NumericsMode::Strict;
  if (!strict && (!policy->audit || declared_ || !dialect->rewriteLog)) return true;
  auto difference = exactDifference(*policy, replaced, matched.getArrayRef(), created_);
  if (!difference) return true;
  if (strict) {
    decline("strict: the fused op would not compute the same bits (" + difference->what + ")");
    return false;
  }
  weaken(root_->getContext(),
         difference->rounds ? Contract::IntermediateRounding : Contract::Spelling);
  if (policy->evaluate && differenceOf(replaced, matched.getArrayRef(), created_, policy->evaluate,
                                       /*special=*/true))
    weaken(root_->getContext(), Contract::IncomingNan);
  return true;
}

bool Match::checkValues(const NumericsPolicy& policy, ArrayRef<std::pair<Value, Value>> replaced,
                        ArrayRef<Operation*> matched) {
  if (!policy.evaluate || approximates_) return true;
  auto words = differenceOf(replaced, matched, created_, policy.evaluate, /*special=*/false);
  if (!words) return true;
  decline("the values differ on a sample: " + *words);
  return false;
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
  // Never even for a moment: taking the op back would put its operand, the root, up again.
  if (llvm::is_contained(operands, root_->getResult(0))) {
    threw_ = true;
    return decline("the replacement uses the value that it replaces");
  }
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

Value Match::scalar(double value, Value like) {
  Type element = tensorType(like).getElementType();
  auto type = RankedTensorType::get({}, element);
  TypedAttr number = asElement(element, value);
  if (!number) {
    std::string text;
    llvm::raw_string_ostream(text) << element << " does not hold the number " << value;
    return decline("the replacement does not hold: " + text);
  }
  NamedAttribute attribute(StringAttr::get(root_->getContext(), "value"),
                           DenseElementsAttr::get(type, Attribute(number)));
  return makeWith("lathe.constant", {}, attribute);
}

}  // namespace lathe
