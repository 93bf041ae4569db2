// SPDX-License-Identifier: Apache-2.0
// What weights in few bits cost the trained model, on stories that it was not trained on: the mean
// divergence of its next-token distributions from those of the stored bf16 weights.
// held_out.txt: scripts/story_grammar.py's story(random.Random(20242)), 24 times.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/tokenizer.h"

namespace lathe {
namespace {

const std::string kModel = LATHE_SOURCE_DIR "/examples/models/stories";

std::vector<Array> heldOut() {
  std::ifstream json(kModel + "/tokenizer.json"),
      text(LATHE_TEST_DATA "/golden/stories/held_out.txt");
  const Tokenizer tokenizer = Tokenizer::parse(
      std::string(std::istreambuf_iterator<char>(json), {}), kModel + "/tokenizer.json");
  std::vector<Array> stories;
  for (std::string line; std::getline(text, line);) {
    const auto ids = tokenizer.encode(line);
    Array array(DType::I64, {1, int64_t(ids.size())});
    for (size_t i = 0; i < ids.size(); ++i) array.set(int64_t(i), double(ids[i]));
    stories.push_back(array);
  }
  return stories;
}

std::vector<Array> logitsOf(const std::vector<Array>& stories, const char* formats,
                            const char* backend = "cpu", DType dtype = DType::F32) {
  Checkpoint checkpoint = Checkpoint::open(kModel);
  Session session(
      compile(buildLlama(loadLlamaConfig(kModel), {.dtype = dtype, .weightDType = DType::BF16}),
              {.backend = backend, .backendOptions = {.weights = parseWeightFormats(formats)}}),
      {.device = "host"});
  session.bindWeights(
      [&](const std::string& name) { return checkpoint.find(name).value_or(Array()); });
  std::vector<Array> logits;
  for (const Array& ids : stories)
    logits.push_back(session.run("forward", {{"input_ids", ids}}).at("logits").to(DType::F32));
  return logits;
}

// sum p (log p - log q) of one row of logits each, in nats.
double divergence(std::span<const float> p, std::span<const float> q) {
  auto logSum = [](std::span<const float> row) {
    double top = -INFINITY, sum = 0;
    for (float x : row) top = std::max(top, double(x));
    for (float x : row) sum += std::exp(x - top);
    return top + std::log(sum);
  };
  const double p0 = logSum(p), q0 = logSum(q);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i] - p0) * ((p[i] - p0) - (q[i] - q0));
  return sum;
}

double meanDivergence(const std::vector<Array>& want, const std::vector<Array>& got) {
  double sum = 0;
  int64_t rows = 0;
  for (size_t s = 0; s < want.size(); ++s) {
    const size_t columns = size_t(want[s].shape().back());
    auto p = want[s].as<float>(), q = got[s].as<float>();
    for (size_t at = 0; at < p.size(); at += columns, ++rows)
      sum += divergence(p.subspan(at, columns), q.subspan(at, columns));
  }
  return sum / double(rows);
}

TEST(WeightFormatsOnStories, StayNearTheStoredWeights) {
  const std::vector<Array> stories = heldOut();
  ASSERT_EQ(stories.size(), 24u);
  const std::vector<Array> want = logitsOf(stories, "stored");
  struct Bound {
    const char* formats;
    double most;
  };
  double last = 0;
  for (Bound b : {Bound{"int8", 3e-5},
                  {"int4:32:asymmetric", 1.2e-3},
                  {"int4", 1.5e-3},
                  {"int4:channel", 3e-3}}) {
    const double mean = meanDivergence(want, logitsOf(stories, b.formats));
    std::printf("mean KL of %s from the stored weights: %.3g nats a token\n", b.formats, mean);
    EXPECT_LT(mean, b.most) << b.formats;
    EXPECT_GT(mean, last) << b.formats << " is nearer than what has more bits";
    last = mean;
  }
}

// Activations in 8 bits cost less than weights in 4, also where many rows of bf16 meet bytes.
TEST(WeightFormatsOnStories, StayNearWithActivationsInEightBits) {
  const std::vector<Array> stories = heldOut(), want = logitsOf(stories, "stored");
  struct Bound {
    const char* formats;
    double most;
  };
  for (DType dtype : {DType::F32, DType::BF16})
    for (Bound b : {Bound{"int8,activations=int8", 1e-4}, {"int4,activations=int8", 1.5e-3}}) {
      const double mean = meanDivergence(want, logitsOf(stories, b.formats, "cpu", dtype));
      const std::string name(nameOf(dtype));
      std::printf("mean KL of %s in %s from the stored weights in f32: %.3g nats a token\n",
                  b.formats, name.c_str(), mean);
      EXPECT_LT(mean, b.most) << b.formats << " " << name;
    }
}

// The same integers on every backend.
TEST(WeightFormatsOnStories, CudaKernelsOnTheHostAgree) {
  const std::vector<Array> stories{heldOut().front()};
  for (const char* formats : {"int8", "int4:32:asymmetric"}) {
    const std::vector<Array> want = logitsOf(stories, formats);
    EXPECT_LT(meanDivergence(want, logitsOf(stories, formats, "cuda")), 1e-8) << formats;
  }
}

}  // namespace
}  // namespace lathe
