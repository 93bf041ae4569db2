// SPDX-License-Identifier: Apache-2.0
#include "ir/graphviz.h"

#include "ir/types.h"
#include "llvm/ADT/DenseMap.h"
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
    if (auto weight = dyn_cast<WeightOp>(op)) label += " " + escaped(weight.getName());
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
