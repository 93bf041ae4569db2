// SPDX-License-Identifier: Apache-2.0
// Projections whose heads are normed, rotated and written into a cache, as one kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/nvrtc/cubin_report.h"
#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "lathe/frontend/compile.h"
#include "lathe/runtime/error.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/observed_errors.h"
#include "tests/unit/cuda/host_program.h"
#include "tests/unit/cuda/tuning_records.h"
#include "tests/unit/cuda/normed_decoder.h"

namespace lathe::cuda {
namespace {

using Sizes = std::map<std::string, int64_t, std::less<>>;

// The kernels that one run launches; a copy that an update in place leaves out is none.
std::vector<const Launch*> launchesOf(const Program& program, const KernelTable& table,
                                      const std::string& entry, const Sizes& sizes) {
  std::vector<const Launch*> launches;
  for (const Call& call : program.entry(entry).calls) {
    if (call.kind == "copy") continue;
    for (const Variant& v : table.at(call.callee)) {
      const bool fits = std::ranges::all_of(v.when, [&](const Condition& c) {
        const int64_t value = c.value.evaluate(sizes).value();
        return c.low <= value && value <= c.high;
      });
      if (!fits) continue;
      for (const Launch& l : v.launches)
        if (l.unlessSame[0] < 0) launches.push_back(&l);
      break;
    }
  }
  return launches;
}

struct Case {
  std::string name;
  NormedDecoder model;
  int cluster = 1;  ///< of the kernel for one row; 0: there is none
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class NormedProjection : public ::testing::TestWithParam<Case> {};

void expectNear(const Array& got, const Array& want, int64_t head, DType dtype,
                const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  // A rotation mixes two elements of a head, each of which may be rounded the other way.
  const double ulps = dtype == DType::BF16 ? 3.0 / 256 : 1.2e-6;
  const std::string kind = "cuda normed projection " + std::string(nameOf(dtype));
  int wrong = 0;
  double bound = 0;
  for (int64_t i = 0; i < want.size() && wrong < 4; ++i) {
    if (i % head == 0) {
      double largest = 0;
      for (int64_t j = i; j < i + head; ++j)
        if (std::isfinite(want.at(j))) largest = std::max(largest, std::abs(want.at(j)));
      bound = ulps * largest + 1e-9;
    }
    test::ObservedErrors::note(kind, errorOf(got.at(i), want.at(i)), bound);
    if (isNear(got.at(i), want.at(i), bound)) continue;
    ++wrong;
    ADD_FAILURE() << what << ": element " << i << " is " << got.at(i) << ", expected "
                  << want.at(i);
  }
}

TEST_P(NormedProjection, IsTheReferences) {
  NormedDecoder model = GetParam().model;
  model.projectsOnly = true;
  // Room for what is run: kernels for more rows are not made.
  if (!test::inDepth()) model.maxSeq = 4;
  const Graph graph = model.graph();
  const bool inClusters = GetParam().cluster > 1;
  auto program = compiledAs(graph, inClusters ? "gemv-dot warps=8x1 splits=1 columns=2" : "");
  Session reference(compile(graph, {.backend = "reference"}));
  reference.bindRandomWeights(11);
  const KernelTable table = kernelTableOf(*program);
  struct Call {
    int64_t batch, seq;
  };
  uint64_t seed = 1;
  // One row, few and many; in depth also other ways to have few and many.
  std::vector<Call> calls{{1, 1}, {1, 3}, {4, 4}};
  if (test::inDepth()) calls = {{1, 1}, {1, 2}, {1, 3}, {2, 2}, {4, 4}, {2, 9}};
  for (auto [batch, seq] : calls) {
    if (model.heads > 8 && batch * seq > 2) continue;
    const std::string rows = std::to_string(batch) + " x " + std::to_string(seq) + " rows";
    const auto launches = launchesOf(*program, table, "step", {{"batch", batch}, {"seq", seq}});
    const int64_t clusters = std::ranges::count_if(launches, [](const Launch* l) {
      return l->kernel.starts_with("region") && l->cluster > 1;
    });
    if (batch * seq == 1) {
      EXPECT_EQ(clusters, GetParam().cluster > 1) << rows;
      EXPECT_EQ(std::ranges::any_of(launches,
                                    [](const Launch* l) {
                                      return l->grid[0].most &&
                                             l->grid[0].count.asConstant() > l->grid[0].most;
                                    }),
                model.heads > 8)
          << rows;
    }
    HostProgram cuda(program, "check,random,seed=" + std::to_string(seed++));
    cuda.session().bindRandomWeights(11);
    Array ids(DType::I64, {batch, seq}), positions(DType::I64, {batch});
    for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double(i * 7 % model.vocabulary));
    for (int64_t i = 0; i < batch; ++i) positions.set(i, double(5 * i + 3));
    const Arrays inputs = {{"ids", ids}, {"positions", positions}};
    reference.resetStates();
    const Arrays got = cuda.session().run("step", inputs), want = reference.run("step", inputs);
    expectNear(got.at("q"), want.at("q"), model.headDim, model.dtype, rows + ", q");
    for (const char* state : {"layers.0.keys", "layers.0.values"})
      expectNear(cuda.session().state(state), reference.state(state), model.headDim, model.dtype,
                 rows + ", " + state);
  }
}

NormedDecoder sized(int64_t headDim, DType dtype, int64_t heads = 4, int64_t hidden = 96) {
  NormedDecoder d;
  d.headDim = headDim;
  d.dtype = dtype;
  d.heads = heads;
  d.keyHeads = 2;
  d.hidden = hidden;
  return d;
}
NormedDecoder afterTranspose(NormedDecoder d) {
  d.transposedFirst = true;
  return d;
}
NormedDecoder interleaved(NormedDecoder d) {
  d.pairing = Pairing::interleaved;
  return d;
}
NormedDecoder gainFirst(NormedDecoder d) {
  d.norm.rounding = GainRounding::after_gain;
  return d;
}
NormedDecoder rotatedInPart(NormedDecoder d, int64_t elements) {
  d.rotated = elements;
  return d;
}
NormedDecoder withValues(NormedDecoder d) {
  d.normsValues = true;
  return d;
}

INSTANTIATE_TEST_SUITE_P(
    Heads, NormedProjection,
    ::testing::Values(
        Case{"f32_of_64", sized(64, DType::F32), 4}, Case{"f32_of_128", sized(128, DType::F32), 8},
        Case{"bf16_of_64", sized(64, DType::BF16), 4},
        Case{"bf16_of_128", sized(128, DType::BF16), 8},
        Case{"bf16_of_16", sized(16, DType::BF16), 1},
        Case{"bf16_of_32_after_the_transpose", afterTranspose(sized(32, DType::BF16, 6)), 1},
        Case{"bf16_of_96_which_is_no_tile", sized(96, DType::BF16), 0},
        Case{"bf16_of_128_interleaved", interleaved(sized(128, DType::BF16)), 8},
        Case{"bf16_of_64_gain_first", gainFirst(sized(64, DType::BF16)), 4},
        Case{"f32_of_64_rotated_in_part", rotatedInPart(sized(64, DType::F32), 16), 4},
        Case{"f32_of_32_rotated_in_half", rotatedInPart(sized(32, DType::F32, 6), 16), 1},
        Case{"bf16_of_64_rotated_in_part_interleaved",
             rotatedInPart(interleaved(sized(64, DType::BF16)), 24), 4},
        Case{"f32_of_64_and_values", withValues(sized(64, DType::F32)), 4},
        Case{"f32_of_8_and_values_after_the_transpose",
             afterTranspose(withValues(sized(8, DType::F32, 8))), 1},
        Case{"f32_of_6_which_is_no_tile", sized(6, DType::F32), 0},
        Case{"bf16_of_odd_rows", sized(64, DType::BF16, 4, 33), 4},
        Case{"f32_of_more_heads_than_run_together", sized(128, DType::F32, 72, 16), 8}),
    [](const auto& info) { return info.param.name; });

// Qwen3's layer with one token: norm, projection, norms of heads, rotation and caches; attention;
// output projection and residual; norm, gate and up; down projection and residual.
TEST(NormedDecoders, TakeFiveKernelsPerLayer) {
  for (bool transposedFirst : {false, true}) {
    int64_t launches[2], ofPrompt[2], ofFour[2];
    for (int64_t layers : {2, 3}) {
      NormedDecoder model = NormedDecoder::qwen3();
      model.layers = layers;
      model.transposedFirst = transposedFirst;
      const Program program = compile(model.graph(), {.backend = "cuda"});
      const KernelTable table = kernelTableOf(program);
      auto count = [&](int64_t batch, int64_t seq) {
        return int64_t(launchesOf(program, table, "step", {{"batch", batch}, {"seq", seq}}).size());
      };
      launches[layers - 2] = count(1, 1);
      ofPrompt[layers - 2] = count(1, 20);
      ofFour[layers - 2] = count(4, 20);
    }
    EXPECT_EQ(launches[1] - launches[0], 5);
    EXPECT_EQ(ofPrompt[1] - ofPrompt[0], 5);
    // The parts: norm, projection, norm and rotation of queries and of keys, two writes into
    // caches; attention; output projection; norm, gate and up, their product; down projection.
    EXPECT_EQ(ofFour[1] - ofFour[0], 12);
  }
}

// A prompt that runs as its parts, then single tokens, of two sequences that are at different
// places.
TEST(NormedDecoders, GenerateAsTheReference) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    NormedDecoder model = sized(64, dtype);
    model.layers = 2;
    const Graph graph = model.graph();
    HostProgram cuda(std::make_shared<Program>(compile(graph, {.backend = "cuda"})),
                     "check,random");
    Session reference(compile(graph, {.backend = "reference"}));
    cuda.session().bindRandomWeights(5);
    reference.bindRandomWeights(5);
    int64_t at = 0;
    for (int64_t seq : {10, 1, 1, 3}) {
      Array ids(DType::I64, {2, seq}), positions(DType::I64, {2});
      for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double((at + 5 * i) % model.vocabulary));
      for (int64_t i = 0; i < 2; ++i) positions.set(i, double(at + i));
      const Arrays inputs = {{"ids", ids}, {"positions", positions}};
      const Array got = cuda.session().run("step", inputs).at("logits"),
                  want = reference.run("step", inputs).at("logits");
      const double largest = largestValue(want);
      EXPECT_GT(largest, 0.1);
      EXPECT_TRUE(isFinite(want));
      const double error = largestError(got, want);
      const double bound = largest * (dtype == DType::BF16 ? 0.018 : 1.3e-6);
      test::ObservedErrors::note("cuda normed decoder " + std::string(nameOf(dtype)), error, bound);
      EXPECT_LE(error, bound) << at << " + " << seq;
      at += seq;
    }
  }
}

TEST(NormedDecoders, CompileWithoutSpills) {
  try {
    Nvrtc::library();
  } catch (const Error&) {
    GTEST_SKIP() << "NVRTC is not installed";
  }
  // Those of Qwen3-0.6B, 4B and 8B, and one whose heads are wider than what a block has.
  struct Heads {
    DType dtype;
    int64_t hidden, heads, headDim;
  };
  for (auto [dtype, hidden, heads, headDim] : {Heads{DType::BF16, 1024, 16, 128},
                                               {DType::F32, 1024, 16, 128},
                                               {DType::BF16, 2560, 32, 128},
                                               {DType::BF16, 4096, 32, 128},
                                               {DType::BF16, 1152, 4, 256}}) {
    NormedDecoder model = NormedDecoder::qwen3();
    model.layers = 1;
    model.dtype = dtype;
    model.hidden = hidden;
    model.heads = heads;
    model.headDim = headDim;
    model.projectsOnly = true;
    int seen = 0;
    for (const KernelCode& k : kernelCodeOf(compile(model.graph(), {.backend = "cuda"}))) {
      if (k.source.find("squares") == k.source.npos) continue;
      const NvrtcOutput out = Nvrtc::library().compile(
          k.name, k.source, includedHeaders(k.source, deviceHeaders()), "sm_90a");
      for (const auto& [name, r] : readCubin(out.cubin, out.log)) {
        EXPECT_EQ(r.spillStores + r.spillLoads, 0) << name;
        ++seen;
        RecordProperty(
            "registers_" + std::string(nameOf(dtype)) + "_" + std::to_string(hidden) + "_" + name,
            r.registers);
      }
    }
    EXPECT_GE(seen, 2) << hidden;  // equal texts are one
  }
}

}  // namespace
}  // namespace lathe::cuda
