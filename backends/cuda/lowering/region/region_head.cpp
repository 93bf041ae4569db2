// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_head.h"

#include "backends/cuda/lowering/kernel/hopper_facts.h"
#include "backends/cuda/lowering/region/region_names.h"
#include "lathe/ir/types.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// "768 bytes, 192 flops, at least 0.00 us at 4.6 TB/s"
std::string costLine(const std::optional<Cost>& cost) {
  if (!cost) return "";
  DimExpr bytes = cost->read + cost->written;
  std::string text = bytes.text() + " bytes, " + cost->flops.text() + " flops";
  if (auto number = bytes.asConstant()) {
    char time[64];
    std::snprintf(time, sizeof time, ", at least %.2f us at %.1f TB/s",
                  double(*number) / kMemoryBandwidth * 1e6, kMemoryBandwidth / 1e12);
    text += time;
  }
  return "// " + text + "\n";
}

}  // namespace

std::string headOf(KernelOp call, const std::string& title) {
  std::string types, text = "// " + title + "\n";
  for (Value v : call.getInputs()) types += (types.empty() ? "" : ", ") + shortType(v.getType());
  types += " ->";
  for (Value v : call.getOutputs()) types += " " + shortType(v.getType());
  text += "// " + call.getKind().str() + " " + types + "\n";
  llvm::raw_string_ostream(text) << "// " << call.getConfig() << "\n";
  if (std::string origin = originText(call.getLoc()); !origin.empty())
    text += "// from " + origin + "\n";
  return text + costLine(costOf(call));
}

std::string headOf(func::FuncOp region, const std::string& title) {
  std::string head;
  auto line = [&](const std::string& text) { head += "// " + text + "\n"; };
  line(title);
  auto names = namesOf(region);
  Block& body = region.getBody().front();
  std::string shapes;
  auto shape = [&](Value v, const std::string& called) {
    shapes += (shapes.empty() ? "" : ", ") + called + " " + shortType(v.getType());
  };
  for (BlockArgument a : body.getArguments()) shape(a, names[a.getArgNumber()]);
  for (auto [i, v] : llvm::enumerate(body.getTerminator()->getOperands()))
    shape(v, names[region.getNumArguments() + i]);
  line(shapes);
  // Values are called as in the IR's text, operands as in the kernel's.
  llvm::DenseMap<Value, std::string> called;
  for (BlockArgument a : body.getArguments()) called[a] = names[a.getArgNumber()];
  std::string origin;
  int number = 0;
  for (Operation& op : body) {
    std::string text;
    if (!op.hasTrait<OpTrait::IsTerminator>()) {
      for (Value v : op.getResults()) {
        called[v] = "%" + std::to_string(number++);
        text += (text.empty() ? "" : ", ") + called[v];
      }
      text += " = " + op.getName().stripDialect().str();
    } else {
      text = "return";
    }
    for (Value v : op.getOperands()) text += " " + called[v];
    std::string from = originText(op.getLoc());
    if (from != origin && !op.hasTrait<OpTrait::IsTerminator>()) {
      origin = from;
      if (!origin.empty()) text += "  (" + origin + ")";
    }
    line("  " + text);
  }
  return head + costLine(costOf(region));
}

}  // namespace lathe::cuda
