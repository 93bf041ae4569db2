// SPDX-License-Identifier: Apache-2.0
// The sizes and data that questions about numbers choose, and what a reproducer's files say.
#include "inspect/questions/reproducer.h"

#include <gmock/gmock.h>

#include "frontend/graph_impl.h"
#include "lathe/lathe.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::TemporaryFolder;
using ::testing::ElementsAre;

struct Range {
  const char* name;
  int64_t lo, hi, multiple = 1;
};
SymbolValues sizesOf(const std::vector<Range>& inputs, const std::vector<Range>& states,
                     const TrialOptions& options = {}) {
  Graph g;
  for (const Range& r : inputs)
    g.output(std::string("y") + r.name,
             exp(g.input(r.name, DType::F32, {g.dim(r.name, r.lo, r.hi, r.multiple)})));
  for (const Range& r : states) {
    g.state(std::string("s") + r.name, DType::F32, {g.dim(r.name, r.lo, r.hi, r.multiple)});
    g.writeState(std::string("s") + r.name, exp(g.readState(std::string("s") + r.name)));
  }
  const Trial trial(g.impl().finished(), options);
  return {trial.sizes().begin(), trial.sizes().end()};
}

TEST(TrialSizes, EachIsSmallAndAnotherOne) {
  std::vector<Range> ranges;
  static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  for (const char* name : names) ranges.push_back({name, 1, 100});
  const int64_t small[] = {2, 5, 3, 7, 4, 11, 6, 13, 2, 5},
                larger[] = {17, 19, 16, 23, 18, 29, 20, 31, 17, 19};
  for (bool isLarger : {false, true}) {
    TrialOptions options;
    options.larger = isLarger;
    const SymbolValues sizes = sizesOf(ranges, {{"kept", 1, 4096}}, options);
    for (size_t i = 0; i < std::size(names); ++i)
      EXPECT_EQ(sizes.at(names[i]), (isLarger ? larger : small)[i]) << names[i];
    EXPECT_EQ(sizes.at("kept"), isLarger ? 64 : 16) << "a capacity holds what is asked for";
  }
}

TEST(TrialSizes, KeepToRangesAndMultiples) {
  for (const auto& [range, size] : {std::pair(Range{"n", 1, 1}, 1),
                                    {{"n", 3, 9}, 3},
                                    {{"n", 1, 64, 8}, 8},
                                    {{"n", 5, 64, 4}, 8},
                                    {{"n", 9, 11, 10}, 10},
                                    {{"n", 0, 64}, 2}})
    EXPECT_EQ(sizesOf({range}, {}).at("n"), size)
        << range.lo << " to " << range.hi << " by " << range.multiple;
  EXPECT_EQ(sizesOf({}, {{"n", 1, 15, 4}}).at("n"), 12);
  EXPECT_EQ(sizesOf({}, {{"n", 40, 80}}).at("n"), 40);
}

// A program is told the sizes that no input has alone.
TEST(TrialSizes, OfInputsThatHoldThemAsPartsAreTold) {
  Graph g;
  const Dim n = g.dim("n", 1, 64), m = g.dim("m", 1, 64);
  g.output("y", exp(g.input("x", DType::F32, {n * 3, n + m})));
  Trial trial(g.impl().finished(), {});
  EXPECT_TRUE(trial.judgeBackend(trial.run(compile(g))).within);
}

// Nine tenths of what was rounded cancel, so the rest is off by ten roundings: by half a step each
// where all go to the nearer number, by up to a whole one where chance decides.
TEST(TrialRoundings, OthersAreTriedBeforeAnyoneIsAccused) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {512});
  g.output("y", cast(cast(x, DType::BF16), DType::F32) - x * 0.9);
  for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Strict}) {
    TrialOptions options;
    options.precision = Precision::OwnDtype;
    options.compile.pipeline.mode = mode;
    Trial trial(g.impl().finished(), options);
    const double before = trial.allowed(0);
    EXPECT_TRUE(trial.judge(trial.wanted()).within);
    EXPECT_EQ(trial.allowed(0), before) << "nobody was to be accused";
    TrialResults wrong = trial.wanted();
    wrong[0].value = wrong[0].value.clone();
    wrong[0].value.set(3, 100);
    EXPECT_FALSE(trial.judge(wrong).within);
    if (mode == NumericsMode::Strict) {
      EXPECT_EQ(trial.allowed(0), 0);
    } else {
      EXPECT_GT(trial.allowed(0), 1.4 * before);
      EXPECT_LT(trial.allowed(0), 2.5 * before);
    }
  }
}

TEST(TrialSizes, MistakesAreTold) {
  auto told = [](int64_t size, const char* message) {
    TrialOptions options;
    options.sizes = {{"n", size}};
    expectError(ErrorCode::InvalidArgument, message,
                [&] { sizesOf({{"n", 4, 12, 4}}, {}, options); });
  };
  told(3, "size 'n': expected 4 to 12 in multiples of 4, got 3");
  told(16, "size 'n': expected 4 to 12 in multiples of 4, got 16");
  told(6, "size 'n': expected 4 to 12 in multiples of 4, got 6");
  TrialOptions right;
  right.sizes = {{"n", 12}};
  EXPECT_EQ(sizesOf({{"n", 4, 12, 4}}, {}, right).at("n"), 12);
  TrialOptions other;
  other.sizes = {{"m", 1}};
  expectError(ErrorCode::InvalidArgument, "the graph has no size 'm'; it has k, n",
              [&] { sizesOf({{"n", 1, 2}, {"k", 1, 2}}, {}, other); });
  Graph fixed;
  fixed.output("y", exp(fixed.input("x", DType::F32, {3})));
  expectError(ErrorCode::InvalidArgument, "the graph has no size 'm'; it has none",
              [&] { Trial(fixed.impl().finished(), other); });
  Graph two;
  const Dim n = two.dim("n", 1, 8);
  two.output("y", (two.input("a", DType::F32, {n}) + two.input("b", DType::F32, {n})) *
                      two.weight("w", DType::F32, {1}));
  TrialOptions given;
  given.inputs = {{"a", Array(DType::F32, {3})}, {"b", Array(DType::F32, {5})}};
  expectError(ErrorCode::InvalidArgument, "size 'n': input 'b' has 5, another input or --set has 3",
              [&] { Trial(two.impl().finished(), given); });
  given.inputs.erase("a");
  given.sizes = {{"n", 3}};
  expectError(ErrorCode::InvalidArgument, "size 'n': input 'b' has 5, another input or --set has 3",
              [&] { Trial(two.impl().finished(), given); });
  given.sizes.clear();
  given.weights = [](const std::string&) { return Array(); };
  expectError(ErrorCode::InvalidArgument, "weight 'w' is not in the checkpoint",
              [&] { Trial(two.impl().finished(), given); });
  TrialOptions negative;
  negative.tolerance = -1;
  expectError(ErrorCode::InvalidArgument,
              "expected a tolerance of 0 (the contract) or more, got -1.000000",
              [&] { sizesOf({{"n", 1, 2}}, {}, negative); });
}

// --- data

TEST(TrialData, IsAsItsSeedAndNameSay) {
  Graph g;
  const Tensor a = g.input("a", DType::F32, {1000}), b = g.input("b", DType::F32, {1000}),
               c = g.input("c", DType::Bool, {1000}), i = g.input("i", DType::I32, {1000});
  g.output("y", a + b);
  g.output("z", c);
  g.output("w", i);
  auto argument = [&](uint64_t seed, size_t which) {
    TrialOptions options;
    options.seed = seed;
    return Trial(g.impl().finished(), options).arguments("forward")[which].clone();
  };
  auto same = [](const Array& x, const Array& y) {
    return std::memcmp(x.data(), y.data(), x.bytes()) == 0;
  };
  EXPECT_TRUE(same(argument(3, 0), argument(3, 0)));
  EXPECT_FALSE(same(argument(3, 0), argument(4, 0)));
  EXPECT_FALSE(same(argument(3, 0), argument(3, 1)));
  double sum = 0, squares = 0, trues = 0, largest = 0;
  const Array x = argument(3, 0), truth = argument(3, 2), ids = argument(3, 3);
  for (int64_t n = 0; n < 1000; ++n) {
    sum += x.at(n);
    squares += x.at(n) * x.at(n);
    trues += truth.at(n);
    largest = std::max(largest, ids.at(n));
    EXPECT_LE(std::abs(x.at(n)), 2);
    EXPECT_GE(ids.at(n), 0);
  }
  EXPECT_NEAR(sum / 1000, 0, 0.1);
  EXPECT_NEAR(squares / 1000, 1.0 / 3, 0.05) << "a sum of four uniforms";
  EXPECT_NEAR(trues / 1000, 0.75, 0.05);
  EXPECT_EQ(largest, 7) << "of what indexes nothing";
}

// --- what a reproducer says

TEST(ReproducerFiles, CommandsHaveAllFlagsOfTheCompilation) {
  Graph g;
  const Tensor x = g.input("x0", DType::F32, {2}), y = g.input("x1", DType::BF16, {2});
  g.output("y0", x * g.weight("w", DType::F32, {2}));
  g.output("y1", exp(y));
  CutGraph cut{std::move(g), {}, 2};
  cut.trial.inputs = {{"x0", Array(DType::F32, {2})}, {"x1", Array(DType::BF16, {2})}};
  cut.trial.weights = [](const std::string&) { return Array(DType::F32, {2}); };
  TemporaryFolder folder;
  const std::string out = folder / "out",
                    run = "lathe run " + out + "/reproducer.mlir --input x0=@" + out +
                          "/x0.npy --input x1=@" + out + "/x1.safetensors:x1 --weights " + out +
                          "/weights.safetensors";
  cut.trial.compile.backend = "cpu";
  Reproducer plain = write(cut, out);
  EXPECT_EQ(plain.file, out + "/reproducer.mlir");
  EXPECT_EQ(plain.ops, 2u);
  EXPECT_THAT(plain.data,
              ElementsAre(out + "/x0.npy", out + "/x1.safetensors", out + "/weights.safetensors"));
  for (const std::string& file : plain.data) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  const std::string passes = "builtin.module(lathe-canonicalize,lathe-cse,lathe-fuse";
  EXPECT_THAT(
      plain.commands,
      ElementsAre(run + " --backend reference --stop-after-rewrite 0", run + " --backend cpu",
                  "lathe-opt " + out + "/reproducer.mlir '--pass-pipeline=" + passes +
                      ")' --log-rewrites"));
  PipelineOptions& pipeline = cut.trial.compile.pipeline;
  pipeline.mode = NumericsMode::Fast;
  pipeline.patternFiles = {"a.pdl", "b.pdl"};
  pipeline.plugins = {"p q.so"};
  pipeline.passes = "cse";
  cut.trial.compile.backend = "cuda";
  cut.trial.compile.backendPlugins = {"b.so"};
  cut.trial.compile.backendOptions.weights = parseWeightFormats("int8");
  cut.trial.device = "host";
  EXPECT_THAT(
      write(cut, out).commands,
      ElementsAre(run + " --backend reference --stop-after-rewrite 0",
                  run + " --backend cuda --mode fast --weight-format "
                        "int8:channel,embedding=int8:channel,head=int8:channel --patterns a.pdl"
                        " --patterns b.pdl --load-pass-plugin 'p q.so' --passes cse"
                        " --load-backend-plugin b.so --device host",
                  "lathe-opt " + out +
                      "/reproducer.mlir '--load-pass-plugin=p q.so' --numerics=fast"
                      " '--pass-pipeline=" +
                      passes + "{patterns=a.pdl,b.pdl},cse)' --log-rewrites"));
  pipeline.patternFiles = {"a b.pdl"};
  EXPECT_THAT(write(cut, out).commands[2],
              testing::HasSubstr("lathe-fuse{patterns={a b.pdl}},cse)"));
  expectError(ErrorCode::Io, "cannot make the folder ",
              [&] { write(cut, out + "/reproducer.mlir/below"); });
}

}  // namespace
}  // namespace lathe
