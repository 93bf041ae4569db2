// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/graphviz.h"

#include "lathe/ir/types.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe {
namespace {

std::string escaped(StringRef text) {
  std::string s;
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s;
}

// The module path and source line of a location, from its first named part.
std::pair<std::string, std::string> originOf(Location loc) {
  std::string path, line;
  loc->walk([&](Location l) {
    if (auto named = dyn_cast<NameLoc>(l); named && path.empty()) path = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(l); file && line.empty()) {
      StringRef name = file.getFilename().getValue();
      line = (name.rsplit('/').second.empty() ? name : name.rsplit('/').second).str() + ":" +
             std::to_string(file.getLine());
    }
    return WalkResult::advance();
  });
  return {path, line};
}

constexpr int64_t kFewNumbers = 8;

std::string numberText(const APFloat& value) {
  SmallString<16> digits;
  value.toString(digits, /*FormatPrecision=*/6);
  return digits.str().str();
}
// "2.5", "[1, -2]"; of many numbers their count alone.
std::string numbersOf(DenseElementsAttr values) {
  if (!values.isSplat() && values.getNumElements() > kFewNumbers)
    return "of " + std::to_string(values.getNumElements()) + " numbers";
  const int64_t count = values.isSplat() ? 1 : values.getNumElements();
  std::vector<std::string> list;
  for (int64_t i = 0; i < count; ++i) {
    if (isa<FloatType>(values.getElementType()))
      list.push_back(numberText(values.getValues<APFloat>()[i]));
    else if (values.getElementType().isInteger(1))
      list.push_back(values.getValues<bool>()[i] ? "true" : "false");
    else
      list.push_back(llvm::toString(values.getValues<APInt>()[i], 10,
                                    !values.getElementType().isUnsignedInteger()));
  }
  const std::string joined = llvm::join(list, ", ");
  return values.isSplat() ? joined : "[" + joined + "]";
}
// An attribute as short as it can be said: without its type and the dialect's name.
std::string shortAttribute(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute)) return numberText(number.getValue());
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return llvm::toString(number.getValue(), 10, true);
  if (auto word = dyn_cast<StringAttr>(attribute)) return word.getValue().str();
  if (auto values = dyn_cast<DenseElementsAttr>(attribute)) return numbersOf(values);
  std::string s;
  llvm::raw_string_ostream os(s);
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute)) {
    os << "[";
    llvm::interleaveComma(list.asArrayRef(), os);
    os << "]";
    return s;
  }
  attribute.print(os, /*elideType=*/true);
  // "#lathe.pairing<half>" is "half", and "#lathe.dims<seq, 8>" is "[seq, 8]".
  if (StringRef inner(s); inner.consume_front("#lathe.") && inner.ends_with(">")) {
    const std::string body = inner.split('<').second.drop_back().str();
    return isa<DimsAttr>(attribute) ? "[" + body + "]" : body;
  }
  return s;
}
// What an op is given beside its operands, a line of its label each; a flag that is not set is
// none.
std::string attributesOf(Operation& op) {
  std::string lines;
  for (NamedAttribute a : op.getAttrDictionary()) {
    if (isa<TypeAttr>(a.getValue())) continue;  // types of results stand in the label
    auto flag = dyn_cast<BoolAttr>(a.getValue());
    if (flag && !flag.getValue()) continue;
    lines += "\\n" + escaped(a.getName().strref());
    if (!flag && !isa<UnitAttr>(a.getValue())) lines += "=" + escaped(shortAttribute(a.getValue()));
  }
  return lines;
}

class Writer {
 public:
  void function(func::FuncOp f) {
    os << "  subgraph \"cluster_" << escaped(f.getName()) << "\" {\n    label=\""
       << escaped(f.getName()) << "\";\n";
    for (auto [i, argument] : llvm::enumerate(f.getArguments())) {
      StringRef name;
      if (auto a = f.getArgAttrOfType<StringAttr>(i, "lathe.name")) name = a.getValue();
      if (auto a = f.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state")) name = a.getValue();
      node(argument, name.str() + "\\n" + shortType(argument.getType()), "ellipse", "    ");
    }
    std::map<std::string, std::vector<Operation*>> modules;
    for (Operation& op : f.getBody().front()) modules[originOf(op.getLoc()).first].push_back(&op);
    for (auto& [path, ops] : modules) {
      if (!path.empty())
        os << "    subgraph \"cluster_" << escaped(f.getName()) << "." << escaped(path)
           << "\" {\n      label=\"" << escaped(path) << "\";\n";
      for (Operation* op : ops) operation(*op);
      if (!path.empty()) os << "    }\n";
    }
    os << "  }\n";
    for (Operation& op : f.getBody().front())
      for (Value v : op.getOperands()) os << "  n" << ids[v] << " -> n" << opIds[&op] << ";\n";
  }
  std::string text;
  llvm::raw_string_ostream os{text};

 private:
  void node(Value v, const std::string& label, const char* shape, const char* indent) {
    ids[v] = next;
    os << indent << "n" << next++ << " [label=\"" << label << "\", shape=" << shape << "];\n";
  }
  void operation(Operation& op) {
    for (Value v : op.getResults()) ids[v] = next;
    opIds[&op] = next;
    std::string label = op.getName().stripDialect().str();
    if (auto weight = dyn_cast<WeightOp>(op)) {
      label += " " + escaped(weight.getName());
    } else if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (auto values = dyn_cast<DenseElementsAttr>(constant.getValue()))
        label += " " + numbersOf(values);
    } else {
      label += attributesOf(op);
    }
    for (Value v : op.getResults()) label += "\\n" + shortType(v.getType());
    std::string line = originOf(op.getLoc()).second;
    if (!line.empty()) label += "\\n" + escaped(line);
    os << "      n" << next++ << " [label=\"" << label << "\", shape=box];\n";
  }
  llvm::DenseMap<Value, int> ids;
  llvm::DenseMap<Operation*, int> opIds;
  int next = 0;
};

}  // namespace

std::string toGraphviz(ModuleOp module) {
  Writer w;
  w.os << "digraph lathe {\n  node [fontsize=10];\n";
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal()) w.function(f);
  w.os << "}\n";
  return w.text;
}

}  // namespace lathe
