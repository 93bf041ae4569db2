// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_code.h"

#include "lathe/backends/region_plan.h"
#include "backends/cuda/lowering/text/loop_text.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// Arrays that are written and never read: a second pass wanted something else of the row.
void eraseUnread(func::FuncOp f) {
  SmallVector<LLVM::AllocaOp> arrays;
  f.walk([&](LLVM::AllocaOp array) { arrays.push_back(array); });
  auto isWritten = [](Operation* address) {
    return llvm::all_of(address->getUsers(), [](Operation* u) { return isa<LLVM::StoreOp>(u); });
  };
  for (LLVM::AllocaOp array : arrays) {
    if (!llvm::all_of(array->getUsers(), isWritten)) continue;
    for (Operation* address : llvm::make_early_inc_range(array->getUsers())) {
      for (Operation* store : llvm::make_early_inc_range(address->getUsers())) store->erase();
      address->erase();
    }
    array->erase();
  }
}

}  // namespace

bool roundsMuch(func::FuncOp region) {
  return llvm::all_of(resultsOf(region), [](Value v) {
    Type element = tensorType(v).getElementType();
    return element.isBF16() || element.isF16();
  });
}

func::FuncOp RegionCode::functionIn(ModuleOp module, Location at) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, emitc::EmitCDialect, func::FuncDialect, LLVM::LLVMDialect,
                    math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  OpBuilder b(module.getBodyRegion());
  auto f = func::FuncOp::create(b, at, "kernel", b.getFunctionType({}, {}));
  f.addEntryBlock();
  return f;
}

RegionCode::RegionCode(func::FuncOp region, bool flat, const std::vector<std::string>& names,
                       ArrayRef<const char*> words)
    : region_(region),
      module_(ModuleOp::create(region.getLoc())),
      function_(functionIn(*module_, region.getLoc())),
      builder_(region.getContext()),
      frame_(function_.getBody().front(), names_),
      k(builder_, region.getLoc(), &function_.getBody().front(), loops::IndexStyle::narrow),
      e(k, region, flat, frame_, names) {
  for (const char* word : words) names_.unique(word);
  for (const std::string& n : names) names_.unique(n);
}

Coord RegionCode::variable(const std::string& name, const std::string& expression, bool wide,
                           int64_t hi, int64_t align) {
  names_.unique(name);
  head_ += "  const " + std::string(wide ? "i64 " : "int ") + name + " = " + expression + ";\n";
  Type type = wide ? k.b.getI64Type() : k.b.getI32Type();
  return e.m.of(frame_.variable(type, name), align, 0, hi);
}

std::string RegionCode::sizeText(const DimExpr& size) {
  if (auto number = size.asConstant()) return std::to_string(*number);
  Value value = e.m.scalar(e.size(size));
  frame_.find(value)->isInHead = true;
  return frame_.find(value)->name;
}

void RegionCode::work(const Coord& x, arith::CmpIPredicate predicate, const Coord& y,
                      function_ref<void()> body, function_ref<void()> otherwise) {
  auto arm = [&](function_ref<void()> fill) {
    k.setGround(k.top());
    fill();
    k.setGround(0);
    return loops::LoopBuilder::Values();
  };
  k.branch(
      e.m.compare(predicate, x, y, 1), [&] { return arm(body); }, [&] { return arm(otherwise); });
}

std::string RegionCode::text() {
  Block& body = function_.getBody().front();
  builder_.setInsertionPointToEnd(&body);
  func::ReturnOp::create(builder_, function_.getLoc());
  function_.setType(builder_.getFunctionType(body.getArgumentTypes(), {}));
  eraseUnread(function_);
  IRRewriter rewriter(function_.getContext());
  DominanceInfo dominance(function_);
  eliminateCommonSubExpressions(rewriter, dominance, function_);
  (void)runRegionDCE(rewriter, function_->getRegions());
  std::string failure;
  std::string statements =
      printLoops(body, frame_.texts(), names_, 1, {.fastExp = roundsMuch(region_)}, failure);
  if (!failure.empty() && e.failure.empty()) e.failure = failure;
  return e.failure.empty() ? head_ + statements : std::string();
}

}  // namespace lathe::cuda
