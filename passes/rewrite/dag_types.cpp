// SPDX-License-Identifier: Apache-2.0
// The ops say themselves what they give: their inference is asked.
#include "passes/rewrite/dag_types.h"

#include <map>
#include <set>

#include "ir/checked_create.h"
#include "lathe/ir/types.h"
#include "lathe/passes/pattern_node.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr int kDTypes = int(DType::Bool) + 1;
using DTypes = std::vector<DType>;  // ascending; those that a value may have

DTypes every() {
  DTypes all;
  for (int i = 0; i < kDTypes; ++i) all.push_back(DType(i));
  return all;
}

std::string textOf(const DTypes& dtypes) {
  std::string text;
  for (size_t i = 0; i < dtypes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == dtypes.size() ? " or " : ", ") + std::string(nameOf(dtypes[i]));
  return text;
}

class Inference {
 public:
  explicit Inference(const DagPattern& pattern)
      : pattern_(pattern), known_(pattern.nodes().size()), builder_(pattern.context()) {}

  const DTypes& of(size_t id) {
    std::optional<DTypes>& known = known_[id];
    if (!known) {
      DTypes made = infer(pattern_.nodes()[id]);
      known = made.empty() ? every() : made;
    }
    return *known;
  }

 private:
  DTypes infer(const PatternNode& n) {
    if (n.dtype) return {*n.dtype};
    switch (n.kind) {
      case PatternNode::Kind::AnyOf:
      case PatternNode::Kind::Optional: {
        DTypes all;
        for (auto operand : n.operands)
          all.insert(all.end(), of(*operand).begin(), of(*operand).end());
        llvm::sort(all);
        all.erase(llvm::unique(all), all.end());
        return all;
      }
      case PatternNode::Kind::Op:
        return ofOp(n);
      case PatternNode::Kind::Constant:  // of a replacement: of the dtype of its neighbour
        return n.operands.empty() ? every() : of(*n.operands[0]);
      default:
        return every();
    }
  }

  // What inference gives for scalars of every combination of the operands' dtypes. Nothing for an
  // op that takes no scalars, or one whose attributes come from the match.
  DTypes ofOp(const PatternNode& n) {
    std::vector<size_t> values;  // each operand once: used twice it has one dtype
    for (auto operand : n.operands)
      if (operand && !llvm::is_contained(values, *operand)) values.push_back(*operand);
    if (values.empty() || values.size() > 2 || !n.free.empty()) return {};
    std::map<size_t, DType> chosen;
    std::set<DType> made;
    for (DType first : of(values[0]))
      for (DType second : of(values.back())) {
        chosen[values.back()] = second;
        chosen[values[0]] = first;
        if (auto dtype = inferred(n, chosen)) made.insert(*dtype);
      }
    return {made.begin(), made.end()};
  }

  std::optional<DType> inferred(const PatternNode& n, const std::map<size_t, DType>& chosen) {
    Block block;
    builder_.setInsertionPointToEnd(&block);
    OperationState state(builder_.getUnknownLoc(), n.op);
    for (auto operand : n.operands)
      if (operand) {
        auto type =
            RankedTensorType::get({}, elementTypeOf(pattern_.context(), chosen.at(*operand)));
        state.addOperands(block.addArgument(type, state.location));
      }
    state.addAttributes(n.attributes);
    std::string why;
    Operation* op = createChecked(builder_, state, why);
    return op ? lathe::dtypeOf(tensorType(op->getResult(0)).getElementType()) : std::nullopt;
  }

  const DagPattern& pattern_;
  std::vector<std::optional<DTypes>> known_;
  OpBuilder builder_;
};

}  // namespace

std::string whyNeverOfItsType(const DagPattern& pattern) {
  auto replacement = pattern.recordedReplacement();
  if (!replacement) return "";
  Inference types(pattern);
  const DTypes wanted = types.of(pattern.root()), given = types.of(*replacement);
  for (DType dtype : given)
    if (llvm::is_contained(wanted, dtype)) return "";
  return "the replacement is " + textOf(given) + ", the op that it replaces is " + textOf(wanted);
}

}  // namespace lathe
