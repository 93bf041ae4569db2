// SPDX-License-Identifier: Apache-2.0
// A search through values asks each once, and no more than it was told.
#include "passes/rewrite/asked_once.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lathe {
namespace {

// Number n is reached from n + 1 by two paths.
struct Paths {
  AskedOnce<int, int>& asked;
  int visits = 0;
  int longest(int from) {
    return asked.of(from, [&] {
      ++visits;
      return from == 0 ? 0 : 1 + std::max(longest(from - 1), longest(from - 1));
    });
  }
};

TEST(AskedOnce, EachQuestionIsAnsweredOnce) {
  AskedOnce<int, int> asked;
  Paths paths{asked};
  EXPECT_EQ(paths.longest(60), 60);
  EXPECT_EQ(paths.visits, 61);
  EXPECT_EQ(paths.longest(7), 7);  // known from before
  EXPECT_EQ(paths.visits, 61);
}

TEST(AskedOnce, OtherQuestionsHaveOtherAnswers) {
  AskedOnce<int, std::pair<int, int>> asked;
  for (int a : {1, 2})
    for (int b : {3, 4}) EXPECT_EQ(asked.of({a, b}, [&] { return 10 * a + b; }), 10 * a + b);
  EXPECT_EQ(asked.of({2, 3}, [] { return 0; }), 23);
}

// Questions that are asked while another is open count, too: no chain is followed further.
TEST(AskedOnce, BeyondItsNumberNothingIsAsked) {
  AskedOnce<int, int> asked(10, -100);
  Paths paths{asked};
  EXPECT_EQ(paths.longest(60), 10 - 100);
  EXPECT_EQ(paths.visits, 10);
  EXPECT_EQ(paths.longest(55), 5 - 100) << "what was asked is known";
  EXPECT_EQ(paths.longest(3), -100);
  EXPECT_EQ(paths.visits, 10);
}

TEST(AskedOnce, ANumberOfQuestionsIsAskedToTheLast) {
  AskedOnce<int, int> asked(61, -100);
  Paths paths{asked};
  EXPECT_EQ(paths.longest(60), 60);
}

}  // namespace
}  // namespace lathe
