// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/program_builder.h"

#include <cstring>

#include "lathe/backends/call_attributes.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "llvm/Support/JSON.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
namespace {

llvm::json::Value toJson(Attribute a) {
  if (auto b = dyn_cast<BoolAttr>(a)) return b.getValue();
  if (auto i = dyn_cast<IntegerAttr>(a)) return i.getInt();
  if (auto f = dyn_cast<FloatAttr>(a)) return f.getValueAsDouble();
  if (auto s = dyn_cast<StringAttr>(a)) return s.getValue();
  if (auto l = dyn_cast<DenseI64ArrayAttr>(a)) return llvm::json::Array(l.asArrayRef());
  if (auto l = dyn_cast<ArrayAttr>(a)) {
    llvm::json::Array items;
    for (Attribute item : l) items.push_back(toJson(item));
    return items;
  }
  std::string text;
  llvm::raw_string_ostream(text) << a;
  return text;
}

std::string configText(DictionaryAttr config) {
  llvm::json::Object object;
  for (NamedAttribute a : config) object[a.getName().getValue()] = toJson(a.getValue());
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  return text;
}

Array toArray(ElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  Array a(*dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
  int64_t i = 0;
  if (a.dtype() == DType::Bool) {
    for (bool b : value.getValues<bool>()) a.as<uint8_t>()[size_t(i++)] = b;
  } else if (isFloat(a.dtype())) {
    for (APFloat f : value.getValues<APFloat>()) {
      APInt bits = f.bitcastToAPInt();
      std::memcpy(static_cast<char*>(a.data()) + i++ * int64_t(sizeOf(a.dtype())),
                  bits.getRawData(), sizeOf(a.dtype()));
    }
  } else {
    for (APInt v : value.getValues<APInt>())
      std::memcpy(static_cast<char*>(a.data()) + i++ * int64_t(sizeOf(a.dtype())), v.getRawData(),
                  sizeOf(a.dtype()));
  }
  return a;
}

SymbolicShape shapeOf(RankedTensorType type) {
  SymbolicShape shape;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    auto d = dimExprOf(type, i);
    if (!d) throw Error(ErrorCode::Unsupported, "a dim of " + shortType(type) + " has no name");
    shape.push_back(*d);
  }
  return shape;
}

class EntryBuilder {
 public:
  EntryBuilder(Program& program, func::FuncOp f, const std::map<std::string, int>& weights,
               const std::map<std::string, int>& states)
      : program(program), function(f), weights(weights), states(states) {
    entry.name = f.getName().str();
    for (auto [i, op] : llvm::enumerate(f.getBody().front())) position[&op] = int(i);
  }

  EntryPoint build(std::map<std::string, CallCosts>& byEntry) {
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
      if (auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state")) {
        int slot = add(argument, SlotKind::State, states.at(state.getValue().str()));
        entry.statesIn.push_back({state.getValue().str(), slot});
        continue;
      }
      auto name = function.getArgAttrOfType<StringAttr>(i, "lathe.name");
      int slot = add(argument, SlotKind::Argument, int(entry.inputs.size()));
      entry.inputs.push_back({name ? name.getValue().str() : "arg" + std::to_string(i), slot});
    }
    for (Operation& op : function.getBody().front().without_terminator()) operation(op);
    for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
      if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(i, "lathe.state")) {
        int slot = slots.lookup(value), own = owner(slot);
        const Slot& s = entry.slots[size_t(own)];
        bool inPlace = s.kind == SlotKind::State && s.index == states.at(state.getValue().str());
        if (!inPlace && s.kind != SlotKind::Arena)
          slot = copy(slot, SlotKind::Arena, 0, value.getLoc());
        entry.statesOut.push_back({state.getValue().str(), slot});
        continue;
      }
      int index = int(entry.outputs.size()), slot = slots.lookup(value), own = owner(slot);
      if (entry.slots[size_t(own)].kind == SlotKind::Arena) {
        entry.slots[size_t(own)].kind = SlotKind::Result;
        entry.slots[size_t(own)].index = index;
      } else {
        slot = copy(slot, SlotKind::Result, index, value.getLoc());
      }
      auto name = function.getResultAttrOfType<StringAttr>(i, "lathe.name");
      entry.outputs.push_back({name ? name.getValue().str() : "result" + std::to_string(i), slot});
    }
    byEntry[entry.name] = std::move(costs);
    return std::move(entry);
  }

 private:
  int owner(int slot) const {
    while (entry.slots[size_t(slot)].alias >= 0) slot = entry.slots[size_t(slot)].alias;
    return slot;
  }
  int add(Value v, SlotKind kind, int index, int alias = -1) {
    auto type = tensorType(v);
    entry.slots.push_back({kind, *dtypeOf(type.getElementType()), shapeOf(type), index, alias});
    slots[v] = int(entry.slots.size()) - 1;
    if (alias < 0)
      storage[int(entry.slots.size()) - 1] = {v};
    else
      storage[owner(alias)].push_back(v);
    return int(entry.slots.size()) - 1;
  }
  int copy(int from, SlotKind kind, int index, Location loc) {
    Slot s = entry.slots[size_t(from)];
    s.kind = kind;
    s.index = index;
    s.alias = -1;
    entry.slots.push_back(s);
    int to = int(entry.slots.size()) - 1;
    entry.calls.push_back({"copy", "", "{}", {from}, {to}, originText(loc)});
    DimExpr elements = 1;
    for (const DimExpr& d : s.shape) elements = elements * d;
    const DimExpr bytes = bytesOf(s.dtype, elements);
    costs.push_back(Cost{.read = bytes, .written = bytes});
    return to;
  }

  // True if nothing reads the storage of `v` after `user` and it may be overwritten.
  bool dies(Value v, Operation* user, Value becomes) {
    int own = owner(slots.lookup(v));
    const Slot& s = entry.slots[size_t(own)];
    if (s.kind == SlotKind::State) {
      // Only if the result is the state's next value: otherwise the old one must survive.
      auto ret = function.getBody().front().getTerminator();
      bool next = false;
      for (OpOperand& use : becomes.getUses()) {
        if (use.getOwner() != ret) continue;
        auto state =
            function.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), "lathe.state");
        next |= state && states.at(state.getValue().str()) == s.index;
      }
      if (!next) return false;
    } else if (s.kind != SlotKind::Arena) {
      return false;
    }
    for (Value shared : storage[own])
      for (Operation* u : shared.getUsers())
        if (position.lookup(u) > position.lookup(user)) return false;
    return true;
  }

  // The slot of the state whose next value `v` is, or a view of it, if nothing reads the state's
  // memory from `op` on: `op` may write there. -1: none.
  int stateFor(Value v, Operation* op) {
    auto ret = function.getBody().front().getTerminator();
    for (OpOperand& use : v.getUses()) {
      if (auto view = dyn_cast<ReshapeOp>(use.getOwner())) {
        if (const int found = stateFor(view.getY(), op); found >= 0) return found;
      }
      if (use.getOwner() != ret) continue;
      auto state =
          function.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), "lathe.state");
      if (!state) continue;
      for (auto& [own, values] : storage) {
        const Slot& s = entry.slots[size_t(own)];
        if (s.kind != SlotKind::State || s.index != states.at(state.getValue().str())) continue;
        // A value that was put there before it stays.
        const bool isFree = llvm::all_of(values, [&](Value value) {
          return isOfArgument(value) && llvm::all_of(value.getUsers(), [&](Operation* user) {
                   return position.lookup(user) < position.lookup(op);
                 });
        });
        if (isFree) return own;
      }
    }
    return -1;
  }
  // An argument, or a view of one.
  static bool isOfArgument(Value v) {
    while (auto view = v.getDefiningOp<ReshapeOp>()) v = view.getX();
    return isa<BlockArgument>(v);
  }

  void operation(Operation& op) {
    if (auto weight = dyn_cast<WeightOp>(op)) {
      int index = weights.at(weight.getName().str()), raw = int(program.weights.size());
      int slot = add(weight.getY(), SlotKind::Weight, index);
      if (index >= raw)
        entry.slots[size_t(slot)].shape = program.derived[size_t(index - raw)].shape;
    } else if (auto constant = dyn_cast<ConstantOp>(op)) {
      program.constants.push_back(toArray(constant.getValue()));
      add(constant.getY(), SlotKind::Constant, int(program.constants.size()) - 1);
    } else if (auto view = dyn_cast<ReshapeOp>(op)) {
      add(view.getY(), SlotKind::Arena, 0, slots.lookup(view.getX()));
    } else if (auto kernel = dyn_cast<KernelOp>(op)) {
      call(kernel);
    } else {
      throw Error(ErrorCode::Unsupported, op.getName().getStringRef().str() +
                                              " reached the program; at " +
                                              originText(op.getLoc()));
    }
  }

  void call(KernelOp op) {
    Call c{op.getKind().str(),
           op.getCallee() ? op.getCallee()->str() : "",
           configText(op.getConfig()),
           {},
           {},
           originText(op.getLoc())};
    for (Value v : op.getInputs()) c.operands.push_back(slots.lookup(v));
    // The operand that the first result, or every result, may overwrite.
    SmallVector<int64_t> reuse(op.getOutputs().size(), -1);
    if (auto one = op.getConfig().getAs<IntegerAttr>(kReuse)) reuse[0] = one.getInt();
    if (auto each = op.getConfig().getAs<DenseI64ArrayAttr>(kReuse))
      reuse.assign(each.asArrayRef().begin(), each.asArrayRef().end());
    for (auto [i, v] : llvm::enumerate(op.getOutputs())) {
      int alias = -1;
      if (reuse[i] >= 0 && dies(op.getInputs()[reuse[i]], op, v))
        alias = slots.lookup(op.getInputs()[reuse[i]]);
      if (alias < 0) alias = stateFor(v, op);
      c.results.push_back(add(v, SlotKind::Arena, 0, alias));
      // A buffer that is larger than the logical type: packed weights.
      if (auto buffer = op.getConfig().getAs<DenseI64ArrayAttr>(kBuffer))
        entry.slots[size_t(c.results.back())].shape = {buffer.asArrayRef().begin(),
                                                       buffer.asArrayRef().end()};
    }
    SmallVector<int64_t> numbers(c.operands.begin(), c.operands.end());
    numbers.append(c.results.begin(), c.results.end());
    op.setSlots(numbers);
    entry.calls.push_back(std::move(c));
    costs.push_back(costOf(op));
  }

  Program& program;
  func::FuncOp function;
  const std::map<std::string, int>&weights, &states;
  EntryPoint entry;
  CallCosts costs;
  llvm::DenseMap<Value, int> slots;
  std::map<int, std::vector<Value>> storage;  // values by the slot that owns their memory
  llvm::DenseMap<Operation*, int> position;
};

}  // namespace

TensorInfo infoOf(WeightOp weight) {
  auto type = tensorType(weight.getY());
  TensorInfo info{weight.getName().str(), *dtypeOf(type.getElementType()), shapeOf(type)};
  if (auto of = weight.getOf())
    info.piece = {of->str(),
                  int64_t(*weight.getAxis()),
                  int64_t(*weight.getParts()),
                  int64_t(weight.getGroups().value_or(1)),
                  int64_t(weight.getBegin().value_or(0)),
                  int64_t(weight.getExtent().value_or(0))};
  return info;
}

Program buildProgram(ModuleOp module) {
  Program program;
  std::map<std::string, int> weights, states;
  std::map<std::string, CallCosts> costs;
  for (Operation& op : *module.getBody()) {
    if (auto dim = dyn_cast<DimOp>(op))
      program.symbols.push_back({dim.getSymName().str(), int64_t(dim.getLo()), int64_t(dim.getHi()),
                                 int64_t(dim.getMultiple())});
    if (auto part = dyn_cast<DimPartOp>(op))
      program.sizeParts.push_back(
          {part.getSymName().str(), exprOf(part.getOf().getDims()[0]), int64_t(part.getParts())});
    if (auto state = dyn_cast<StateOp>(op)) {
      auto type = cast<RankedTensorType>(state.getType());
      states[state.getSymName().str()] = int(program.states.size());
      program.states.push_back(
          {state.getSymName().str(), *dtypeOf(type.getElementType()), shapeOf(type)});
    }
  }
  auto load = module.lookupSymbol<func::FuncOp>("load");
  std::map<std::string, int> derived;
  if (load) {
    auto names = load->getAttrOfType<ArrayAttr>("lathe.derived");
    auto ret = cast<func::ReturnOp>(load.getBody().front().getTerminator());
    for (auto [name, value] : llvm::zip(names, ret.getOperands())) {
      auto type = tensorType(value);
      std::string text = cast<StringAttr>(name).getValue().str();
      derived[text] = int(program.derived.size());
      program.derived.push_back({text, *dtypeOf(type.getElementType()), shapeOf(type)});
    }
  }
  // Raw weights first, in the order of their names' first use; then the derived ones.
  module.walk([&](WeightOp op) {
    std::string name = op.getName().str();
    if (derived.count(name) || weights.count(name)) return;
    weights[name] = int(program.weights.size());
    program.weights.push_back(infoOf(op));
  });
  for (auto& [name, index] : derived) weights[name] = int(program.weights.size()) + index;
  // `load` first: the entry points take the buffers' shapes from it.
  if (load) {
    program.load =
        std::make_unique<EntryPoint>(EntryBuilder(program, load, weights, states).build(costs));
    for (size_t i = 0; i < program.derived.size(); ++i)
      program.derived[i].shape = program.load->slots[size_t(program.load->outputs[i].slot)].shape;
  }
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal() && f != load)
      program.entries.push_back(EntryBuilder(program, f, weights, states).build(costs));
  storeCosts(program, costs);
  return program;
}

}  // namespace lathe
