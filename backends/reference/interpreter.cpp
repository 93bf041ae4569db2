// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/interpreter.h"

#include <cassert>

#include "backends/reference/argument_symbols.h"
#include "backends/reference/interpreter_ops.h"
#include "backends/reference/strided.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace reference {
namespace {

[[maybe_unused]] bool fitsType(const Dense& value, RankedTensorType type) {
  bool fits = value.dtype == dtypeOf(type.getElementType()) && value.rank() == type.getRank() &&
              value.size() == elementCount(value.shape);
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = type.isDynamicDim(i) || type.getDimSize(i) == value.shape[size_t(i)];
  return fits;
}

// Ops that take floats where they lie.
bool readsStored(Operation* op) {
  return isa<TransposeOp, SliceOp, PackOp, GatherOp, MatmulOp, RegionOp, DecomposableOp>(op);
}

class Interpreter {
 public:
  Interpreter(const Context& cx, const ObserveFn& observe, const Steering* steering)
      : cx_(cx), observe_(observe), steering_(steering) {}

  /// Runs the ops before the terminator on values of the block's arguments.
  std::vector<Dense> runBody(Block& block, const std::vector<Dense>& arguments) {
    Operation* end = block.getTerminator();
    return run(block, arguments, end, end->getOperands(), true);
  }

 private:
  // Runs the ops before `end` and returns the values of `wanted`.
  std::vector<Dense> run(Block& block, const std::vector<Dense>& arguments, Operation* end,
                         ValueRange wanted, bool observed) {
    llvm::DenseMap<Value, Dense> values;
    llvm::DenseMap<Value, int64_t> usesLeft;  // a value is dropped after its last use
    auto define = [&](Value v, const Dense& value) {
      assert(fitsType(value, tensorType(v)));
      values[v] = value;
      usesLeft[v] += std::distance(v.use_begin(), v.use_end());
    };
    for (Value v : wanted) ++usesLeft[v];
    for (auto [argument, value] : llvm::zip_equal(block.getArguments(), arguments))
      define(argument, value);
    for (Operation& op : block) {
      if (&op == end) break;
      SmallVector<Dense> operands;
      for (Value v : op.getOperands()) {
        Dense& value = values.find(v)->second;
        if (!readsStored(&op)) value = settled(value);
        operands.push_back(value);
      }
      std::vector<Dense> results = runOp(op, operands, observed);
      if (observed && steering_ && steering_->ops.count(&op)) steer(op, operands, results);
      for (Value v : op.getOperands())
        if (--usesLeft[v] == 0) values.erase(v);
      for (auto [v, value] : llvm::zip_equal(op.getResults(), results)) define(v, value);
      if (observed && observe_) observe_(&op, arrays(results));
    }
    std::vector<Dense> results;
    for (Value v : wanted) results.push_back(values.at(v));
    return results;
  }

  std::vector<Dense> runOp(Operation& op, Operands operands, bool observed) {
    for (auto family : {evalElementwise, evalReduce, evalShape, evalContraction, evalIndex,
                        evalState, evalCollective})
      if (auto result = family(cx_, &op, operands)) return {*result};
    if (auto send = dyn_cast<SendOp>(op)) {
      runSend(cx_, send, operands[0]);
      return {};
    }
    if (auto top = dyn_cast<TopKOp>(op)) return evalTopK(top, operands[0]);
    if (auto region = dyn_cast<RegionOp>(op)) {
      Block& body = region.getBody().front();
      Operation* end = body.getTerminator();
      return run(body, operands.vec(), end, end->getOperands(), observed);
    }
    if (isa<DecomposableOp>(op)) return runDecomposed(op, operands);
    fail(&op, ErrorCode::Unsupported,
         isa<KernelOp>(op)
             ? "expected an op with a meaning of its own, got a backend's kernel call; "
               "run the stage before 'lowered' on the reference backend"
             : "expected an op of the lathe dialect that computes tensors");
  }

  // A fused op means its decomposition, built around a copy so that the function stays as it is.
  std::vector<Dense> runDecomposed(Operation& op, Operands operands) {
    Block block;
    IRMapping mapping;
    for (Value v : op.getOperands())
      if (!mapping.contains(v)) mapping.map(v, block.addArgument(v.getType(), op.getLoc()));
    std::vector<Dense> arguments;
    for (auto [i, v] : llvm::enumerate(op.getOperands()))
      if (cast<BlockArgument>(mapping.lookup(v)).getArgNumber() == arguments.size())
        arguments.push_back(operands[i]);
    Operation* copy = op.clone(mapping);
    block.push_back(copy);
    if (auto linear = dyn_cast<LinearOp>(copy);
        linear && linear.getLayout() == WeightLayout::packed)
      linear.setLayout(WeightLayout::out_in);
    if (auto linear = dyn_cast<QuantizedLinearOp>(copy);
        linear && linear.getLayout() == WeightLayout::packed)
      linear.setLayout(WeightLayout::out_in);
    OpBuilder builder(copy);
    auto wanted = cast<DecomposableOp>(copy).decompose(builder);
    if (failed(wanted))
      fail(&op, ErrorCode::Unsupported, "expected a decomposition, the op has none");
    return run(block, arguments, copy, *wanted, false);
  }

  void steer(Operation& op, Operands operands, std::vector<Dense>& results) const {
    std::vector<Array> changed = arrays(results);
    steering_->steer(&op, arrays(operands), changed);
    for (auto [value, array] : llvm::zip_equal(results, changed)) {
      assert(array.shape() == value.shape);
      value = fromArray(array, value.dtype);
    }
  }

  std::vector<Array> arrays(Operands values) const {
    std::vector<Array> result;
    for (auto& v : values) result.push_back(toArray(v, cx_.precision != Precision::OwnDtype));
    return result;
  }

  const Context& cx_;
  const ObserveFn& observe_;
  const Steering* steering_;
};

}  // namespace
}  // namespace reference

std::vector<Array> interpret(func::FuncOp function, const std::vector<Array>& arguments,
                             const WeightProvider& weights, Precision precision,
                             const ObserveFn& observe, const Symbols& symbols,
                             const Steering* steering, Communicator* ranks) {
  using namespace reference;
  if (!function.getBody().hasOneBlock())
    throw Error(ErrorCode::Unsupported, "function '" + function.getName().str() +
                                            "': expected a body of one block, got " +
                                            std::to_string(function.getBody().getBlocks().size()));
  std::vector<Dense> values = checkedArguments(function, arguments, precision);
  Context cx{precision, weights, bindSymbols(function, arguments, symbols), ranks};
  std::vector<Array> results;
  for (auto& v : Interpreter(cx, observe, steering).runBody(function.getBody().front(), values))
    results.push_back(toArray(v, precision != Precision::OwnDtype));
  return results;
}

std::vector<Array> interpretFunction(Operation* function, const std::vector<Array>& arguments,
                                     const WeightProvider& weights, const Symbols& symbols) {
  return interpret(cast<func::FuncOp>(function), arguments, weights, Precision::Float64, {},
                   symbols);
}

}  // namespace lathe
