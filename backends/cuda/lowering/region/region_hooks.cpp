// SPDX-License-Identifier: Apache-2.0
// Regions as device functions that kernel templates call.
#include "backends/cuda/lowering/region/region_code.h"
#include "backends/cuda/lowering/region/region_names.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/backends/region_plan.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

FailureOr<PrintedFunction> functionOf(func::FuncOp region, RegionCode& code,
                                      const std::string& name, const std::string& fixed) {
  const std::string body = code.text();
  if (!code.e.failure.empty()) return region.emitError(code.e.failure);
  PrintedFunction out;
  std::string list = fixed;
  for (const Frame::Parameter& p : code.e.parameters()) {
    list += ", " + p.declaration + p.name;
    out.parameters.push_back({p.declaration, p.name, p.argument});
  }
  for (const std::string& g : code.e.globals) out.tables += g + "\n";
  out.text = "LT_FN void " + name + "(" + list + ") {\n" + body + "}\n";
  return out;
}

}  // namespace

FailureOr<PrintedFunction> printEpilogue(func::FuncOp region, ArrayRef<unsigned> accumulators,
                                         const std::string& name, int width) {
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return failure();
  func::FuncOp f = **elementary;
  const std::vector<std::string> names = namesOf(region);
  const Value first = f.getArgument(accumulators[0]);
  const auto shape = dimExprs(first);
  if (shape.empty()) return region.emitError("an epilogue's accumulator has an axis");
  RegionCode code(f, false, names, {"row", "column"});
  ThreadEvaluator& e = code.e;
  std::string fixed = "i64 row, i64 column";
  Type type = code.k.b.getF32Type();
  if (width > 1) type = VectorType::get({width}, type);
  for (unsigned a : accumulators) {
    e.accumulators[a] = code.parameter(type, names[a]);
    fixed += (width == 1 ? ", float " : ", const vec<float, " + std::to_string(width) + ">& ") +
             names[a];
  }
  Type i64 = code.k.b.getI64Type();
  e.setRow(e.m.of(code.parameter(i64, "row")), ArrayRef<DimExpr>(shape).drop_back());
  Coord column =
      e.m.of(code.parameter(i64, "column"), width, 0, loops::lastOf(shape.back()) + 1 - width);
  const Index index = e.inRow(e.m.ramp(column, width), width);
  const Coord position = e.linear(shape, index);
  for (auto [i, v] : llvm::enumerate(resultsOf(f))) {
    if (!(*elementCountOf(tensorType(v)) == *elementCountOf(tensorType(first))))
      return region.emitError("an epilogue's results have the accumulator's elements: ")
             << shortType(v.getType()) << " does not fit " << shortType(first.getType());
    auto own = dimExprs(v);
    Index at = own == shape ? index : index.with(e.split(position, own, width));
    e.storeResults({unsigned(i)}, at, position);
  }
  return functionOf(region, code, name, fixed);
}

FailureOr<PrintedFunction> printRowFunction(func::FuncOp region, const std::string& name,
                                            int threads) {
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return failure();
  func::FuncOp f = **elementary;
  auto results = resultsOf(f);
  if (results.size() != 1 || tensorType(results[0]).getRank() == 0)
    return region.emitError("a row function has one result, of rows");
  const auto shape = dimExprs(results[0]);
  const Type element = tensorType(results[0]).getElementType();
  llvm::SetVector<Operation*> together;
  auto fill = [&](RegionCode& code) {
    ThreadEvaluator& e = code.e;
    e.sharedTarget = "to";
    e.width = 16 * 8 / int(std::max(16u, element.getIntOrFloatBitWidth()));
    e.team = {.kind = Team::Kind::BlockPerRow,
              .threads = threads,
              .ofBlock = threads,
              .rank = code.variable("lane", "threadIdx.x", false, threads - 1)};
    e.setRow(e.m.of(code.parameter(code.k.b.getI64Type(), "row")),
             ArrayRef<DimExpr>(shape).drop_back());
    for (BlockArgument v : f.getArguments())
      if (shape.size() > 1 && shape.back().asConstant() &&
          dimExprs(v) == ArrayRef(shape).take_back())
        e.requestedFirst.push_back(v);
    e.reduceFirst(together);
    e.overRow(shape.back(), ThreadEvaluator::widthFor(shape.back(), e.width), {},
              [&](const Coord& lane, int64_t w, Value, ValueRange) {
                e.storeResults({0}, e.inRow(lane, w), lane);
                return loops::LoopBuilder::Values();
              });
  };
  const std::vector<std::string> names = namesOf(region);
  const std::initializer_list<const char*> words{"row", "to", "lane"};
  RegionCode draft(f, false, names, words);
  fill(draft);
  together = draft.e.together;
  RegionCode code(f, false, names, words);
  fill(code);
  return functionOf(region, code, name, "i64 row, " + storedName(element) + "* to");
}

}  // namespace lathe::cuda
