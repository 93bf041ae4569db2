// SPDX-License-Identifier: Apache-2.0
// Rows that each choose one of several weights, on every tier: whatever the choice, each row is its
// own product with the weight that it chose, and no other weight is touched.
#include "backends/cpu/device/grouped_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lathe/runtime/error.h"
#include "tests/closeness.h"
#include "tests/unit/cpu_matmul_values.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

using ::testing::HasSubstr;

struct GroupedCase {
  GroupedSpec spec;
  int64_t rows, rowsOfA;
  std::string choice;
  std::function<int64_t(int64_t row)> group;
};

std::vector<uint16_t> bitsOf(const GroupedSpec& spec, const std::vector<char>& c) {
  std::vector<uint16_t> bits(c.size() / 2);
  std::memcpy(bits.data(), c.data(), bits.size() * 2);
  return bits;
}

class Layer {
 public:
  explicit Layer(const GroupedCase& t)
      : case_(t),
        a_(randomValues(t.spec.dtype, t.rowsOfA * t.spec.k + 1, 1)),
        w_(randomValues(t.spec.dtype, t.spec.groups * t.spec.k * t.spec.n + 1, 2)) {
    std::mt19937 random(7);
    for (int64_t r = 0; r < t.rows; ++r) {
      groups_.push_back(t.group(r));
      from_.push_back(t.rowsOfA == t.rows ? r : int64_t(random() % uint64_t(t.rowsOfA)));
    }
  }

  // Weights that nobody chooses hold NaN.
  void spoilTheOthers() {
    std::vector<bool> chosen(size_t(case_.spec.groups), false);
    for (int64_t g : groups_) chosen[size_t(g)] = true;
    const size_t one = size_t(case_.spec.k * case_.spec.n);
    for (size_t i = 0; i < one * chosen.size(); ++i)
      if (!chosen[i / one]) {
        if (w_.dtype == DType::F32)
          w_.f32[i] = std::numeric_limits<float>::quiet_NaN();
        else
          w_.narrow[i] = w_.dtype == DType::BF16 ? 0x7fc0 : 0x7e00;
      }
  }

  std::vector<char> run(KernelIsa isa, int threads) { return run(case_.spec, isa, threads); }
  std::vector<char> run(const GroupedSpec& spec, KernelIsa isa, int threads) {
    ThreadPool pool(threads);
    const PackedShape shape{spec.dtype, spec.k, spec.n};
    const bool packed = spec.layout == WeightLayout::packed;
    Buffer weights(packed ? size_t(spec.groups) * shape.bytes() : 0);
    for (int64_t g = 0; packed && g < spec.groups; ++g)
      packWeights(
          shape,
          static_cast<const char*>(w_.data()) + size_t(g * spec.k * spec.n) * sizeOf(spec.dtype),
          spec.dtype, true, weights.start() + size_t(g) * shape.bytes(), pool, isa);
    const GroupedLinear layer(spec, threads, isa);
    Buffer scratch(layer.scratchBytes(case_.rows));
    const size_t bytes = size_t(case_.rows * spec.n) * sizeOf(spec.out());
    std::vector<char> c(bytes + 64, 0x5a);
    const size_t ofA = size_t(case_.rowsOfA * spec.k) * sizeOf(spec.dtype);
    EndOfPages a(ofA);  // nothing is read behind its rows
    std::memcpy(a.start(), a_.data(), ofA);
    GroupedArgs args;
    args.rows = case_.rows;
    args.a = a.start();
    args.rowOfA = from_.data();
    args.groupOfRow = groups_.data();
    args.weights = packed ? weights.start() : w_.data();
    args.c = c.data();
    layer.run(args, pool, scratch.scratch());
    EXPECT_TRUE(scratch.guardsHold());
    for (size_t i = bytes; i < c.size(); ++i) EXPECT_EQ(c[i], 0x5a) << "behind the last row";
    c.resize(bytes);
    return c;
  }

  // Also of a result that is not rounded to 16 bits.
  void check(KernelIsa isa, int threads) {
    check(case_.spec, isa, threads);
    GroupedSpec wide = case_.spec;
    wide.outDType = DType::F32;
    if (sizeOf(wide.dtype) == 2) check(wide, isa, threads);
  }
  void check(const GroupedSpec& spec, KernelIsa isa, int threads) {
    const DType out = spec.out();
    SCOPED_TRACE(label(isa) + " " + std::string(nameOf(spec.dtype)) + " to " +
                 std::string(nameOf(out)) + " " + std::string(nameOf(spec.layout)) + " " +
                 std::to_string(case_.rows) + "x" + std::to_string(spec.k) + "x" +
                 std::to_string(spec.n) + " of " + std::to_string(spec.groups) + ", " +
                 case_.choice + ", threads " + std::to_string(threads));
    const std::vector<char> c = run(spec, isa, threads);
    int64_t wrong = 0;
    for (int64_t r = 0; r < case_.rows; ++r)
      for (int64_t j = 0; j < spec.n; ++j) {
        double expected = 0;
        const int64_t g = groups_[size_t(r)];
        for (int64_t k = 0; k < spec.k; ++k) {
          const int64_t inner =
              spec.layout == WeightLayout::in_out ? k * spec.n + j : j * spec.k + k;
          expected += a_.exact[size_t(from_[size_t(r)] * spec.k + k)] *
                      w_.exact[size_t(g * spec.k * spec.n + inner)];
        }
        const size_t at = size_t(r * spec.n + j) * sizeOf(out);
        float wide;
        uint16_t narrow;
        std::memcpy(&wide, c.data() + at, out == DType::F32 ? 4 : 0);
        std::memcpy(&narrow, c.data() + at, 2);
        const double got = out == DType::F32 ? wide : widened(out, narrow);
        if (!isNear(got, expected, tolerance(out, spec.k, expected)) && ++wrong < 4)
          ADD_FAILURE() << "[" << r << ", " << j << "] expected " << expected << ", got " << got;
      }
    EXPECT_EQ(wrong, 0);
  }

 private:
  GroupedCase case_;
  Values a_, w_;
  std::vector<int64_t> groups_, from_;
};

// Every weight alike, none but one, one far more than others, by chance.
std::vector<GroupedCase> choices(const GroupedSpec& spec, int64_t rows) {
  const int64_t groups = spec.groups;
  return {{spec, rows, rows, "in turn", [=](int64_t r) { return r % groups; }},
          {spec, rows, rows, "the last alone", [=](int64_t) { return groups - 1; }},
          {spec, rows, rows, "one behind the other", [=](int64_t r) { return r * groups / rows; }},
          {spec, rows, std::max<int64_t>(1, rows / 3), "unequally", [=](int64_t r) {
             return r % 5 ? groups / 2 : int64_t(std::mt19937(unsigned(r))() % uint64_t(groups));
           }}};
}

TEST(Grouped, AwkwardShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t rows : {1, 2, 7, 33, 100})
        for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 7}, {33, 257}, {257, 1}, {64, 192}})
          for (const GroupedCase& t : choices({dtype, 5, k, n}, rows))
            for (int threads : {1, 3}) {
              Layer layer(t);
              layer.spoilTheOthers();
              layer.check(isa, threads);
            }
}

// More rows of one weight than are brought together at a time.
TEST(Grouped, ManyRowsOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (const GroupedCase& t : choices({dtype, 3, 70, 130}, 600)) Layer(t).check(isa, 2);
}

TEST(Grouped, WeightsThatAreNotPacked) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out})
        for (int64_t rows : {1, 5, 40})
          for (const GroupedCase& t : choices({dtype, 4, 33, 70, layout}, rows)) {
            Layer layer(t);
            layer.spoilTheOthers();
            layer.check(isa, 2);
          }
}

// How the work is dealt out changes no bit.
TEST(Grouped, EveryNumberOfThreadsGivesTheSameBits) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (const GroupedCase& t : choices({dtype, 6, 70, 330}, 90)) {
        SCOPED_TRACE(label(isa) + " " + t.choice);
        const std::vector<char> one = Layer(t).run(isa, 1);
        for (int threads : {2, 3, 5, 8})
          EXPECT_EQ(bitsOf(t.spec, Layer(t).run(isa, threads)), bitsOf(t.spec, one)) << threads;
      }
}

TEST(Grouped, NothingToDo) {
  for (KernelIsa isa : tiers()) {
    for (auto [rows, k, n] : {std::tuple<int64_t, int64_t, int64_t>{0, 8, 8}, {3, 8, 0}}) {
      GroupedCase t{
          {DType::F32, 2, k, n}, rows, std::max<int64_t>(rows, 1), "", [](int64_t) { return 0; }};
      EXPECT_EQ(Layer(t).run(isa, 2).size(), size_t(rows * n) * 4);
    }
    // Sums of nothing.
    GroupedCase t{{DType::F32, 2, 0, 5}, 3, 3, "", [](int64_t) { return 1; }};
    EXPECT_EQ(Layer(t).run(isa, 2), std::vector<char>(3 * 5 * 4, 0));
  }
}

TEST(Grouped, TooLittleScratchIsTold) {
  ThreadPool pool(2);
  const GroupedLinear layer({DType::F32, 2, 8, 8}, 2, tiers().front());
  Buffer scratch(layer.scratchBytes(4) - 1);
  GroupedArgs args;
  args.rows = 4;
  try {
    layer.run(args, pool, scratch.scratch());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("bytes of scratch for a grouped layer"));
  }
}

}  // namespace
}  // namespace lathe::cpu
