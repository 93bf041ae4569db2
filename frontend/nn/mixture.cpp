// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/mixture.h"

#include "lathe/frontend/nn/softmax.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {

Mixture::Mixture(Graph& graph, std::string path, MixtureOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "Mixture '" + this->path() + "'";
  expectPositive(options_.dModel, module + ", dModel", at);
  expectPositive(options_.dHidden, module + ", dHidden", at);
  expectPositive(options_.experts, module + ", experts", at, kMostModules);
  expectPositive(options_.chosen, module + ", chosen", at, options_.experts);
  if (options_.mlp.bias || !options_.mlp.gateUp.empty())
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected experts of three weights without biases", at);
}

Tensor Mixture::stacked(const std::string& name, int64_t rows, int64_t columns, DType dtype) const {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < options_.experts; ++i)
    parts.push_back(weight(joinPath(joinPath(options_.expert, std::to_string(i)),
                                    name + "." + options_.mlp.linear.weightName),
                           dtype, {rows, columns}, options_.mlp.linear.weightDType));
  return stack(parts);
}

Tensor Mixture::operator()(const Tensor& x, std::source_location at) const {
  const MixtureOptions& o = options_;
  expectFeatures(x, o.dModel, "Mixture '" + path() + "'", at);
  if (x.rank() != 3)
    throw Error(ErrorCode::InvalidArgument,
                "Mixture '" + path() + "': expected x [batch, seq, " + std::to_string(o.dModel) +
                    "], got " + typeText(x),
                at);
  const Scope scope = opened(x, at);
  LinearOptions router = o.mlp.linear;
  router.bias = false;
  Tensor scores = Linear(graph(), below(o.router), o.dModel, o.experts, router)(x, at);
  auto [shares, experts] = topK(softmax(castTo(scores, DType::F32)), o.chosen);
  if (o.normalize) shares = shares / reduceSum(shares, {-1}, /*keepDims=*/true);

  Tensor gate = stacked(o.mlp.gate, o.dHidden, o.dModel, x.dtype());
  Tensor up = stacked(o.mlp.up, o.dHidden, o.dModel, x.dtype());
  Tensor down = stacked(o.mlp.down, o.dModel, o.dHidden, x.dtype());
  auto activated = [&](const Tensor& g, const Tensor& u) {
    return activate(g, o.mlp.activation, o.mlp.sigmoid) * u;
  };
  // A row for each of a token's experts, and products with the weights that it chooses.
  auto products = [chosen = experts](const Tensor& weights, const Tensor& rows) {
    return squeeze(matmul(gather(weights, chosen, 0), unsqueeze(rows, -1)), -1);
  };
  const Tensor rows = unsqueeze(x, -2);
  const Tensor y = products(down, activated(products(gate, rows), products(up, rows)));
  return reduceSum(y * unsqueeze(castTo(shares, x.dtype()), -1), {-2});
}

}  // namespace lathe::nn
