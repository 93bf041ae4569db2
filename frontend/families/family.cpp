// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/family.h"

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "frontend/families/builders.h"
#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

std::vector<Family>& registry() {
  using enum ModelTask;
  static std::vector<Family> all = {
      {"LlamaForCausalLM", "llama", Generate, builders::llama},
      {"MistralForCausalLM", "mistral", Generate, builders::mistral},
      {"Qwen2ForCausalLM", "qwen2", Generate, builders::qwen2},
      {"Qwen3ForCausalLM", "qwen3", Generate, builders::qwen3},
      {"GemmaForCausalLM", "gemma", Generate, builders::gemma},
      {"Gemma2ForCausalLM", "gemma2", Generate, builders::gemma2},
      {"Gemma3ForCausalLM", "gemma3_text", Generate, builders::gemma3},
      {"Phi3ForCausalLM", "phi3", Generate, builders::phi3},
      {"GPT2LMHeadModel", "gpt2", Generate, builders::gpt2},
      {"GPTNeoXForCausalLM", "gpt_neox", Generate, builders::gptNeoX},
      {"Olmo2ForCausalLM", "olmo2", Generate, builders::olmo2},
      {"GraniteForCausalLM", "granite", Generate, builders::granite},
      {"MixtralForCausalLM", "mixtral", Generate, builders::mixtral},
      {"Qwen3MoeForCausalLM", "qwen3_moe", Generate, builders::qwen3Moe},
      {"Qwen2MoeForCausalLM", "qwen2_moe", Generate, builders::qwen2Moe},
      {"PhiForCausalLM", "phi", Generate, builders::phi},
      {"OPTForCausalLM", "opt", Generate, builders::opt},
      {"GPTJForCausalLM", "gptj", Generate, builders::gptJ},
      {"FalconForCausalLM", "falcon", Generate, builders::falcon},
      {"Starcoder2ForCausalLM", "starcoder2", Generate, builders::starcoder2},
      {"SmolLM3ForCausalLM", "smollm3", Generate, builders::smolLm3},
      {"CohereForCausalLM", "cohere", Generate, builders::cohere},
      {"StableLmForCausalLM", "stablelm", Generate, builders::stableLm},
      {"BloomForCausalLM", "bloom", Generate, builders::bloom},
      {"BertModel", "bert", Embed, builders::bert},
      {"BertForMaskedLM", "bert", Other, builders::bertMaskedLm},
      {"RobertaModel", "roberta", Embed, builders::roberta},
      {"RobertaForMaskedLM", "roberta", Other, builders::robertaMaskedLm},
      {"XLMRobertaModel", "xlm-roberta", Embed, builders::roberta},
      {"XLMRobertaForMaskedLM", "xlm-roberta", Other, builders::robertaMaskedLm},
      {"T5ForConditionalGeneration", "t5", Rewrite, builders::t5},
      {"MT5ForConditionalGeneration", "mt5", Rewrite, builders::mt5},
      {"BartForConditionalGeneration", "bart", Rewrite, builders::bart},
      {"MarianMTModel", "marian", Rewrite, builders::marian},
      {"WhisperForConditionalGeneration", "whisper", Rewrite, builders::whisper},
      {"DistilBertModel", "distilbert", Embed, builders::distilBert},
      {"DistilBertForMaskedLM", "distilbert", Other, builders::distilBertMaskedLm},
      {"DistilBertForSequenceClassification", "distilbert", Other, builders::distilBertClassifier},
      {"CLIPModel", "clip", Other, builders::clip},
      {"CLIPTextModel", "clip_text_model", Other, builders::clipText},
      {"CLIPVisionModel", "clip_vision_model", Other, builders::clipVision},
      {"DiTTransformer2DModel", "", Other, builders::dit},
      {"Transformer2DModel", "", Other, builders::dit},
      {"ViTModel", "vit", Other, builders::vit},
      {"ViTForImageClassification", "vit", Other, builders::vitClassifier},
  };
  return all;
}

std::string architecturesText() {
  std::string text;
  for (const Family& family : registry()) text += (text.empty() ? "" : ", ") + family.architecture;
  return text;
}

// Of several of one name the latest.
const Family* findFamily(std::string_view name) {
  for (const Family& family : std::views::reverse(registry()))
    if (family.architecture == name) return &family;
  return nullptr;
}

const Family& familyNamed(const JsonValue& name) {
  std::string_view stem = name.asString();
  if (const Family* family = findFamily(stem)) return *family;
  if (stem.ends_with("Model")) {
    stem.remove_suffix(5);
    for (const char* head : {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel"})
      if (const Family* family = findFamily(std::string(stem) + head)) return *family;
  }
  throw name.error("expected an architecture of " + architecturesText() + ", got " + name.show(),
                   ErrorCode::Unsupported);
}

}  // namespace

std::string builders::messageOf(const Error& e) {
  const std::string place = e.file() + ":" + std::to_string(e.line()) + ": ";
  const std::string_view message = e.what();
  return std::string(
      message.substr(!e.file().empty() && message.starts_with(place) ? place.size() : 0));
}

const std::vector<Family>& families() { return registry(); }

void registerFamily(Family family) {
  if (family.architecture.empty() || !family.build)
    throw Error(ErrorCode::InvalidArgument,
                "registerFamily: expected an architecture and a function that builds it");
  registry().push_back(std::move(family));
}

const Family& familyOf(const JsonValue& config) {
  if (!config.isObject()) throw config.error("expected an object, got " + config.show());
  // diffusers has one name where transformers has a list.
  if (auto name = config.find("_class_name")) return familyNamed(*name);
  auto architectures = config.find("architectures");
  auto type = config.find("model_type");
  if (!architectures && !type)
    throw config.error("neither \"architectures\" nor \"model_type\" says what model this is");
  if (architectures) {
    if (!architectures->isArray() || architectures->size() != 1)
      throw architectures->error(
          "expected one architecture of " + architecturesText() + ", got " + architectures->show(),
          ErrorCode::Unsupported);
    return familyNamed(architectures->at(0));
  }
  for (const Family& family : registry())
    if (family.modelType == type->asString()) return family;
  throw type->error(
      "expected the type of an architecture of " + architecturesText() + ", got " + type->show(),
      ErrorCode::Unsupported);
}

Graph buildFromConfig(const JsonValue& config, const FamilyOptions& options) {
  const Family& family = familyOf(config);
  if (auto type = config.find("model_type"); type && type->asString() != family.modelType)
    throw type->error("expected \"" + family.modelType + "\" for " + family.architecture +
                          ", got " + type->show(),
                      ErrorCode::Unsupported);
  if (options.cacheBlock != 0 &&
      (family.task == ModelTask::Embed || family.task == ModelTask::Other))
    throw Error(ErrorCode::Unsupported,
                config.file() + ": " + family.architecture +
                    ": cacheBlock: caches in blocks are of decoders, this model has no cache; "
                    "leave it at 0");
  ConfigReader reader(config);
  if (options.readsQuantized) reader.ignore({"quantization_config"});
  try {
    Graph graph = family.build(reader, options);
    reader.finish(family.architecture);
    return graph;
  } catch (const Error& e) {
    if (e.file().empty()) throw;
    throw Error(e.code(),
                config.file() + ": " + family.architecture + ": " + builders::messageOf(e));
  }
}

JsonValue loadConfig(const std::string& path) {
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(path, ignored);
  return JsonValue::load(isFolder ? (std::filesystem::path(path) / "config.json").string() : path,
                         kConfigFile);
}

}  // namespace lathe
