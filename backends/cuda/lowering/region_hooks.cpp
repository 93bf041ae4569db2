// SPDX-License-Identifier: Apache-2.0
// Regions as device functions that kernel templates call.
#include "backends/cuda/lowering/region_code.h"
#include "backends/cuda/lowering/region_names.h"
#include "backends/cuda/lowering/region_printer.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

/// A region in elementary ops with what all its device functions need.
struct Hook {
  OwningOpRef<func::FuncOp> elementary;
  std::vector<std::string> names;

  func::FuncOp region() { return *elementary; }
  SmallVector<Value> results() {
    return SmallVector<Value>(elementary->getBody().front().getTerminator()->getOperands());
  }
};

FailureOr<Hook> hookOf(func::FuncOp region) {
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return failure();
  return Hook{std::move(*elementary), namesOf(region)};
}

PrintedFunction functionOf(RegionCode& code, const std::string& name, const std::string& fixed,
                           const std::string& body) {
  PrintedFunction out;
  std::string list = fixed;
  for (auto& [text, argument] : code.parameters()) {
    list += ", " + text;
    out.parameters.push_back(text);
    out.arguments.push_back(argument);
  }
  for (const std::string& g : code.globals) out.text += g + "\n";
  out.text += "LT_FN void " + name + "(" + list + ") {\n" + body + "}\n";
  return out;
}

FailureOr<PrintedFunction> epilogueOf(func::FuncOp region, ArrayRef<unsigned> accumulators,
                                      const std::string& name, int width) {
  FailureOr<Hook> hook = hookOf(region);
  if (failed(hook)) return failure();
  func::FuncOp f = hook->region();
  const Value first = f.getArgument(accumulators[0]);
  const auto shape = dimExprs(first);
  if (shape.empty()) return region.emitError("an epilogue's accumulator has an axis");
  RegionText text(1);
  Findings known;
  text.unique("row");
  text.unique("column");
  for (const std::string& n : hook->names) text.unique(n);
  RegionCode code(f, false, text, hook->names, known);
  code.accumulators.insert(accumulators.begin(), accumulators.end());
  const int64_t columns = shape.back().asConstant().value_or(Atom::kUnbounded);
  code.setRow(Linear(text.atom({.text = "row"})), ArrayRef<DimExpr>(shape).drop_back());
  Linear lane(text.atom({.text = "column", .align = width, .hi = columns - width}));
  if (width > 1) lane = code.openLanes(lane, width);
  Index index = code.row;
  index.push_back(lane);
  code.storedPosition = code.linear(shape, index);
  for (auto [i, v] : llvm::enumerate(hook->results())) {
    if (!(*elementCountOf(tensorType(v)) == *elementCountOf(tensorType(first))))
      return region.emitError("an epilogue's results have the accumulator's elements: ")
             << shortType(v.getType()) << " does not fit " << shortType(first.getType());
    auto own = dimExprs(v);
    code.store({{unsigned(i), *code.storedPosition}},
               own == shape ? index : code.split(*code.storedPosition, own));
  }
  if (width > 1) text.close();
  code.finishStores();
  if (!code.failure.empty()) return region.emitError(code.failure);
  std::string fixed = "i64 row, i64 column";
  for (unsigned a : accumulators)
    fixed += width == 1 ? ", float " + hook->names[a]
                        : ", const float (&" + hook->names[a] + ")[" + std::to_string(width) + "]";
  return functionOf(code, name, fixed, text.str());
}

}  // namespace

FailureOr<PrintedFunction> printEpilogue(func::FuncOp region, unsigned accumulator,
                                         const std::string& name, int width) {
  return epilogueOf(region, {accumulator}, name, width);
}

FailureOr<PrintedFunction> printPairEpilogue(func::FuncOp region, unsigned first, unsigned second,
                                             const std::string& name, int width) {
  return epilogueOf(region, {first, second}, name, width);
}

FailureOr<PrintedFunction> printRowFunction(func::FuncOp region, const std::string& name,
                                            int threads) {
  FailureOr<Hook> hook = hookOf(region);
  if (failed(hook)) return failure();
  const SmallVector<Value> results = hook->results();
  if (results.size() != 1 || tensorType(results[0]).getRank() == 0)
    return region.emitError("a row function has one result, of rows");
  const auto shape = dimExprs(results[0]);
  const Type element = tensorType(results[0]).getElementType();
  Findings known;
  for (int round = 0;; ++round) {
    RegionText text(1);
    for (const char* word : {"row", "to", "lane"}) text.unique(word);
    for (const std::string& n : hook->names) text.unique(n);
    RegionCode code(hook->region(), false, text, hook->names, known);
    code.sharedTarget = "to";
    code.width = 16 * 8 / int(std::max(16u, element.getIntOrFloatBitWidth()));
    code.registers = 64;
    code.setRow(Linear(text.atom({.text = "row"})), ArrayRef<DimExpr>(shape).drop_back());
    text.line(0, "const int lane = threadIdx.x;");
    code.team = {.kind = Team::Kind::Block,
                 .threads = threads,
                 .rank = Linear(text.atom({.text = "lane", .hi = threads - 1, .wide = false})),
                 .suffix = "<" + std::to_string(threads) + ">"};
    code.reduceFirst();
    code.overRow(
        shape.back(), RegionCode::widthFor(shape.back(), code.width),
        [&](const Linear& lane) {
          Index index = code.row;
          index.push_back(lane);
          code.store({{0, lane}}, index);
        },
        [&] { code.finishStores(); });
    if (!code.failure.empty()) return region.emitError(code.failure);
    if (round == 2)
      return functionOf(code, name, "i64 row, " + storedName(element) + "* to", text.str());
    known = code.forNextRound(round);
  }
}

}  // namespace lathe::cuda
