// SPDX-License-Identifier: Apache-2.0
// Folders of weights in few bits, adapters and models in several files, with so few numbers that
// what they stand for can be read here.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/gguf.h"
#include "lathe/runtime/safetensors.h"
#include "runtime/lora.h"
#include "runtime/quantized_folder.h"
#include "tests/unit/gguf_writer.h"
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
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const Array matrix = *checkpoint.find("m.weight");
  EXPECT_EQ(checkpoint.entry("m.weight")->shape, matrix.shape());
  EXPECT_EQ(checkpoint.entry("m.weight")->dtype, matrix.dtype());
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
  EXPECT_TRUE(Checkpoint::open(folder.path()).entry("m.weight")->blocks->zero) << "10 is no middle";
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x82828282, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                   {"m.qzeros", words({0x7f7f7f7f, 0x7f7f7f7f}, {2, 1})},
                   {"m.scales", Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {2, 4})}});
  EXPECT_FALSE(Checkpoint::open(folder.path()).entry("m.weight")->blocks->zero);
}

// Version 1 stores zero points less 1: the largest of 4 bits stands for 0. Version 2, which writers
// name under either key, stores them as they are.
TEST(WeightFolders, ZeroPointsOfGptqWrapAround) {
  const TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words(std::vector<uint32_t>(8, 0x33333333), {1, 8})},
                   {"m.qzeros", words({0xffffffff}, {1, 1})},
                   {"m.scales", Array::fromFloats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8})}});
  std::vector<float> expected;
  for (int n = 1; n <= 8; ++n) expected.insert(expected.end(), 8, 3.0f * float(n));
  json config{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}};
  EXPECT_EQ(decoded(folder, config), expected);
  for (float& value : expected) value *= (3.0f - 15.0f) / 3.0f;
  for (const char* key : {"checkpoint_format", "format"}) {
    config[key] = "gptq_v2";
    EXPECT_EQ(decoded(folder, config), expected) << key;
    config.erase(key);
  }
}

// Scales of several blocks stay in the dtype that they are stored in, or a wider one.
TEST(WeightFolders, ScalesOfBlocksAreNotRounded) {
  const TemporaryFolder folder;
  const std::vector<float> scales = {1.001f, 2.003f, 3.007f, 4.011f, 0.1f, 0.2f, 0.3f, 0.7f};
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x82828282, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                   {"m.qzeros", words({0x7f7f7f7f, 0x09090909}, {2, 1})},
                   {"m.scales", Array::fromFloats(scales, {2, 4})}});
  std::vector<float> expected;
  for (size_t n = 0; n < 4; ++n)
    for (int k = 0; k < 4; ++k)
      expected.push_back((k < 2 ? 2.0f : 120.0f) * scales[(k < 2 ? 0 : 4) + n]);
  EXPECT_EQ(decoded(folder, {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 2}}), expected);
}

// Those of bf16 stay so: they are turned, not widened.
TEST(WeightFolders, NarrowScalesOfBlocksStayNarrow) {
  const TemporaryFolder folder;
  Array scales(DType::BF16, {2, 4});
  const std::vector<float> numbers = {1, 2, 3, 4, 0.125f, 0.25f, 0.5f, 0.75f};
  for (size_t i = 0; i < numbers.size(); ++i) scales.set(int64_t(i), numbers[i]);
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x82828282, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                   {"m.qzeros", words({0x7f7f7f7f, 0x09090909}, {2, 1})},
                   {"m.scales", scales}});
  std::vector<float> expected;
  for (size_t n = 0; n < 4; ++n)
    for (int k = 0; k < 4; ++k)
      expected.push_back((k < 2 ? 2.0f : 120.0f) * numbers[(k < 2 ? 0 : 4) + n]);
  EXPECT_EQ(decoded(folder, {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 2}}), expected);
  EXPECT_EQ(Checkpoint::open(folder.path()).entry("m.weight")->blocks->scale, DType::BF16);
}

// Without zero points the middle of the range stands for 0, and there is no tensor of them.
TEST(WeightFolders, AwqMayBeSymmetric) {
  const TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x76543210, 0xfedcba98}, {2, 1})},
                   {"m.scales", Array::fromFloats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8})}});
  // The bits of output n lie at place 0, 4, 1, 5, 2, 6, 3, 7.
  const int place[] = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<float> expected;
  for (int n = 0; n < 8; ++n)
    for (int k = 0; k < 2; ++k) expected.push_back(float((place[n] + 8 * k - 8) * (n + 1)));
  EXPECT_EQ(
      decoded(folder,
              {{"quant_method", "awq"}, {"bits", 4}, {"group_size", -1}, {"zero_point", false}}),
      expected);
}

// The names that AutoAWQ's own files have.
TEST(WeightFolders, KeysOfAwqHaveTwoNames) {
  const TemporaryFolder folder;
  saveSafetensors(
      folder / "model.safetensors",
      {{"m.qweight", words({0x99999999, 0x99999999, 0x99999999, 0x99999999}, {4, 1})},
       {"m.scales", Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}, {2, 8})}});
  std::vector<float> expected;
  for (int n = 0; n < 8; ++n) expected.insert(expected.end(), {1, 1, 2, 2});
  for (const auto& [bits, group] :
       {std::pair("bits", "group_size"), {"w_bit", "q_group_size"}, {"bits", "q_group_size"}})
    EXPECT_EQ(
        decoded(folder, {{"quant_method", "awq"}, {bits, 4}, {group, 2}, {"zero_point", false}}),
        expected)
        << bits << " " << group;
}

// Eight outputs are a word, and the words of an input stand side by side.
TEST(WeightFolders, AwqsOutputsMayBeManyWords) {
  const TemporaryFolder folder;
  std::vector<uint32_t> values;
  for (uint32_t word = 0; word < 6; ++word) values.push_back(word * 0x11111111u);
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words(values, {2, 3})},
                   {"m.scales", Array::fromFloats(std::vector<float>(24, 1), {1, 24})}});
  std::vector<float> expected;
  for (int n = 0; n < 24; ++n)
    for (int k = 0; k < 2; ++k) expected.push_back(float(3 * k + n / 8 - 8));
  EXPECT_EQ(
      decoded(folder,
              {{"quant_method", "awq"}, {"bits", 4}, {"group_size", -1}, {"zero_point", false}}),
      expected);
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

// Inputs that are no multiple of a group end in a shorter one, which has a scale and zero points of
// its own; columns in another order, too.
TEST(WeightFolders, TheLastGroupOfGptqMayBeShorter) {
  const TemporaryFolder folder;
  auto write = [&](bool isOrdered) {
    std::map<std::string, Array> tensors{
        {"m.qweight", words({0x84848484, 0x84848484, 0x84848484, 0x84848484, 0x84848484, 0x84848484,
                             0x84848484, 0x84848484},
                            {2, 4})},
        {"m.qzeros", words({0x00000000, 0x01010101, 0x02020202}, {3, 1})},
        {"m.scales", Array::fromFloats({1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4}, {3, 4})}};
    if (isOrdered) tensors.emplace("m.g_idx", words({0, 1, 0, 1, 2, 0, 1, 2}, {8}));
    saveSafetensors(folder / "model.safetensors", tensors);
    return decoded(folder, {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 3}});
  };
  // (q - zero - 1) times the scale, of bytes 0x84.
  const float first = 131, second = 2 * 130, last = 4 * 129;
  for (auto [isOrdered, row] : {std::pair(false, std::vector<float>{first, first, first, second,
                                                                    second, second, last, last}),
                                std::pair(true, std::vector<float>{first, second, first, second,
                                                                   last, first, second, last})}) {
    std::vector<float> expected;
    for (int n = 0; n < 4; ++n) expected.insert(expected.end(), row.begin(), row.end());
    EXPECT_EQ(write(isOrdered), expected) << isOrdered;
  }
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

// A group of -1 is all inputs, also where they are more than the 128 of a group that is not said.
TEST(WeightFolders, AwqsOneGroupIsAsLongAsARow) {
  const TemporaryFolder folder;
  auto write = [&](int64_t groups) {
    std::vector<float> scales;
    for (int64_t i = 0; i < groups * 8; ++i) scales.push_back(float(1 + i / 8));
    saveSafetensors(
        folder / "model.safetensors",
        {{"m.qweight", words(std::vector<uint32_t>(256, 0x55555555), {256, 1})},
         {"m.qzeros", words(std::vector<uint32_t>(size_t(groups), 0x33333333), {groups, 1})},
         {"m.scales", Array::fromFloats(scales, {groups, 8})}});
  };
  write(1);
  EXPECT_EQ(decoded(folder, {{"quant_method", "awq"}, {"bits", 4}, {"group_size", -1}}),
            std::vector<float>(8 * 256, 2));
  write(2);
  for (const json& size : {json(nullptr), json(128)}) {
    json config{{"quant_method", "awq"}, {"bits", 4}};
    if (!size.is_null()) config["group_size"] = size;
    std::vector<float> expected;
    for (int n = 0; n < 8; ++n)
      for (int k = 0; k < 256; ++k) expected.push_back(k < 128 ? 2 : 4);
    EXPECT_EQ(decoded(folder, config), expected) << size;
  }
}

TEST(WeightFolders, BytesHaveZeroPointsOfTheirRows) {
  const TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight", bytes({10, 20, 30, 40}, {2, 2})},
                   {"m.weight_scale", Array::fromFloats({1, 2}, {2, 1})},
                   {"m.weight_zero_point", bytes({5, -5}, {2, 1})}});
  const json weights{
      {"num_bits", 8}, {"type", "int"}, {"symmetric", false}, {"strategy", "channel"}};
  json config{{"quant_method", "compressed-tensors"},
              {"format", "int-quantized"},
              {"quantization_status", "frozen"},
              {"config_groups", {{"group_0", {{"weights", weights}}}}}};
  EXPECT_EQ(decoded(folder, config), (std::vector<float>{5, 15, 70, 90}));
  // Numbers that were not found yet, and formats that lie otherwise, are refused.
  for (const auto& [key, value, told] :
       {std::tuple("quantization_status", "initialized", "expected compressed or frozen"),
        {"format", "marlin-24", "expected pack-quantized or int-quantized"}}) {
    json other = config;
    other[key] = value;
    test::expectError(ErrorCode::Unsupported, std::string(key) + ": " + told,
                      [&] { decoded(folder, other); });
  }
}

// What rounds activations has no place here: it is read by nobody and missed by nobody.
TEST(WeightFolders, ScalesOfActivationsAreLeftOut) {
  const TemporaryFolder folder;
  const Array one = Array::fromFloats({1}, {1});
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight", bytes({10, 20, 30, 40}, {2, 2})},
                   {"m.weight_scale", Array::fromFloats({1, 2}, {2, 1})},
                   {"m.input_scale", one},
                   {"m.input_zero_point", bytes({3}, {1})}});
  const json weights{{"num_bits", 8}, {"type", "int"}};
  EXPECT_EQ(decoded(folder, {{"quant_method", "compressed-tensors"},
                             {"config_groups", {{"group_0", {{"weights", weights}}}}}}),
            (std::vector<float>{10, 20, 60, 80}));
  EXPECT_EQ(Checkpoint::open(folder.path()).names(), std::vector<std::string>{"m.weight"});
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

// One scale serves a matrix, one a row with or without an axis of its own; the scale of what goes
// in is read by nobody.
TEST(WeightFolders, BytesHaveScalesOfTheirRows) {
  const TemporaryFolder folder;
  const json config{{"quant_method", "compressed-tensors"},
                    {"config_groups", {{"g", {{"weights", {{"num_bits", 8}, {"type", "int"}}}}}}}};
  for (const auto& [scales, expected] : std::vector<std::pair<Array, std::vector<float>>>{
           {Array::fromFloats({2}, {1}), {2, 4, 6, 8}},
           {Array::fromFloats({2, 3}, {2}), {2, 4, 9, 12}},
           {Array::fromFloats({2, 3}, {2, 1}), {2, 4, 9, 12}}}) {
    saveSafetensors(folder / "model.safetensors",
                    {{"m.weight", bytes({1, 2, 3, 4}, {2, 2})}, {"m.weight_scale", scales}});
    EXPECT_EQ(decoded(folder, config), expected);
  }
  const float one = 1;
  std::string file = makeSafetensorsHeader({{"m.input_scale", "F32", DType::F32, {1}, 0, 4},
                                            {"m.weight_scale", "F32", DType::F32, {1}, 0, 4},
                                            {"m.weight", "F8_E4M3", {}, {1, 1}, 0, 1}},
                                           {});
  for (int i = 0; i < 2; ++i) file.append(reinterpret_cast<const char*>(&one), sizeof one);
  folder.write("model.safetensors", file + "\x38");
  EXPECT_EQ(decoded(folder, {{"quant_method", "fp8"}}), std::vector<float>{1});
  EXPECT_EQ(Checkpoint::open(folder.path()).names(), std::vector<std::string>{"m.weight"});
}

// A layer that fits, with one thing changed.
struct BadLayer {
  const char* message;
  std::map<std::string, Array> tensors;  // that take the place of those that fit; none: left out
  json config;
  ErrorCode code = ErrorCode::InvalidFile;
};

void expectRefused(const std::map<std::string, Array>& fits, const json& config,
                   const std::vector<BadLayer>& mistakes) {
  const TemporaryFolder folder;
  auto open = [&](const std::map<std::string, Array>& tensors, const json& settings) {
    saveSafetensors(folder / "model.safetensors", tensors);
    folder.write("config.json", json{{"quantization_config", settings}}.dump());
    return Checkpoint::open(folder.path()).find("m.weight");
  };
  EXPECT_TRUE(open(fits, config)->defined());
  for (const BadLayer& bad : mistakes) {
    SCOPED_TRACE(bad.message);
    std::map<std::string, Array> tensors = fits;
    for (const auto& [name, array] : bad.tensors) {
      tensors.erase(name);
      if (array.defined()) tensors.emplace(name, array);
    }
    json settings = config;
    if (!bad.config.is_null()) settings.merge_patch(bad.config);
    test::expectError(bad.code, bad.message, [&] { open(tensors, settings); });
  }
}

// A layer in 4 bits, its settings, and the scales of it.
struct GptqLayer {
  std::map<std::string, Array> tensors;
  json config;
  Array ones = Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {1, 8});
};
GptqLayer layerOfGptq() {
  GptqLayer layer;
  layer.tensors = {{"m.qweight", words(std::vector<uint32_t>(8, 0x33333333), {1, 8})},
                   {"m.qzeros", words({0x77777777}, {1, 1})},
                   {"m.scales", layer.ones}};
  layer.config = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}};
  return layer;
}

TEST(WeightFolders, LayersOfGptqThatDoNotFitAreRefused) {
  const auto [kept, config, ones] = layerOfGptq();
  expectRefused(
      kept, config,
      {{"bits: expected 4 or 8, got 3", {}, {{"bits", 3}}, ErrorCode::Unsupported},
       {"pack_dtype: expected int32, got \"int64\"",
        {},
        {{"pack_dtype", "int64"}},
        ErrorCode::Unsupported},
       {"checkpoint_format: expected gptq or gptq_v2, got \"marlin\"",
        {},
        {{"checkpoint_format", "marlin"}},
        ErrorCode::Unsupported},
       {"m.qweight: expected a matrix of words", {{"m.qweight", words({1, 2}, {2})}}, {}},
       {"m.qweight: 7 outputs are no multiple of 8",
        {{"m.qweight", words(std::vector<uint32_t>(7, 1), {1, 7})}},
        {}},
       {"m.qweight: 8 outputs are no multiple of 8", {{"m.qweight", words({}, {0, 8})}}, {}},
       {"m.qweight: expected i32, got F32[1, 8]", {{"m.qweight", ones}}, {}},
       {"m.scales: expected f16 or bf16 or f32[1, 8], got F32[2, 8]",
        {{"m.scales", Array::fromFloats(std::vector<float>(16, 1), {2, 8})}},
        {}},
       {"m.scales: expected f16 or bf16 or f32[1, 8], got I32[1, 8]",
        {{"m.scales", words(std::vector<uint32_t>(8, 1), {1, 8})}},
        {}},
       {"m.qzeros: expected i32[1, 1], got I32[1, 2]", {{"m.qzeros", words({1, 2}, {1, 2})}}, {}},
       {"m.qzeros: the tensor is missing", {{"m.qzeros", Array()}}, {}},
       {"m.weight: there are a matrix and its quantized form", {{"m.weight", ones}}, {}}});
}

// Its integers and scales have names of their own, which no stored tensor may have, too.
TEST(WeightFolders, NamesOfPartsAreTakenByNothingElse) {
  const auto [kept, config, ones] = layerOfGptq();
  expectRefused(
      kept, config,
      {{"the name \"m.weight.q\" is taken by a part of m.weight", {{"m.weight.q", ones}}, {}},
       {"the name \"m.weight.scale\" is taken by a part of m.weight",
        {{"m.weight.scale", ones}},
        {}}});
}

// What writers note of how the numbers were found, and for whom, changes none of them.
TEST(WeightFolders, NotesOfWritersChangeNoNumbers) {
  const TemporaryFolder folder;
  auto with = [](json config, const std::vector<std::string>& notes) {
    for (const std::string& note : notes) config[note] = "x";
    return config;
  };
  const Array eight = Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {1, 8});
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words(std::vector<uint32_t>(8, 0x99999999), {1, 8})},
                   {"m.qzeros", words({0x77777777}, {1, 1})},
                   {"m.scales", eight}});
  EXPECT_EQ(decoded(folder, with({{"quant_method", "gptq"}, {"bits", 4}, {"pack_dtype", "int32"}},
                                 {quantized::kGptqNotes.begin(), quantized::kGptqNotes.end()})),
            std::vector<float>(64, 1));
  saveSafetensors(folder / "model.safetensors",
                  {{"m.qweight", words({0x99999999, 0x99999999}, {2, 1})},
                   {"m.qzeros", words({0x88888888}, {1, 1})},
                   {"m.scales", eight}});
  EXPECT_EQ(
      decoded(folder, with({{"quant_method", "awq"}, {"w_bit", 4}, {"version", "gemm"}},
                           {"modules_to_not_convert", "backend", "do_fuse", "fuse_max_seq_len",
                            "modules_to_fuse", "exllama_config", "desc_act", "sym"})),
      std::vector<float>(16, 1));
  saveSafetensors(folder / "model.safetensors", {{"m.weight", bytes({1, 2}, {1, 2})},
                                                 {"m.weight_scale", Array::fromFloats({1}, {1})}});
  const json weights =
      with({{"num_bits", 8}, {"type", "int"}, {"strategy", "tensor"}},
           {"symmetric", "observer", "observer_kwargs", "actorder", "scale_dtype", "zp_dtype"});
  for (const char* format :
       {"int-quantized", "naive-quantized", "mixed-precision", "float-quantized", "pack-quantized"})
    EXPECT_EQ(decoded(folder, with({{"quant_method", "compressed-tensors"},
                                    {"format", format},
                                    {"sparsity_config", {{"format", "dense"}}},
                                    {"config_groups",
                                     {{"g",
                                       {{"weights", weights},
                                        {"format", format},
                                        {"targets", {"Linear"}},
                                        {"input_activations", {{"num_bits", 8}}}}}}}},
                                   {"ignore", "global_compression_ratio", "version"})),
              (std::vector<float>{1, 2}));
  std::string file = makeSafetensorsHeader(
      {{"m.weight_scale", "F32", DType::F32, {1}, 0, 4}, {"m.weight", "F8_E4M3", {}, {1, 1}, 0, 1}},
      {});
  const float scale = 3;
  file.append(reinterpret_cast<const char*>(&scale), sizeof scale);
  folder.write("model.safetensors", file + "\x38");
  EXPECT_EQ(decoded(folder, with({{"quant_method", "fp8"}, {"fmt", "e4m3"}},
                                 {"activation_scheme", "scale_fmt", "modules_to_not_convert",
                                  "ignored_layers", "activation_scale_ub"})),
            std::vector<float>{3});
}

TEST(WeightFolders, LayersOfAwqThatDoNotFitAreRefused) {
  expectRefused(
      {{"m.qweight", words({0x55555555, 0x44444444}, {2, 1})},
       {"m.qzeros", words({0x33333333}, {1, 1})},
       {"m.scales", Array::fromFloats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8})}},
      {{"quant_method", "awq"}, {"bits", 4}, {"group_size", -1}},
      {{"bits: expected 4, got 8", {}, {{"bits", 8}}, ErrorCode::Unsupported},
       {"w_bit: expected 4, got 8", {}, {{"w_bit", 8}}, ErrorCode::Unsupported},
       {"the key \"bits\" is missing", {}, {{"bits", nullptr}}},
       {"version: expected gemm or GEMM, got \"gemv\"",
        {},
        {{"version", "gemv"}},
        ErrorCode::Unsupported},
       {"format: expected gemm or GEMM, got \"gemv\"",
        {},
        {{"format", "gemv"}},
        ErrorCode::Unsupported},
       {"m.qweight: expected a matrix of words", {{"m.qweight", words({1, 2}, {2})}}, {}},
       {"m.qweight: expected a matrix of words", {{"m.qweight", words({}, {0, 1})}}, {}},
       {"m.qweight: expected an even number of inputs",
        {{"m.qweight", words({1, 2, 3}, {3, 1})}},
        {}},
       {"m.qzeros: expected i32[1, 1], got I32[2, 1]", {{"m.qzeros", words({1, 2}, {2, 1})}}, {}},
       {"m.scales: the tensor is missing", {{"m.scales", Array()}}, {}}});
}

TEST(WeightFolders, BytesWithScalesThatDoNotFitAreRefused) {
  const json weights{{"num_bits", 8}, {"type", "int"}};
  auto of = [](const json& more) {
    return json{{"config_groups", {{"group_0", {{"weights", more}}}}}};
  };
  expectRefused(
      {{"m.weight", bytes({10, 20, 30, 40}, {2, 2})},
       {"m.weight_scale", Array::fromFloats({1, 2}, {2, 1})}},
      {{"quant_method", "compressed-tensors"}, {"config_groups", {{"g", {{"weights", weights}}}}}},
      {{"num_bits: expected int of 4 or 8 bits or float of 8, got 3",
        {},
        of({{"num_bits", 3}, {"type", "int"}}),
        ErrorCode::Unsupported},
       {"num_bits: expected int of 4 or 8 bits or float of 8, got 4",
        {},
        of({{"num_bits", 4}, {"type", "float"}}),
        ErrorCode::Unsupported},
       {"novel", {}, of({{"num_bits", 8}, {"type", "int"}, {"novel", 1}}), ErrorCode::Unsupported},
       {"novel",
        {},
        {{"config_groups", {{"g", {{"weights", weights}, {"novel", 1}}}}}},
        ErrorCode::Unsupported},
       {"novel", {}, {{"novel", 1}}, ErrorCode::Unsupported},
       {"type: expected int or float, got \"bool\"",
        {},
        of({{"num_bits", 8}, {"type", "bool"}}),
        ErrorCode::Unsupported},
       {"block_structure: expected the rows and columns of a tile, got an array",
        {},
        of({{"num_bits", 8}, {"type", "float"}, {"block_structure", {128}}})},
       {"block_structure: expected the rows and columns of a tile, got \"2x2\"",
        {},
        of({{"num_bits", 8}, {"type", "float"}, {"block_structure", "2x2"}})},
       {"config_groups: expected at least one group, got an object",
        {},
        {{"config_groups", {{"g", nullptr}}}}},
       {"config_groups: expected at least one group, got 3", {}, {{"config_groups", 3}}},
       {"sparsity_config.format: expected dense, got \"24\"",
        {},
        {{"sparsity_config", {{"format", "24"}}}},
        ErrorCode::Unsupported},
       {"m.weight: expected a matrix", {{"m.weight", bytes({1, 2}, {2})}}, {}},
       {"m.weight: expected a matrix", {{"m.weight", bytes({}, {2, 0})}}, {}},
       {"m.weight: expected a matrix", {{"m.weight", bytes({}, {0, 2})}}, {}},
       {"m.weight: the tensor is missing", {{"m.weight", Array()}}, {}},
       {"m.weight_scale: expected one scale, one for each of 2 rows, or one for each group of a "
        "row, got [1, 2]",
        {{"m.weight_scale", Array::fromFloats({1, 2}, {1, 2})}},
        {}}});
}

TEST(WeightFolders, LayersInWordsThatDoNotFitAreRefused) {
  Array shape(DType::I64, {2}), odd(DType::I64, {2});
  shape.set(0, 2), shape.set(1, 8);
  odd.set(0, 2), odd.set(1, 7);
  const json weights{{"num_bits", 4}, {"type", "int"}, {"group_size", 4}};
  expectRefused(
      {{"m.weight_packed", words({0x88888888, 0x99999999}, {2, 1})},
       {"m.weight_shape", shape},
       {"m.weight_scale", Array::fromFloats({1, 2, 3, 4}, {2, 2})}},
      {{"quant_method", "compressed-tensors"},
       {"format", "pack-quantized"},
       {"config_groups", {{"g", {{"weights", weights}}}}}},
      {{"m.weight_packed: [2, 1] words do not hold 2 x 7 numbers of the bits of a group",
        {{"m.weight_shape", odd}},
        {}},
       {"m.weight_packed: [1, 1] words do not hold 2 x 8 numbers of the bits of a group",
        {{"m.weight_packed", words({1}, {1, 1})}},
        {}},
       {"m.weight_scale: expected one scale, one for each of 2 rows, or one for each group of a "
        "row, got [2, 4]",
        {{"m.weight_scale", Array::fromFloats(std::vector<float>(8, 1), {2, 4})}},
        {}},
       {"m.weight_zero_point: expected i32[1, 2], got I32[2, 2]",
        {{"m.weight_zero_point", words({1, 2, 3, 4}, {2, 2})}},
        {}},
       {"m.weight_g_idx: expected i32 or i64[8], got I32[4]",
        {{"m.weight_g_idx", words({0, 0, 1, 1}, {4})}},
        {}},
       {"m.weight_shape: the tensor is missing", {{"m.weight_shape", Array()}}, {}}});
}

// Columns in the order of their groups, 4 of each: what is stored first belongs to group 1.
TEST(WeightFolders, ColumnsInWordsMayHaveAnOrder) {
  const TemporaryFolder folder;
  Array shape(DType::I64, {2});
  shape.set(0, 1), shape.set(1, 8);
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight_packed", words({0xfedcba98}, {1, 1})},
                   {"m.weight_shape", shape},
                   {"m.weight_g_idx", words({1, 0, 1, 0, 1, 0, 1, 0}, {8})},
                   {"m.weight_scale", Array::fromFloats({1, 10}, {1, 2})}});
  const json weights{{"num_bits", 4}, {"type", "int"}, {"group_size", 4}};
  EXPECT_EQ(decoded(folder, {{"quant_method", "compressed-tensors"},
                             {"config_groups", {{"g", {{"weights", weights}}}}}}),
            (std::vector<float>{0, 1, 20, 3, 40, 5, 60, 7}));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const auto blocks = checkpoint.entry("m.weight")->blocks;
  EXPECT_TRUE(blocks->ordered);
  // Which column is stored at each place is a part like the numbers.
  const CheckpointTensor* order = checkpoint.entry("m.weight.order");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->dtype, DType::I64);
  EXPECT_EQ(order->shape, Shape{8});
  const Array places = *checkpoint.find("m.weight.order");
  const auto columns = places.as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(columns.begin(), columns.end()),
            (std::vector<int64_t>{1, 3, 5, 7, 0, 2, 4, 6}));
  EXPECT_FALSE(checkpoint.entry("m.weight.zero"));
  EXPECT_EQ(blocks->dtype, DType::I4);
  EXPECT_EQ(blocks->block, 4);
}

// Scales of f8: of tiles, whose last ones are smaller, and those that do not fit.
TEST(WeightFolders, SmallFloatsHaveScalesOfTheirTiles) {
  const TemporaryFolder folder;
  auto write = [&](const Shape& matrix, const Shape& scales, const json& config) {
    const int64_t size = matrix.size() == 2 ? matrix[0] * matrix[1] : matrix[0];
    const int64_t count = elementCount(scales);
    std::string file =
        makeSafetensorsHeader({{"m.weight_scale", "F32", DType::F32, scales, 0, size_t(4 * count)},
                               {"m.weight", "F8_E4M3", {}, matrix, 0, size_t(size)}},
                              {});
    for (int64_t i = 0; i < count; ++i) {
      const float scale = float(i + 1);
      file.append(reinterpret_cast<const char*>(&scale), sizeof scale);
    }
    file += std::string(size_t(size), '\x38');  // 1
    folder.write("model.safetensors", file);
    return decoded(folder, config);
  };
  const json tiles{{"quant_method", "fp8"}, {"weight_block_size", {2, 2}}},
      plain{{"quant_method", "fp8"}};
  EXPECT_EQ(write({3, 3}, {2, 2}, tiles), (std::vector<float>{1, 1, 2, 1, 1, 2, 3, 3, 4}));
  EXPECT_EQ(write({2, 3}, {2}, plain), (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(write({2, 3}, {2, 1}, plain), (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(write({2, 3}, {1}, tiles), (std::vector<float>{1, 1, 1, 1, 1, 1}));
  const json compressed{
      {"quant_method", "compressed-tensors"},
      {"config_groups",
       {{"g", {{"weights", {{"num_bits", 8}, {"type", "float"}, {"block_structure", {2, 1}}}}}}}}};
  EXPECT_EQ(write({3, 2}, {2, 2}, compressed), (std::vector<float>{1, 2, 1, 2, 3, 4}));
  const ErrorCode bad = ErrorCode::InvalidFile;
  test::expectError(bad,
                    "m.weight_scale: expected one scale, one for each of 3 rows, or one for each "
                    "tile, got [2, 3]",
                    [&] { write({3, 3}, {2, 3}, tiles); });
  test::expectError(bad, "m.weight_scale: expected one scale, one for each of 3 rows, got [2, 2]",
                    [&] { write({3, 3}, {2, 2}, plain); });
  const char* matrix = "m.weight: expected a matrix of F8_E4M3 beside weight_scale";
  test::expectError(bad, matrix, [&] { write({4}, {1}, plain); });
  test::expectError(bad, matrix, [&] { write({2, 0}, {1}, plain); });
  test::expectError(bad, matrix, [&] { write({0, 2}, {1}, tiles); });
  test::expectError(
      bad, "weight_block_size: expected the rows and columns of a tile, got 128",
      [&] { write({2, 2}, {1}, {{"quant_method", "fp8"}, {"weight_block_size", 128}}); });
  test::expectError(bad, "weight_block_size: expected the rows and columns of a tile", [&] {
    write({2, 2}, {1}, {{"quant_method", "fp8"}, {"weight_block_size", {128}}});
  });
  test::expectError(ErrorCode::Unsupported, "fmt: expected e4m3, got \"e5m2\"",
                    [&] { write({2, 2}, {1}, {{"quant_method", "fp8"}, {"fmt", "e5m2"}}); });
  std::string file = makeSafetensorsHeader({{"m.weight", "F8_E4M3", {}, {1, 1}, 0, 1}}, {});
  folder.write("model.safetensors", file + "1");
  test::expectError(bad, "m.weight: the matrix of F8_E4M3 has no scale",
                    [&] { decoded(folder, plain); });
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
  // A weight that was trained whole takes the place of the model's, under the name that it has
  // where it lies beside its update, too.
  for (const char* name : {"a.kv_proj.base_layer.weight", "a.kv_proj.weight"}) {
    tensors.erase("base_model.model.a.kv_proj.lora_A.weight");
    tensors.erase("base_model.model.a.kv_proj.lora_B.weight");
    tensors[std::string("base_model.model.") + name] = Array::fromFloats({5, 6, 7, 8}, {2, 2});
    saveSafetensors(adapter / "adapter_model.safetensors", tensors);
    const Checkpoint trained = Checkpoint::open(model.path(), {adapter.path()});
    EXPECT_EQ(trained.find("a.kv_proj.weight")->at(3), 8) << name;
    EXPECT_EQ(trained.find("a.v_proj.weight")->at(3), 4) << name;
    tensors.erase(std::string("base_model.model.") + name);
  }
}

// a.q [3, 2] of a model and an adapter of rank 1 that fits, with one thing changed.
TEST(WeightFolders, AdaptersThatDoNotFitAreRefused) {
  const TemporaryFolder model, adapter;
  saveSafetensors(model / "model.safetensors",
                  {{"a.q.weight", Array::fromFloats({1, 2, 3, 4, 5, 6}, {3, 2})},
                   {"a.n.weight", Array::fromFloats({1, 2}, {2})}});
  const std::string of = "base_model.model.a.q.";
  const Array a = Array::fromFloats({1, 2}, {1, 2}), b = Array::fromFloats({1, 2, 3}, {3, 1}),
              whole = Array::fromFloats({7, 8}, {2});
  using Tensors = std::map<std::string, Array>;
  const Tensors fits = {{of + "lora_A.weight", a}, {of + "lora_B.weight", b}};
  const json rank1 = {{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 3}};
  auto write = [&](const Tensors& tensors, const json& config) {
    saveSafetensors(adapter / "adapter_model.safetensors", tensors);
    adapter.write("adapter_config.json", config.dump());
    return Checkpoint::open(model.path(), {adapter.path()});
  };
  auto with = [](Tensors tensors, const std::string& name, const Array& value) {
    tensors[name] = value;
    return tensors;
  };
  auto config = [&](const char* key, const json& value) {
    json changed = rank1;
    changed[key] = value;
    return changed;
  };
  const Tensors trained = with(fits, "base_model.model.a.n.weight", whole);
  const Checkpoint good = write(trained, rank1);
  ASSERT_EQ(good.updates().size(), 1u);
  EXPECT_EQ(good.updates()[0].scale, 3);
  EXPECT_EQ(good.find("a.n.weight")->at(1), 8) << "trained whole";
  EXPECT_NO_THROW(write(trained, config("modules_to_save", {"n", "score"})));
  EXPECT_NO_THROW(write(trained, config("modules_to_save", {"a"}))) << "of which some is there";
  // The model's own part of a name may be missing in its checkpoint.
  EXPECT_NO_THROW(write(with(fits, "base_model.model.transformer.a.n.weight", whole),
                        config("modules_to_save", {"n"})));
  // A tied head is written beside its table, though the model's checkpoint has none.
  const json tied = config("ensure_weight_tying", true);
  EXPECT_NO_THROW(write(with(trained, "base_model.model.head.weight", whole), tied));
  for (const Array& other : {Array::fromFloats({7, 9}, {2}), Array::fromFloats({7, 8}, {1, 2})})
    EXPECT_THROW(write(with(trained, "base_model.model.head.weight", other), tied), Error);
  EXPECT_THROW(write(with(trained, "base_model.model.head.weight", whole), rank1), Error);
  EXPECT_EQ(write(fits, config("use_rslora", true)).updates()[0].scale, 3);
  EXPECT_EQ(write(fits, {{"peft_type", "LORA"}, {"r", 1}}).updates()[0].scale, 8);
  // The scale is a share of the rank or, stabilized, of its root.
  const Tensors four = {
      {of + "lora_A.weight", Array::fromFloats(std::vector<float>(8, 1), {4, 2})},
      {of + "lora_B.weight", Array::fromFloats(std::vector<float>(12, 1), {3, 4})}};
  json rank4 = config("r", 4);
  EXPECT_EQ(write(four, rank4).updates()[0].scale, 3.0 / 4);
  rank4["use_rslora"] = true;
  EXPECT_EQ(write(four, rank4).updates()[0].scale, 3.0 / 2);
  // What the tensors say themselves, and what was of training.
  json noted = rank1;
  for (const std::string_view note : kLoraNotes) noted[std::string(note)] = "x";
  noted["bias"] = "none";
  for (const json& way :
       {json(true), json(false), json("gaussian"), json("eva"), json("orthogonal")}) {
    noted["init_lora_weights"] = way;
    EXPECT_EQ(write(fits, noted).updates()[0].scale, 3) << way;
  }

  // The weight as [inputs, outputs].
  const Tensors turned = {{of + "lora_A.weight", Array::fromFloats({1, 2, 3}, {1, 3})},
                          {of + "lora_B.weight", Array::fromFloats({1, 2}, {2, 1})}};
  EXPECT_TRUE(write(turned, config("fan_in_fan_out", true)).updates()[0].isTransposed);
  // The shapes say it, whatever the folder does.
  EXPECT_TRUE(write(turned, rank1).updates()[0].isTransposed);
  EXPECT_FALSE(write(fits, config("fan_in_fan_out", true)).updates()[0].isTransposed);
  // The model's own part of a name may be missing in its checkpoint.
  const std::string behind = "base_model.model.transformer.a.q.";
  EXPECT_EQ(write({{behind + "lora_A.weight", a}, {behind + "lora_B.weight", b}}, rank1)
                .updates()[0]
                .weight,
            "a.q.weight");
  // What takes a weight's place is meant for its module alone, unless ties are kept.
  EXPECT_EQ(write(with(fits, "base_model.model.a.n.weight", whole), rank1).replaced(),
            std::vector<std::string>{"a.n.weight"});
  EXPECT_EQ(
      write(with(fits, "base_model.model.a.n.weight", whole), config("ensure_weight_tying", true))
          .replaced(),
      std::vector<std::string>{});
  // So are tables, whose tensors have no other name behind theirs.
  const Tensors table = {{of + "lora_embedding_A", Array::fromFloats({1, 2, 3}, {1, 3})},
                         {of + "lora_embedding_B", Array::fromFloats({1, 2}, {2, 1})}};
  EXPECT_TRUE(write(table, rank1).updates()[0].isTransposed);
  EXPECT_TRUE(write(table, config("fan_in_fan_out", true)).updates()[0].isTransposed);
  json both = config("fan_in_fan_out", true);
  both["use_dora"] = true;
  test::expectError(ErrorCode::Unsupported, "magnitudes (use_dora) of embeddings and of weights",
                    [&] { write(with(turned, of + "lora_magnitude_vector", whole), both); });

  const Array magnitude = Array::fromFloats({1, 2, 3}, {3}),
              wide = Array::fromFloats({1, 2, 3, 4}, {2, 2});
  const std::string magnitudes = of + "lora_magnitude_vector";
  struct Mistake {
    Tensors tensors;
    json config;
    ErrorCode code;
    const char* message;
  };
  const ErrorCode bad = ErrorCode::InvalidFile, unsupported = ErrorCode::Unsupported;
  for (const Mistake& m : std::vector<Mistake>{
           {{{"base_model.model.a.n.weight", whole}}, rank1, bad, "holds no lora_A and lora_B"},
           {{{of + "lora_A.weight", a}}, rank1, bad, "module \"a.q\": expected lora_A and lora_B"},
           {{{of + "lora_B.weight", b}}, rank1, bad, "module \"a.q\": expected lora_A and lora_B"},
           {with(fits, of + "lora_A.bias", a), rank1, unsupported, "only weights are adapted"},
           {with(fits, of + "lora_A.default.weight", a), rank1, bad, "comes twice"},
           {with(fits, "model.a.q.lora_A.weight", a), rank1, bad,
            "that begins with base_model.model."},
           {with(fits, "base_model.model.a.n.weight", b), rank1, bad,
            "the model has no a.n.weight of"},
           {{{"base_model.model.a.x.lora_A.weight", a}, {"base_model.model.a.x.lora_B.weight", b}},
            rank1,
            bad,
            "module \"a.x\": the model has no a.x.weight"},
           {{{of + "lora_A.weight", a}, {of + "lora_B.weight", wide}}, rank1, bad, "do not fit"},
           {{{of + "lora_A.weight", wide}, {of + "lora_B.weight", b}}, rank1, bad, "do not fit"},
           {with(fits, of + "lora_A.weight", Array::fromFloats({1, 2, 3}, {1, 3})), rank1, bad,
            "do not fit the weight [3, 2]"},
           {with(fits, of + "lora_B.weight", Array::fromFloats({1, 2}, {2, 1})), rank1, bad,
            "do not fit the weight [3, 2]"},
           {with(fits, of + "lora_A.weight", bytes({1, 2}, {1, 2})), rank1, bad,
            "lora_A I8[1, 2] and lora_B F32[3, 1] do not fit the weight [3, 2]"},
           {with(fits, of + "lora_B.weight", bytes({1, 2, 3}, {3, 1})), rank1, bad,
            "lora_A F32[1, 2] and lora_B I8[3, 1] do not fit the weight [3, 2]"},
           {fits, config("rank_pattern", {{"q", 1.5}}), bad, "expected an integer"},
           {fits, config("r", 2), bad, "a rank of 1, adapter_config.json says 2"},
           {fits, config("rank_pattern", {{"q", 4}}), bad, "adapter_config.json says 4"},
           {fits, config("use_dora", true), bad,
            "no lora_magnitude_vector, but use_dora says true"},
           {with(fits, magnitudes, magnitude), rank1, bad,
            "a lora_magnitude_vector, but use_dora says false"},
           {with(fits, magnitudes, whole), config("use_dora", true), bad, "expected 3 magnitudes"},
           {fits, config("modules_to_save", {"n"}), bad, "\"n\" was trained whole, but"},
           {fits, config("modules_to_save", {"a"}), bad, "has no a.q.weight"},
           {fits, config("modules_to_save", "n"), bad, "modules_to_save: expected an array"},
           {fits, config("peft_type", "LOHA"), unsupported, "expected \"LORA\", got \"LOHA\""},
           {fits, config("bias", "all"), unsupported, "expected \"none\", got \"all\""},
           {fits, config("init_lora_weights", "pissa"), unsupported, "got \"pissa\""},
           {fits, config("use_qalora", true), unsupported, "use_qalora: not supported"},
           {fits, config("layer_replication", json::array({1})), unsupported,
            "layer_replication"}}) {
    SCOPED_TRACE(m.message);
    test::expectError(m.code, m.message, [&] { write(m.tensors, m.config); });
  }
}

TEST(WeightFolders, ShardsAreWhereTheIndexSaysSo) {
  const TemporaryFolder folder;
  const Array a = Array::fromFloats({1, 2}, {2});
  auto index = [&](const json& map) {
    folder.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
    return Checkpoint::open(folder.path());
  };
  test::expectError(ErrorCode::Io, "found neither", [&] { Checkpoint::open(folder.path()); });
  saveSafetensors(folder / "one.safetensors", {{"a", a}});
  EXPECT_EQ(index({{"a", "one.safetensors"}}).find("a")->at(1), 2);
  test::expectError(ErrorCode::InvalidFile,
                    "tensor \"b\" is not in shard \"one.safetensors\", where the index puts it",
                    [&] { index({{"a", "one.safetensors"}, {"b", "one.safetensors"}}); });
  test::expectError(ErrorCode::Io, "the shard \"two.safetensors\" is missing, expected it at",
                    [&] { index({{"a", "one.safetensors"}, {"b", "two.safetensors"}}); });
}

TEST(WeightFolders, PartsOfAGgufModelAreOne) {
  const TemporaryFolder folder;
  auto write = [&](int part, std::string_view tensor, uint16_t count = 3, int32_t all = 3) {
    test::GgufWriter file;
    file.begin(1, 4).key("general.architecture", GgufType::String).text("llama");
    file.key("split.no", GgufType::U16).number(uint16_t(part));
    file.key("split.count", GgufType::U16).number(count);
    file.key("split.tensors.count", GgufType::I32).number(all);
    file.tensor(tensor, {4}, 0, 0).data(0);
    for (int i = 0; i < 4; ++i) file.number(float(10 * part + i));
    return folder.write("m-0000" + std::to_string(part + 1) + "-of-00003.gguf", file.bytes());
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
  for (int32_t all : {2, 4}) {
    write(0, "output_norm.weight", 3, all);
    test::expectError(
        ErrorCode::InvalidFile,
        "split.tensors.count: expected the 3 tensors of all files, got " + std::to_string(all),
        [&] { Checkpoint::open(first); });
  }
  write(0, "output_norm.weight");
  write(1, "output_norm.weight");
  test::expectError(ErrorCode::InvalidFile,
                    "m-00002-of-00003.gguf: tensor \"output_norm.weight\": another tensor is "
                    "model.norm.weight, too",
                    [&] { Checkpoint::open(first); });
  // Each part is one of as many, lies where its name says, and the first one is named.
  write(1, "blk.0.attn_norm.weight", 4);
  test::expectError(ErrorCode::InvalidFile, "split.no: expected part 1 of 3",
                    [&] { Checkpoint::open(first); });
  write(1, "blk.0.attn_norm.weight");
  test::expectError(ErrorCode::InvalidFile, "split.no: expected the first of the model's files",
                    [&] { Checkpoint::open(folder / "m-00002-of-00003.gguf"); });
  std::filesystem::rename(folder / "m-00002-of-00003.gguf", folder / "second");
  std::filesystem::rename(folder / "m-00003-of-00003.gguf", folder / "m-00002-of-00003.gguf");
  std::filesystem::rename(folder / "second", folder / "m-00003-of-00003.gguf");
  test::expectError(ErrorCode::InvalidFile, "split.no: expected part 1 of 3",
                    [&] { Checkpoint::open(first); });
}

}  // namespace
}  // namespace lathe
