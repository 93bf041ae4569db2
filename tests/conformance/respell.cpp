// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/respell.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "ir/op_builder.h"
#include "lathe/passes/match.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

using Spelling = std::function<Value(OpMaker&)>;

Type elementOf(Value v) { return tensorType(v).getElementType(); }
bool isFloatValue(Value v) { return isa<FloatType>(elementOf(v)); }
bool isUsedOnce(Value v) { return v.getDefiningOp() && v.hasOneUse(); }

// --- by op; `all` collects spellings of op's first result
class Speller {
 public:
  Speller(Operation* op, std::mt19937_64& random) : op_(op), random_(random) {}

  std::vector<Spelling> spellings() {
    commuted();
    products();
    quotients();
    averages();
    roots();
    exponentials();
    conditions();
    masks();
    layouts();
    return std::move(all_);
  }

 private:
  void add(Spelling s) { all_.push_back(std::move(s)); }
  Value in(unsigned i) { return op_->getOperand(i); }
  static Value num(OpMaker& m, Value like, double v) { return m.scalar(elementOf(like), v); }

  void commuted() {
    if (!op_->hasTrait<OpTrait::IsCommutative>()) return;
    Operation* op = op_;
    for (int times = 0; times < 2; ++times)
      add([op](OpMaker& m) {
        OperationState state(m.loc, op->getName());
        state.addOperands({op->getOperand(1), op->getOperand(0)});
        state.addTypes(op->getResultTypes());
        return m.b.create(state)->getResult(0);
      });
  }
  void products() {
    auto op = dyn_cast<MulOp>(op_);
    if (!op || !isFloatValue(op)) return;
    Value a = op.getA(), b = op.getB();
    if (a == b) add([=](OpMaker& m) { return m.make<PowOp>(a, num(m, a, 2)); });
    auto cube = a.getDefiningOp<MulOp>();
    if (cube && cube.getA() == cube.getB() && cube.getA() == b)
      add([=](OpMaker& m) { return m.make<PowOp>(b, num(m, b, 3)); });
    if (auto factor = splatValue(b); factor && *factor > 0 && a.getType() == op.getType()) {
      add([=](OpMaker& m) { return m.make<DivOp>(a, num(m, b, 1 / *factor)); });
      if (auto product = a.getDefiningOp<MatmulOp>(); product && isUsedOnce(a))
        scaleOf(product, *factor);
    }
    // (x / 2) * (1 + g) in other associations
    auto half = a.getDefiningOp<MulOp>();
    auto factor = half ? splatValue(half.getB()) : std::nullopt;
    if (factor && *factor == 0.5 && half.getA().getType() == op.getType()) {
      Value x = half.getA(), c = half.getB();
      add([=](OpMaker& m) { return m.make<MulOp>(m.make<MulOp>(x, b), c); });
      add([=](OpMaker& m) { return m.make<MulOp>(x, m.make<MulOp>(b, c)); });
      add([=](OpMaker& m) { return m.make<DivOp>(m.make<MulOp>(x, b), num(m, c, 2)); });
    }
    for (bool swapped : {false, true}) {
      Value x = swapped ? b : a, s = swapped ? a : b;
      if (auto root = s.getDefiningOp<RsqrtOp>()) {
        Value v = root.getX();
        add([=](OpMaker& m) { return m.make<DivOp>(x, m.make<SqrtOp>(v)); });
        add([=](OpMaker& m) { return m.make<DivOp>(x, m.make<PowOp>(v, num(m, v, 0.5))); });
      }
      if (auto sigmoid = s.getDefiningOp<SigmoidOp>(); sigmoid && sigmoid.getX() == x)
        add([=](OpMaker& m) { return m.make<DivOp>(x, onePlusExp(m, x)); });
    }
  }
  // c * (q k) on q, on k, and half on each
  void scaleOf(MatmulOp product, double c) {
    Value q = product.getA(), k = product.getB();
    add([=](OpMaker& m) { return m.make<MatmulOp>(m.make<MulOp>(q, num(m, q, c)), k); });
    add([=](OpMaker& m) { return m.make<MatmulOp>(q, m.make<MulOp>(k, num(m, k, c))); });
    add([=](OpMaker& m) {
      Value root = num(m, q, std::sqrt(c));
      return m.make<MatmulOp>(m.make<MulOp>(q, root), m.make<MulOp>(root, k));
    });
    auto turn = k.getDefiningOp<TransposeOp>();
    if (!turn) return;
    Value x = turn.getX();
    SmallVector<int64_t> p(turn.getPermutation());
    add([=](OpMaker& m) {
      return m.make<MatmulOp>(q, m.transpose(m.make<MulOp>(x, num(m, x, c)), p));
    });
  }
  void quotients() {
    auto op = dyn_cast<DivOp>(op_);
    if (!op || !isFloatValue(op)) return;
    Value a = op.getA(), b = op.getB();
    if (auto divisor = splatValue(b)) {
      add([=](OpMaker& m) { return m.make<MulOp>(a, num(m, b, 1 / *divisor)); });
      return;
    }
    if (!a.getDefiningOp<ExpOp>()) return;
    add([=](OpMaker& m) { return m.make<MulOp>(a, m.make<ReciprocalOp>(b)); });
    add([=](OpMaker& m) { return m.make<MulOp>(m.make<DivOp>(num(m, b, 1), b), a); });
  }
  void averages() {
    if (auto op = dyn_cast<ReduceMeanOp>(op_); op && op.getKeepDims()) {
      Value x = op.getX();
      SmallVector<int64_t> axes(op.getAxes());
      double n = 1;
      for (int64_t axis : axes) n *= double(tensorType(x).getDimSize(axis));
      add([=](OpMaker& m) {
        return m.make<DivOp>(m.make<ReduceSumOp>(x, axes, true), num(m, x, n));
      });
      add([=](OpMaker& m) {
        return m.make<MulOp>(m.make<ReduceSumOp>(x, axes, true), num(m, x, 1 / n));
      });
    }
    auto bare = [&](auto op) {
      if (!op || !op.getKeepDims()) return;
      using Op = decltype(op);
      Value x = op.getX();
      SmallVector<int64_t> axes(op.getAxes());
      auto dims = dimsOf(tensorType(op.getY()));
      add([=](OpMaker& m) { return m.reshape(m.template make<Op>(x, axes, false), dims); });
    };
    bare(dyn_cast<ReduceMeanOp>(op_));
    bare(dyn_cast<ReduceSumOp>(op_));
    bare(dyn_cast<ReduceMaxOp>(op_));
  }
  void roots() {
    auto op = dyn_cast<RsqrtOp>(op_);
    if (!op) return;
    Value v = op.getX();
    add([=](OpMaker& m) { return m.make<ReciprocalOp>(m.make<SqrtOp>(v)); });
    add([=](OpMaker& m) { return m.make<DivOp>(num(m, v, 1), m.make<SqrtOp>(v)); });
    add([=](OpMaker& m) { return m.make<PowOp>(v, num(m, v, -0.5)); });
  }
  static Value onePlusExp(OpMaker& m, Value x) {
    return m.make<AddOp>(num(m, x, 1), m.make<ExpOp>(m.make<NegOp>(x)));
  }
  void exponentials() {
    if (auto op = dyn_cast<SigmoidOp>(op_)) {
      Value x = op.getX();
      add([=](OpMaker& m) { return m.make<DivOp>(num(m, x, 1), onePlusExp(m, x)); });
      add([=](OpMaker& m) { return m.make<ReciprocalOp>(onePlusExp(m, x)); });
    }
    // (x - max) - max(x - max), where nothing asks for the maximum otherwise
    auto shifted = dyn_cast<SubOp>(op_);
    auto top = shifted ? shifted.getB().getDefiningOp<ReduceMaxOp>() : ReduceMaxOp();
    if (!top || top.getX() != shifted.getA() || !isUsedOnce(shifted.getB())) return;
    Value x = shifted.getA();
    SmallVector<int64_t> axes(top.getAxes());
    add([=](OpMaker& m) {
      Value once = m.make<SubOp>(x, m.make<ReduceMaxOp>(x, axes, true));
      return m.make<SubOp>(once, m.make<ReduceMaxOp>(once, axes, true));
    });
  }
  void conditions() {
    if (auto op = dyn_cast<CompareOp>(op_); op && elementOf(op.getA()).isInteger(64)) {
      Value a = op.getA(), b = op.getB();
      struct Other {
        Compare is, turned, negated, loose;
        int step;
      };
      using enum Compare;
      for (const Other& o : {Other{le, ge, gt, lt, 1}, Other{gt, lt, le, ge, 1}}) {
        if (o.is != op.getPredicate()) continue;
        add([=](OpMaker& m) { return m.compare(o.turned, b, a); });
        add([=](OpMaker& m) { return m.make<LogicalNotOp>(m.compare(o.negated, a, b)); });
        add([=](OpMaker& m) { return m.compare(o.loose, a, m.make<AddOp>(b, num(m, b, 1))); });
        add([=](OpMaker& m) { return m.compare(o.is, m.make<SubOp>(a, b), num(m, a, 0)); });
        // i32 holds every index here
        Type narrow = IntegerType::get(op.getContext(), 32);
        add([=](OpMaker& m) { return m.compare(o.is, m.cast(a, narrow), m.cast(b, narrow)); });
      }
    }
    if (auto op = dyn_cast<LogicalAndOp>(op_)) {
      Value a = op.getA(), b = op.getB();
      add([=](OpMaker& m) {
        return m.make<LogicalNotOp>(
            m.make<LogicalOrOp>(m.make<LogicalNotOp>(a), m.make<LogicalNotOp>(b)));
      });
    }
  }
  void masks() {
    auto op = dyn_cast<SelectOp>(op_);
    if (!op || !isSplatOf(op.getB(), -INFINITY)) return;
    Value c = op.getCondition(), x = op.getA(), low = op.getB();
    add([=](OpMaker& m) { return m.make<SelectOp>(m.make<LogicalNotOp>(c), low, x); });
    add([=](OpMaker& m) { return m.make<AddOp>(m.make<SelectOp>(c, num(m, x, 0), low), x); });
    // Two masks at once.
    auto inner = x.getDefiningOp<SelectOp>();
    if (inner && isSplatOf(inner.getB(), -INFINITY) && isUsedOnce(x)) {
      Value y = inner.getA(), d = inner.getCondition();
      for (int times = 0; times < 2; ++times)
        add([=](OpMaker& m) { return m.make<SelectOp>(m.make<LogicalAndOp>(c, d), y, low); });
    }
  }
  void layouts() {
    if (auto op = dyn_cast<TransposeOp>(op_)) {
      // Two exchanges that give the permutation.
      Value x = op.getX();
      SmallVector<int64_t> p(op.getPermutation()), first(p.size());
      for (size_t i = 0; i < p.size(); ++i) first[i] = int64_t(p.size() - 1 - i);
      SmallVector<int64_t> second;
      for (int64_t axis : p) second.push_back(int64_t(p.size()) - 1 - axis);
      add([=](OpMaker& m) { return m.transpose(m.transpose(x, first), second); });
    }
    if (auto op = dyn_cast<SliceOp>(op_)) halves(op);
    if (isa<WeightOp, ConstantOp>(op_)) return;
    // There and back, of an operand or the result.
    Operation* op = op_;
    int64_t which = int64_t(random_() % (op->getNumOperands() + 1)) - 1;
    auto back = thereAndBack(which < 0 ? op->getResult(0) : op->getOperand(unsigned(which)));
    add([=](OpMaker& m) -> Value {
      if (which < 0) return back(m, m.b.clone(*op)->getResult(0));
      IRMapping same;
      same.map(op->getOperand(unsigned(which)), back(m, op->getOperand(unsigned(which))));
      return m.b.clone(*op, same)->getResult(0);
    });
  }
  // Another axis order or a further axis of one, and the same without.
  std::function<Value(OpMaker&, Value)> thereAndBack(Value v) {
    auto dims = dimsOf(tensorType(v));
    if (dims.size() < 2 || random_() % 2) {
      size_t at = random_() % (dims.size() + 1);
      return [=](OpMaker& m, Value x) {
        auto longer = dims;
        longer.insert(longer.begin() + at, m.dim(1));
        return m.reshape(m.reshape(x, longer), dims);
      };
    }
    SmallVector<int64_t> order, back(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) order.push_back(int64_t(i));
    std::shuffle(order.begin(), order.end(), random_);
    for (size_t i = 0; i < order.size(); ++i) back[order[i]] = int64_t(i);
    return [=](OpMaker& m, Value x) { return m.transpose(m.transpose(x, order), back); };
  }
  // A half, or every other element, of the last axis as one of a pair.
  void halves(SliceOp op) {
    Value x = op.getX();
    auto type = tensorType(x);
    int64_t last = type.getRank() - 1, size = type.getDimSize(last);
    auto start = exprOf(op.getStarts().getDims()[last]).asConstant();
    int64_t stride = op.getStrides()[last];
    if (!start || tensorType(op).getDimSize(last) * 2 != size || x.getDefiningOp<SliceOp>()) return;
    bool neighbours = stride == 2;
    int64_t which = neighbours ? *start : *start / (size / 2), at = neighbours ? last + 1 : last;
    auto flat = dimsOf(tensorType(op));
    add([=](OpMaker& m) {
      auto pairs = dimsOf(type);
      pairs[last] = m.dim(neighbours ? size / 2 : 2);
      pairs.push_back(m.dim(neighbours ? 2 : size / 2));
      SmallVector<StringAttr> starts(pairs.size(), m.dim(0)), sizes(pairs);
      starts[at] = m.dim(which);
      sizes[at] = m.dim(1);
      auto list = [&](ArrayRef<StringAttr> d) { return DimsAttr::get(type.getContext(), d); };
      Value one = m.make<SliceOp>(m.reshape(x, pairs), list(starts), list(sizes),
                                  m.b.getDenseI64ArrayAttr(SmallVector<int64_t>(pairs.size(), 1)));
      return m.reshape(one, flat);
    });
  }

  Operation* op_;
  std::mt19937_64& random_;
  std::vector<Spelling> all_;
};

}  // namespace

void respell(ModuleOp module, uint64_t seed) {
  std::mt19937_64 random(seed);
  SmallVector<Operation*> ops;
  module.walk([&](Operation* op) {
    if (op->getName().getDialectNamespace() == "lathe" && op->getNumResults() == 1)
      ops.push_back(op);
  });
  for (Operation* op : ops) {
    std::vector<Spelling> all = Speller(op, random).spellings();
    if (all.empty() || random() % 2) continue;
    OpBuilder builder(op);
    OpMaker maker(builder, op->getLoc());
    Value other = all[random() % all.size()](maker);
    op->getResult(0).replaceAllUsesWith(other);
    op->erase();
  }
  // What a spelling no longer reads.
  for (bool changed = true; changed;) {
    changed = false;
    module.walk([&](Operation* op) {
      if (op->getName().getDialectNamespace() != "lathe" || !isOpTriviallyDead(op)) return;
      op->erase();
      changed = true;
    });
  }
}

}  // namespace lathe::conformance
