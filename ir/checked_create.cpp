// SPDX-License-Identifier: Apache-2.0
#include "ir/checked_create.h"

#include <cstddef>
#include <vector>

#include "ir/op_complaints.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace lathe {
namespace {

// Inference takes operands and attributes for granted that are missing in these.
std::string operandProblem(const OperationState& state, RegisteredOperationName name) {
  int wanted = name.hasTrait<OpTrait::OneOperand>()           ? 1
               : name.hasTrait<OpTrait::ZeroOperands>()       ? 0
               : name.hasTrait<OpTrait::NOperands<2>::Impl>() ? 2
               : name.hasTrait<OpTrait::NOperands<3>::Impl>() ? 3
               : name.hasTrait<OpTrait::NOperands<4>::Impl>() ? 4
                                                              : -1;
  if (wanted < 0 || int(state.operands.size()) == wanted) return "";
  return name.getStringRef().str() + ": takes " + std::to_string(wanted) + " operands, got " +
         std::to_string(state.operands.size());
}

// The op's own verifier names an attribute that is missing; it is asked only where one may be.
void checkAttributes(const OperationState& state, RegisteredOperationName name) {
  if (state.attributes.getAttrs().size() >= name.getAttributeNames().size()) return;
  OperationState draft(state.location, state.name);
  draft.addOperands(state.operands);
  draft.attributes = state.attributes;
  Type type = state.operands.empty()
                  ? Type(RankedTensorType::get({}, Float32Type::get(state.getContext())))
                  : state.operands[0].getType();
  draft.addTypes(type);
  if (name.hasTrait<OpTrait::NResults<2>::Impl>()) draft.addTypes(type);
  Operation* op = Operation::create(draft);
  (void)op->getName().verifyInvariants(op);
  op->destroy();
}

// An attribute of another kind than the op's, which would read as one that is missing.
std::string attributeProblem(const OperationState& state, RegisteredOperationName name) {
  for (NamedAttribute a : state.attributes) {
    std::string problem;
    ScopedDiagnosticHandler collect(state.getContext(), [&](Diagnostic& d) {
      problem = d.str();
      return success();
    });
    std::vector<std::max_align_t> storage(1 + size_t(name.getOpPropertyByteSize()) /
                                                  sizeof(std::max_align_t));
    OpaqueProperties properties(storage.data());
    name.initOpProperties(properties, OpaqueProperties(nullptr));
    auto only = DictionaryAttr::get(state.getContext(), a);
    (void)name.setOpPropertiesFromAttribute(name, properties, only,
                                            [&] { return emitError(state.location); });
    name.destroyOpProperties(properties);
    if (!StringRef(problem).starts_with("Invalid attribute")) continue;
    std::string text;
    llvm::raw_string_ostream(text) << a.getValue();
    return "'" + name.getStringRef().str() + "': attribute '" + a.getName().str() + "' cannot be " +
           text + "; docs/ops.md tells what it is";
  }
  return "";
}

}  // namespace

Operation* createChecked(OpBuilder& builder, OperationState& state, std::string& why) {
  MLIRContext* context = builder.getContext();
  auto name = state.name.getRegisteredInfo();
  if (!name) {
    why = "no op '" + state.name.getStringRef().str() + "' in a loaded dialect";
    return nullptr;
  }
  why = operandProblem(state, *name);
  for (NamedAttribute a : state.attributes)
    if (why.empty()) why = whyNoAttribute(*name, a.getName());
  auto* infer = name->getInterface<InferTypeOpInterface>();
  if (why.empty() && !infer)
    why = "'" + name->getStringRef().str() +
          "' cannot be recorded by its name: the types of its results do not follow from operands "
          "and attributes";
  if (!why.empty()) return nullptr;
  {
    std::string missing;
    ScopedDiagnosticHandler collect(context, [&](Diagnostic& d) {
      if (StringRef(d.str()).contains("requires attribute") && missing.empty()) missing = d.str();
      return success();
    });
    checkAttributes(state, *name);
    if (!missing.empty()) why = attributeProblem(state, *name);
    if (!missing.empty() && why.empty())
      why = inPlainWords(name->getStringRef(), missing, state.operands);
  }
  if (!why.empty()) return nullptr;
  ScopedDiagnosticHandler collect(context, [&](Diagnostic& d) {
    why += why.empty() ? inPlainWords(name->getStringRef(), d.str(), state.operands)
                       : "\n  " + d.str();
    // MLIR adds the op in its own syntax, with operands that have no name yet: nobody's words.
    for (Diagnostic& note : d.getNotes())
      if (std::string text = note.str(); !StringRef(text).starts_with("see current operation"))
        why += "\n  note: " + text;
    return success();
  });
  DictionaryAttr attributes = state.attributes.getDictionary(context);
  // The generated adaptor reads inherent attributes from properties only: they are made first.
  size_t bytes = size_t(name->getOpPropertyByteSize());
  std::vector<std::max_align_t> storage(1 + bytes / sizeof(std::max_align_t));
  OpaqueProperties properties(bytes ? storage.data() : nullptr);
  LogicalResult ok = success();
  if (properties) {
    name->initOpProperties(properties, OpaqueProperties(nullptr));
    ok = name->setOpPropertiesFromAttribute(*name, properties, attributes,
                                            [&] { return emitError(state.location); });
    if (failed(ok))
      if (std::string problem = attributeProblem(state, *name); !problem.empty()) why = problem;
  }
  Operation* made = nullptr;
  SmallVector<Type> types;
  if (succeeded(ok) && succeeded(infer->inferReturnTypes(context, state.location, state.operands,
                                                         attributes, properties, {}, types))) {
    state.addTypes(types);
    // Verified before it is inserted: a rewrite driver would keep a pointer to an op that goes.
    made = Operation::create(state);
    if (failed(made->getName().verifyInvariants(made))) {
      made->destroy();
      made = nullptr;
    } else {
      builder.insert(made);
    }
  }
  if (properties) name->destroyOpProperties(properties);
  if (!made && why.empty())
    why = "'" + name->getStringRef().str() + "' cannot be made of these operands and attributes";
  return made;
}

}  // namespace lathe
