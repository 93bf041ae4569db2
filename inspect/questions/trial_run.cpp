// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/trial_run.h"

#include <set>

#include "frontend/entry_points.h"
#include "inspect/questions/index_limits.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "lathe/runtime/error.h"
#include "passes/rewrite/locations.h"
#include "runtime/bound_weights.h"

using namespace mlir;

namespace lathe {
namespace {

std::string nameOfArgument(func::FuncOp f, unsigned i) {
  if (auto state = f.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state"))
    return state.getValue().str();
  auto name = f.getArgAttrOfType<StringAttr>(i, "lathe.name");
  return name ? name.getValue().str() : "arg" + std::to_string(i);
}
std::string nameOfResult(func::FuncOp f, unsigned i) {
  if (auto state = f.getResultAttrOfType<FlatSymbolRefAttr>(i, "lathe.state"))
    return "state " + state.getValue().str();
  auto name = f.getResultAttrOfType<StringAttr>(i, "lathe.name");
  return name ? name.getValue().str() : "result" + std::to_string(i);
}

bool isEntry(func::FuncOp f) { return !f.isExternal() && !f->hasAttr("lathe.derived"); }

uint64_t mix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Shape shapeOf(RankedTensorType type, const Symbols& sizes, const std::string& what) {
  Shape shape;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    auto dim = dimExprOf(type, axis);
    auto value = dim ? dim->evaluate(sizes) : std::nullopt;
    if (!value || *value < 0)
      throw Error(ErrorCode::InvalidArgument, what + ": expected a size for every dim of " +
                                                  shortType(type) + ", got none for dim " +
                                                  std::to_string(axis) + "; set its symbols");
    shape.push_back(*value);
  }
  return shape;
}

}  // namespace

double uniform(uint64_t& state) { return double(mix(state) >> 11) * 0x1p-53; }

std::string sourceText(Location location) {
  std::string text = originText(firstOrigin(location), /*column=*/true);
  return text.empty() ? "unknown location" : text;
}

Trial::Trial(ModuleOp recorded, const TrialOptions& options)
    : options_(options), recorded_(recorded) {
  options_.compile.record = nullptr;
  if (!(options_.tolerance >= 0))
    throw Error(ErrorCode::InvalidArgument,
                "expected a tolerance of 0 (the contract) or more, got " +
                    std::to_string(options_.tolerance));
  checkBeforeLayout(recorded);
  checkEntry(recorded);
  chooseSizes(recorded);
  recorded.walk([&](WeightOp op) {
    auto type = tensorType(op.getY());
    TensorInfo info{op.getName().str(), *dtypeOf(type.getElementType()), {}};
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      info.shape.push_back(*dimExprOf(type, axis));
    weightInfo_.emplace(info.name, info);
  });
  std::map<std::string, Array, std::less<>> unused(options_.inputs.begin(), options_.inputs.end());
  for (auto f : recorded.getOps<func::FuncOp>()) {
    makeArguments(f);
    for (unsigned i = 0; i < f.getNumArguments(); ++i) unused.erase(nameOfArgument(f, i));
  }
  if (!unused.empty())
    throw Error(ErrorCode::InvalidArgument,
                "no entry point has an input '" + unused.begin()->first + "'");

  runToMeasure();
}

void Trial::checkEntry(ModuleOp recorded) const {
  if (options_.entry.empty()) return;
  std::string known;
  for (auto f : recorded.getOps<func::FuncOp>()) {
    if (runs(f)) return;
    if (isEntry(f)) known += (known.empty() ? "" : ", ") + f.getName().str();
  }
  throw Error(ErrorCode::InvalidArgument,
              "the graph has no entry point '" + options_.entry + "'; it has " + known);
}

bool Trial::runs(func::FuncOp f) const {
  return isEntry(f) && (options_.entry.empty() || f.getName() == options_.entry);
}

// The sizes of the options, and those that the given inputs have.
SymbolValues Trial::sizesAsked(ModuleOp recorded) const {
  SymbolValues asked = options_.sizes;
  for (auto f : recorded.getOps<func::FuncOp>())
    for (unsigned i = 0; i < f.getNumArguments(); ++i) {
      const std::string name = nameOfArgument(f, i);
      auto given = options_.inputs.find(name);
      if (f.getArgAttr(i, "lathe.state") || given == options_.inputs.end()) continue;
      auto type = tensorType(f.getArgument(i));
      const Shape& shape = given->second.shape();
      if (int64_t(shape.size()) != type.getRank()) continue;  // the run tells
      for (int64_t axis = 0; axis < type.getRank(); ++axis) {
        auto dim = dimExprOf(type, axis);
        if (!dim || dim->asConstant() || dim->symbols().size() != 1 ||
            *dim != DimExpr::symbol(dim->symbols().front()))
          continue;
        auto [known, isNew] = asked.emplace(dim->symbols().front(), shape[size_t(axis)]);
        if (!isNew && known->second != shape[size_t(axis)])
          throw Error(ErrorCode::InvalidArgument,
                      "size '" + known->first + "': input '" + name + "' has " +
                          std::to_string(shape[size_t(axis)]) + ", another input or --set has " +
                          std::to_string(known->second));
      }
    }
  return asked;
}

void Trial::chooseSizes(ModuleOp recorded) {
  // A symbol that only states have is a capacity: it must hold what the others ask for.
  std::set<std::string> inInputs;
  for (auto f : recorded.getOps<func::FuncOp>())
    for (unsigned i = 0; i < f.getNumArguments(); ++i) {
      if (f.getArgAttr(i, "lathe.state")) continue;
      auto type = tensorType(f.getArgument(i));
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        if (auto dim = dimExprOf(type, axis))
          for (const std::string& s : dim->symbols()) inInputs.insert(s);
    }
  const SymbolValues asked = sizesAsked(recorded);
  constexpr int64_t kSmall[] = {2, 5, 3, 7, 4, 11, 6, 13};
  constexpr int64_t kLarger[] = {17, 19, 16, 23, 18, 29, 20, 31};
  const int64_t* free = options_.larger ? kLarger : kSmall;
  const int64_t capacity = options_.larger ? 64 : 16;
  size_t next = 0;
  for (auto dim : recorded.getOps<DimOp>()) {
    std::string name = dim.getSymName().str();
    int64_t lo = int64_t(dim.getLo()), hi = int64_t(dim.getHi()), step = int64_t(dim.getMultiple());
    int64_t value = inInputs.count(name) ? free[next++ % std::size(kSmall)] : capacity;
    value = std::min(std::max((value + step - 1) / step * step, (lo + step - 1) / step * step),
                     hi / step * step);
    if (auto given = asked.find(name); given != asked.end()) {
      value = given->second;
      if (value < lo || value > hi || value % step)
        throw Error(ErrorCode::InvalidArgument,
                    "size '" + name + "': expected " + std::to_string(lo) + " to " +
                        std::to_string(hi) +
                        (step > 1 ? " in multiples of " + std::to_string(step) : "") + ", got " +
                        std::to_string(value));
    }
    sizes_[name] = value;
  }
  for (auto& [name, value] : options_.sizes)
    if (!sizes_.count(name)) {
      std::string known;
      for (auto& [n, v] : sizes_) known += (known.empty() ? "" : ", ") + n;
      throw Error(ErrorCode::InvalidArgument, "the graph has no size '" + name + "'; it has " +
                                                  (known.empty() ? "none" : known));
    }
}

void Trial::makeArguments(func::FuncOp f) {
  std::vector<Array>& all = arguments_[f.getName().str()];
  inputs_[f.getName().str()];
  for (unsigned i = 0; i < f.getNumArguments(); ++i) {
    std::string name = nameOfArgument(f, i);
    auto type = tensorType(f.getArgument(i));
    DType dtype = *dtypeOf(type.getElementType());
    const bool isState = bool(f.getArgAttr(i, "lathe.state"));
    if (!isState) inputs_[f.getName().str()].push_back(i);
    if (auto given = options_.inputs.find(name); !isState && given != options_.inputs.end()) {
      all.push_back(given->second);
      continue;
    }
    Array a(dtype, shapeOf(type, sizes_, "input '" + name + "'"));
    all.push_back(a);
    if (isState) continue;  // zero at first
    uint64_t state = options_.seed * 0x2545f4914f6cdd1d + 1;
    for (char c : name) state = (state ^ uint8_t(c)) * 0x100000001b3;
    const int64_t limit = isFloat(dtype) ? 0 : largestIndex(f.getArgument(i), sizes_);
    for (int64_t n = 0; n < a.size(); ++n) {
      if (isFloat(dtype))  // about normal: a sum of uniforms
        a.set(n, uniform(state) + uniform(state) + uniform(state) + uniform(state) - 2);
      else if (dtype == DType::Bool)
        a.set(n, uniform(state) < 0.75);
      else
        a.set(n, double(mix(state) % uint64_t(limit + 1)));
    }
  }
}

Array Trial::weight(const std::string& name) const {
  auto info = weightInfo_.find(name);
  if (info == weightInfo_.end()) return {};
  Array& a = weights_[name];
  if (a.defined()) return a;
  if (!options_.weights) return a = randomWeight(info->second, options_.seed);
  Array given = options_.weights(name);
  if (!given.defined())
    throw Error(ErrorCode::InvalidArgument, "weight '" + name + "' is not in the checkpoint");
  return a = given;
}

// Elements that are only moved are the same numbers in the dtype that they have, which takes less
// room than doubles. A ramp would be rounded.
static bool onlyMoves(func::FuncOp load) {
  return llvm::all_of(load.getBody().front().without_terminator(), [](Operation& op) {
    return (isMovement(&op) && !isa<IotaOp>(op)) || isa<WeightOp, PackOp, ConstantOp>(op);
  });
}

std::map<std::string, Array> Trial::derivedWeights(ModuleOp module, Precision precision) const {
  std::map<std::string, Array> derived;
  auto load = module.lookupSymbol<func::FuncOp>("load");
  if (!load || !load->hasAttr("lathe.derived")) return derived;
  if (onlyMoves(load)) precision = Precision::OwnDtype;
  std::vector<Array> values = interpret(
      load, {}, [&](const std::string& name) { return weight(name); }, precision, {}, sizes_);
  auto names = load->getAttrOfType<ArrayAttr>("lathe.derived");
  for (auto [name, value] : llvm::zip(names, values)) derived[cast<StringAttr>(name).str()] = value;
  return derived;
}

TrialResults Trial::run(ModuleOp module, Precision precision, const ObserveFn& observe,
                        const Steering* steering) const {
  std::map<std::string, Array> derived = derivedWeights(module, precision);
  auto weights = [&](const std::string& name) {
    auto it = derived.find(name);
    return it == derived.end() ? weight(name) : it->second;
  };
  TrialResults results;
  for (auto f : module.getOps<func::FuncOp>()) {
    if (!runs(f)) continue;
    std::string entry = f.getName().str();
    std::vector<Array> values =
        interpret(f, arguments_.at(entry), weights, precision, observe, sizes_, steering);
    for (unsigned i = 0; i < values.size(); ++i)
      results.push_back({entry, nameOfResult(f, i),
                         *dtypeOf(cast<RankedTensorType>(f.getResultTypes()[i]).getElementType()),
                         values[i]});
  }
  return results;
}

std::vector<Array> Trial::run(func::FuncOp function, const std::string& entry, Precision precision,
                              const ObserveFn& observe) const {
  auto module = function->getParentOfType<ModuleOp>();
  std::map<std::string, Array> derived = derivedWeights(module, precision);
  return interpret(
      function, arguments_.at(entry),
      [&](const std::string& name) {
        auto it = derived.find(name);
        return it == derived.end() ? weight(name) : it->second;
      },
      precision, observe, sizes_);
}

TrialResults Trial::run(Program made) const {
  auto program = std::make_shared<const Program>(std::move(made));
  Session session(program, {.device = options_.device});
  session.bindWeights([&](const std::string& name) { return weight(name); });
  std::map<std::pair<std::string, std::string>, Array> values;
  for (const EntryPoint& e : program->entries) {
    if (!options_.entry.empty() && e.name != options_.entry) continue;
    session.resetStates();
    for (const SymbolInfo& s : program->symbols) {
      // An input of the size `2*batch` does not say what `batch` is.
      const DimExpr alone = DimExpr::symbol(s.name);
      bool given = false;
      for (const Port& port : e.inputs)
        for (const DimExpr& d : e.slots[size_t(port.slot)].shape) given |= d == alone;
      if (!given) session.setSymbol(s.name, sizes_.at(s.name));
    }
    std::vector<Array> inputs, outputs;
    for (size_t i : inputs_.at(e.name)) inputs.push_back(arguments_.at(e.name)[i]);
    session.run(session.entryIndex(e.name), inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      values[{e.name, e.outputs[i].name}] = outputs[i].clone();
    for (const Port& port : e.statesOut)
      values[{e.name, "state " + port.name}] = session.state(port.name);
  }
  TrialResults results;
  for (const TrialResult& want : exact_.results)
    results.push_back({want.entry, want.name, want.dtype, values.at({want.entry, want.name})});
  return results;
}

bool Trial::canRun(ModuleOp module) {
  return !module.walk([](KernelOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

}  // namespace lathe
