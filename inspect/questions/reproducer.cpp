// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/reproducer.h"

#include <filesystem>
#include <set>

#include "frontend/graph_impl.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/safetensors.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/mapped_file.h"

using namespace mlir;

namespace lathe {
namespace {

DimExpr substituted(const DimExpr& dim, const Symbols& numbers) {
  DimExpr sum;
  for (auto& [symbols, coefficient] : dim.terms()) {
    DimExpr product(coefficient);
    for (const std::string& s : symbols) {
      auto it = numbers.find(s);
      product = product * (it == numbers.end() ? DimExpr::symbol(s) : DimExpr(it->second));
    }
    sum = sum + product;
  }
  return sum;
}

// Numbers in place of symbols, in types and attributes.
class Substitution {
 public:
  Substitution(MLIRContext* context, const Symbols& numbers) {
    auto dims = [=, &numbers](ArrayRef<StringAttr> list) {
      SmallVector<StringAttr> result;
      for (StringAttr d : list) result.push_back(dimAttr(context, substituted(exprOf(d), numbers)));
      return result;
    };
    replacer_.addReplacement([=](DimsAttr a) -> std::optional<Attribute> {
      return DimsAttr::get(context, dims(a.getDims()));
    });
    replacer_.addReplacement([=](RankedTensorType t) -> std::optional<std::pair<Type, WalkResult>> {
      for (int64_t axis = 0; axis < t.getRank(); ++axis)
        if (!dimOf(t, axis)) return std::pair(Type(t), WalkResult::skip());
      return std::pair(Type(tensorOf(dims(dimsOf(t)), t.getElementType())), WalkResult::skip());
    });
  }
  void apply(Operation* op) { replacer_.recursivelyReplaceElementsIn(op, true, false, true); }

 private:
  AttrTypeReplacer replacer_;
};

void addSymbols(std::set<std::string>& symbols, RankedTensorType type, bool bareOnly) {
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    auto dim = dimExprOf(type, axis);
    if (!dim) continue;
    std::vector<std::string> names = dim->symbols();
    if (!bareOnly || (names.size() == 1 && *dim == DimExpr::symbol(names[0])))
      symbols.insert(names.begin(), names.end());
  }
}

// Ids become ids and floats floats of the IR's dtype.
Array asDeclared(const Array& a, RankedTensorType type) {
  DType dtype = *dtypeOf(type.getElementType());
  return a.dtype() == dtype ? a.clone() : a.to(dtype);
}

std::string shellWord(const std::string& path) {
  if (path.find_first_of(" \t\n'\"\\`$&|;<>(){}*?[]!#~") == path.npos) return path;
  std::string quoted = "'";
  for (char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::optional<CutGraph> cutOut(ArrayRef<Operation*> given, const Trial& trial) {
  llvm::SmallSetVector<Operation*, 16> ops(given.begin(), given.end());
  SmallVector<Operation*> order, sources;
  SmallVector<Value> inputs, outputs;
  for (Operation* op : given)
    for (Value v : op->getOperands()) {
      Operation* def = v.getDefiningOp();
      if (def && isa<ConstantOp, WeightOp>(def)) ops.insert(def);
    }
  func::FuncOp from = (*given.begin())->getParentOfType<func::FuncOp>();
  size_t counted = 0;
  for (Operation& op : *given.front()->getBlock())
    if (ops.contains(&op)) {
      order.push_back(&op);
      counted += !isa<ConstantOp, WeightOp>(op);
    }
  for (Operation* op : order) {
    for (Value v : op->getOperands())
      if ((!v.getDefiningOp() || !ops.contains(v.getDefiningOp())) &&
          !llvm::is_contained(inputs, v))
        inputs.push_back(v);
    if (isa<ConstantOp, WeightOp>(op)) continue;
    for (Value v : op->getResults())
      if (v.use_empty() ||
          llvm::any_of(v.getUsers(), [&](Operation* user) { return !ops.contains(user); }))
        outputs.push_back(v);
  }
  if (outputs.empty()) return std::nullopt;

  MLIRContext* context = from.getContext();
  OpBuilder b(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(from.getLoc(), "reproducer");
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> inputTypes, outputTypes;
  for (Value v : inputs) inputTypes.push_back(v.getType());
  for (Value v : outputs) outputTypes.push_back(v.getType());
  auto function =
      func::FuncOp::create(b, from.getLoc(), "forward", b.getFunctionType(inputTypes, outputTypes));
  Block* block = function.addEntryBlock();
  b.setInsertionPointToEnd(block);
  IRMapping map;
  for (auto [v, argument] : llvm::zip(inputs, block->getArguments())) {
    map.map(v, argument);
    argument.setLoc(v.getLoc());
  }
  for (Operation* op : order) b.clone(*op, map);
  SmallVector<Value> returned;
  for (Value v : outputs) returned.push_back(map.lookup(v));
  func::ReturnOp::create(b, from.getLoc(), returned);
  auto name = [&](StringRef prefix, size_t i) {
    return b.getDictionaryAttr(b.getNamedAttr("lathe.name", b.getStringAttr(prefix + Twine(i))));
  };
  for (size_t i = 0; i < inputs.size(); ++i) function.setArgAttrs(unsigned(i), name("x", i));
  for (size_t i = 0; i < outputs.size(); ++i) function.setResultAttrs(unsigned(i), name("y", i));

  std::set<std::string> bound;
  for (Type t : inputTypes) addSymbols(bound, cast<RankedTensorType>(t), /*bareOnly=*/true);
  Symbols numbers;
  for (auto& [symbol, value] : trial.sizes())
    if (!bound.count(symbol)) numbers[symbol] = value;
  Substitution(context, numbers).apply(function);
  b.setInsertionPointToStart(module->getBody());
  TrialOptions options = trial.options();
  options.sizes.clear();
  for (auto dim : from->getParentOfType<ModuleOp>().getOps<DimOp>())
    if (std::string symbol = dim.getSymName().str(); bound.count(symbol)) {
      b.clone(*dim.getOperation());
      options.sizes[symbol] = trial.sizes().at(symbol);
    }

  std::map<void*, Array> values;
  const std::string entry = from.getName().str();
  bool computed = llvm::any_of(inputs, [](Value v) { return bool(v.getDefiningOp()); });
  if (computed)
    trial.run(from, entry, options.precision, [&](Operation* op, const std::vector<Array>& made) {
      for (auto [v, a] : llvm::zip(op->getResults(), made))
        if (llvm::is_contained(inputs, v)) values[v.getAsOpaquePointer()] = a;
    });
  options.inputs.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto argument = dyn_cast<BlockArgument>(inputs[i]);
    const Array& value = argument ? trial.arguments(entry)[argument.getArgNumber()]
                                  : values.at(inputs[i].getAsOpaquePointer());
    options.inputs["x" + std::to_string(i)] = asDeclared(value, tensorType(inputs[i]));
  }
  options.entry.clear();
  options.progress = {};
  options.weights = [&trial](const std::string& weight) { return trial.weight(weight); };

  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, OpPrintingFlags().enableDebugInfo());
  return CutGraph{Graph::parse(text, "reproducer.mlir"), std::move(options), counted};
}

std::optional<CutGraph> narrow(func::FuncOp function, const Trial& trial,
                               const std::function<bool(const CutGraph&)>& shows) {
  SmallVector<Operation*> ops;
  for (Operation& op : function.getBody().front().without_terminator())
    if (!isa<ConstantOp, WeightOp>(op)) ops.push_back(&op);
  auto shown = [&](ArrayRef<Operation*> some) -> std::optional<CutGraph> {
    if (some.empty()) return std::nullopt;
    std::optional<CutGraph> cut = cutOut(some, trial);
    if (cut && !shows(*cut)) cut.reset();
    return cut;
  };
  std::optional<CutGraph> best = shown(ops);
  if (!best) return std::nullopt;
  size_t good = 0, bad = ops.size();  // lengths of prefixes
  while (bad - good > 1) {
    size_t middle = (good + bad) / 2;
    if (auto cut = shown(ArrayRef(ops).take_front(middle)))
      bad = middle, best = std::move(cut);
    else
      good = middle;
  }
  // The last op with those before it, nearest first.
  llvm::SmallSetVector<Operation*, 16> near;
  near.insert(ops[bad - 1]);
  for (size_t had = 0; near.size() < bad && near.size() != had;) {
    if (auto cut = shown(near.getArrayRef())) return cut;
    had = near.size();
    SmallVector<Operation*> layer(near.begin(), near.end());
    for (Operation* op : layer)
      for (Value v : op->getOperands())
        if (Operation* def = v.getDefiningOp(); def && !isa<ConstantOp, WeightOp>(def))
          near.insert(def);
  }
  return best;
}

// What the graph was compiled with, as flags of `lathe`.
static std::string flagsOf(const TrialOptions& trial) {
  const CompileOptions& c = trial.compile;
  const PipelineOptions& p = c.pipeline;
  std::string flags;
  if (p.mode != NumericsMode::Relaxed) flags += " --mode " + std::string(nameOf(p.mode));
  if (const WeightFormats& weights = c.backendOptions.weights; weights.any())
    flags += " --weight-format " + textOf(weights);
  for (const std::string& file : p.patternFiles) flags += " --patterns " + shellWord(file);
  for (const std::string& file : p.plugins) flags += " --load-pass-plugin " + shellWord(file);
  if (!p.passes.empty()) flags += " --passes " + shellWord(p.passes);
  for (const std::string& file : c.backendPlugins)
    flags += " --load-backend-plugin " + shellWord(file);
  return flags;
}

// The same for lathe-opt, whose fusions follow the canonical form.
static std::string optFlagsOf(const TrialOptions& trial) {
  const PipelineOptions& p = trial.compile.pipeline;
  std::string flags, files, passes = "lathe-canonicalize,lathe-cse,lathe-fuse";
  for (const std::string& file : p.plugins) flags += " " + shellWord("--load-pass-plugin=" + file);
  if (p.mode != NumericsMode::Relaxed) flags += " --numerics=" + std::string(nameOf(p.mode));
  for (const std::string& file : p.patternFiles) files += (files.empty() ? "" : ",") + file;
  // Braces keep a path with spaces together.
  if (files.find(' ') != files.npos) files = "{" + files + "}";
  if (!files.empty()) passes += "{patterns=" + files + "}";
  if (!p.passes.empty()) passes += "," + p.passes;
  return flags + " " + shellWord("--pass-pipeline=builtin.module(" + passes + ")");
}

Reproducer write(const CutGraph& cut, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(ErrorCode::Io, "cannot make the folder " + folder + ": " + failed.message());
  Reproducer r;
  r.ops = cut.ops;
  r.file = (fs::path(folder) / "reproducer.mlir").string();
  writeFileAtomically(r.file, cut.graph.text(/*withLocations=*/true));
  std::string arguments;
  for (auto& [name, array] : cut.trial.inputs) {
    std::string file = (fs::path(folder) / name).string();
    if (array.dtype() == DType::BF16) {
      file += ".safetensors";
      saveSafetensors(file, {{name, array}});
      arguments += " --input " + name + "=@" + shellWord(file) + ":" + name;
    } else {
      file += ".npy";
      saveNpy(file, array);
      arguments += " --input " + name + "=@" + shellWord(file);
    }
    r.data.push_back(file);
  }
  std::map<std::string, Array> weights;
  cut.graph.impl().finished().walk([&](WeightOp op) {
    weights.emplace(op.getName().str(), cut.trial.weights(op.getName().str()));
  });
  if (!weights.empty()) {
    std::string file = (fs::path(folder) / "weights.safetensors").string();
    saveSafetensors(file, weights);
    r.data.push_back(file);
    arguments += " --weights " + shellWord(file);
  }
  const std::string run = "lathe run " + shellWord(r.file) + arguments;
  std::string wrong = run + " --backend " + cut.trial.compile.backend + flagsOf(cut.trial);
  if (!cut.trial.device.empty()) wrong += " --device " + shellWord(cut.trial.device);
  r.commands = {run + " --backend reference --stop-after-rewrite 0", wrong,
                "lathe-opt " + shellWord(r.file) + optFlagsOf(cut.trial) + " --log-rewrites"};
  return r;
}

}  // namespace lathe
