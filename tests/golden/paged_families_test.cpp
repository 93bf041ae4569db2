// SPDX-License-Identifier: Apache-2.0
// Models of every family over a cache in blocks: texts that are read by themselves, one after the
// other, and go on together at positions of their own, have the logits of transformers. Blocks of a
// text lie anywhere.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

struct Goldens {
  explicit Goldens(const std::string& architecture)
      : file(SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + architecture +
                                   ".safetensors")),
        cases(JsonValue::parse(file.metadata().at("cases"), architecture)) {}
  Array array(size_t i, const std::string& name) const {
    return file.array(std::to_string(i) + "." + name);
  }
  SafetensorsFile file;
  JsonValue cases;
};

class PagedFamilies : public ::testing::TestWithParam<FamilyParameter> {};

TEST_P(PagedFamilies, LogitsEqualThoseOfTransformersWhereverBlocksLie) {
  const Goldens goldens(GetParam().architecture);
  int64_t checked = 0;
  for (size_t i : configsToRun(goldens.cases.size(), GetParam().backend)) {
    const JsonValue golden = goldens.cases.at(i);
    if (!golden.at("decodes").asBool()) continue;
    SCOPED_TRACE("case " + std::to_string(i) + ": " + golden.at("config").show());
    const Array ids = goldens.array(i, "input_ids"), truth = goldens.array(i, "logits");
    const double bound = kFamilyTolerance * rangeOf(truth);
    const int64_t batch = ids.shape()[0], seq = ids.shape()[1], vocab = truth.shape()[2];
    const int64_t block = 2 + int64_t(i % 2), entries = (seq + block - 1) / block;
    const auto program = std::make_shared<const Program>(
        compile(buildFromConfig(golden.at("config"), {.cacheBlock = block}),
                {.backend = GetParam().backend}));
    Session s(program, {.device = "host"});
    s.bindWeights(goldenWeights(*program, golden.at("seed").asUint()));
    s.setSymbol("blocks", batch * entries);

    // `tokens` of each of `rows`, from where they are, and the logits behind them.
    auto run = [&](const std::vector<int64_t>& rows, const std::vector<int64_t>& at,
                   int64_t tokens) {
      const auto count = int64_t(rows.size());
      Array part(DType::I64, {count, tokens}), table(DType::I64, {count, entries});
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t t = 0; t < tokens; ++t)
          part.set(r * tokens + t, ids.at(rows[size_t(r)] * seq + at[size_t(r)] + t));
        // Blocks of all texts by turns, from the last one on.
        for (int64_t e = 0; e < entries; ++e)
          table.set(r * entries + e, double(batch * entries - 1 - e * batch - rows[size_t(r)]));
      }
      const Array logits =
          s.run(tokens == 1 ? "decode" : "prefill", {{"input_ids", part},
                                                     {"positions", Array::fromInts(at, {count})},
                                                     {"block_table", table}})
              .at("logits");
      for (int64_t r = 0; r < count; ++r, ++checked)
        EXPECT_LE(largestError(
                      elements(logits, r * vocab, vocab),
                      elements(truth, (rows[size_t(r)] * seq + at[size_t(r)] + tokens - 1) * vocab,
                               vocab)),
                  bound)
            << "row " << rows[size_t(r)] << " at " << at[size_t(r)] << ", " << tokens << " tokens";
    };

    std::vector<int64_t> rows, at;
    for (int64_t row = batch - 1; row >= 0; --row) {
      const int64_t prompt = std::min(seq, 2 + row);
      run({row}, {0}, prompt);
      if (prompt == seq) continue;
      rows.push_back(row);
      at.push_back(prompt);
    }
    while (!rows.empty()) {
      run(rows, at, 1);
      for (size_t r = rows.size(); r-- > 0;)
        if (++at[r] == seq) {
          rows.erase(rows.begin() + int64_t(r));
          at.erase(at.begin() + int64_t(r));
        }
    }
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(Transformers, PagedFamilies,
                         ::testing::ValuesIn(familiesOnBackends({ModelTask::Generate})),
                         nameOfCase);

class PagedFamilyFusions : public ::testing::TestWithParam<std::string> {};

TEST_P(PagedFamilyFusions, AttentionReadsBlocksWhereTheyLie) {
  const Goldens goldens(GetParam());
  for (size_t i : configsToRun(goldens.cases.size(), "reference")) {
    const JsonValue config = goldens.cases.at(i).at("config");
    SCOPED_TRACE("case " + std::to_string(i));
    const int64_t layers = readModelConfig(config).layers;
    const std::string text = irAt(buildFromConfig(config, {.cacheBlock = 16}), "fused");
    auto count = [&](const std::string& op) {
      const std::regex found("lathe\\." + op + " ");
      return std::distance(std::sregex_iterator(text.begin(), text.end(), found), {});
    };
    // `prefill` and `decode`; `forward` has no cache.
    EXPECT_EQ(count("paged_attention"), 2 * layers);
    EXPECT_EQ(count("paged_update"), 2 * 2 * layers);
    EXPECT_EQ(count("attention"), layers);
    EXPECT_EQ(count("update"), 0);
  }
}

std::vector<std::string> decoders() {
  std::vector<std::string> all;
  for (const Family& family : families())
    if (family.task == ModelTask::Generate) all.push_back(family.architecture);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Transformers, PagedFamilyFusions, ::testing::ValuesIn(decoders()));

}  // namespace
}  // namespace lathe
