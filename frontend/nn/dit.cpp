// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/dit.h"

#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/positions.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

// x + gate * f, with one gate [batch, d] for all tokens.
Tensor addGated(const Tensor& x, const Tensor& gate, const Tensor& f) {
  return x + reshape(gate, {gate.dim(0), 1, gate.dim(1)}) * f;
}

}  // namespace

DiTBlock::DiTBlock(Graph& graph, std::string path, DiTBlockOptions o, std::source_location at)
    : Module(graph, path, at),
      modulation_(graph, joinPath(path, "adaLN_modulation"), o.attention.dModel, 6, o.weightDType,
                  at),
      norm1_(graph, joinPath(path, "norm1"), o.attention.dModel, o.norm, at),
      norm2_(graph, joinPath(path, "norm2"), o.attention.dModel, o.norm, at),
      attention_(graph, joinPath(path, "attn"), o.attention, at),
      mlp_(graph, joinPath(path, "mlp"), o.attention.dModel,
           o.dHidden ? o.dHidden : 4 * o.attention.dModel, o.mlp, at) {}

Tensor DiTBlock::operator()(const Tensor& x, const Tensor& condition,
                            std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "DiTBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  const std::vector<Tensor> m = modulation_(condition, at);
  Tensor y = addGated(x, m[2], attention_(modulate(norm1_(x, at), m[0], m[1], at), {}, at));
  return addGated(y, m[5], mlp_(modulate(norm2_(y, at), m[3], m[4], at), at));
}

DiTFinalLayer::DiTFinalLayer(Graph& graph, std::string path, int64_t dModel, int64_t outputs,
                             std::optional<DType> weightDType, std::source_location at)
    : Module(graph, path, at),
      modulation_(graph, joinPath(path, "adaLN_modulation"), dModel, 2, weightDType, at),
      norm_(graph, joinPath(path, "norm_final"), dModel, LayerNormOptions::dit(), at),
      linear_(graph, joinPath(path, "linear"), dModel, outputs,
              {.bias = true, .weightDType = weightDType}, at),
      dModel_(dModel) {}

Tensor DiTFinalLayer::operator()(const Tensor& x, const Tensor& condition,
                                 std::source_location at) const {
  expectFeatures(x, dModel_, "DiTFinalLayer '" + path() + "'", at);
  const Scope scope = opened(x, at);
  const std::vector<Tensor> m = modulation_(condition, at);
  return linear_(modulate(norm_(x, at), m[0], m[1], at), at);
}

DiT::DiT(Graph& graph, std::string path, DiTOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "DiT '" + this->path() + "'";
  expectPositive(options_.layers, module + ", layers", at, kMostModules);
  expectPositive(options_.labels, module + ", labels", at);
  expectPositive(options_.channels, module + ", channels", at);
  expectPositive(options_.patch, module + ", patch", at);
  const ImageSize& image = options_.image;
  expectPositive(image.height, module + ", image height", at);
  expectPositive(image.width, module + ", image width", at);
  if (image.height % options_.patch || image.width % options_.patch)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected an image whose sides are multiples of the patch, got " +
                    std::to_string(image.height) + " x " + std::to_string(image.width) +
                    " and patches of " + std::to_string(options_.patch) + "; pad the image",
                at);
  if (!isFloat(options_.dtype))
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected a float dtype, got " + std::string(nameOf(options_.dtype)),
                at);
  rows_ = image.height / options_.patch;
  columns_ = image.width / options_.patch;
  options_.timestep.weightDType = options_.weightDType;

  // Made for its checks: calls make their own.
  (void)TimestepEmbedding(graph, below("t_embedder"), options_.dModel, options_.timestep, at);

  DiTBlockOptions block{.dHidden = options_.dHidden, .weightDType = options_.weightDType};
  block.attention.dModel = options_.dModel;
  block.attention.heads = options_.heads;
  block.attention.linear.weightDType = options_.weightDType;
  block.mlp.linear.weightDType = options_.weightDType;
  for (int64_t i = 0; i < options_.layers; ++i)
    blocks_.emplace_back(graph, below("blocks." + std::to_string(i)), block, at);
}

Tensor DiT::addPositions(const Tensor& x, std::source_location at) const {
  if (options_.positions == DiTOptions::Positions::Sine2d)
    return SinePositions2d(graph(), below("pos_embed"), options_.dModel, rows_, columns_, at)(x,
                                                                                              at);
  return x + weight("pos_embed", x.dtype(), {1, rows_ * columns_, options_.dModel},
                    options_.weightDType);
}

Tensor DiT::operator()(const Tensor& image, const Tensor& timesteps, const Tensor& labels,
                       std::source_location at) const {
  const std::string module = "DiT '" + path() + "'";
  expectDefined(image, module + ", image", at);
  expectDefined(labels, module + ", labels", at);
  if (image.dtype() != options_.dtype || image.rank() != 4 ||
      !(image.dim(2) == options_.image.height) || !(image.dim(3) == options_.image.width))
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected an image " + std::string(nameOf(options_.dtype)) +
                    "[batch, channels, " + std::to_string(options_.image.height) + ", " +
                    std::to_string(options_.image.width) + "], got " + typeText(image),
                at);
  const Scope scope = opened(image, at);
  const int64_t width = options_.dModel;
  Tensor x = PatchEmbedding(graph(), below("x_embedder"), options_.channels, options_.patch, width,
                            {.weightDType = options_.weightDType})(image, at);
  x = addPositions(x, at);
  Tensor time = TimestepEmbedding(graph(), below("t_embedder"), width, options_.timestep)(
      timesteps, options_.dtype, at);
  const EmbeddingOptions table{.dtype = options_.dtype, .weightDType = options_.weightDType};
  Tensor label = Embedding(graph(), below("y_embedder.embedding_table"), options_.labels, width,
                           table)(labels, at);
  Tensor condition = time + label;
  for (const DiTBlock& block : blocks_) x = block(x, condition, at);
  const int64_t channels = options_.learnSigma ? 2 * options_.channels : options_.channels;
  const DiTFinalLayer last(graph(), below("final_layer"), width,
                           options_.patch * options_.patch * channels, options_.weightDType);
  return unpatchify(last(x, condition, at), rows_, columns_, options_.patch, at);
}

}  // namespace lathe::nn
