// SPDX-License-Identifier: Apache-2.0
//
//   w [groups, n, k] ─ gather axis 0 ─ matmul ─ (reshape) ──      grouped_linear(x, w, indices)
//   indices ─────────┘               │
//   x ──────── reshape [.., k, 1] ───┘
//
// One row, or column, for each index. The weight lies as [n, k] or [k, n], on either side of the
// product, turned or not. The axis of one goes with the product where a reshape drops it.
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

bool swapsLastTwo(TransposeOp op) {
  auto p = op.getPermutation();
  const size_t rank = p.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    if (p[i] != int64_t(i)) return false;
  return rank >= 2 && p[rank - 1] == int64_t(rank - 2);
}

// x in front of the reshapes that gave it an axis of one.
Value behindReshapes(Match& m, Value x, ArrayRef<StringAttr> wanted) {
  SmallVector<Operation*> reshapes;
  Value v = x;
  while (auto op = v.getDefiningOp<ReshapeOp>()) {
    reshapes.push_back(op);
    v = op.getX();
    if (dimsOf(tensorType(v)) != wanted) continue;
    for (Operation* reshape : reshapes) m.consume(reshape);
    return v;
  }
  return reshaped(m, x, wanted);
}

// The reshape that drops the axis of one, if nothing else reads the product.
ReshapeOp behind(Value product, ArrayRef<StringAttr> dims) {
  auto op = product.hasOneUse() ? dyn_cast<ReshapeOp>(*product.user_begin()) : ReshapeOp();
  return op && dimsOf(tensorType(op)) == dims ? op : ReshapeOp();
}

struct Spelling {
  bool weightFirst;  // the weight is the first operand of the product
  bool dropsOne;     // the root is a reshape behind it
};
void chosenByRow(DagPattern& p, Spelling spelling) {
  const auto [weightFirst, dropsOne] = spelling;
  Tensor w = p.where(p.any(), "weights of a checkpoint, of rank 3",
                     [](Value v) { return isLoadedWeight(v) && tensorType(v).getRank() == 3; });
  Tensor indices = p.any(), x = p.any();
  Tensor chosen = p.mayEscape(gather(w, indices, 0));
  Tensor turned = p.mayEscape(p.anyAttribute(transpose(chosen, {}), "permutation"));
  Tensor weight = p.optional(turned, chosen);
  Tensor product = weightFirst ? matmul(weight, x) : matmul(x, weight);
  p.root(dropsOne ? anyReshape(p, product) : product);
  p.replaceWith([=](Match& m) -> Value {
    if (m.has(turned) && !swapsLastTwo(m[turned].getDefiningOp<TransposeOp>()))
      return m.decline("lathe.transpose: wanted the last two axes of the weights swapped");
    const auto result = dimsOf(tensorType(m[product])), of = dimsOf(tensorType(m[indices])),
               given = dimsOf(tensorType(m[x]));
    const StringAttr row = given[given.size() - (weightFirst ? 1 : 2)];
    if (!isOne(row))
      return m.decline("lathe.matmul: wanted one row for each index, found " +
                       Twine(row ? row.getValue() : "?"));
    const bool isNamed = llvm::all_of(result, [](StringAttr d) { return bool(d); });
    if (ArrayRef(result).drop_back(2) != ArrayRef(of) || !isNamed)
      return m.decline(
          "lathe.matmul: the axes in front of the product are not those of the indices");
    SmallVector<StringAttr> narrow(of.begin(), of.end());
    narrow.push_back(result[result.size() - (weightFirst ? 2 : 1)]);
    if (bool(behind(m[product], narrow)) != dropsOne)
      return m.decline("lathe.reshape: the axis of one goes with the product");
    SmallVector<StringAttr> rows(of.size() + 2 - given.size(), dimAttr(m[x].getContext(), 1));
    rows.append(given.begin(), given.end() - 2);
    rows.push_back(given[given.size() - (weightFirst ? 2 : 1)]);
    const Value from = behindReshapes(m, m[x], rows);
    const bool outIn = weightFirst != m.has(turned);
    Value y = from ? m.make("lathe.grouped_linear", {from, m[w], m[indices]},
                            {{"layout", outIn ? WeightLayout::out_in : WeightLayout::in_out}})
                   : Value();
    return !y || dropsOne ? y : reshaped(m, y, result);
  });
}

}  // namespace

void addGroupedLinearPatterns(PatternLibrary& library, MLIRContext* context) {
  for (bool weightFirst : {true, false})
    for (bool dropsOne : {true, false})
      addPattern(
          library, context,
          std::string("grouped_linear") + (weightFirst ? "" : "-rows") + (dropsOne ? "" : "-kept"),
          [&](DagPattern& p) { chosenByRow(p, {weightFirst, dropsOne}); });
}

}  // namespace lathe
