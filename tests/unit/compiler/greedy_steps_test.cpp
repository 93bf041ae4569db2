// SPDX-License-Identifier: Apache-2.0
// The step that chooses its token itself: which token, and what it tells the host where there is
// none to choose.
#include <cmath>

#include <gtest/gtest.h>

#include "lathe/frontend/families/greedy.h"
#include "lathe/lathe.h"
#include "lathe/runtime/generator.h"

namespace lathe {
namespace {

constexpr int64_t kVocab = 5;
constexpr float kNone = -INFINITY;

class GreedySteps : public ::testing::TestWithParam<const char*> {
 protected:
  // A text for each token, whose logits are its row of a table.
  static Session session(const std::vector<std::vector<float>>& rows) {
    std::vector<float> all;
    for (const std::vector<float>& row : rows) all.insert(all.end(), row.begin(), row.end());
    Graph g;
    const Dim batch = g.dim("batch", 1, 8);
    recordGreedy(g, batch, [&](const Tensor& ids, const Tensor&) {
      const Tensor table = g.weight("table", DType::F32, {kVocab, kVocab});
      return reshape(gather(table, ids, 0), {batch, kVocab});
    });
    Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    session.setSymbol("batch", kVocab);
    session.bindWeights(Arrays{{"table", Array::fromFloats(all, {kVocab, kVocab})}});
    return session;
  }
};

TEST_P(GreedySteps, TellThatThereIsNoTokenToChoose) {
  Session s = session({{1, 4, 2, 4, 3},  // the first of two
                       {kNone, kNone, kNone, kNone, kNone},
                       {1, 2, NAN, 3, 4},
                       {1, INFINITY, 2, 3, kNone},
                       {kNone, kNone, kNone, -7, kNone}});
  Array ids(DType::I64, {5, 1}), positions(DType::I64, {5});
  for (int64_t text = 0; text < 5; ++text) {
    ids.set(text, double(text));
    positions.set(text, double(15 + text));  // the places wrap around
  }
  s.setState(GreedyStates::kIds, ids);
  s.setState(GreedyStates::kPositions, positions);
  std::vector<Array> outputs;
  s.run(s.entryIndex("greedy"), {}, outputs);
  const Array chosen = s.state(GreedyStates::kChosen);
  const int64_t wanted[] = {1, -1, -1, -1, 3};
  for (int64_t text = 0; text < 5; ++text) {
    const int64_t place = (15 + text) % GreedyStates::kSteps;
    EXPECT_EQ(chosen.at(place * 5 + text), double(wanted[text])) << "text " << text;
    EXPECT_EQ(s.state(GreedyStates::kPositions).at(text), double(16 + text));
  }
  EXPECT_EQ(s.state(GreedyStates::kIds).at(0), 1);
  EXPECT_EQ(s.state(GreedyStates::kIds).at(4), 3);
}

INSTANTIATE_TEST_SUITE_P(Backends, GreedySteps, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe
