// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/forms.h"

#include <cmath>

#include "lathe/ir/ops.h"

using namespace mlir;

namespace lathe {

Tensor anyCast(DagPattern& p, const Tensor& x, std::source_location at) {
  return p.anyAttribute(cast(x, DType::F32, at), "dtype");
}
Tensor roundingCast(DagPattern& p, const Tensor& x, std::source_location at) {
  return p.where(anyCast(p, x, at), "a cast from float to float",
                 [](Value v) { return onlyRounds(v.getDefiningOp<CastOp>()); });
}
Tensor anyAxes(DagPattern& p, const Tensor& reduce) { return p.anyAttribute(reduce, "axes"); }
Tensor anySlice(DagPattern& p, const Tensor& x) {
  Tensor t = slice(x, {}, {}, {});
  for (const char* name : {"starts", "sizes", "strides"}) p.anyAttribute(t, name);
  return t;
}
Tensor anyReshape(DagPattern& p, const Tensor& x) {
  return p.anyAttribute(reshape(x, {}), "shape");
}
Tensor anyConcat(DagPattern& p, const std::vector<Tensor>& inputs) {
  return p.anyAttribute(concat(inputs, 0), "axis");
}

AverageForm averageForm(DagPattern& p, const Tensor& x) {
  auto positive = [](double v) { return v > 0; };
  AverageForm f;
  f.mean = anyAxes(p, reduceMean(x, {0}, true));
  f.sum = anyAxes(p, reduceSum(x, {0}, true));
  f.count = p.constantWhere("the size of the last axis", positive);
  f.inverse = p.constantWhere("1 / the size of the last axis", positive);
  f.value = p.anyOf({f.mean, div(f.sum, f.count), mul(f.sum, f.inverse)});
  return f;
}

bool isMeanOfLastAxis(Match& m, const AverageForm& f) {
  const Tensor& reduce = m.has(f.mean) ? f.mean : f.sum;
  auto type = tensorType(m[reduce].getDefiningOp()->getOperand(0));
  auto fail = [&](const Twine& reason) {
    m.decline(reason);
    return false;
  };
  int64_t last = type.getRank() - 1;
  if (cast<DenseI64ArrayAttr>(m.attribute(reduce, "axes")).asArrayRef() != ArrayRef<int64_t>{last})
    return fail("'axes' of the mean are not exactly the last axis");
  int64_t size = type.getDimSize(last);
  if (m.has(f.count) && m.constant(f.count) != double(size))
    return fail("the sum is divided by " + Twine(int64_t(m.constant(f.count))) +
                ", the last axis is " + Twine(size));
  if (m.has(f.inverse) && std::abs(m.constant(f.inverse) * double(size) - 1) > 1e-6)
    return fail("the sum is multiplied by something else than 1 / " + Twine(size));
  return true;
}

RootForm rootForm(DagPattern& p, const Tensor& x, const Tensor& v, RootSpelling spelling) {
  RootForm f;
  f.epsilon = p.constantWhere("a constant epsilon of 0 or more", [](double e) { return e >= 0; });
  Tensor shifted = p.optional(add(v, f.epsilon), v);
  Tensor root = p.anyOf({sqrt(shifted), pow(shifted, p.constant(0.5))});
  if (spelling == RootSpelling::Quotient) {
    f.scaled = div(x, root);
    return f;
  }
  f.scaled = mul(x, p.anyOf({rsqrt(shifted), reciprocal(root), div(p.constant(1), root),
                             pow(shifted, p.constant(-0.5))}));
  return f;
}
double epsilonOf(Match& m, const RootForm& f) {
  return m.has(f.epsilon) ? m.constant(f.epsilon) : 0;
}

bool isUsedOnce(Value v) { return v.getDefiningOp() && v.hasOneUse(); }

Value reshaped(Match& m, Value v, ArrayRef<StringAttr> dims) {
  if (dimsOf(tensorType(v)) == dims) return v;
  MLIRContext* c = v.getContext();
  return m.makeWith("lathe.reshape", {v},
                    NamedAttribute(StringAttr::get(c, "shape"), DimsAttr::get(c, dims)));
}

Value perLastDim(Match& m, Value v, RankedTensorType like) {
  auto type = tensorType(v);
  if (type.getRank() == 0 || like.getRank() == 0) return {};
  StringAttr last = dimOf(like, like.getRank() - 1);
  auto dims = dimsOf(type);
  if (!last || dims.back() != last) return {};
  for (StringAttr d : ArrayRef(dims).drop_back())
    if (!isOne(d)) return {};
  return reshaped(m, v, {last});
}

bool spansLastAxis(Value v, RankedTensorType like) {
  auto type = tensorType(v);
  if (type.getRank() == 0 || like.getRank() == 0) return false;
  StringAttr last = dimOf(like, like.getRank() - 1);
  return last && dimOf(type, type.getRank() - 1) == last;
}

bool isWholeBut(SliceOp op, int64_t axis) {
  auto type = tensorType(op.getX());
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (i != axis && (op.getStarts().getDims()[i].getValue() != "0" ||
                      op.getSizes().getDims()[i] != dimOf(type, i) || op.getStrides()[i] != 1))
      return false;
  return true;
}

std::optional<Scaling> readScaling(Operation* op) {
  if (!isa_and_nonnull<MulOp, DivOp>(op)) return std::nullopt;
  bool divides = isa<DivOp>(op);
  for (unsigned i : {1u, 0u}) {
    if (divides && i == 0) continue;
    auto factor = splatValue(op->getOperand(i));
    Value x = op->getOperand(1 - i);
    // A factor of one element may still have a larger rank than x.
    if (!factor || x.getType() != op->getResult(0).getType()) continue;
    if (!(*factor > 0) || std::isinf(*factor)) return std::nullopt;
    return Scaling{x, divides ? 1 / *factor : *factor};
  }
  return std::nullopt;
}

void addKeepDimsPatterns(PatternLibrary& library, MLIRContext* context) {
  using Reduce = Tensor (*)(const Tensor&, Axes, bool, std::source_location);
  auto add = [&](const char* name, Reduce reduce) {
    addPattern(library, context, std::string("keep-dims-") + name, [&](DagPattern& p) {
      Tensor x = p.any();
      Tensor bare = anyAxes(p, reduce(x, {0}, false, std::source_location::current()));
      p.root(anyReshape(p, bare));
      p.replaceWith([=, op = "lathe.reduce_" + std::string(name)](Match& m) -> Value {
        auto axes = cast<DenseI64ArrayAttr>(m.attribute(bare, "axes")).asArrayRef();
        auto dims = dimsOf(tensorType(m[x]));
        for (int64_t a : axes) dims[a] = StringAttr::get(m.root()->getContext(), "1");
        if (dims != dimsOf(tensorType(m.root()->getResult(0))))
          return m.decline("the 'shape' is not that of the reduction with its axes kept");
        return m.make(
            op, {m[x]},
            {{"axes", std::vector<int64_t>(axes.begin(), axes.end())}, {"keep_dims", true}});
      });
    });
  };
  add("mean", reduceMean);
  add("sum", reduceSum);
  add("max", reduceMax);
}

}  // namespace lathe
