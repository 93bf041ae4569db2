// SPDX-License-Identifier: Apache-2.0
//
//   x ──┬───────────────────────────────────────── mul|div ── (cast) ── mul ──   rms_norm(x, gain)
//       └─ mul|pow 2 ── mean ── add ── rsqrt|sqrt ┘                    gain ┘
//                                eps ┘
//
// mean is reduce_mean, or reduce_sum divided by the size or multiplied by its inverse. With the
// cast, the value is rounded before the gain is applied; without it in f32, casts around the whole
// become part of the op afterwards (narrowing.cpp).
#include <cmath>

#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

bool isLastAxis(Attribute axes, Value x) {
  return cast<DenseI64ArrayAttr>(axes).asArrayRef() ==
         ArrayRef<int64_t>{tensorType(x).getRank() - 1};
}

void record(DagPattern& p) {
  Tensor x = p.any(), gain = p.any();
  Tensor squares = p.anyOf({mul(x, x), pow(x, p.constant(2))});
  auto anyAxes = [&](const Tensor& reduce) { return p.anyAttribute(reduce, "axes"); };
  Tensor mean = anyAxes(reduceMean(squares, {0}, true));
  Tensor sum = anyAxes(reduceSum(squares, {0}, true));
  auto positive = [](double v) { return v > 0; };
  Tensor count = p.constantWhere("the size of the last axis", positive);
  Tensor inverse = p.constantWhere("1 / the size of the last axis", positive);
  Tensor average = p.anyOf({mean, div(sum, count), mul(sum, inverse)});
  Tensor epsilon =
      p.constantWhere("a constant epsilon of 0 or more", [](double v) { return v >= 0; });
  Tensor shifted = add(average, epsilon);
  Tensor root = sqrt(shifted);
  Tensor scaled = p.anyOf({mul(x, rsqrt(shifted)), div(x, root), mul(x, reciprocal(root)),
                           mul(x, div(p.constant(1), root))});
  Tensor rounded = anyCast(p, scaled);
  p.root(mul(p.optional(rounded, scaled), gain));

  p.replaceWith([=](Match& m) -> Value {
    const Tensor& reduce = m.has(mean) ? mean : sum;
    if (!isLastAxis(m.attribute(reduce, "axes"), m[x]))
      return m.decline("the mean does not run over exactly the last axis");
    auto type = tensorType(m[x]);
    int64_t size = type.getDimSize(type.getRank() - 1);
    if (m.has(count) && m.constant(count) != double(size))
      return m.decline("the sum is divided by " + Twine(int64_t(m.constant(count))) +
                       ", the last axis is " + Twine(size));
    if (m.has(inverse) && std::abs(m.constant(inverse) * double(size) - 1) > 1e-6)
      return m.decline("the sum is multiplied by something else than 1 / " + Twine(size));

    Value input = m[x];
    bool rounds = m.has(rounded);
    if (rounds) {
      auto widened = input.getDefiningOp<CastOp>();
      if (!widened || widened.getX().getType() != m[rounded].getType())
        return m.decline("the value is cast back to a type that the input did not have");
      input = widened.getX();
      m.consume(widened);
    }
    return m.make("lathe.rms_norm", {input, m[gain]},
                  {{"epsilon", m.constant(epsilon)},
                   {"rounding", Keyword{"rounding", rounds ? "before_gain" : "after_gain"}}});
  });
}

}  // namespace

void addRmsNormPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "rms_norm", record);
}

}  // namespace lathe
