// SPDX-License-Identifier: Apache-2.0
// Folders of weights in few bits, adapters and models in several files, with so few numbers that
// what they stand for can be read here.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/gguf.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::TemporaryFolder;

Array words(std::vector<uint32_t> values, const Shape& shape) {
  Array array(DType::I32, shape);
  for (size_t i = 0; i < values.size(); ++i) array.as<int32_t>()[i] = int32_t(values[i]);
  return array;
}
Array bytes(std::vector<int> values, const Shape& shape) {
  Array array(DType::I8, shape);
  for (size_t i = 0; i < values.size(); ++i) array.as<int8_t>()[i] = int8_t(values[i]);
  return array;
}

// The matrix m.weight of a folder.
std::vector<float> decoded(const TemporaryFolder& folder, const json& quantization) {
  folder.write("config.json", json{{"quantization_config", quantization}}.dump());
  const Array matrix = *Checkpoint::open(folder.path()).find("m.weight");
  const auto values = matrix.as<float>();
  return {values.begin(), values.end()};
}

TEST(WeightFolders, GptqIsSymmetricWhereAllGroupsAre) {
  const TemporaryFolder folder;
  // Version 1 stores zero points less 1: 128, the middle, and 10.
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x82828282, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                   {"m.qzeros", words({0x7f7f7f7f, 0x09090909}, {2, 1})},
                   {"m.scales", Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {2, 4})}});
  const std::vector<float> row{2, 2, 120, 120};
  std::vector<float> expected;
  for (int i = 0; i < 4; ++i) expected.insert(expected.end(), row.begin(), row.end());
  EXPECT_EQ(decoded(folder, {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 2}}), expected);
}

// Columns may come in any order; each group has as many as the config says.
TEST(WeightFolders, GroupsOfGptqHaveTheirSize) {
  const TemporaryFolder folder;
  auto write = [&](std::vector<uint32_t> groups) {
    saveSafetensors(folder / "model.safetensors",
                    {{"m.qweight", words({0x82828282, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                     {"m.qzeros", words({0x7f7f7f7f, 0x09090909}, {2, 1})},
                     {"m.g_idx", words(std::move(groups), {4})},
                     {"m.scales", Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {2, 4})}});
    return decoded(folder, {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 2}});
  };
  const std::vector<float> swapped = write({1, 0, 0, 1});
  EXPECT_EQ((std::vector<float>{swapped.begin(), swapped.begin() + 4}),
            (std::vector<float>{120, 2, 2, 120}));
  test::expectError(ErrorCode::InvalidFile, "group 1 has not 2 columns",
                    [&] { write({0, 0, 0, 1}); });
  test::expectError(ErrorCode::InvalidFile, "group 0 has not 2 columns",
                    [&] { write({1, 1, 1, 0}); });
  test::expectError(ErrorCode::InvalidFile, "element 2 is 2, expected 0 to 1",
                    [&] { write({0, 0, 2, 1}); });
}

TEST(WeightFolders, AwqMayHaveOneGroup) {
  const TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x55555555, 0x44444444}, {2, 1})},
                   {"m.qzeros", words({0x33333333}, {1, 1})},
                   {"m.scales", Array::fromFloats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8})}});
  std::vector<float> expected;
  for (int n = 1; n <= 8; ++n) expected.insert(expected.end(), {2.0f * float(n), float(n)});
  EXPECT_EQ(decoded(folder, {{"quant_method", "awq"}, {"bits", 4}, {"group_size", -1}}), expected);
}

TEST(WeightFolders, BytesHaveZeroPointsOfTheirRows) {
  const TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight", bytes({10, 20, 30, 40}, {2, 2})},
                   {"m.weight_scale", Array::fromFloats({1, 2}, {2, 1})},
                   {"m.weight_zero_point", bytes({5, -5}, {2, 1})}});
  const json weights{
      {"num_bits", 8}, {"type", "int"}, {"symmetric", false}, {"strategy", "channel"}};
  EXPECT_EQ(decoded(folder, {{"quant_method", "compressed-tensors"},
                             {"format", "int-quantized"},
                             {"config_groups", {{"group_0", {{"weights", weights}}}}}}),
            (std::vector<float>{5, 15, 70, 90}));
}

TEST(WeightFolders, SmallFloatsHaveNoLeadingOne) {
  const TemporaryFolder folder;
  const float scale = 512;
  std::string file = makeSafetensorsHeader(
      {{"m.weight_scale", "F32", DType::F32, {1}, 0, 4}, {"m.weight", "F8_E4M3", {}, {1, 4}, 0, 4}},
      {});
  file.append(reinterpret_cast<const char*>(&scale), sizeof scale);
  file += "\x01\x07\x08\x81";
  folder.write("model.safetensors", file);
  EXPECT_EQ(decoded(folder, {{"quant_method", "fp8"}}), (std::vector<float>{1, 7, 8, -1}));
}

TEST(WeightFolders, PatternsOfAnAdapterBeginAtADot) {
  const TemporaryFolder model, adapter;
  const Array matrix = Array::fromFloats({1, 2, 3, 4}, {2, 2});
  saveSafetensors(model / "model.safetensors",
                  {{"a.v_proj.weight", matrix}, {"a.kv_proj.weight", matrix}});
  std::map<std::string, Array> tensors;
  for (const char* module : {"v_proj", "kv_proj"}) {
    const std::string path = "base_model.model.a." + std::string(module) + ".lora_";
    tensors[path + "A.weight"] = Array::fromFloats({1, 1}, {1, 2});
    tensors[path + "B.weight"] = Array::fromFloats({1, 1}, {2, 1});
  }
  saveSafetensors(adapter / "adapter_model.safetensors", tensors);
  adapter.write(
      "adapter_config.json",
      json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 1}, {"alpha_pattern", {{"v_proj", 5}}}}
          .dump());
  const Checkpoint checkpoint = Checkpoint::open(model.path(), {adapter.path()});
  ASSERT_EQ(checkpoint.updates().size(), 2u);
  for (const LoraUpdate& update : checkpoint.updates())
    EXPECT_EQ(update.scale, update.weight == "a.v_proj.weight" ? 5 : 1) << update.weight;
}

TEST(WeightFolders, PartsOfAGgufModelAreOne) {
  const TemporaryFolder folder;
  auto write = [&](int part, std::string_view tensor) {
    std::string file = "GGUF";
    auto number = [&file](auto value) {
      file.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    auto text = [&](std::string_view value) {
      number(uint64_t(value.size()));
      file += value;
    };
    auto key = [&](std::string_view name, uint16_t value) {
      text(name);
      number(uint32_t(GgufType::U16));
      number(value);
    };
    number(uint32_t(3));
    number(uint64_t(1));
    number(uint64_t(3));
    text("general.architecture");
    number(uint32_t(GgufType::String));
    text("llama");
    key("split.no", uint16_t(part));
    key("split.count", 3);
    text(tensor);
    number(uint32_t(1));
    number(uint64_t(4));
    number(uint32_t(0));  // F32
    number(uint64_t(0));
    file.resize((file.size() + 31) / 32 * 32);
    for (int i = 0; i < 4; ++i) number(float(10 * part + i));
    return folder.write("m-0000" + std::to_string(part + 1) + "-of-00003.gguf", file);
  };
  const std::string first = write(0, "output_norm.weight");
  write(1, "blk.0.attn_norm.weight");
  write(2, "blk.0.ffn_norm.weight");
  const Checkpoint checkpoint = Checkpoint::open(first);
  EXPECT_EQ(checkpoint.names(),
            (std::vector<std::string>{"model.layers.0.input_layernorm.weight",
                                      "model.layers.0.post_attention_layernorm.weight",
                                      "model.norm.weight"}));
  EXPECT_EQ(checkpoint.find("model.layers.0.post_attention_layernorm.weight")->at(3), 23);
}

}  // namespace
}  // namespace lathe
