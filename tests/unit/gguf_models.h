// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models of GGUF by their keys and tensors, and what is made of them.
#include <map>
#include <memory>
#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/gguf_model.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/test_files.h"

namespace lathe::test {

using nlohmann::json;

using Strings = std::vector<std::string>;
using Counts = std::vector<uint32_t>;
using Value = std::variant<uint32_t, float, bool, std::string, Strings, Counts, std::vector<float>>;
using Keys = std::map<std::string, Value>;
// Tensors of F32 by their dims as GGUF counts them, the last axis first.
using Tensors = std::vector<std::pair<std::string, std::vector<uint64_t>>>;

inline void put(GgufWriter& w, const std::string& name, const Value& value) {
  auto list = [&](GgufType type, const auto& items) {
    w.key(name, GgufType::Array).number(uint32_t(type)).number(uint64_t(items.size()));
    for (const auto& item : items)
      if constexpr (std::is_same_v<decltype(item), const std::string&>)
        w.text(item);
      else
        w.number(item);
  };
  if (auto* n = std::get_if<uint32_t>(&value)) w.key(name, GgufType::U32).number(*n);
  if (auto* x = std::get_if<float>(&value)) w.key(name, GgufType::F32).number(*x);
  if (auto* b = std::get_if<bool>(&value)) w.key(name, GgufType::Bool).number(uint8_t(*b));
  if (auto* s = std::get_if<std::string>(&value)) w.key(name, GgufType::String).text(*s);
  if (auto* l = std::get_if<Strings>(&value)) list(GgufType::String, *l);
  if (auto* l = std::get_if<Counts>(&value)) list(GgufType::U32, *l);
  if (auto* l = std::get_if<std::vector<float>>(&value)) list(GgufType::F32, *l);
}

// A model of 2 layers, 4 heads and a vocabulary of 10, with other keys and tensors.
class GgufModel {
 public:
  explicit GgufModel(std::string name) : name_(std::move(name)) {
    with("embedding_length", 64u).with("feed_forward_length", 96u).with("block_count", 2u);
    with("attention.head_count", 4u).with("context_length", 512u);
    with("attention.layer_norm_rms_epsilon", 1e-5f);
    keys_["general.architecture"] = name_;
  }
  GgufModel& with(const std::string& key, Value value) {
    keys_[key.starts_with("tokenizer.") ? key : name_ + "." + key] = std::move(value);
    return *this;
  }
  GgufModel& tensor(const std::string& name, std::vector<uint64_t> dims, float element = 0) {
    tensors_.emplace_back(name, std::move(dims));
    elements_.push_back(element);
    return *this;
  }
  std::vector<GgufFile> parts() const {
    GgufWriter w;
    w.begin(tensors_.size(), keys_.size());
    for (const auto& [key, value] : keys_) put(w, key, value);
    uint64_t offset = 0;
    std::string data;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      uint64_t count = 1;
      w.text(tensors_[i].first).number(uint32_t(tensors_[i].second.size()));
      for (uint64_t dim : tensors_[i].second) w.number(dim), count *= dim;
      w.number(uint32_t(0)).number(offset);
      offset += (count * 4 + 31) / 32 * 32;
      for (uint64_t k = 0; k < count; ++k)
        data.append(reinterpret_cast<const char*>(&elements_[i]), 4);
      data.resize(offset);
    }
    w.data(0);
    return {GgufFile::open(folder_->write("m.gguf", w.bytes() + data))};
  }
  json config() const { return json::parse(ggufConfig(parts())); }
  json tokenizer() const { return json::parse(ggufTokenizer(parts()[0])); }
  json tokenizerConfig() const { return json::parse(ggufTokenizerConfig(parts()[0])); }

 private:
  std::string name_;
  Keys keys_;
  Tensors tensors_{{"token_embd.weight", {64, 10}}};
  std::vector<float> elements_{0};
  std::shared_ptr<TemporaryFolder> folder_ = std::make_shared<TemporaryFolder>();
};

}  // namespace lathe::test
