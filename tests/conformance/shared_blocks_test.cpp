// SPDX-License-Identifier: Apache-2.0
// Sequences whose tables name blocks of each other, and blocks several times: on every backend the
// cache is what it is if the rows are written one after the other.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lathe/lathe.h"

namespace lathe::conformance {
namespace {

class SharedBlocks : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedBlocks, HoldWhatWasWrittenLast) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), tokens = g.dim("tokens", 1, 16),
            entries = g.dim("entries", 1, 4), blocks = g.dim("blocks", 1, 9);
  const Tensor x = g.input("x", DType::F32, {blocks, 2, 4, 3}),
               value = g.input("value", DType::F32, {batch, 2, tokens, 3}),
               table = g.input("table", DType::I64, {batch, entries}),
               at = g.input("at", DType::I64, {batch});
  g.output("y", pagedUpdate(x, value, table, at, 2));
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  std::mt19937 random(7);
  auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  for (int round = 0; round < 60; ++round) {
    const int64_t sequences = 1 + below(4), columns = 1 + below(4), held = 1 + below(5),
                  places = columns * 4, count = 1 + below(places);
    Array cache(DType::F32, {held, 2, 4, 3}), rows(DType::F32, {sequences, 2, count, 3}),
        chosen(DType::I64, {sequences, columns}), first(DType::I64, {sequences});
    for (int64_t i = 0; i < cache.size(); ++i) cache.set(i, -double(i) - 1);
    for (int64_t i = 0; i < rows.size(); ++i) rows.set(i, double(i));
    for (int64_t i = 0; i < chosen.size(); ++i) chosen.set(i, double(below(held)));
    for (int64_t i = 0; i < first.size(); ++i) first.set(i, double(below(places - count + 1)));
    Array want = cache.clone();
    for (int64_t b = 0; b < sequences; ++b)
      for (int64_t s = 0; s < count; ++s) {
        const int64_t place = int64_t(first.at(b)) + s,
                      block = int64_t(chosen.at(b * columns + place / 4));
        for (int64_t head = 0; head < 2; ++head)
          for (int64_t i = 0; i < 3; ++i)
            want.set(((block * 2 + head) * 4 + place % 4) * 3 + i,
                     rows.at(((b * 2 + head) * count + s) * 3 + i));
      }
    const Array got =
        session.run("forward", {{"x", cache}, {"value", rows}, {"table", chosen}, {"at", first}})
            .at("y");
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(got.at(i), want.at(i))
          << "round " << round << ", element " << i << ": " << sequences << " sequences of "
          << count << " rows, " << columns << " entries, " << held << " blocks";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SharedBlocks, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
