// SPDX-License-Identifier: Apache-2.0
// Losses over classes: scores [n, c, d1, ...], labels [n, d1, ...].
#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

// -weight[label] * logits[label], of ignored labels 0; then their mean, their sum, or all.
Tensor likelihoodLoss(Node& n, const Tensor& logits, const Tensor& given, const Tensor& weights) {
  const DType dtype = logits.dtype();
  const Tensor labels = as(given, DType::I64);
  Tensor counts = broadcasted(like(logits, 1), labels.shape());
  Tensor inside = labels;
  const bool ignores = n.hasAttribute("ignore_index");
  Tensor isIgnored;
  if (ignores) {
    isIgnored = labels == double(n.attribute("ignore_index", 0));
    inside = select(isIgnored, like(labels, 0), labels);  // it need not be a class
  }
  // Chosen by a sum over the classes: no gather of single elements.
  Dims classes(size_t(logits.rank()), Dim(1));
  classes[1] = logits.dim(1);
  const Tensor hit = compare(unsqueeze(inside, 1), iota(logits, classes, 1), Compare::eq);
  Tensor loss = neg(reduceSum(select(hit, logits, like(logits, 0)), {1}));
  if (weights.defined()) counts = gather(as(weights, dtype), inside, 0);
  if (ignores) counts = select(isIgnored, like(counts, 0), counts);
  loss = select(counts == 0.0, like(loss, 0), mul(loss, counts));
  Axes all;
  for (int64_t i = 0; i < loss.rank(); ++i) all.push_back(i);
  const std::string reduction = n.text("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return reduceSum(loss, all);
  if (reduction != "mean")
    n.refuse("attribute 'reduction': expected none, sum or mean, got " + reduction);
  return div(reduceSum(loss, all), reduceSum(counts, all));
}

void negativeLogLikelihood(Node& n) {
  const Tensor x = n.in(0), y = as(x, wide(x.dtype()));
  n.set(as(likelihoodLoss(n, y, n.in(1), n.maybe(2)), x.dtype()));
}

void softmaxCrossEntropy(Node& n) {
  const Tensor x = n.in(0), y = as(x, wide(x.dtype()));
  const Tensor d = sub(y, reduceMax(y, {1}, true));
  const Tensor logits = sub(d, log(reduceSum(exp(d), {1}, true)));
  n.set(0, as(likelihoodLoss(n, logits, n.in(1), n.maybe(2)), x.dtype()));
  if (n.wants(1)) n.set(1, as(logits, x.dtype()));
}

const Lowering kTable[] = {
    {"NegativeLogLikelihoodLoss", {"ignore_index", "reduction"}, negativeLogLikelihood},
    {"SoftmaxCrossEntropyLoss", {"ignore_index", "reduction"}, softmaxCrossEntropy}};

}  // namespace

std::span<const Lowering> lossLowerings() { return kTable; }

}  // namespace lathe::onnx
