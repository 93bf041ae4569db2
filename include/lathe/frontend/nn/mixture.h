// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mixture of gated MLPs, of which every token takes a few: Fedus, Zoph and Shazeer, "Switch
// Transformers", 2021; Jiang et al., "Mixtral of Experts", 2024.
#include <string>

#include "lathe/frontend/nn/mlp.h"

namespace lathe::nn {

struct MixtureOptions {
  int64_t dModel = 0, dHidden = 0;
  int64_t experts = 0, chosen = 0;  ///< how many there are, and how many a token takes
  bool normalize = true;            ///< the shares of the chosen ones add up to 1
  std::string router = "gate";      ///< Linear [experts, dModel] without bias
  std::string expert = "experts";   ///< followed by the expert's number
  /// Names of an expert's three weights, its activation and their dtype.
  SwiGLUOptions mlp = {};
};

/// sum over the chosen experts of share * mlp(x): [batch, seq, dModel] in and out. Shares are the
/// softmax of the router's scores, in f32. Every token is multiplied by the weights of its chosen
/// experts alone, as rows of fused::groupedLinear; what the others hold does not matter.
class Mixture : public Module {
 public:
  Mixture(Graph& graph, std::string path, MixtureOptions options, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  /// One weight of all experts, [experts, rows, columns].
  Tensor stacked(const std::string& name, int64_t rows, int64_t columns, DType dtype) const;
  MixtureOptions options_;
};

}  // namespace lathe::nn
