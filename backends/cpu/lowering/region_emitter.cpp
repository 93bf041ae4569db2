// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter.h"

#include "backends/cpu/lowering/row_evaluator.h"
#include "lathe/backends/region_plan.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

using Values = loops::LoopBuilder::Values;

class Emitter {
 public:
  Emitter(func::FuncOp region, const RowPlan& plan, const Tier& tier, LLVM::LLVMFuncOp kernel,
          Block* entry, OpBuilder& b)
      : region_(region),
        plan_(plan),
        kernel_(kernel),
        k(b, region.getLoc(), entry, loops::IndexStyle::wide),
        e(k, region, kernel, tier, plan.flat) {
    auto operands = region.getBody().front().getTerminator()->getOperands();
    results_.append(operands.begin(), operands.end());
  }

  RegionKernel emit() {
    Value begin = kernel_.getArgument(2), end = kernel_.getArgument(3);
    Value some = k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, begin, end);
    RegionKernel out;
    out.name = kernel_.getName().str();
    k.branch(
        some,
        [&] {
          k.setGround(k.top());
          plan_.flat ? flatLoop(begin, end) : rowLoop(begin, end);
          return Values();
        },
        [] { return Values(); });
    k.make<LLVM::ReturnOp>(ValueRange());
    DimExpr rows = 1, cost = 0;
    if (plan_.flat) {
      rows = *elementCountOf(tensorType(results_[0]));
      cost = 1;
    } else {
      for (const DimExpr& d : plan_.rowDims) rows = rows * d;
      for (Value v : results_) cost = cost + columns(v);
      cost = cost + e.reducedElements;
    }
    out.sizes = e.sizes();
    out.rows = rows.text();
    out.costPerRow = cost.text();
    out.scratchBytes = e.scratchBytes.text();
    for (unsigned r = 0; r < results_.size(); ++r)
      for (unsigned a = 0; a < region_.getNumArguments(); ++a)
        if (loops_ == 1 && !e.scattered.contains(a) &&
            region_.getArgument(a).getType() == results_[r].getType() && !isRowScalar(results_[r]))
          out.inPlace.push_back({a, r});
    return out;
  }

 private:
  bool isRowScalar(Value v) const {
    return plan_.scalar || dimExprs(v).size() == plan_.rowDims.size();
  }
  DimExpr columns(Value v) const { return isRowScalar(v) ? DimExpr(1) : dimExprs(v).back(); }

  // Computes results along one lane and only then stores, as a result may be an operand's buffer.
  Values storeAll(ArrayRef<unsigned> which, const Index& index, const Coord& position) {
    e.storedPosition = position;
    e.storedLevel = k.top();
    Values values;
    for (unsigned r : which) values.push_back(e.eval(results_[r], index));
    for (auto [r, v] : llvm::zip(which, values)) e.storeResult(r, v, position, index);
    e.storedPosition.reset();
    return {};
  }

  void flatLoop(Value begin, Value end) {
    loops_ = 1;
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, results_.size()));
    e.overLanes(begin, end, {}, e.widthFor(std::nullopt, {}), {},
                [&](const Coord& lane, int64_t width, Value mask, ValueRange) {
                  return storeAll(all, Index{{lane}, width, mask}, lane);
                });
  }

  void rowLoop(Value begin, Value end) {
    // Coordinates of the first row; then they count up like digits.
    SmallVector<unsigned> counted;
    for (unsigned i = 0; i < plan_.rowDims.size(); ++i)
      if (!(plan_.rowDims[i] == DimExpr(1))) counted.push_back(i);
    Values first;
    if (counted.size() > 1) {
      Value rest = begin;
      for (unsigned i : llvm::reverse(counted)) {
        Value n = e.m.scalar(e.size(plan_.rowDims[i]));
        first.push_back(i == counted[0] ? rest : k.rem(rest, n));
        rest = k.div(rest, n);
      }
      std::reverse(first.begin(), first.end());
    }
    k.loop(begin, end, 1, first, [&](Value i, ValueRange digits) {
      e.rowNumber = e.m.of(i);
      e.rowDims = plan_.rowDims;
      e.row.assign(plan_.rowDims.size(), Coord(0));
      for (auto [n, axis] : llvm::enumerate(counted)) {
        const int64_t size = plan_.rowDims[axis].asConstant().value_or(Coord::kUnbounded);
        e.row[axis] = counted.size() == 1 ? e.m.clip(*e.rowNumber, 0, size - 1)
                                          : e.m.of(digits[n], 1, 0, size - 1);
      }
      emitRow();
      Values next(digits);
      Value carry = k.i64(1);
      for (size_t n = digits.size(); n-- > 0;) {
        Value up = k.make<arith::AddIOp>(digits[n], carry);
        if (n == 0) {
          next[n] = up;
          break;
        }
        Value over = k.make<arith::CmpIOp>(arith::CmpIPredicate::sge, up,
                                           e.m.scalar(e.size(plan_.rowDims[counted[n]])));
        next[n] = k.make<arith::SelectOp>(over, k.i64(0), up);
        carry = k.make<arith::ExtUIOp>(k.b.getI64Type(), over);
      }
      return next;
    });
  }

  void emitRow() {
    SmallVector<std::pair<unsigned, Value>> scalars;
    SmallVector<std::pair<DimExpr, SmallVector<unsigned>>> loops;
    for (unsigned r = 0; r < results_.size(); ++r) {
      if (isRowScalar(results_[r])) {
        scalars.push_back({r, e.eval(results_[r], Index{e.row})});
        continue;
      }
      DimExpr n = columns(results_[r]);
      auto it = llvm::find_if(loops, [&](auto& group) { return group.first == n; });
      if (it == loops.end()) it = loops.insert(loops.end(), {n, {}});
      it->second.push_back(r);
    }
    loops_ = int(loops.size());
    for (auto& [n, which] : loops) {
      std::set<int64_t> all;
      for (unsigned r : which)
        for (int64_t cut : e.cutsOf(results_[r])) all.insert(cut);
      SmallVector<int64_t> cuts(all.begin(), all.end());
      int64_t width = e.widthFor(n.asConstant(), cuts);
      const Coord columns = e.size(n), rowStart = e.m.times(*e.rowNumber, columns, 1);
      e.overLanes(k.i64(0), e.m.scalar(columns), cuts, width, {},
                  [&, &which = which](const Coord& lane, int64_t w, Value mask, ValueRange) {
                    Index index{e.row, w, mask};
                    index.coords.push_back(lane);
                    return storeAll(which, index, e.m.sum(rowStart, lane, w));
                  });
    }
    for (auto [r, v] : scalars) e.storeResult(r, v, *e.rowNumber, Index{e.row});
  }

  func::FuncOp region_;
  const RowPlan& plan_;
  LLVM::LLVMFuncOp kernel_;
  loops::LoopBuilder k;
  RowEvaluator e;
  SmallVector<Value> results_;
  int loops_ = 0;
};

}  // namespace

void registerKernelDialects(DialectRegistry& registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

std::string whyNotEmittable(Operation* op) { return whyNotInRows(op); }

FailureOr<RegionKernel> emitRegion(func::FuncOp region, const Tier& tier, ModuleOp kernels) {
  auto elementary = elementaryRegion(region, whyNotEmittable);
  if (failed(elementary)) return failure();
  auto plan = rowPlanOf(**elementary);
  if (failed(plan)) return failure();

  OpBuilder b(kernels.getContext());
  b.setInsertionPointToEnd(kernels.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {pointer, pointer, i64, i64, pointer, pointer});
  auto kernel = LLVM::LLVMFuncOp::create(b, region.getLoc(), region.getName(), type);
  Block* entry = kernel.addEntryBlock(b);
  return Emitter(**elementary, *plan, tier, kernel, entry, b).emit();
}

}  // namespace lathe::cpu
