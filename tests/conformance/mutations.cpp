// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/mutations.h"

#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace lathe::conformance {

static Attribute otherConstant(DenseElementsAttr value) {
  Type element = value.getElementType();
  if (!value.isSplat() || element.isInteger(1)) return {};
  if (isa<FloatType>(element)) {
    APFloat old = value.getSplatValue<APFloat>();
    double v = old.convertToDouble();
    double next = std::isinf(v) ? -1 : v == 0 ? 0.5 : 1.5 * v;
    APFloat changed(next);
    bool loses = false;
    changed.convert(old.getSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return DenseElementsAttr::get(value.getType(), changed);
  }
  return DenseElementsAttr::get(value.getType(), value.getSplatValue<APInt>() + 1);
}

template <class Attr, class Enum>
static void addChoices(Operation* op, StringRef key, Attribute value, std::vector<Mutation>& all) {
  auto mine = dyn_cast<Attr>(value);
  if (!mine) return;
  const auto& names = Keywords<Enum>::names;
  for (size_t i = 0; i < names.size(); ++i)
    if (Enum(i) != mine.getValue()) {
      std::string k = key.str();
      Attribute changed = Attr::get(op->getContext(), Enum(i));
      all.push_back({k + "=" + std::string(names[i]),
                     [k, changed](Operation* o) { o->setAttr(k, changed); }});
    }
}

std::vector<Mutation> mutationsOf(Operation* op) {
  std::vector<Mutation> all;
  auto setAttribute = [&](const std::string& name, StringRef key, Attribute value) {
    std::string k = key.str();
    all.push_back({name, [k, value](Operation* o) { o->setAttr(k, value); }});
  };
  for (NamedAttribute a : op->getAttrDictionary()) {
    StringRef key = a.getName().getValue();
    if (auto axis = dyn_cast<IntegerAttr>(a.getValue()); axis && key == "axis") {
      for (int64_t other = 0; other < 4; ++other)
        if (other != axis.getInt())
          setAttribute("axis", key, IntegerAttr::get(axis.getType(), other));
    } else if (auto list = dyn_cast<DenseI64ArrayAttr>(a.getValue())) {
      SmallVector<int64_t> values(list.asArrayRef());
      if (key == "axes") {
        for (int64_t other = 0; other < 4; ++other)
          if (values.size() == 1 && other != values[0])
            setAttribute("axes", key, DenseI64ArrayAttr::get(op->getContext(), {other}));
      } else if (key == "permutation") {
        for (size_t i = 0; i + 1 < values.size(); ++i) {
          SmallVector<int64_t> other = values;
          std::swap(other[i], other[i + 1]);
          setAttribute("permutation", key, DenseI64ArrayAttr::get(op->getContext(), other));
        }
      } else if (key == "strides") {
        for (size_t i = 0; i < values.size(); ++i) {
          SmallVector<int64_t> other = values;
          other[i] = 3 - other[i];
          if (other[i] > 0 && !isOne(dimOf(tensorType(op->getResult(0)), int64_t(i))))
            setAttribute("strides", key, DenseI64ArrayAttr::get(op->getContext(), other));
        }
      }
    } else if (auto dims = dyn_cast<DimsAttr>(a.getValue()); dims && key == "starts") {
      for (size_t i = 0; i < dims.getDims().size(); ++i) {
        SmallVector<StringAttr> other(dims.getDims());
        other[i] = StringAttr::get(op->getContext(), other[i].getValue() == "0" ? "1" : "0");
        setAttribute("starts", key, DimsAttr::get(op->getContext(), other));
      }
    } else if (auto value = dyn_cast<DenseElementsAttr>(a.getValue())) {
      if (Attribute other = otherConstant(value)) setAttribute("constant", key, other);
    } else if (auto number = dyn_cast<FloatAttr>(a.getValue())) {
      double v = number.getValueAsDouble();
      // An epsilon is small: half as much again would change nothing that a float shows.
      double other = key == "epsilon" ? v + 0.25 : v == 0 ? 0.5 : 1.5 * v;
      setAttribute("number", key, FloatAttr::get(number.getType(), other));
    } else if (key == "window") {
      auto window = cast<IntegerAttr>(a.getValue());
      setAttribute("window", key, IntegerAttr::get(window.getType(), window.getInt() + 1));
    }
#define LATHE_CHOICES(Enum) addChoices<Enum##Attr, Enum>(op, key, a.getValue(), all);
    LATHE_KEYWORD_ENUMS(LATHE_CHOICES)
#undef LATHE_CHOICES
  }
  bool commutes = op->hasTrait<OpTrait::IsCommutative>() || isa<AddNormOp>(op);
  for (unsigned i = 0; i + 1 < op->getNumOperands() && !(commutes && i == 0); ++i)
    if (op->getOperand(i).getType() == op->getOperand(i + 1).getType())
      all.push_back({"operands", [i](Operation* o) {
                       Value a = o->getOperand(i);
                       o->setOperand(i, o->getOperand(i + 1));
                       o->setOperand(i + 1, a);
                     }});
  // Optional operands: a dropped mask, bias or residual.
  if (auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes")) {
    unsigned at = 0;
    for (auto [i, size] : llvm::enumerate(sizes.asArrayRef())) {
      if (size && i)
        all.push_back({"drop", [i, at](Operation* o) {
                         auto segments = o->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
                         SmallVector<int32_t> left(segments.asArrayRef());
                         left[i] = 0;
                         o->eraseOperand(at);
                         o->setAttr("operandSegmentSizes",
                                    DenseI32ArrayAttr::get(o->getContext(), left));
                       }});
      at += unsigned(size);
    }
  }
  return all;
}

std::vector<Mutation> otherArguments(Operation* op) {
  std::vector<Mutation> all;
  auto function = op->getParentOfType<func::FuncOp>();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    for (BlockArgument argument : function.getArguments()) {
      if (argument == op->getOperand(i) || argument.getType() != op->getOperand(i).getType())
        continue;
      all.push_back({"argument", [i, k = argument.getArgNumber()](Operation* o) {
                       o->setOperand(i, o->getParentOfType<func::FuncOp>().getArgument(k));
                     }});
    }
  return all;
}

std::vector<Mutation> allMutations(Operation* op) {
  std::vector<Mutation> all = mutationsOf(op);
  for (auto* more : {otherArguments, structuralMutations})
    for (Mutation& mutation : more(op)) all.push_back(std::move(mutation));
  return all;
}

bool isValid(ModuleOp module) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic&) { return success(); });
  return succeeded(verify(module));
}

void returnToo(Operation* target) {
  auto function = target->getParentOfType<func::FuncOp>();
  Operation* end = function.getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), target->getResults());
  SmallVector<Type> results(function.getResultTypes());
  llvm::append_range(results, target->getResultTypes());
  function.setType(FunctionType::get(function.getContext(), function.getArgumentTypes(), results));
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>(
      SmallVector<DictionaryAttr>(results.size(), DictionaryAttr::get(function.getContext()))));
}

}  // namespace lathe::conformance
