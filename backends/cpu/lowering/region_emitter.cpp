// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter.h"

#include "backends/common/loops/row_results.h"
#include "backends/cpu/lowering/row_evaluator.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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
      : plan_(plan),
        kernel_(kernel),
        k(b, region.getLoc(), entry, loops::IndexStyle::wide),
        e(k, region, kernel, tier, plan.flat),
        results_(region, plan) {}

  RegionKernel emit() {
    Value begin = kernel_.getArgument(2), end = kernel_.getArgument(3);
    Value some = k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, begin, end);
    RegionKernel out;
    out.name = kernel_.getName().str();
    k.when(some, [&] {
      k.setGround(k.top());
      plan_.flat ? flatLoop(begin, end) : rowLoop(begin, end);
    });
    k.make<LLVM::ReturnOp>(ValueRange());
    DimExpr cost = plan_.flat ? DimExpr(1) : e.reducedElements;
    if (!plan_.flat)
      for (Value v : results_.values) cost = cost + results_.columns(v);
    out.sizes = e.sizes();
    out.rows = results_.rows().text();
    out.costPerRow = cost.text();
    out.scratchBytes = e.scratchBytes.text();
    out.inPlace = results_.inPlace(e, /*rowScalars=*/false);
    return out;
  }

 private:
  void flatLoop(Value begin, Value end) {
    results_.loops = 1;
    e.overLanes(begin, end, {}, e.widthFor(std::nullopt, {}), {},
                [&](const Coord& lane, int64_t width, Value mask, ValueRange) {
                  e.storeResults(results_.all(), Index{{lane}, width, mask}, lane);
                  return Values();
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
        const int64_t last = loops::lastOf(plan_.rowDims[axis]);
        e.row[axis] =
            counted.size() == 1 ? e.m.clip(*e.rowNumber, 0, last) : e.m.of(digits[n], 1, 0, last);
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
    auto scalars = results_.storeColumns(e, [&](const loops::RowResults::Columns& c) {
      std::set<int64_t> all;
      for (unsigned r : c.results)
        for (int64_t cut : e.cutsOf(results_.values[r])) all.insert(cut);
      SmallVector<int64_t> cuts(all.begin(), all.end());
      int64_t width = e.widthFor(c.length.asConstant(), cuts);
      const Coord columns = e.size(c.length), rowStart = e.m.times(*e.rowNumber, columns, 1);
      e.overLanes(k.i64(0), e.m.scalar(columns), cuts, width, {},
                  [&](const Coord& lane, int64_t w, Value mask, ValueRange) {
                    e.storeResults(c.results, e.inRow(lane, w, mask), e.m.sum(rowStart, lane, w));
                    return Values();
                  });
    });
    for (auto [r, v] : scalars) e.storeResult(r, v, *e.rowNumber, Index{e.row});
  }

  const RowPlan& plan_;
  LLVM::LLVMFuncOp kernel_;
  loops::LoopBuilder k;
  RowEvaluator e;
  loops::RowResults results_;
};

}  // namespace

void registerKernelDialects(DialectRegistry& registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

FailureOr<RegionKernel> emitRegion(func::FuncOp region, const Tier& tier, ModuleOp kernels) {
  auto elementary = elementaryRegion(region, whyNotInRows);
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
