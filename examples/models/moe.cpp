// SPDX-License-Identifier: Apache-2.0
// Mixtral: every token goes to the two experts that its router scores highest, and is multiplied by
// their weights alone.
#include "run_golden.h"

using namespace lathe;

namespace {

constexpr int64_t kWidth = 16, kHidden = 24, kExperts = 4, kChosen = 2;

Tensor experts(Graph& g, const std::string& path, const Tensor& x) {
  Tensor scores = nn::Linear(g, path + ".gate", kWidth, kExperts, {.bias = false})(x);
  auto [weights, chosen] = topK(nn::softmax(scores), kChosen);
  weights = weights / reduceSum(weights, {-1}, /*keepDims=*/true);

  // A row for each of a token's experts; the products become the fused op grouped_linear.
  auto products = [chosen = chosen](const Tensor& experts, const Tensor& rows) {
    return squeeze(matmul(gather(experts, chosen, 0), unsqueeze(rows, -1)), -1);
  };
  Tensor in = g.weight(path + ".experts.gate_up_proj", DType::F32, {kExperts, 2 * kHidden, kWidth});
  Tensor out = g.weight(path + ".experts.down_proj", DType::F32, {kExperts, kWidth, kHidden});
  std::vector<Tensor> halves = chunk(products(in, unsqueeze(x, -2)), 2, -1);
  Tensor y = products(out, nn::silu(halves[0]) * halves[1]);
  return reduceSum(y * unsqueeze(weights, -1), {-2});
}

}  // namespace

int main(int argc, char** argv) {
  Graph g("moe");
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 16);
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor x = nn::Embedding(g, "model.embed_tokens", 40, kWidth)(ids);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer);
    nn::CausalSelfAttention attention(
        g, path + ".self_attn",
        {.dModel = kWidth, .heads = 4, .kvHeads = 2, .rope = nn::RopeOptions{.maxPositions = 16}});
    x = x + attention(nn::RMSNorm(g, path + ".input_layernorm", kWidth)(x));
    Tensor y = nn::RMSNorm(g, path + ".post_attention_layernorm", kWidth)(x);
    x = x + experts(g, path + ".mlp", y);
  }
  x = nn::RMSNorm(g, "model.norm", kWidth)(x);
  g.output("out", nn::Linear(g, "lm_head", kWidth, 40, {.bias = false})(x));
  return runGolden(argc, argv, g);
}
