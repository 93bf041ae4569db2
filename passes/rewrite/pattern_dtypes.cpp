// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/pattern_dtypes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/checked_create.h"
#include "lathe/ir/facts.h"
#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace lathe {
namespace {

class NodeDTypes {
 public:
  NodeDTypes(MLIRContext* context, const std::vector<PatternNode>& nodes)
      : context_(context), nodes_(nodes) {}

  std::optional<DType> of(size_t id) {
    auto [known, isNew] = known_.try_emplace(id);
    // Operands have lower ids: nothing comes back to this node while it is looked at.
    if (isNew) known_[id] = find(id);
    return known_[id];
  }

 private:
  std::optional<DType> find(size_t id) {
    const PatternNode& node = nodes_[id];
    if (node.dtype) return node.dtype;
    switch (node.kind) {
      case PatternNode::Kind::Any:
        return std::nullopt;
      case PatternNode::Kind::Constant:
        return node.operands.empty() ? std::nullopt : of(*node.operands[0]);
      case PatternNode::Kind::Op:
        return made(node, 0);
      case PatternNode::Kind::Result:
        return made(nodes_[*node.operands[0]], node.result);
      case PatternNode::Kind::AnyOf:
      case PatternNode::Kind::Optional:
        break;
    }
    std::set<std::optional<DType>> all;
    for (auto operand : node.operands) all.insert(of(*operand));
    return all.size() == 1 ? *all.begin() : std::nullopt;
  }

  // The op is made of operands of each rank and, where a dtype is unknown, of each kind of dtype:
  // its own inference says what it gives.
  std::optional<DType> made(const PatternNode& node, unsigned result) {
    bool anyUnknown = false;
    for (auto operand : node.operands) anyUnknown |= operand && !of(*operand);
    std::vector<DType> kinds{DType::F32};
    if (anyUnknown)
      kinds = {DType::F32, DType::BF16, DType::F16, DType::F64,
               DType::I64, DType::I32,  DType::Bool};
    std::set<DType> found;
    for (int64_t rank = 0; rank <= 4; ++rank)
      for (DType kind : kinds)
        if (auto dtype = trial(node, result, rank, kind)) found.insert(*dtype);
    // Of no shape that was tried: elements that are moved stay what they are.
    if (found.empty() && !node.operands.empty() &&
        OperationName(node.op, context_).hasTrait<fact::IsMovement>())
      return of(*node.operands[0]);
    return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
  }

  std::optional<DType> trial(const PatternNode& node, unsigned result, int64_t rank, DType kind) {
    Block block;
    OpBuilder builder(context_);
    builder.setInsertionPointToStart(&block);
    const Location at = UnknownLoc::get(context_);
    OperationState state(at, node.op);
    // Large enough for a `k` or a slice of a pattern.
    const SmallVector<int64_t> sizes(size_t(rank), 64);
    SmallVector<int32_t> segments;
    for (auto operand : node.operands) {
      segments.push_back(operand.has_value());
      if (!operand) continue;
      const DType dtype = of(*operand).value_or(kind);
      state.addOperands(
          block.addArgument(RankedTensorType::get(sizes, elementTypeOf(context_, dtype)), at));
    }
    for (NamedAttribute a : node.attributes)
      state.addAttribute(a.getName(), axesFromFront(a, state.operands));
    if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
      state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(segments));
    std::string problem;
    Operation* op = createChecked(builder, state, problem);
    return op && result < op->getNumResults()
               ? lathe::dtypeOf(tensorType(op->getResult(result)).getElementType())
               : std::nullopt;
  }

  MLIRContext* context_;
  const std::vector<PatternNode>& nodes_;
  std::map<size_t, std::optional<DType>> known_;
};

}  // namespace

std::optional<DType> dtypeOfNode(MLIRContext* context, const std::vector<PatternNode>& nodes,
                                 size_t id) {
  return NodeDTypes(context, nodes).of(id);
}

}  // namespace lathe
