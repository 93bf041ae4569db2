// SPDX-License-Identifier: Apache-2.0
// What `embed` makes of the tokens' vectors, and the files of sentence-transformers that say so.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>

#include "lathe/frontend/families/pretrained.h"
#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/compiler/cli_runner.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

constexpr const char* kBert = R"({"architectures": ["BertModel"], "vocab_size": 11,
  "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
  "max_position_embeddings": 9})";

// Both entry points on two texts, of which one is shorter.
struct Vectors {
  Array tokens, texts;
  Array mask = Array::fromInts({1, 1, 1, 1, 1, 1, 0, 0}, {2, 4});
};
Vectors vectorsOf(const TextPooling& pooling) {
  const Graph graph = buildFromConfig(JsonValue::parse(kBert, "config.json"), {.pooling = pooling});
  Session s(compile(graph, {.backend = "reference"}));
  s.bindRandomWeights(5);
  Vectors v;
  const Arrays inputs{{"input_ids", Array::fromInts({3, 1, 4, 1, 5, 9, 0, 0}, {2, 4})},
                      {"attention_mask", v.mask},
                      {"token_type_ids", Array(DType::I64, {2, 4})}};
  v.tokens = s.run("forward", inputs).at("last_hidden_state");
  v.texts = s.run("embed", inputs).at("embeddings");
  return v;
}

TEST(TextPooling, MeanFirstAndLargestOfTheTokensThatAreNoPadding) {
  using Kind = TextPooling::Kind;
  for (Kind kind : {Kind::Mean, Kind::First, Kind::Max})
    for (bool normalizes : {false, true}) {
      SCOPED_TRACE(std::to_string(int(kind)) + (normalizes ? " of length 1" : ""));
      const Vectors v = vectorsOf({kind, normalizes});
      for (int64_t b = 0; b < 2; ++b) {
        double want[8], length = 0;
        for (int64_t k = 0; k < 8; ++k) {
          double sum = 0, count = 0, largest = -std::numeric_limits<double>::infinity();
          for (int64_t i = 0; i < 4; ++i) {
            if (v.mask.at(b * 4 + i) == 0) continue;
            const double x = v.tokens.at((b * 4 + i) * 8 + k);
            sum += x, ++count, largest = std::max(largest, x);
          }
          want[k] = kind == Kind::Mean    ? sum / count
                    : kind == Kind::First ? v.tokens.at(b * 32 + k)
                                          : largest;
          length += want[k] * want[k];
        }
        for (int64_t k = 0; k < 8; ++k)
          EXPECT_NEAR(v.texts.at(b * 8 + k), want[k] / (normalizes ? std::sqrt(length) : 1), 1e-5);
      }
    }
}

TEST(TextPooling, IsReadFromTheModulesOfAFolder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "1_Pooling");
  auto read = [&](const std::string& modules, const std::string& pooling) {
    std::string list;
    for (const char* name : {"Transformer", "Pooling", "Dense", "Normalize"})
      if (modules.find(name[0]) != modules.npos)
        list += std::string(list.empty() ? "" : ", ") +
                R"({"idx": 0, "path": "1_Pooling", "type": "sentence_transformers.models.)" + name +
                "\"}";
    folder.write("modules.json", "[" + list + "]");
    folder.write("1_Pooling/config.json", pooling);
    return readTextPooling(folder.path());
  };
  const TextPooling usual = readTextPooling(folder.path());
  EXPECT_TRUE(usual.kind == TextPooling::Kind::Mean && usual.normalizes);
  const TextPooling first = read("TPN", R"({"word_embedding_dimension": 8,
    "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_TRUE(first.kind == TextPooling::Kind::First && first.normalizes);
  const TextPooling mean = read("TP", R"({"pooling_mode_mean_tokens": true})");
  EXPECT_TRUE(mean.kind == TextPooling::Kind::Mean && !mean.normalizes);
  EXPECT_EQ(read("TP", R"({"pooling_mode": "max"})").kind, TextPooling::Kind::Max);
  test::expectError(ErrorCode::Unsupported, "modules.json: [2].type: not supported: expected",
                    [&] { read("TPD", R"({"pooling_mode": "cls"})"); });
  for (const char* bad : {R"({"pooling_mode_lasttoken": true})", R"({"pooling_mode": "lasttoken"})",
                          R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})"})
    test::expectError(ErrorCode::Unsupported, "expected", [&] { read("TP", bad); });
}

// Names of published BERTs: norms as TensorFlow called them, a file with the head that pretraining
// had, one without the pooler.
TEST(TextPooling, PublishedBertsHaveOtherWeightsBeside) {
  const test::TemporaryFolder folder;
  folder.write("config.json", kBert);
  const Program program =
      compile(buildFromConfig(JsonValue::parse(kBert, "config.json")), {.backend = "reference"});
  std::vector<std::pair<std::string, Array>> plain;
  for (const TensorInfo& w : program.weights) {
    Shape shape;
    for (const DimExpr& d : w.sourceShape()) shape.push_back(*d.asConstant());
    Array& a = plain.emplace_back(w.source(), Array(DType::F32, shape)).second;
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, std::sin(double(i * 7 + w.source().size())));
  }
  auto vectors = [&](const std::function<std::string(const std::string&)>& rename) {
    std::map<std::string, Array> tensors;
    for (const auto& [name, array] : plain)
      if (std::string as = rename(name); !as.empty()) tensors.emplace(as, array);
    const Array table = plain[0].second;
    if (rename("head") == "head")
      for (const char* name : {"cls.predictions.bias", "cls.predictions.transform.dense.weight",
                               "cls.predictions.transform.dense.bias", "cls.seq_relationship.bias",
                               "cls.predictions.transform.LayerNorm.weight"})
        tensors.emplace(name, table);
    saveSafetensors(folder / "model.safetensors", tensors);
    return test::outputOf("run " + folder.path() +
                          " --entry embed --input input_ids=1x3xi64=1,2,3 --input "
                          "attention_mask=1x3xi64=1 --input token_type_ids=1x3xi64=0 --json");
  };
  auto replaced = [](std::string name, const std::string& what, const std::string& by) {
    const size_t at = name.find(what);
    return at == name.npos ? name : name.replace(at, what.size(), by);
  };
  auto same = [](const std::string& name) { return name == "head" ? "" : name; };
  const std::string want = vectors(same);
  EXPECT_EQ(vectors([](const std::string& name) { return name; }), want);
  EXPECT_EQ(vectors([&](const std::string& name) {
              return replaced(replaced(same(name), "LayerNorm.weight", "LayerNorm.gamma"),
                              "LayerNorm.bias", "LayerNorm.beta");
            }),
            want);
  EXPECT_EQ(vectors([&](const std::string& name) {
              return name.starts_with("pooler.") ? "" : same(name);
            }),
            want);
}

}  // namespace
}  // namespace lathe
