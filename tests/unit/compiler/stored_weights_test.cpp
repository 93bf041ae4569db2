// SPDX-License-Identifier: Apache-2.0
// Graphs whose weights a checkpoint holds in another form, with so few numbers that the results can
// be read here.
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/pretrained.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/session.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::TemporaryFolder;

std::vector<double> valuesOf(const Array& a) {
  std::vector<double> values;
  for (int64_t i = 0; i < a.size(); ++i) values.push_back(a.at(i));
  return values;
}

void addAdapter(const TemporaryFolder& folder, std::vector<float> a, std::vector<float> b,
                double alpha, const std::string& module = "m") {
  const std::string of = "base_model.model." + module;
  saveSafetensors(folder / "adapter_model.safetensors",
                  {{of + ".lora_A.weight", Array::fromFloats(a, {1, 2})},
                   {of + ".lora_B.weight", Array::fromFloats(b, {2, 1})}});
  folder.write("adapter_config.json",
               json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", alpha}}.dump());
}

TEST(StoredWeights, EveryAdapterOfAWeightIsAdded) {
  const TemporaryFolder model, one, other;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})}});
  addAdapter(one, {1, 0}, {1, 2}, 10);     // 10 to the first column, 20 below
  addAdapter(other, {0, 1}, {1, 3}, 100);  // 100 to the second, 300 below
  auto with = [&](const std::vector<std::string>& adapters) {
    const Checkpoint checkpoint = Checkpoint::open(model.path(), adapters);
    Graph g;
    g.output("y", g.weight("m.weight", DType::F32, {2, 2}) * 1.0);
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    return valuesOf(session.run("forward", {}).at("y"));
  };
  EXPECT_EQ(with({one.path()}), (std::vector<double>{11, 2, 23, 4}));
  EXPECT_EQ(with({one.path(), other.path()}), (std::vector<double>{11, 102, 23, 304}));
  EXPECT_EQ(with({other.path(), one.path()}), (std::vector<double>{11, 102, 23, 304}));
}

// What is stored as [inputs, outputs] is updated by the product the other way round.
TEST(StoredWeights, AnUpdateOfATransposedWeightIsTransposed) {
  const TemporaryFolder model, adapter;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})}});
  addAdapter(adapter, {1, 0}, {1, 2}, 10);  // 10 to the first row's first, 20 behind it
  adapter.write(
      "adapter_config.json",
      json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 10}, {"fan_in_fan_out", true}}.dump());
  const Checkpoint checkpoint = Checkpoint::open(model.path(), {adapter.path()});
  Graph g;
  g.output("y", g.weight("m.weight", DType::F32, {2, 2}) * 1.0);
  readAsStored(g, checkpoint);
  Session session(compile(g, {.backend = "reference"}));
  session.bindWeights(checkpoint);
  EXPECT_EQ(valuesOf(session.run("forward", {}).at("y")), (std::vector<double>{11, 22, 3, 4}));
}

// A square weight's shape does not say how it lies: the product that takes it does, whatever the
// folder says.
TEST(StoredWeights, AProductSaysHowASquareWeightLies) {
  const TemporaryFolder model, adapter;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({0, 0, 0, 0}, {2, 2})}});
  addAdapter(adapter, {1, 0}, {1, 2}, 10);  // BA is [[10, 0], [20, 0]]
  auto rows = [&](bool says, bool asItLies) {
    adapter.write(
        "adapter_config.json",
        json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 10}, {"fan_in_fan_out", says}}.dump());
    const Checkpoint checkpoint = Checkpoint::open(model.path(), {adapter.path()});
    Graph g;
    const Tensor w = g.weight("m.weight", DType::F32, {2, 2}), x = g.input("x", DType::F32, {1, 2});
    g.output("y", matmul(x, asItLies ? w : transpose(w, {1, 0})));
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    return valuesOf(session.run("forward", {{"x", Array::fromFloats({1, 100}, {1, 2})}}).at("y"));
  };
  for (bool says : {false, true})
    for (bool asItLies : {false, true})
      EXPECT_EQ(rows(says, asItLies), (std::vector<double>{10, 20})) << says << asItLies;
}

// A table that takes another's place is not meant for the head that shares it.
TEST(StoredWeights, ATableInTheHeadsPlaceIsRefused) {
  const TemporaryFolder model, adapter;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})},
                   {"t.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})}});
  const std::string of = "base_model.model.m";
  saveSafetensors(adapter / "adapter_model.safetensors",
                  {{of + ".lora_A.weight", Array::fromFloats({1, 0}, {1, 2})},
                   {of + ".lora_B.weight", Array::fromFloats({1, 2}, {2, 1})},
                   {"base_model.model.t.weight", Array::fromFloats({5, 6, 7, 8}, {2, 2})}});
  auto read = [&](bool tied, bool keeps) {
    adapter.write("adapter_config.json",
                  json{{"peft_type", "LORA"}, {"r", 1}, {"ensure_weight_tying", keeps}}.dump());
    const Checkpoint checkpoint = Checkpoint::open(model.path(), {adapter.path()});
    Graph g;
    const Tensor t = g.weight("t.weight", DType::F32, {2, 2});
    const Tensor x = gather(t, g.input("ids", DType::I64, {1}), 0);
    const Tensor y = matmul(x, transpose(g.weight("m.weight", DType::F32, {2, 2}), {1, 0}));
    g.output("y", tied ? matmul(y, transpose(t, {1, 0})) : y);
    readAsStored(g, checkpoint);
  };
  EXPECT_NO_THROW(read(false, false));
  EXPECT_NO_THROW(read(true, true));
  test::expectError(ErrorCode::Unsupported, "replaces t.weight, which is the model's head, too",
                    [&] { read(true, false); });
}

// An update of a table is of the rows that ids choose: where the table is the head, too, which PEFT
// leaves as it was, there is no one weight to add it to.
TEST(StoredWeights, AnUpdateOfATableThatIsTheHeadTooIsRefused) {
  const TemporaryFolder model, adapter;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})}});
  saveSafetensors(adapter / "adapter_model.safetensors",
                  {{"base_model.model.m.lora_embedding_A", Array::fromFloats({1, 0}, {1, 2})},
                   {"base_model.model.m.lora_embedding_B", Array::fromFloats({1, 2}, {2, 1})}});
  adapter.write("adapter_config.json",
                json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 10}}.dump());
  const Checkpoint checkpoint = Checkpoint::open(model.path(), {adapter.path()});
  auto rows = [&](bool isHead) {
    Graph g;
    const Tensor table = g.weight("m.weight", DType::F32, {2, 2});
    const Tensor x = gather(table, g.input("ids", DType::I64, {2}), 0);
    g.output("y", isHead ? matmul(x, transpose(table, {1, 0})) : x);
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    return valuesOf(session.run("forward", {{"ids", Array(DType::I64, {2})}}).at("y"));
  };
  EXPECT_EQ(rows(false), (std::vector<double>{11, 22, 11, 22}));
  test::expectError(ErrorCode::Unsupported,
                    "a LoRA folder updates m.weight, which is the model's head, too",
                    [&] { rows(true); });
}

// The columns of such a layer are stored in another order than those of an update.
TEST(StoredWeights, AnUpdateIsAddedToColumnsInTheirOwnOrder) {
  const TemporaryFolder model, adapter;
  auto words = [](std::vector<uint32_t> values, const Shape& shape) {
    Array array(DType::I32, shape);
    for (size_t i = 0; i < values.size(); ++i) array.as<int32_t>()[i] = int32_t(values[i]);
    return array;
  };
  saveSafetensors(model / "model.safetensors",
                  {{"m.qweight", words({0x82838485, 0x82828282, 0x82828282, 0x82828282}, {1, 4})},
                   {"m.qzeros", words({0x7f7f7f7f, 0x09090909}, {2, 1})},
                   {"m.g_idx", words({1, 0, 0, 1}, {4})},
                   {"m.scales", Array::fromFloats({1, 1, 1, 1, 1, 1, 1, 1}, {2, 4})}});
  const json quantization{{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 2}};
  model.write("config.json", json{{"quantization_config", quantization}}.dump());
  saveSafetensors(adapter / "adapter_model.safetensors",
                  {{"base_model.model.m.lora_A.weight", Array::fromFloats({1, 2, 3, 4}, {1, 4})},
                   {"base_model.model.m.lora_B.weight", Array::fromFloats({1, 0, 0, 0}, {4, 1})}});
  adapter.write("adapter_config.json",
                json{{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 1000}}.dump());
  using Record = std::function<Tensor(Graph&, const Tensor&)>;
  auto firstFour = [&](const std::vector<std::string>& adapters, const Record& record) {
    const Checkpoint checkpoint = Checkpoint::open(model.path(), adapters);
    Graph g;
    g.output("y", record(g, g.weight("m.weight", DType::F32, {4, 4})));
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    std::vector<double> values = valuesOf(session.run("forward", {}).at("y"));
    values.resize(4);
    return values;
  };
  const std::vector<double> row{123, 4, 3, 120};
  auto whole = [](Graph&, const Tensor& w) { return w * 1.0; };
  EXPECT_EQ(firstFour({}, whole), row);
  EXPECT_EQ(firstFour({adapter.path()}, whole), (std::vector<double>{1123, 2004, 3003, 4120}));
  // Where the weight is no layer's, but what another matrix is multiplied with from the right.
  auto left = [](Graph& g, const Tensor& w) {
    return matmul(transpose(w, {1, 0}), g.constant(Array::fromFloats({1, 0, 0, 0}, {4, 1})));
  };
  EXPECT_EQ(firstFour({}, left), row);
}

// Rows of a table are chosen before they are widened, columns behind it.
TEST(StoredWeights, ColumnsOfATableAreNoRows) {
  const TemporaryFolder model;
  Array table(DType::BF16, {3, 2});
  for (int64_t i = 0; i < 6; ++i) table.set(i, double(i));
  saveSafetensors(model / "model.safetensors", {{"t", table}});
  const Checkpoint checkpoint = Checkpoint::open(model.path());
  for (const int64_t axis : {0, 1}) {
    Graph g;
    Tensor ids = g.input("ids", DType::I64, {2});
    g.output("y", gather(g.weight("t", DType::F32, {3, 2}), ids, axis));
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    Array given(DType::I64, {2});
    given.as<int64_t>()[0] = 1;
    const Array y = session.run("forward", {{"ids", given}}).at("y");
    EXPECT_EQ(valuesOf(y), axis == 0 ? (std::vector<double>{2, 3, 0, 1})
                                     : (std::vector<double>{1, 0, 3, 2, 5, 4}));
  }
}

// An update of a weight that the graph does not read would be lost without a word, alone or beside
// others that are read.
TEST(StoredWeights, AnUpdateOfWhatNobodyReadsIsAnError) {
  const TemporaryFolder model, m, n;
  saveSafetensors(model / "model.safetensors",
                  {{"m.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})},
                   {"n.weight", Array::fromFloats({1, 2, 3, 4}, {2, 2})}});
  addAdapter(m, {1, 0}, {1, 2}, 10);
  addAdapter(n, {1, 0}, {1, 2}, 10, "n");
  auto reads = [&](const std::vector<std::string>& names,
                   const std::vector<std::string>& adapters) {
    const Checkpoint checkpoint = Checkpoint::open(model.path(), adapters);
    Graph g;
    for (const std::string& name : names) g.output(name, g.weight(name, DType::F32, {2, 2}) * 1.0);
    readAsStored(g, checkpoint);
  };
  EXPECT_NO_THROW(reads({"n.weight", "m.weight"}, {m.path()}));
  EXPECT_NO_THROW(reads({"n.weight", "m.weight"}, {m.path(), n.path()}));
  for (const auto& adapters : {std::vector{m.path()}, std::vector{m.path(), n.path()}})
    test::expectError(ErrorCode::InvalidFile,
                      "the model does not read m.weight, which a LoRA folder updates",
                      [&] { reads({"n.weight"}, adapters); });
}

// Casts of one dtype come with the weight; of two each stays what it is.
TEST(StoredWeights, CastsOfQuantizedWeightsKeepTheirDTypes) {
  const TemporaryFolder folder;
  Array small(DType::I8, {2, 2});
  for (int64_t i = 0; i < 4; ++i) small.set(i, double(10 * (i + 1)));
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight", small}, {"m.weight_scale", Array::fromFloats({1, 2}, {2, 1})}});
  const json weights{
      {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}};
  const json quantization{{"quant_method", "compressed-tensors"},
                          {"format", "int-quantized"},
                          {"config_groups", {{"group_0", {{"weights", weights}}}}}};
  folder.write("config.json", json{{"quantization_config", quantization}}.dump());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  for (const std::vector<DType>& dtypes : {std::vector<DType>{DType::F16, DType::F64},
                                           {DType::F64, DType::F16},
                                           {DType::F16, DType::F16}}) {
    Graph g;
    const Tensor w = g.weight("m.weight", DType::F32, {2, 2});
    g.output("one", cast(w, dtypes[0]));
    g.output("other", cast(w, dtypes[1]));
    readAsStored(g, checkpoint);
    Session session(compile(g, {.backend = "reference"}));
    session.bindWeights(checkpoint);
    const Arrays got = session.run("forward", {});
    EXPECT_EQ(got.at("one").dtype(), dtypes[0]);
    EXPECT_EQ(got.at("other").dtype(), dtypes[1]);
    for (const char* name : {"one", "other"})
      EXPECT_EQ(valuesOf(got.at(name)), (std::vector<double>{10, 20, 60, 80})) << name;
  }
}

// What is cast to one dtype is rounded once, and not to the weight's dtype in between.
TEST(StoredWeights, CastsOfQuantizedWeightsRoundOnce) {
  const TemporaryFolder folder;
  Array small(DType::I8, {2, 2});
  for (int64_t i = 0; i < 4; ++i) small.set(i, double(2 * i + 3));
  const float scale = 1 + 0x1p-23f;  // times 3 it has more digits than f32
  saveSafetensors(folder / "model.safetensors",
                  {{"m.weight", small}, {"m.weight_scale", Array::fromFloats({scale, 1}, {2, 1})}});
  const json weights{
      {"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}};
  const json quantization{{"quant_method", "compressed-tensors"},
                          {"format", "int-quantized"},
                          {"config_groups", {{"group_0", {{"weights", weights}}}}}};
  folder.write("config.json", json{{"quantization_config", quantization}}.dump());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  Graph g;
  g.output("y", cast(g.weight("m.weight", DType::F32, {2, 2}), DType::F64));
  readAsStored(g, checkpoint);
  Session session(compile(g, {.backend = "reference"}));
  session.bindWeights(checkpoint);
  EXPECT_EQ(valuesOf(session.run("forward", {}).at("y")),
            (std::vector<double>{3 * double(scale), 5 * double(scale), 7, 9}));
}

}  // namespace
}  // namespace lathe
