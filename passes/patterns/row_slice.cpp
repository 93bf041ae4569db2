// SPDX-License-Identifier: Apache-2.0
//
//   x ── linear|rms_norm|layer_norm ── slice of rows ──        x ── slice ── the same op ──
//
// Rows are independent there: what is cut off (all tokens but the last in front of a head) is not
// computed. The op must have no other reader.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// The same rows of an operand with the axes of the result, but for the size of the last one.
Value sliced(Match& m, SliceOp slice, Value x) {
  auto type = tensorType(x);
  SmallVector<StringAttr> sizes(slice.getSizes().getDims());
  sizes.back() = dimOf(type, type.getRank() - 1);
  MLIRContext* c = x.getContext();
  auto named = [&](const char* name, Attribute value) {
    return NamedAttribute(StringAttr::get(c, name), value);
  };
  return m.makeWith(
      "lathe.slice", {x},
      {named("starts", slice.getStartsAttr()), named("sizes", DimsAttr::get(c, sizes)),
       named("strides", slice.getStridesAttr())});
}

// `rows`: the operands that have the rows; absent ones are undefined.
void record(DagPattern& p, std::string_view op, const std::vector<Tensor>& operands,
            const std::vector<size_t>& rows) {
  Tensor inner = p.emit(op, operands, {}, std::source_location::current());
  p.root(anySlice(p, inner));
  p.replaceWith([=, op = std::string(op)](Match& m) -> Value {
    auto slice = cast<SliceOp>(m.root());
    auto type = tensorType(m[inner]);
    int64_t last = type.getRank() - 1;
    bool whole = slice.getStarts().getDims()[last].getValue() == "0" &&
                 slice.getSizes().getDims()[last] == dimOf(type, last) &&
                 slice.getStrides()[last] == 1;
    if (!whole) return m.decline("'sizes' of lathe.slice cut the last axis, not rows");
    SmallVector<Value> values;
    for (const Tensor& t : operands) values.push_back(t.defined() ? m[t] : Value());
    for (size_t i : rows)
      if (values[i] && !(values[i] = sliced(m, slice, values[i]))) return {};
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute a : m[inner].getDefiningOp()->getAttrDictionary())
      if (a.getName().getValue() != "operandSegmentSizes") attributes.push_back(a);
    return m.makeWith(op, values, attributes);
  });
}

}  // namespace

void addRowSlicePatterns(PatternLibrary& library, MLIRContext* context) {
  auto add = [&](const std::string& name, std::string_view op, size_t needed, size_t optional,
                 const std::vector<size_t>& rows) {
    // One pattern for each choice of optional operands.
    for (size_t choice = 0; choice < size_t(1) << optional; ++choice)
      addPattern(library, context, name + "-" + std::to_string(choice), [&](DagPattern& p) {
        std::vector<Tensor> operands;
        for (size_t i = 0; i < needed + optional; ++i) {
          bool given = i < needed || choice >> (i - needed) & 1;
          operands.push_back(given ? p.any() : Tensor());
        }
        record(p, op, operands, rows);
      });
  };
  add("slice-before-linear", "lathe.linear", 2, 2, {0, 3});
  add("slice-before-rms_norm", "lathe.rms_norm", 1, 1, {0});
  add("slice-before-layer_norm", "lathe.layer_norm", 1, 2, {0});
}

}  // namespace lathe
