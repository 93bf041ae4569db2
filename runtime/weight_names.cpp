// SPDX-License-Identifier: Apache-2.0
// Names of checkpoints that deviate from those of the model's own modules.
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/stored_weight.h"

namespace lathe {
namespace {

constexpr std::string_view kModel = "model.";
// What stands behind `model.` in a language model.
constexpr auto kParts = std::to_array<std::string_view>({"layers.", "embed_tokens.", "norm."});

bool beginsWithPart(std::string_view name) {
  return std::ranges::any_of(kParts, [&](std::string_view part) { return name.starts_with(part); });
}

// What norms of BERT's first checkpoints, which TensorFlow wrote, call a weight and a bias.
constexpr std::pair<std::string_view, std::string_view> kNorms[] = {
    {".LayerNorm.gamma", ".LayerNorm.weight"}, {".LayerNorm.beta", ".LayerNorm.bias"}};

// The prefix that is there in the place of `model.`: it was saved without its head, or twice
// within modules of that name, or by torch.compile.
std::string mended(std::string_view name) {
  constexpr std::string_view compiled = "_orig_mod.";
  if (name.starts_with(compiled)) name.remove_prefix(compiled.size());
  if (beginsWithPart(name)) return std::string(kModel) + std::string(name);
  if (name.starts_with("model.model.")) return std::string(name.substr(kModel.size()));
  for (auto [old, now] : kNorms)
    if (name.ends_with(old))
      return std::string(name.substr(0, name.size() - old.size())) + std::string(now);
  if (name.starts_with("model.lm_head.")) return std::string(name.substr(kModel.size()));
  return std::string(name);
}

}  // namespace

void mendPrefixes(StoredWeights& weights) {
  StoredWeights renamed;
  for (auto& [name, stored] : weights) {
    std::string own = mended(name);
    // Two tensors for one name: they stay as they are, and are told as missing and unexpected.
    if (own != name && (weights.contains(own) || renamed.contains(own))) return;
    StoredWeight& there = renamed[own];
    there = stored;
    there.tensor.name = own;
  }
  weights = std::move(renamed);
}

}  // namespace lathe
