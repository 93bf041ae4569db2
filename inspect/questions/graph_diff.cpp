// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/graph_diff.h"

#include <algorithm>
#include <optional>

#include "inspect/questions/trial_run.h"
#include "lathe/frontend/compile.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace lathe {
namespace {

using Side = GraphDiff::Side;

std::string print(Attribute a) {
  std::string text;
  llvm::raw_string_ostream(text) << a;
  return text;
}
std::string shapeText(RankedTensorType type) {
  std::string text = shortType(type);
  return text.substr(text.find('['));
}
// True if one shape is another order of the other.
bool isPermuted(RankedTensorType a, RankedTensorType b) {
  if (a == b || a.getElementType() != b.getElementType()) return false;
  SmallVector<int64_t> x(a.getShape()), y(b.getShape());
  llvm::sort(x);
  llvm::sort(y);
  return x == y && a.getShape() != b.getShape();
}

// Names of one function's symbols and weights in terms that both functions share.
class Names {
 public:
  Names(func::FuncOp f, bool weightsByName) {
    replacer_.addReplacement([this](DimsAttr a) -> std::optional<Attribute> {
      SmallVector<StringAttr> dims;
      for (StringAttr d : a.getDims()) dims.push_back(renamed(d));
      return DimsAttr::get(a.getContext(), dims);
    });
    std::map<std::string, int> seen;
    f.walk([&](WeightOp op) {
      std::string name = op.getName().str();
      if (weights_.count(name)) return;
      std::string type = shortType(op.getY().getType());
      weights_[name] = weightsByName ? name : type + "#" + std::to_string(seen[type]++);
    });
  }
  Attribute of(Attribute a) { return replacer_.replace(a); }
  std::string of(Type t) { return shortType(replacer_.replace(t)); }
  const std::string& weight(WeightOp op) const { return weights_.at(op.getName().str()); }
  const std::map<std::string, std::string>& symbols() const { return symbols_; }

 private:
  StringAttr renamed(StringAttr d) {
    DimExpr sum;
    const DimExpr dim = exprOf(d);
    for (auto& [symbols, coefficient] : dim.terms()) {
      DimExpr product(coefficient);
      for (const std::string& s : symbols) {
        auto it = symbols_.try_emplace(s, "s" + std::to_string(symbols_.size())).first;
        product = product * DimExpr::symbol(it->second);
      }
      sum = sum + product;
    }
    return dimAttr(d.getContext(), sum);
  }

  AttrTypeReplacer replacer_;
  std::map<std::string, std::string> symbols_, weights_;
};

// Weights by shared name that the two functions hold in another order of axes.
using Permuted = std::map<std::string, bool>;

class Function {
 public:
  Function(func::FuncOp f, bool weightsByName) : f(f), names(f, weightsByName) {}

  // A weight behind any number of transposes; null for another value.
  static WeightOp weightBehind(Value v) {
    while (auto t = v.getDefiningOp<TransposeOp>()) v = t->getOperand(0);
    return v.getDefiningOp<WeightOp>();
  }
  bool isPermutedWeight(Value v, const Permuted& permuted) const {
    WeightOp w = weightBehind(v);
    return w && permuted.count(names.weight(w));
  }

  void number(std::map<std::string, int>& shared, const std::vector<std::string>& arguments,
              const Permuted& permuted) {
    auto idOf = [&](const std::string& key) {
      return shared.try_emplace(key, int(shared.size())).first->second;
    };
    // By name: the symbols of both functions get their names in one order, whatever the inputs' is.
    std::map<std::string, BlockArgument> byName;
    for (auto [name, argument] : llvm::zip(arguments, f.getArguments())) byName[name] = argument;
    for (auto& [name, argument] : byName)
      ids[argument] = idOf("input " + name + " " + names.of(argument.getType()));
    for (Operation& op : f.getBody().front().without_terminator()) {
      std::string key = keyOf(&op, permuted);
      SmallVector<int> operands;
      for (Value v : op.getOperands()) operands.push_back(ids.lookup(v));
      if (op.hasTrait<OpTrait::IsCommutative>()) llvm::sort(operands);
      if (op.getNumResults() == 1 && isPermutedWeight(op.getResult(0), permuted)) operands.clear();
      for (int id : operands) key += " %" + std::to_string(id);
      for (auto [i, v] : llvm::enumerate(op.getResults()))
        ids[v] = idOf(key + " #" + std::to_string(i));
    }
  }

  std::string keyOf(Operation* op, const Permuted& permuted) {
    std::string types;
    for (Type t : op->getResultTypes()) types += " " + names.of(t);
    if (op->getNumResults() == 1 && isPermutedWeight(op->getResult(0), permuted)) {
      bool intoLinear = llvm::all_of(op->getUsers(), [](Operation* u) { return isa<LinearOp>(u); });
      return "weight " + names.weight(weightBehind(op->getResult(0))) + (intoLinear ? "" : types);
    }
    if (auto w = dyn_cast<WeightOp>(op)) return "weight " + names.weight(w) + types;
    std::string key = op->getName().getStringRef().str();
    bool dropLayout = isa<LinearOp>(op) && isPermutedWeight(op->getOperand(1), permuted);
    for (NamedAttribute a : op->getAttrDictionary())
      if (!dropLayout || a.getName() != "layout")
        key += " " + a.getName().str() + "=" + print(names.of(a.getValue()));
    return key + types;
  }

  func::FuncOp f;
  Names names;
  llvm::DenseMap<Value, int> ids;
};

std::string labelOfArgument(func::FuncOp f, unsigned i) {
  if (auto s = f.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state"))
    return "state " + s.getValue().str();
  auto name = f.getArgAttrOfType<StringAttr>(i, "lathe.name");
  return name ? name.getValue().str() : "arg" + std::to_string(i);
}
std::string labelOfResult(func::FuncOp f, unsigned i) {
  if (auto s = f.getResultAttrOfType<FlatSymbolRefAttr>(i, "lathe.state"))
    return "state '" + s.getValue().str() + "'";
  auto name = f.getResultAttrOfType<StringAttr>(i, "lathe.name");
  return "output '" + (name ? name.getValue().str() : std::to_string(i)) + "'";
}

Side describe(Value v) {
  Side side;
  side.at = sourceText(v.getLoc());
  Operation* op = v.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(v);
    auto f = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    side.op = "an input";
    side.text = labelOfArgument(f, argument.getArgNumber()) + ": " + shortType(v.getType());
    return side;
  }
  side.op = op->getName().getStringRef().str();
  llvm::raw_string_ostream(side.text) << *op;
  return side;
}

class Comparison {
 public:
  Comparison(func::FuncOp fa, func::FuncOp fb, const GraphDiffOptions& options, GraphDiff& all)
      : a_(fa, options.weightsByName), b_(fb, options.weightsByName), all_(all) {
    entry_.name = fa.getName().str();
  }

  GraphDiff::Entry run() {
    findLayouts();
    std::vector<std::string> namesA, namesB;
    matchArguments(namesA, namesB);
    std::map<std::string, int> shared;
    a_.number(shared, namesA, permuted_);
    b_.number(shared, namesB, permuted_);
    countOps();
    compareResults();
    return std::move(entry_);
  }

 private:
  void findLayouts() {
    std::map<std::string, RankedTensorType> types;
    a_.f.walk([&](WeightOp w) { types[a_.names.weight(w)] = tensorType(w.getY()); });
    b_.f.walk([&](WeightOp w) {
      const std::string& name = b_.names.weight(w);
      auto it = types.find(name);
      auto type = tensorType(w.getY());
      // The two contexts have types of their own: shapes and names of dtypes are compared.
      if (it == types.end()) return;
      auto own = RankedTensorType::get(
          it->second.getShape(),
          elementTypeOf(type.getContext(), *dtypeOf(it->second.getElementType())));
      if (!isPermuted(own, RankedTensorType::get(type.getShape(), type.getElementType()))) return;
      if (!permuted_.emplace(name, true).second) return;
      std::string line =
          "'" + name + "' is " + shapeText(it->second) + " in A, " + shapeText(type) + " in B";
      if (!llvm::is_contained(all_.layouts, line)) all_.layouts.push_back(line);
    });
  }

  void matchArguments(std::vector<std::string>& a, std::vector<std::string>& b) {
    for (unsigned i = 0; i < a_.f.getNumArguments(); ++i) a.push_back(labelOfArgument(a_.f, i));
    for (unsigned i = 0; i < b_.f.getNumArguments(); ++i) b.push_back(labelOfArgument(b_.f, i));
    std::vector<std::string> x = a, y = b;
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    if (x == y || a.size() != b.size()) return;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      all_.notes.push_back("input '" + a[i] + "' of '" + entry_.name + "' in A is '" + b[i] +
                           "' in B");
      b[i] = a[i];
    }
  }

  void countOps() {
    auto count = [&](func::FuncOp f, int std::pair<int, int>::* side) {
      for (Operation& op : f.getBody().front().without_terminator())
        ++(entry_.counts[op.getName().stripDialect().str()].*side);
    };
    count(a_.f, &std::pair<int, int>::first);
    count(b_.f, &std::pair<int, int>::second);
  }

  void compareResults() {
    auto results = [](func::FuncOp f) {
      std::vector<std::pair<std::string, Value>> all;
      for (auto [i, v] : llvm::enumerate(f.getBody().front().getTerminator()->getOperands()))
        all.push_back({labelOfResult(f, unsigned(i)), v});
      return all;
    };
    auto a = results(a_.f), b = results(b_.f);
    for (auto& [name, value] : a) {
      auto it = std::find_if(b.begin(), b.end(), [&](auto& r) { return r.first == name; });
      if (it == b.end()) {
        differ(name + " is in A only", describe(value), {"nothing", "", ""}, {name});
        continue;
      }
      if (a_.ids.lookup(value) != b_.ids.lookup(it->second)) descend(name, value, it->second);
    }
    for (auto& [name, value] : b)
      if (std::none_of(a.begin(), a.end(), [&](auto& r) { return r.first == name; }))
        differ(name + " is in B only", {"nothing", "", ""}, describe(value), {name});
  }

  // Follows the first operands that differ, to two ops that differ themselves.
  void descend(const std::string& result, Value a, Value b) {
    std::vector<std::string> path{result};
    while (true) {
      Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
      std::string why = localDifference(x, y, a, b);
      if (!why.empty()) return differ(why, describe(a), describe(b), path);
      SmallVector<Value> left(x->getOperands()), right(y->getOperands());
      if (x->hasTrait<OpTrait::IsCommutative>() && left.size() == 2 &&
          (a_.ids.lookup(left[0]) == b_.ids.lookup(right[1]) ||
           a_.ids.lookup(left[1]) == b_.ids.lookup(right[0])))
        std::swap(right[0], right[1]);
      size_t i = 0;
      while (i < left.size() && a_.ids.lookup(left[i]) == b_.ids.lookup(right[i])) ++i;
      if (i == left.size())
        return differ("the operands come in another order", describe(a), describe(b), path);
      path.push_back(x->getName().getStringRef().str() + " operand " + std::to_string(i));
      a = left[i];
      b = right[i];
    }
  }

  std::string localDifference(Operation* x, Operation* y, Value a, Value b) {
    if (!x || !y) return x || y ? "an op and an input" : "two inputs";
    if (x->getName().getStringRef() != y->getName().getStringRef()) return "the ops differ";
    if (auto w = dyn_cast<WeightOp>(x)) {
      auto v = cast<WeightOp>(y);
      if (a_.names.weight(w) != b_.names.weight(v))
        return "the weights are '" + w.getName().str() + "' in A and '" + v.getName().str() +
               "' in B";
    }
    for (NamedAttribute at : x->getAttrDictionary()) {
      if (isa<WeightOp>(x)) break;
      Attribute other = y->getAttr(at.getName().getValue());
      std::string in = print(a_.names.of(at.getValue()));
      std::string out = other ? print(b_.names.of(other)) : "none";
      if (in != out)
        return "attribute '" + at.getName().str() + "' is " + print(at.getValue()) + " in A and " +
               (other ? print(other) : out) + " in B";
    }
    for (NamedAttribute at : y->getAttrDictionary())
      if (!isa<WeightOp>(x) && !x->hasAttr(at.getName()))
        return "attribute '" + at.getName().str() + "' is none in A and " + print(at.getValue()) +
               " in B";
    if (x->getNumOperands() != y->getNumOperands()) return "the operands differ in number";
    bool operandsDiffer = false;
    for (auto [v, w] : llvm::zip(x->getOperands(), y->getOperands()))
      operandsDiffer |= a_.ids.lookup(v) != b_.ids.lookup(w);
    if (!operandsDiffer && a_.names.of(a.getType()) != b_.names.of(b.getType()))
      return "the types are " + shortType(a.getType()) + " in A and " + shortType(b.getType()) +
             " in B";
    return "";
  }

  void differ(const std::string& why, Side a, Side b, std::vector<std::string> path) {
    if (!entry_.equal) return;  // the first is told
    entry_.equal = false;
    entry_.why = why;
    entry_.a = std::move(a);
    entry_.b = std::move(b);
    entry_.path = std::move(path);
  }

  Function a_, b_;
  Permuted permuted_;
  GraphDiff& all_;
  GraphDiff::Entry entry_;
};

OwningOpRef<ModuleOp> moduleAt(const Graph& graph, Stage stage) {
  OwningOpRef<ModuleOp> module;
  CompileOptions options{.backend = "reference"};
  runStages(graph, stage, options, [&](Stage reached, ModuleOp m) {
    if (reached == stage) module = m.clone();
  });
  return module;
}

std::string rangeText(DimOp d) {
  std::string text = "'" + d.getSymName().str() + "' is " + std::to_string(d.getLo()) + " to " +
                     std::to_string(d.getHi());
  if (d.getMultiple() > 1) text += " in multiples of " + std::to_string(d.getMultiple());
  return text;
}

void compareSizes(ModuleOp a, ModuleOp b, GraphDiff& all) {
  for (auto x : a.getOps<DimOp>())
    for (auto y : b.getOps<DimOp>())
      if (x.getSymName() == y.getSymName() && rangeText(x) != rangeText(y))
        all.notes.push_back("size " + rangeText(x) + " in A, " +
                            rangeText(y).substr(y.getSymName().size() + 6) + " in B");
}

}  // namespace

GraphDiff diff(const Graph& a, const Graph& b, const GraphDiffOptions& options) {
  Stage stage = parseStage(options.stage);
  if (stage > Stage::Fused)
    throw Error(ErrorCode::InvalidArgument,
                "expected the stage recorded, canonical or fused, got '" + options.stage +
                    "'; later ones depend on a backend");
  OwningOpRef<ModuleOp> x = moduleAt(a, stage), y = moduleAt(b, stage);
  GraphDiff all;
  compareSizes(*x, *y, all);
  for (auto f : x->getOps<func::FuncOp>()) {
    auto g = y->lookupSymbol<func::FuncOp>(f.getName());
    if (!g) {
      all.notes.push_back("entry point '" + f.getName().str() + "' is in A only");
      all.equal = false;
      continue;
    }
    all.entries.push_back(Comparison(f, g, options, all).run());
    all.equal &= all.entries.back().equal;
  }
  for (auto g : y->getOps<func::FuncOp>())
    if (!x->lookupSymbol<func::FuncOp>(g.getName())) {
      all.notes.push_back("entry point '" + g.getName().str() + "' is in B only");
      all.equal = false;
    }
  return all;
}

}  // namespace lathe
