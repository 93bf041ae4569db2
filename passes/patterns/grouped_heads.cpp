// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/grouped_heads.h"

#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"

using namespace mlir;

namespace lathe {
namespace {

struct Repeated {
  SmallVector<Operation*, 4> ops;
  Value source;               // [b, g, 1, t, d], or with the axes in another order
  int64_t axis = 1;           // of the heads in what is repeated
  Operation* turn = nullptr;  // a transposition behind the repetition
  StringAttr groups() const { return dimOf(tensorType(source), axis); }
};

// One copy on an axis of 1 becomes many.
Value readCopies(Value many, int64_t axis, SmallVectorImpl<Operation*>& ops) {
  if (auto copies = many.getDefiningOp<BroadcastOp>()) {
    ops.push_back(copies);
    return copies.getX();
  }
  auto joined = many.getDefiningOp<ConcatOp>();
  if (!joined || int64_t(joined.getAxis()) != axis) return {};
  ops.push_back(joined);
  Value first = joined.getInputs()[0];
  bool same = llvm::all_of(joined.getInputs(), [&](Value v) { return v == first; });
  return same ? first : Value();
}

std::optional<Repeated> readRepeat(Value v) {
  Repeated r;
  if (auto turn = v.getDefiningOp<TransposeOp>(); turn && tensorType(v).getRank() == 4) {
    r.turn = turn;
    r.ops.push_back(turn);
    r.axis = turn.getPermutation()[1];
    v = turn.getX();
  }
  auto merge = v.getDefiningOp<ReshapeOp>();
  if (!merge || tensorType(v).getRank() != 4 || tensorType(merge.getX()).getRank() != 5)
    return std::nullopt;
  r.ops.push_back(merge);
  r.source = readCopies(merge.getX(), r.axis + 1, r.ops);
  if (!r.source) return std::nullopt;
  auto from = dimsOf(tensorType(r.source)), to = dimsOf(tensorType(merge.getX()));
  auto merged = dimsOf(tensorType(v));
  if (from.size() != 5) return std::nullopt;
  for (int64_t i = 0; i < 5; ++i) {
    bool copied = i == r.axis + 1;
    if (copied ? !isOne(from[i]) : !from[i] || from[i] != to[i]) return std::nullopt;
    int64_t behind = i > r.axis + 1 ? i - 1 : i;
    if (i != r.axis && !copied && merged[behind] != to[i]) return std::nullopt;
  }
  return r;
}

Value withoutRepeat(Match& m, const Repeated& r) {
  auto d = dimsOf(tensorType(r.source));
  d.erase(d.begin() + r.axis + 1);
  for (Operation* op : r.ops) m.consume(op);
  Value v = r.source;
  if (auto split = v.getDefiningOp<ReshapeOp>()) {
    m.consume(split);
    v = split.getX();
  }
  v = reshaped(m, v, d);
  if (!v || !r.turn) return v;
  auto p = cast<TransposeOp>(r.turn).getPermutation();
  return m.make("lathe.transpose", {v},
                {{"permutation", std::vector<int64_t>(p.begin(), p.end())}});
}

}  // namespace

namespace {

// Axes `at` and `at` + 1 as one. Where the first lies in front of a mask's own axes, the second
// goes; where both do, nothing is to do.
Value mergeAxes(Match& m, Value v, int64_t at) {
  if (at < -1) return v;
  auto dims = dimsOf(tensorType(v));
  if (at >= 0) dims[at] = dimAttr(v.getContext(), exprOf(dims[at]) * exprOf(dims[at + 1]));
  dims.erase(dims.begin() + at + 1);
  return reshaped(m, v, dims);
}

}  // namespace

Value withoutGroupAxis(Match& m, Value v) {
  auto one = v.getDefiningOp<ReshapeOp>();
  if (!one || tensorType(v).getRank() != 5) return v;
  auto dims = dimsOf(tensorType(v));
  dims.erase(dims.begin() + 2);
  if (dimsOf(tensorType(one.getX())) != dims) return v;
  m.consume(one);
  return one.getX();
}

bool joinGroups(Match& m, Value& q, Value& k, Value& v, Value& mask) {
  auto fail = [&](const Twine& reason) {
    m.decline(reason);
    return false;
  };
  auto head = tensorType(q);
  StringAttr groups = dimOf(head, 1), each = dimOf(head, 2);
  if (!groups || !each) return fail("the number of heads has no name");
  for (Value* shared : {&k, &v}) {
    auto type = tensorType(*shared);
    if (dimOf(type, 1) != groups || (type.getRank() == 5 && !isOne(dimOf(type, 2))))
      return fail("the heads of a group do not share keys and values: wanted an axis of 1");
    if (type.getRank() == 5) *shared = mergeAxes(m, *shared, 1);
  }
  q = mergeAxes(m, q, 1);
  if (mask) {
    auto type = tensorType(mask);
    int64_t at = type.getRank() - 4;  // of the groups
    auto is = [&](int64_t axis, StringAttr dim) { return axis >= 0 && dimOf(type, axis) == dim; };
    bool ofAll = (at < 0 || isOne(dimOf(type, at))) && (at + 1 < 0 || isOne(dimOf(type, at + 1)));
    if (!ofAll && !(is(at, groups) && is(at + 1, each)))
      return fail("the mask of " + shortType(type) + " tells heads of a group apart");
    mask = mergeAxes(m, mask, at);
  }
  return q && k && v;
}

bool groupHeads(Match& m, Value& k, Value& v) {
  auto repeatedK = readRepeat(k), repeatedV = readRepeat(v);
  if (!repeatedK || !repeatedV || repeatedK->groups() != repeatedV->groups()) return true;
  k = withoutRepeat(m, *repeatedK);
  v = withoutRepeat(m, *repeatedV);
  return k && v;
}

}  // namespace lathe
