// SPDX-License-Identifier: Apache-2.0
#include "ir/checked_create.h"

#include <cstddef>
#include <vector>

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace lathe {

Operation* createChecked(OpBuilder& builder, OperationState& state, std::string& why) {
  MLIRContext* context = builder.getContext();
  auto name = state.name.getRegisteredInfo();
  if (!name) {
    why = "no op '" + state.name.getStringRef().str() + "' in a loaded dialect";
    return nullptr;
  }
  ScopedDiagnosticHandler collect(context, [&](Diagnostic& d) {
    why += (why.empty() ? "" : "\n  ") + d.str();
    for (Diagnostic& note : d.getNotes()) why += "\n  note: " + note.str();
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
  }
  Operation* made = nullptr;
  SmallVector<Type> types;
  auto* infer = name->getInterface<InferTypeOpInterface>();
  if (succeeded(ok) && infer &&
      succeeded(infer->inferReturnTypes(context, state.location, state.operands, attributes,
                                        properties, {}, types))) {
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
  return made;
}

}  // namespace lathe
