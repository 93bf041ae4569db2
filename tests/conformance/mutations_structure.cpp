// SPDX-License-Identifier: Apache-2.0
// Mistakes that take more than another attribute: one use of a shared value comes from another
// argument, an op stands further down a chain, an axis of 1 lies elsewhere, a mean divides by
// another count.
#include "ir/checked_create.h"
#include "ir/op_builder.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "tests/conformance/mutations.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

// The ops that lead from `argument` to `v`; false if there are too many to be about one thing.
bool pathFrom(BlockArgument argument, Value v, SmallVectorImpl<Operation*>& path) {
  if (v == argument) return true;
  Operation* op = v.getDefiningOp();
  if (!op || path.size() >= 6) return false;
  bool found = false;
  for (Value operand : op->getOperands())
    if (pathFrom(argument, operand, path)) found = true;
  if (found && !llvm::is_contained(path, op)) path.push_back(op);
  return found;
}

// One use of a value that has others reads another argument of the same type at its source.
void addOtherSources(Operation* op, std::vector<Mutation>& all) {
  auto function = op->getParentOfType<func::FuncOp>();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Value v = op->getOperand(i);
    if (!v.getDefiningOp() || v.hasOneUse()) continue;
    for (BlockArgument from : function.getArguments()) {
      SmallVector<Operation*> path;
      if (!pathFrom(from, v, path) || path.empty()) continue;
      for (BlockArgument to : function.getArguments()) {
        if (to == from || to.getType() != from.getType()) continue;
        all.push_back({"source", [i, a = from.getArgNumber(), b = to.getArgNumber()](Operation* o) {
                         auto f = o->getParentOfType<func::FuncOp>();
                         SmallVector<Operation*> ops;
                         pathFrom(f.getArgument(a), o->getOperand(i), ops);
                         IRMapping map;
                         map.map(f.getArgument(a), f.getArgument(b));
                         OpBuilder builder(o);
                         for (Operation* each : ops) builder.clone(*each, map);
                         o->setOperand(i, map.lookup(o->getOperand(i)));
                       }});
      }
    }
  }
}

// The operand of an elementwise op that has the type of its result and no other user.
std::optional<unsigned> chainOperand(Operation* op) {
  if (!op || !isElementwise(op) || op->getNumResults() != 1) return std::nullopt;
  for (OpOperand& operand : op->getOpOperands())
    if (operand.get().getType() == op->getResult(0).getType() && operand.get().hasOneUse())
      return operand.getOperandNumber();
  return std::nullopt;
}

// f(g(h(x))) becomes g(f(h(x))) or g(h(f(x))): what is added above a softcap is added below it.
void addDeeper(Operation* op, std::vector<Mutation>& all) {
  auto first = chainOperand(op);
  if (!first) return;
  Operation* below = op->getOperand(*first).getDefiningOp();
  for (int depth = 1; depth <= 4 && chainOperand(below); ++depth) {
    all.push_back({"deeper by " + std::to_string(depth), [depth](Operation* o) {
                     const unsigned at = *chainOperand(o);
                     const Value top = o->getOperand(at);
                     Operation* end = top.getDefiningOp();
                     for (int i = 1; i < depth; ++i)
                       end = end->getOperand(*chainOperand(end)).getDefiningOp();
                     const unsigned into = *chainOperand(end);
                     o->getResult(0).replaceAllUsesWith(top);
                     o->setOperand(at, end->getOperand(into));
                     end->setOperand(into, o->getResult(0));
                     // What the op reads comes before it wherever it stands: the ops of the chain
                     // move behind it.
                     SmallVector<Operation*> chain;
                     for (Operation* each = top.getDefiningOp();;
                          each = each->getOperand(*chainOperand(each)).getDefiningOp()) {
                       chain.push_back(each);
                       if (each == end) break;
                     }
                     Operation* behind = o;
                     for (Operation* each : llvm::reverse(chain)) {
                       each->moveAfter(behind);
                       behind = each;
                     }
                   }});
    below = below->getOperand(*chainOperand(below)).getDefiningOp();
  }
}

// Everything behind `from` gets the type that its operands give it now.
void inferAgain(Operation* from) {
  for (Operation* op = from->getNextNode(); op;) {
    Operation* next = op->getNextNode();
    if (!op->hasTrait<OpTrait::IsTerminator>() && op->getNumOperands()) {
      OpBuilder builder(op);
      OperationState state(op->getLoc(), op->getName());
      state.addOperands(op->getOperands());
      state.addAttributes(op->getAttrs());
      std::string why;
      Operation* other = createChecked(builder, state, why);
      if (!other) return;  // the verifier will say so
      op->replaceAllUsesWith(other);
      op->erase();
    }
    op = next;
  }
}

// [n, 1, 1, 1] becomes [1, n, 1, 1].
void addOtherAxes(ReshapeOp op, std::vector<Mutation>& all) {
  auto dims = dimsOf(tensorType(op.getY()));
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    if (dims[i] == dims[i + 1] || !(isOne(dims[i]) || isOne(dims[i + 1]))) continue;
    all.push_back({"turned axes", [i](Operation* o) {
                     auto reshape = cast<ReshapeOp>(o);
                     auto to = dimsOf(tensorType(reshape.getY()));
                     std::swap(to[i], to[i + 1]);
                     OpBuilder builder(o);
                     OpMaker m(builder, o->getLoc());
                     Value other = m.reshape(reshape.getX(), to);
                     o->getResult(0).replaceAllUsesWith(other);
                     inferAgain(o);
                     o->erase();
                   }});
  }
}

// The sum times 1 / (n - 1) or 1 / (n + 1), as an unbiased variance has it.
void addOtherCounts(ReduceMeanOp op, std::vector<Mutation>& all) {
  auto type = tensorType(op.getX());
  if (op.getAxes().size() != 1 || type.isDynamicDim(op.getAxes()[0])) return;
  const int64_t count = type.getDimSize(op.getAxes()[0]);
  for (int64_t other : {count - 1, count + 1}) {
    if (other < 1) continue;
    all.push_back({"count " + std::to_string(other), [other](Operation* o) {
                     auto mean = cast<ReduceMeanOp>(o);
                     OpBuilder builder(o);
                     OpMaker m(builder, o->getLoc());
                     Value sum =
                         m.make<ReduceSumOp>(mean.getX(), mean.getAxes(), mean.getKeepDims());
                     Value scaled = m.make<MulOp>(
                         sum, m.scalar(tensorType(sum).getElementType(), 1 / double(other)));
                     o->getResult(0).replaceAllUsesWith(scaled);
                     o->erase();
                   }});
  }
}

}  // namespace

std::vector<Mutation> structuralMutations(Operation* op) {
  std::vector<Mutation> all;
  addOtherSources(op, all);
  addDeeper(op, all);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) addOtherAxes(reshape, all);
  if (auto mean = dyn_cast<ReduceMeanOp>(op)) addOtherCounts(mean, all);
  for (Mutation& mutation : all) mutation.inOneOp = false;
  return all;
}

}  // namespace lathe::conformance
