// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/grouped_heads.h"

#include "ir/types.h"
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

bool groupHeads(Match& m, Value& k, Value& v) {
  auto repeatedK = readRepeat(k), repeatedV = readRepeat(v);
  if (!repeatedK || !repeatedV || repeatedK->groups() != repeatedV->groups()) return true;
  k = withoutRepeat(m, *repeatedK);
  v = withoutRepeat(m, *repeatedV);
  return k && v;
}

}  // namespace lathe
