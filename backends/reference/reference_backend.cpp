// SPDX-License-Identifier: Apache-2.0
#include "backends/common/built_in.h"

#include <cstring>

#include "lathe/backends/interpreter.h"
#include "lathe/backends/layout_steps.h"
#include "lathe/backends/program_builder.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
namespace {

SymbolicShape shapeOf(RankedTensorType type) {
  SymbolicShape shape;
  for (int64_t i = 0; i < type.getRank(); ++i) shape.push_back(dimExprOf(type, i).value());
  return shape;
}

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string whyNot(Operation*) const override { return ""; }
  BackendFeatures features() const override {
    return {.float64 = true, .weights = true, .ranks = true};
  }
  std::vector<Step> layOut(const BackendRequest& request) const override {
    return quantizationSteps(request);
  }
  std::vector<Step> lower(const BackendRequest&) const override { return {}; }

  Program build(ModuleOp module, const BackendRequest& request) const override {
    Program program;
    program.backend = "reference";
    program.metadata["precision"] = request.float64 ? "f64" : "own";
    auto stored = [&](Type element) {
      DType dtype = *dtypeOf(element);
      return request.float64 && isFloat(dtype) ? DType::F64 : dtype;
    };
    std::map<std::string, int> weights, states;
    for (Operation& op : *module.getBody()) {
      if (auto dim = dyn_cast<DimOp>(op))
        program.symbols.push_back({dim.getSymName().str(), int64_t(dim.getLo()),
                                   int64_t(dim.getHi()), int64_t(dim.getMultiple())});
      if (auto part = dyn_cast<DimPartOp>(op))
        program.sizeParts.push_back(
            {part.getSymName().str(), exprOf(part.getOf().getDims()[0]), int64_t(part.getParts())});
      if (auto state = dyn_cast<StateOp>(op)) {
        auto type = cast<RankedTensorType>(state.getType());
        states[state.getSymName().str()] = int(program.states.size());
        program.states.push_back(
            {state.getSymName().str(), stored(type.getElementType()), shapeOf(type)});
      }
    }
    std::map<std::string, CallCosts> costs;
    for (auto f : module.getOps<func::FuncOp>()) {
      // One call interprets all ops of the entry point.
      Cost cost;
      for (Operation& op : f.getBody().front().without_terminator())
        if (auto one = costOf(&op)) cost += *one;
      costs[f.getName().str()] = {cost};
      EntryPoint e;
      e.name = f.getName().str();
      Call call{"interpret", e.name, "{}", {}, {}, originText(f.getLoc())};
      auto add = [&](RankedTensorType type, SlotKind kind, int index, DType dtype) {
        e.slots.push_back({kind, dtype, shapeOf(type), index, -1});
        return int(e.slots.size()) - 1;
      };
      for (auto [i, argument] : llvm::enumerate(f.getArguments())) {
        auto type = tensorType(argument);
        if (auto state = f.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state")) {
          int slot = add(type, SlotKind::State, states.at(state.getValue().str()),
                         stored(type.getElementType()));
          e.statesIn.push_back({state.getValue().str(), slot});
          call.operands.push_back(slot);
          continue;
        }
        auto name = f.getArgAttrOfType<StringAttr>(i, "lathe.name");
        int slot =
            add(type, SlotKind::Argument, int(e.inputs.size()), *dtypeOf(type.getElementType()));
        e.inputs.push_back({name ? name.getValue().str() : "arg" + std::to_string(i), slot});
        call.operands.push_back(slot);
      }
      f.walk([&](WeightOp op) {
        std::string name = op.getName().str();
        auto [it, fresh] = weights.emplace(name, int(program.weights.size()));
        if (fresh) program.weights.push_back(infoOf(op));
        call.operands.push_back(add(tensorType(op.getY()), SlotKind::Weight, it->second,
                                    *dtypeOf(tensorType(op.getY()).getElementType())));
      });
      auto ret = cast<func::ReturnOp>(f.getBody().front().getTerminator());
      for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
        auto type = tensorType(value);
        DType dtype = stored(type.getElementType());
        if (auto state = f.getResultAttrOfType<FlatSymbolRefAttr>(i, "lathe.state")) {
          int slot = add(type, SlotKind::Arena, 0, dtype);
          e.statesOut.push_back({state.getValue().str(), slot});
          call.results.push_back(slot);
          continue;
        }
        auto name = f.getResultAttrOfType<StringAttr>(i, "lathe.name");
        int slot = add(type, SlotKind::Result, int(e.outputs.size()), dtype);
        e.outputs.push_back({name ? name.getValue().str() : "result" + std::to_string(i), slot});
        call.results.push_back(slot);
      }
      e.calls.push_back(std::move(call));
      program.entries.push_back(std::move(e));
    }
    storeCosts(program, costs);
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, OpPrintingFlags().enableDebugInfo());
    program.blobs["module"] = text;
    return program;
  }
};

// All kernels of a session share the one parsed module.
struct LoadedModule {
  std::unique_ptr<MLIRContext> context = createContext();
  OwningOpRef<ModuleOp> module;
};

class InterpretKernel final : public Kernel {
 public:
  InterpretKernel(std::shared_ptr<LoadedModule> loaded, std::shared_ptr<const Program> program,
                  const EntryPoint& entry, const Call& call, Communicator* ranks)
      : loaded_(std::move(loaded)),
        program_(std::move(program)),
        entry_(entry),
        call_(call),
        ranks_(ranks) {}

  size_t bind(const KernelShapes& shapes) override {
    shapes_ = shapes.shapes;
    symbols_ = *shapes.symbols;
    return 0;
  }

  void run(void* const* pointers, std::byte*) override {
    auto f = loaded_->module->lookupSymbol<func::FuncOp>(entry_.name);
    std::vector<Array> arguments;
    std::map<std::string, Array> weights;
    size_t n = 0;
    for (int slot : call_.operands) {
      const Slot& s = entry_.slots[size_t(slot)];
      Array a(s.dtype, shapes_[n], pointers[n], nullptr);
      if (s.kind == SlotKind::Weight)
        weights[program_->weights[size_t(s.index)].name] = a;
      else
        arguments.push_back(a);
      ++n;
    }
    auto precision = program_->metadata.find("precision");
    const bool wide = precision != program_->metadata.end() && precision->second == "f64";
    auto weight = [&](const std::string& name) {
      auto it = weights.find(name);
      if (it == weights.end())
        throw Error(ErrorCode::InvalidFile,
                    "the call of '" + call_.callee + "' is not given the weight '" + name + "'");
      return it->second;
    };
    std::vector<Array> results =
        interpret(f, arguments, weight, wide ? Precision::Float64 : Precision::OwnDtype, {},
                  symbols_, nullptr, ranks_);
    for (const Array& r : results) {
      if (r.bytes()) std::memcpy(pointers[n], r.data(), r.bytes());
      ++n;
    }
  }

 private:
  std::shared_ptr<LoadedModule> loaded_;
  std::shared_ptr<const Program> program_;
  const EntryPoint& entry_;
  const Call& call_;
  Communicator* ranks_;  // null where one runs the program
  std::vector<Shape> shapes_;
  SymbolValues symbols_;
};

class ReferenceDevice final : public Device {
 public:
  ReferenceDevice(std::shared_ptr<const Program> program, std::shared_ptr<Communicator> ranks)
      : program_(std::move(program)),
        loaded_(std::make_shared<LoadedModule>()),
        ranks_(std::move(ranks)) {
    auto it = program_->blobs.find("module");
    if (it == program_->blobs.end())
      throw Error(ErrorCode::InvalidFile, "the program of the reference backend has no module");
    loaded_->module = parseModule(*loaded_->context, it->second, "module");
  }
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call& call) override {
    auto f = loaded_->module->lookupSymbol<func::FuncOp>(entry.name);
    if (!f) throw Error(ErrorCode::InvalidFile, "the module has no function '" + entry.name + "'");
    size_t operands = f.getNumArguments();
    f.walk([&](WeightOp) { ++operands; });
    if (call.operands.size() != operands || call.results.size() != f.getNumResults())
      throw Error(ErrorCode::InvalidFile, "expected " + std::to_string(operands) +
                                              " operands and " + std::to_string(f.getNumResults()) +
                                              " results, got " +
                                              std::to_string(call.operands.size()) + " and " +
                                              std::to_string(call.results.size()));
    return std::make_unique<InterpretKernel>(loaded_, program_, entry, call, ranks_.get());
  }

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<LoadedModule> loaded_;
  std::shared_ptr<Communicator> ranks_;
};

const bool registered = [] {
  registerDevice("reference",
                 [](std::shared_ptr<const Program> program, const DeviceOptions& options) {
                   return std::make_unique<ReferenceDevice>(std::move(program), options.ranks);
                 });
  return true;
}();

}  // namespace

std::unique_ptr<Backend> makeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace lathe
