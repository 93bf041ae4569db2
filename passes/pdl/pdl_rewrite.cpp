// SPDX-License-Identifier: Apache-2.0
// The body of a pdl.rewrite becomes a list of steps that run on a match.
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "passes/pdl/pdl_reader.h"
#include "passes/rewrite/spelled_op.h"

using namespace mlir;

namespace lathe {

void PdlReader::readRewrite(pdl::RewriteOp op) {
  if (op.getName())
    refuse(op, "unknown native rewrite '" + op.getName()->str() +
                   "' for a whole match; write the replacement's ops");
  for (Operation& made : op.getBodyRegion().front()) readMade(made);
  if (!result_) refuse(op, "the root is not replaced; write `replace %op with ...`");
  pattern_.replaceWith([program = program_, result = result_, steps = steps_](Match& m) -> Value {
    MadeParts parts{std::vector<Value>(steps), std::vector<Attribute>(steps)};
    for (const Step& step : program)
      if (!step(m, parts)) return {};
    return result(m, parts);
  });
}

void PdlReader::readMade(Operation& op) {
  if (auto operation = dyn_cast<pdl::OperationOp>(op)) return readMadeOperation(operation);
  if (auto native = dyn_cast<pdl::ApplyNativeRewriteOp>(op)) return readNativeRewrite(native);
  if (auto replace = dyn_cast<pdl::ReplaceOp>(op)) return readReplace(replace);
  if (isa<pdl::TypeOp, pdl::TypesOp>(op)) return;
  if (auto erase = dyn_cast<pdl::EraseOp>(op)) {
    // Matched ops go with their last user.
    if (erase.getOpValue().getDefiningOp() == root_)
      refuse(&op, "the root is erased, not replaced");
    return;
  }
  if (auto attribute = dyn_cast<pdl::AttributeOp>(op)) {
    if (!attribute.getValueAttr()) refuse(&op, "an attribute without a value");
    attributes_[attribute.getResult()] = {constantOf(attribute), {}, {}};
    return;
  }
  bool ofMade = isa<pdl::ResultOp, pdl::ResultsOp>(op);
  if (!ofMade) unsupported(&op, "'" + op.getName().getStringRef().str() + "' in a replacement");
  auto result = dyn_cast<pdl::ResultOp>(op);
  std::optional<uint32_t> index =
      result ? std::optional(result.getIndex()) : cast<pdl::ResultsOp>(op).getIndex();
  auto made = made_.find(op.getOperand(0));
  if (made == made_.end()) return readResult(&op, op.getOperand(0), index);
  if (index.value_or(0) != 0)
    refuse(&op, "result " + std::to_string(*index) + " of an op that has one");
  made_[op.getResult(0)] = made->second;
}

PdlReader::ValueSource PdlReader::madeValue(Value pdl, Operation* user) const {
  if (auto made = made_.find(pdl); made != made_.end())
    return [i = made->second](const Match&, const MadeParts& parts) { return parts.values[i]; };
  return [t = tensorOf(pdl, user)](const Match& m, const MadeParts&) { return m[t]; };
}

PdlReader::AttributeSource PdlReader::madeAttribute(Value pdl, Operation* user) const {
  if (auto made = made_.find(pdl); made != made_.end())
    return [i = made->second](const Match&, const MadeParts& parts) { return parts.attributes[i]; };
  return [source = sourceOf(pdl, user)](const Match& m, const MadeParts&) { return source.of(m); };
}

void PdlReader::readMadeOperation(pdl::OperationOp op) {
  OperationName name = opName(op);
  std::vector<ValueSource> operands;
  for (Value v : op.getOperandValues()) operands.push_back(madeValue(v, op));
  auto [known, unknown, sources] = splitAttributes(op);
  std::vector<std::pair<StringAttr, AttributeSource>> later;
  for (auto& [attribute, value] : sources) later.emplace_back(attribute, madeAttribute(value, op));
  auto places = placed(op, operands.size(), known);
  std::string problem = whyNeverBuilt({name, unsigned(operands.size()), known, unknown});
  if (!problem.empty()) refuse(op, problem);
  if (op.getTypeValues().size() > 1) refuse(op, "'" + op.getOpName()->str() + "' has one result");
  std::function<Type(const Match&)> type;
  for (Value v : op.getTypeValues()) {
    auto constant = v.getDefiningOp<pdl::TypeOp>();
    auto matched = typed_.find(v);
    if (constant && constant.getConstantTypeAttr())
      type = [wanted = *constant.getConstantType()](const Match&) { return wanted; };
    else if (matched != typed_.end())
      type = [t = matched->second](const Match& m) { return m[t].getType(); };
    else
      refuse(op, "a result type that no matched value has");
  }
  size_t step = steps_++;
  made_[op.getOp()] = step;
  std::vector<NamedAttribute> fixed(known.begin(), known.end());
  program_.push_back([=, text = name.getStringRef().str()](Match& m, MadeParts& parts) {
    SmallVector<Value> values;
    for (auto& place : places) values.push_back(place ? operands[*place](m, parts) : Value());
    SmallVector<NamedAttribute> attributes(fixed.begin(), fixed.end());
    for (auto& [attribute, source] : later) {
      Attribute value = source(m, parts);
      if (!value)
        return bool(m.decline("nothing to give '" + attribute.getValue() + "' of " + text));
      attributes.emplace_back(attribute, value);
    }
    for (NamedAttribute& a : attributes) a.setValue(axesFromFront(a, values));
    Value made = m.makeWith(text, values, attributes);
    parts.values[step] = made;
    if (made && type && made.getType() != type(m))
      return bool(m.decline(text + " is " + shortType(made.getType()) + ", the pattern wants " +
                            shortType(type(m))));
    return bool(made);
  });
}

void PdlReader::readNativeRewrite(pdl::ApplyNativeRewriteOp op) {
  auto& native = nativeOf(nativeRewrites(), "rewrite", op, op.getName(), op.getArgs());
  if (op->getNumResults() != 1 || !isa<pdl::AttributeType>(op->getResult(0).getType()))
    refuse(op, "native rewrite '" + op.getName().str() + "' gives one attribute");
  std::vector<std::pair<ValueSource, AttributeSource>> arguments;
  for (Value v : op.getArgs()) {
    bool isAttribute = isa<pdl::AttributeType>(v.getType());
    arguments.emplace_back(isAttribute ? ValueSource() : madeValue(v, op),
                           isAttribute ? madeAttribute(v, op) : AttributeSource());
  }
  size_t step = steps_++;
  made_[op->getResult(0)] = step;
  program_.push_back([=, rewrite = &native](Match& m, MadeParts& parts) {
    SmallVector<NativeArgument> values;
    for (auto& [value, attribute] : arguments)
      values.push_back(value ? NativeArgument{value(m, parts), {}}
                             : NativeArgument{{}, attribute(m, parts)});
    parts.attributes[step] = rewrite->make(values);
    if (!parts.attributes[step])
      m.decline("native rewrite '" + std::string(rewrite->name) + "' has no answer here");
    return bool(parts.attributes[step]);
  });
}

void PdlReader::readReplace(pdl::ReplaceOp op) {
  if (op.getOpValue().getDefiningOp() != root_) unsupported(op, "only the root can be replaced");
  if (result_) refuse(op, "the root is replaced twice");
  if (!op.getReplOperation() && op.getReplValues().size() != 1)
    refuse(op, "the root has one result, " + std::to_string(op.getReplValues().size()) +
                   " values replace it");
  result_ = madeValue(op.getReplOperation() ? op.getReplOperation() : op.getReplValues()[0], op);
}

}  // namespace lathe
