// SPDX-License-Identifier: Apache-2.0
#include "runtime/lora.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"
#include "runtime/regex.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

struct LoraConfig {
  explicit LoraConfig(const JsonValue& root) : json(root), reader(root) {
    reader.expect("peft_type", "LORA");
    reader.expect("bias", "none");
    rank = reader.at("r").asInt(1, kMaxHidden);
    alpha = reader.number("lora_alpha", 8);
    isStabilized = reader.flag("use_rslora", false);
    isTransposed = reader.flag("fan_in_fan_out", false);
    hasMagnitudes = reader.flag("use_dora", false);
    ranks = patternsOf("rank_pattern",
                       [](const JsonValue& v) { return double(v.asInt(1, kMaxHidden)); });
    alphas = patternsOf("alpha_pattern", [](const JsonValue& v) { return v.asDouble(); });
    keepsTies = reader.flag("ensure_weight_tying", false);
    if (auto modules = reader.find("modules_to_save")) saved = modules->elements();
    // Some ways to begin change the model's own weights, which the adapter then does not fit.
    if (auto begin = reader.find("init_lora_weights"); begin && !begin->isBool()) {
      const std::string& way = begin->asString();
      if (way != "gaussian" && way != "eva" && way != "orthogonal")
        throw begin->error(
            "expected true, false, gaussian, eva or orthogonal, got " + begin->show(),
            ErrorCode::Unsupported);
    }
    // Its A works on means of groups of features.
    if (reader.flag("use_qalora", false))
      throw reader.at("use_qalora").error("not supported: expected false", ErrorCode::Unsupported);
    for (const std::string_view note : kLoraNotes) reader.ignore({note});
    reader.finish("LoRA");
  }

  /// What the product of a module's matrices is multiplied with.
  double scaleOf(const std::string& module, int64_t of) const {
    const double top = valueFor(alphas, module).value_or(alpha);
    return isStabilized ? top / std::sqrt(double(of)) : top / double(of);
  }
  int64_t rankOf(const std::string& module) const {
    return int64_t(valueFor(ranks, module).value_or(double(rank)));
  }

  JsonValue json;
  ConfigReader reader;
  int64_t rank = 0;
  double alpha = 0;
  bool isStabilized = false, isTransposed = false, hasMagnitudes = false, keepsTies = false;
  std::vector<JsonValue> saved;  // names of modules that were trained whole

 private:
  using Patterns = std::vector<std::pair<Regex, double>>;

  Patterns patternsOf(const char* key, double (*number)(const JsonValue&)) {
    Patterns patterns;
    if (auto object = reader.find(key))
      for (size_t i = 0; i < object->size(); ++i) {
        const auto [name, value] = object->member(i);
        patterns.emplace_back(Regex("\\A(?:.*\\.)?(?:" + name + ")\\z", value.where()),
                              number(value));
      }
    return patterns;
  }
  static std::optional<double> valueFor(const Patterns& patterns, const std::string& module) {
    for (auto& [pattern, value] : patterns) {
      TextBudget budget(module.size());
      for (const TextRange& range : pattern.split(module, budget))
        if (range.matched) return value;
    }
    return std::nullopt;
  }

  Patterns ranks, alphas;
};

// The tensors of one module by what stands behind its name.
struct Parts {
  std::string a, b, magnitude;
  bool isTable = false;
};

class Adapter {
 public:
  Adapter(StoredWeights& weights, const std::string& folder, const std::string& prefix)
      : weights_(weights),
        prefix_(prefix),
        config_(JsonValue::load((fs::path(folder) / "adapter_config.json").string(), kConfigFile)),
        file_(std::make_shared<const SafetensorsFile>(
            SafetensorsFile::open((fs::path(folder) / "adapter_model.safetensors").string()))) {}

  LoraFolder add() {
    std::map<std::string, Parts> modules;
    LoraFolder folder;
    for (const SafetensorsEntry& e : file_->tensors()) sort(e, modules);
    for (auto& [module, parts] : modules) folder.updates.push_back(updateOf(module, parts));
    if (folder.updates.empty()) throw error("holds no lora_A and lora_B");
    for (const JsonValue& module : config_.saved) expectSaved(module);
    if (!config_.keepsTies) folder.replaced.assign(whole_.begin(), whole_.end());
    return folder;
  }

 private:
  Error error(const std::string& message) const {
    return Error(ErrorCode::InvalidFile, file_->path() + ": " + message);
  }

  // base_model.model.MODULE.lora_A.weight, with the adapter's name in front of `weight` in old
  // files; base_model.model.MODULE.weight where the module was trained whole.
  void sort(const SafetensorsEntry& e, std::map<std::string, Parts>& modules) {
    constexpr std::string_view base = "base_model.model.";
    if (!e.name.starts_with(base))
      throw error(
          fmt::format("tensor {}: expected a name that begins with {}", inQuotes(e.name), base));
    std::string own = e.name.substr(base.size());
    // Tables are stored whole beside their updates.
    if (const size_t at = own.find(".base_layer."); at != own.npos) own.erase(at, 11);
    const std::string name = prefix_ + own;
    struct Kind {
      std::string_view text;
      std::string Parts::* place;
      bool isTable;
    };
    const Kind kinds[] = {{".lora_A.", &Parts::a, false},
                          {".lora_B.", &Parts::b, false},
                          {".lora_embedding_A", &Parts::a, true},
                          {".lora_embedding_B", &Parts::b, true},
                          {".lora_magnitude_vector", &Parts::magnitude, false}};
    for (const Kind& kind : kinds)
      if (const size_t at = own.find(kind.text); at != own.npos) {
        if (!own.ends_with(".weight") && !kind.isTable && kind.place != &Parts::magnitude)
          throw Error(ErrorCode::Unsupported, fmt::format("{}: tensor {}: only weights are adapted",
                                                          file_->path(), inQuotes(e.name)));
        Parts& parts = modules[own.substr(0, at)];
        std::string& place = parts.*kind.place;
        if (!place.empty()) throw error(fmt::format("tensor {} comes twice", inQuotes(e.name)));
        place = name;
        parts.isTable |= kind.isTable;
        weights_.insert_or_assign(name, storedIn(file_, e, name));
        return;
      }
    auto whole = weights_.find(stored(own));
    if (whole == weights_.end() && isTiedHead(e)) return;
    if (whole == weights_.end() || whole->second.tensor.shape != e.shape)
      throw error(
          fmt::format("tensor {}: the model has no {} of that shape", inQuotes(e.name), own));
    whole->second = storedIn(file_, e, whole->first);
    whole_.insert(whole->first);
  }

  // Some weight of a module that was trained whole is in the file: not all, as a checkpoint may
  // have buffers, too. PEFT lists names that a model may have, and finds modules by the ends of
  // theirs. The table has the tensors of updates besides.
  void expectSaved(const JsonValue& module) const {
    const std::string* missing = nullptr;
    for (const auto& [name, weight] : weights_) {
      if (name.find(module.asString() + ".") == std::string::npos ||
          name.find(".lora_") != std::string::npos)
        continue;
      if (whole_.contains(name)) return;
      missing = &name;
    }
    if (missing)
      throw module.error(fmt::format("{} was trained whole, but {} has no {}", module.show(),
                                     file_->path(), *missing));
  }

  // PEFT writes a tied head, too, which the model's checkpoint has not: the same bytes as the
  // table.
  bool isTiedHead(const SafetensorsEntry& e) const {
    return config_.keepsTies &&
           std::ranges::any_of(file_->tensors(), [&](const SafetensorsEntry& t) {
             return t.name != e.name && t.shape == e.shape && t.dtypeName == e.dtypeName &&
                    std::ranges::equal(file_->bytes(t.name), file_->bytes(e.name));
           });
  }

  // The name that a weight of the model has in its own checkpoint.
  std::string stored(const std::string& name) const {
    return nameAmong(name, [&](std::string_view n) { return weights_.contains(n); });
  }

  LoraUpdate updateOf(const std::string& module, const Parts& parts) const {
    if (parts.a.empty() || parts.b.empty())
      throw error(fmt::format("module {}: expected lora_A and lora_B", inQuotes(module)));
    const CheckpointTensor &a = weights_.at(parts.a).tensor, &b = weights_.at(parts.b).tensor;
    auto it = weights_.find(stored(module + ".weight"));
    if (it == weights_.end())
      throw error(fmt::format("module {}: the model has no {}.weight", inQuotes(module), module));
    const Shape& shape = it->second.tensor.shape;
    const bool areMatrices = a.shape.size() == 2 && b.shape.size() == 2 && shape.size() == 2;
    auto fits = [&](bool isTransposed) {
      return areMatrices && a.shape[0] == b.shape[1] && a.shape[1] == shape[isTransposed ? 0 : 1] &&
             b.shape[0] == shape[isTransposed ? 1 : 0];
    };
    // Like PEFT, by the layer that the weight is of, and not by what the folder says of it.
    const bool isTransposed =
        parts.isTable || (fits(config_.isTransposed) ? config_.isTransposed : fits(true));
    if (!fits(isTransposed) || !a.dtype || !b.dtype || !isFloat(*a.dtype) || !isFloat(*b.dtype))
      throw error(
          fmt::format("module {}: lora_A {}[{}] and lora_B {}[{}] do not fit the weight [{}]",
                      inQuotes(module), a.dtypeName, fmt::join(a.shape, ", "), b.dtypeName,
                      fmt::join(b.shape, ", "), fmt::join(shape, ", ")));
    const int64_t rank = a.shape[0];
    if (rank != config_.rankOf(module))
      throw error(fmt::format("module {}: a rank of {}, adapter_config.json says {}",
                              inQuotes(module), rank, config_.rankOf(module)));
    if (config_.hasMagnitudes != !parts.magnitude.empty())
      throw error(fmt::format("module {}: {} use_dora says {}", inQuotes(module),
                              parts.magnitude.empty() ? "no lora_magnitude_vector, but"
                                                      : "a lora_magnitude_vector, but",
                              config_.hasMagnitudes));
    if (config_.hasMagnitudes && isTransposed)
      throw Error(ErrorCode::Unsupported,
                  fmt::format("{}: module {}: magnitudes (use_dora) of embeddings and of weights "
                              "that lie [inputs, outputs] are not supported",
                              file_->path(), inQuotes(module)));
    if (!parts.magnitude.empty() &&
        elementCount(weights_.at(parts.magnitude).tensor.shape) != shape[0])
      throw error(fmt::format("module {}: expected {} magnitudes", inQuotes(module), shape[0]));
    return {.weight = it->first,
            .a = parts.a,
            .b = parts.b,
            .magnitude = parts.magnitude,
            .scale = config_.scaleOf(module, rank),
            .isTransposed = isTransposed,
            .isTable = parts.isTable};
  }

  StoredWeights& weights_;
  const std::string prefix_;
  const LoraConfig config_;
  const std::shared_ptr<const SafetensorsFile> file_;
  std::set<std::string> whole_;  // weights that were trained whole
};

}  // namespace

LoraFolder addLora(StoredWeights& weights, const std::string& folder, const std::string& prefix) {
  return Adapter(weights, folder, prefix).add();
}

}  // namespace lathe
