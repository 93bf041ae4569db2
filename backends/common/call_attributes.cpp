// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/call_attributes.h"

#include "lathe/runtime/error.h"

using namespace mlir;

namespace lathe {

Attribute configAttribute(Builder& b, const ViewTerms& value) {
  SmallVector<Attribute> terms;
  for (const DimExpr& term : value) terms.push_back(b.getStringAttr(term.text()));
  return b.getArrayAttr(terms);
}
Attribute configAttribute(Builder& b, const std::vector<ViewTerms>& value) {
  SmallVector<Attribute> views;
  for (const ViewTerms& view : value) views.push_back(configAttribute(b, view));
  return b.getArrayAttr(views);
}

template <class Attr, class Get>
static bool take(Attribute attribute, Get get) {
  auto typed = dyn_cast_or_null<Attr>(attribute);
  if (typed) get(typed);
  return bool(typed);
}
bool fromAttribute(Attribute attribute, bool& value) {
  return take<BoolAttr>(attribute, [&](BoolAttr a) { value = a.getValue(); });
}
bool fromAttribute(Attribute attribute, int64_t& value) {
  return take<IntegerAttr>(attribute, [&](IntegerAttr a) { value = a.getInt(); });
}
bool fromAttribute(Attribute attribute, double& value) {
  return take<FloatAttr>(attribute, [&](FloatAttr a) { value = a.getValueAsDouble(); });
}
bool fromAttribute(Attribute attribute, std::string& value) {
  return take<StringAttr>(attribute, [&](StringAttr a) { value = a.getValue().str(); });
}
bool fromAttribute(Attribute attribute, std::vector<int64_t>& value) {
  return take<DenseI64ArrayAttr>(attribute,
                                 [&](DenseI64ArrayAttr a) { value = a.asArrayRef().vec(); });
}
bool fromAttribute(Attribute attribute, ViewTerms& value) {
  auto list = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!list || list.size() % 2 == 0) return false;
  for (Attribute item : list) {
    std::string text;
    auto term = fromAttribute(item, text) ? DimExpr::parse(text) : std::nullopt;
    if (!term) return false;
    value.push_back(*term);
  }
  return true;
}
bool fromAttribute(Attribute attribute, std::vector<ViewTerms>& value) {
  auto list = dyn_cast_or_null<ArrayAttr>(attribute);
  return list && llvm::all_of(list, [&](Attribute view) {
           return fromAttribute(view, value.emplace_back());
         });
}

void failConfig(KernelOp call, std::string_view field) {
  throw Error(ErrorCode::Unsupported,
              "call of kind '" + call.getKind().str() + "': '" + std::string(field) +
                  "' of its config is " +
                  (call.getConfig().get(field) ? "of another kind" : "missing") +
                  "; calls are what toKernels and foldTransposes make");
}

}  // namespace lathe
