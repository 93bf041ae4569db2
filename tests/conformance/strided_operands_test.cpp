// SPDX-License-Identifier: Apache-2.0
// An op that is given every second row and column of something larger, or of something turned,
// means what it means of the same numbers in order: kernels that read views find their elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "tests/closeness.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {
namespace {

constexpr Sizes kSizes{2, 9};

// Elements 1, 1 + step, ... of each axis of something larger, whose axes are reversed if `turned`.
struct View {
  Shape shape;  // as an op takes it
  int64_t step = 2;
  bool turned = true;

  Shape stored() const {
    Shape all;
    for (int64_t size : shape) all.push_back(step * size + 2);
    if (turned) std::reverse(all.begin(), all.end());
    return all;
  }
  Tensor of(const Tensor& whole) const {
    std::vector<int64_t> order(shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
    return slice(turned ? transpose(whole, order) : whole, Dims(shape.size(), 1),
                 Dims(shape.begin(), shape.end()), std::vector<int64_t>(shape.size(), step));
  }
  // The larger array whose view is `values`; between them are others.
  Array spread(const Array& values) const {
    Array all(values.dtype(), stored());
    for (int64_t i = 0; i < all.size(); ++i) all.set(i, isFloat(all.dtype()) ? 1e4 : 1);
    std::vector<int64_t> strides(shape.size());  // of the view's axes
    int64_t distance = 1;
    for (size_t n = 0; n < shape.size(); ++n) {
      const size_t axis = turned ? n : shape.size() - 1 - n;
      strides[axis] = distance;
      distance *= step * shape[axis] + 2;
    }
    for (int64_t i = 0; i < values.size(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
        at += (1 + step * (rest % shape[axis])) * strides[axis];
      all.set(at, values.at(i));
    }
    return all;
  }
};

Shape constants(const Dims& dims) {
  Shape shape;
  for (const Dim& d : dims) shape.push_back(*d.asConstant());
  return shape;
}

// Those with kernels of their own, which take views as they are.
const std::set<std::string> kOwnKernels{"lathe.matmul",      "lathe.linear",     "lathe.attention",
                                        "lathe.update",      "lathe.cumsum",     "lathe.top_k",
                                        "lathe.convolution", "lathe.rope_append"};

class StridedOperands : public ::testing::TestWithParam<std::string> {
 protected:
  void expectSame(DType dtype, int64_t step, bool turned);
};
INSTANTIATE_TEST_SUITE_P(Backends, StridedOperands, ::testing::Values("cpu", "cuda", "reference"),
                         [](const auto& info) { return info.param; });

void StridedOperands::expectSame(DType dtype, int64_t step, bool turned) {
  const FixedSizes fixed(kSizes);
  size_t compared = 0;
  for (const OpRow& row : opTable()) {
    if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) == row.dtypes.end()) continue;
    if (GetParam() != "reference" && !kOwnKernels.contains(row.op)) continue;
    // Samples 2 n and 2 n + 1: of views, and of the numbers in order.
    std::vector<Sample> samples;
    for (const Sample& s : row.samples(dtype)) {
      Sample viewed = s;
      std::vector<View> views;
      for (Input& input : viewed.inputs) {
        views.push_back({constants(input.shape), step, turned});
        if (input.weight) continue;
        const Shape stored = views.back().stored();
        input.shape = Dims(stored.begin(), stored.end());
      }
      viewed.record = [views, s](Graph& g, const std::vector<Tensor>& t) {
        std::vector<Tensor> given = t;
        for (size_t i = 0; i < t.size(); ++i)
          if (!s.inputs[i].weight) given[i] = views[i].of(t[i]);
        return s.record(g, given);
      };
      samples.push_back(viewed);
      samples.push_back(s);
    }
    if (samples.empty()) continue;
    Data data = makeData(samples, kSizes, row.op);
    for (size_t n = 0; n < samples.size(); n += 2)
      for (size_t i = 0; i < samples[n].inputs.size(); ++i) {
        const std::string name = ".in" + std::to_string(i);
        const std::string viewed = std::to_string(n) + name, plain = std::to_string(n + 1) + name;
        if (samples[n].inputs[i].weight)
          data.weights[viewed] = data.weights.at(plain);
        else
          data.inputs[viewed] =
              View{data.inputs.at(plain).shape(), step, turned}.spread(data.inputs.at(plain));
      }
    SCOPED_TRACE(row.op);
    Session session(compile(recordSamples(samples), {.backend = GetParam()}),
                    {.threads = 1, .device = "host"});
    session.bindWeights(data.weights);
    const Arrays got = session.run("forward", data.inputs);
    for (const auto& [output, value] : got) {
      const size_t dot = output.find('.'), sample = std::stoul(output);
      if (sample % 2) continue;
      const Array& want = got.at(std::to_string(sample + 1) + output.substr(dot));
      ASSERT_EQ(value.shape(), want.shape());
      const double scale = std::max(largestValue(want), 1.0);
      EXPECT_LE(largestError(value, want), (dtype == DType::F32 ? 1e-5 : 0x1p-6) * scale)
          << samples[sample].name << output.substr(dot);
      ++compared;
    }
  }
  EXPECT_GT(compared, 10u);
}

TEST_P(StridedOperands, OfEverySecondElementOfSomethingTurned) { expectSame(DType::F32, 2, true); }
// Rows in order, whose first elements lie beside the words of 16-bit numbers.
TEST_P(StridedOperands, OfRowsThatBeginAtAnOddElement) { expectSame(DType::BF16, 1, false); }

}  // namespace
}  // namespace lathe::conformance
