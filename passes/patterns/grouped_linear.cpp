// SPDX-License-Identifier: Apache-2.0
//
//   w [groups, n, k] ─ gather axis 0 ─ matmul ─ (reshape) ──      grouped_linear(x, w, indices)
//   indices ─────────┘               │
//   x ──────── reshape [.., k, 1] ───┘
//
// One row, or column, for each index. The weight lies as [n, k] or [k, n], on either side of the
// product, turned or not. The axis of one goes with the product where a reshape drops it. Where a
// row meets several weights, einsum lays their columns side by side: [.., chosen * n, k].
#include <numeric>

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

Tensor chosenWeights(DagPattern& p) {
  return p.where(p.any(), "weights of a checkpoint, of rank 3",
                 [](Value v) { return isLoadedWeight(v) && tensorType(v).getRank() == 3; });
}
Tensor anyTranspose(DagPattern& p, const Tensor& x) {
  return p.mayEscape(p.anyAttribute(transpose(x, {}), "permutation"));
}

struct Spelling {
  bool weightFirst;  // the weight is the first operand of the product
  bool dropsOne;     // the root is a reshape behind it
};
void chosenByRow(DagPattern& p, Spelling spelling) {
  const auto [weightFirst, dropsOne] = spelling;
  Tensor w = chosenWeights(p), indices = p.any(), x = p.any();
  Tensor chosen = p.mayEscape(gather(w, indices, 0)), turned = anyTranspose(p, chosen);
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

bool hasPermutation(Value v, ArrayRef<int64_t> wanted) {
  return v.getDefiningOp<TransposeOp>().getPermutation() == wanted;
}

// The columns of all weights that a row chooses are one axis of the product, and a reshape behind
// it takes them apart.
void joinedByRow(DagPattern& p, bool weightFirst) {
  Tensor w = chosenWeights(p), indices = p.any(), x = p.any();
  Tensor chosen = p.mayEscape(gather(w, indices, 0)), turned = anyTranspose(p, chosen);
  Tensor joined = p.mayEscape(anyReshape(p, p.optional(turned, chosen)));
  Tensor flipped = anyTranspose(p, joined);
  Tensor product = weightFirst ? matmul(joined, x) : matmul(x, p.optional(flipped, joined));
  p.root(anyReshape(p, product));
  p.replaceWith([=](Match& m) -> Value {
    const auto of = dimsOf(tensorType(m[indices])), given = dimsOf(tensorType(m[x])),
               side = dimsOf(tensorType(m[joined])), weights = dimsOf(tensorType(m[w]));
    const size_t shared = side.size() - 2, rank = of.size() + 2;
    if (shared >= of.size())
      return m.decline("lathe.reshape: it joins no columns of weights that one row chooses");
    // Columns, or the inner axis, come first in the joined weights.
    const bool columnsFirst = weightFirst || m.has(flipped);
    SmallVector<int64_t> order(rank), flip(side.size());
    std::iota(order.begin(), order.end(), 0);
    std::iota(flip.begin(), flip.end(), 0);
    std::swap(flip[shared], flip[shared + 1]);
    // Of [of.., a, b]: both swapped, or a moved in front of the joined axes.
    SmallVector<int64_t> swapped = order, toFront = order;
    std::swap(swapped[rank - 2], swapped[rank - 1]);
    std::rotate(toFront.begin() + int64_t(shared), toFront.end() - 2, toFront.end() - 1);
    const bool isTurned = m.has(turned);
    if ((m.has(flipped) && !hasPermutation(m[flipped], flip)) ||
        (columnsFirst ? isTurned && !hasPermutation(m[turned], swapped)
                      : !isTurned || !hasPermutation(m[turned], toFront)))
      return m.decline("lathe.reshape: the columns of the chosen weights are not side by side");
    const bool outIn = columnsFirst && !isTurned;
    const StringAttr n = weights[outIn ? 1 : 2], k = weights[outIn ? 2 : 1];
    SmallVector<StringAttr> result(of.begin(), of.end()), rows(of.begin(), of.begin() + shared),
        operand = rows;
    result.push_back(n);
    if (ArrayRef(side).take_front(shared) != ArrayRef(rows) ||
        side[shared + (columnsFirst ? 1 : 0)] != k ||
        dimsOf(tensorType(m.root()->getResult(0))) != result)
      return m.decline(
          "lathe.reshape: the axes in front of the columns are not those of the indices");
    const StringAttr one = dimAttr(m[x].getContext(), 1);
    operand.append({weightFirst ? k : one, weightFirst ? one : k});
    if (given != operand)
      return m.decline("lathe.matmul: wanted one row for the weights that it chooses, found " +
                       shortType(m[x].getType()));
    rows.append(of.size() - shared, one);
    rows.push_back(k);
    const Value from = behindReshapes(m, m[x], rows);
    return from ? m.make("lathe.grouped_linear", {from, m[w], m[indices]},
                         {{"layout", outIn ? WeightLayout::out_in : WeightLayout::in_out}})
                : Value();
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
  addPattern(library, context, "grouped_linear-joined",
             [](DagPattern& p) { joinedByRow(p, true); });
  addPattern(library, context, "grouped_linear-joined-rows",
             [](DagPattern& p) { joinedByRow(p, false); });
}

}  // namespace lathe
