// SPDX-License-Identifier: Apache-2.0
// Which kernels the CPU backend makes of fused ops and of what surrounds them, and that their
// numbers agree with the reference, in float64 unless the op rounds in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/lathe.h"
#include "tests/conformance/cases_build.h"
#include "tests/conformance/tolerance.h"
#include "tests/unit/cpu_matmul_values.h"

namespace lathe::conformance {
namespace {

constexpr DType f32 = DType::F32, bf16 = DType::BF16;

std::string kindsOf(const Program& program) {
  std::string kinds;
  for (const Call& call : program.entries.at(0).calls)
    kinds += (kinds.empty() ? "" : " ") + call.kind;
  return kinds;
}

// Runs one sample in every size; `ulps` is its line of the tolerance table.
void expectKernels(const Sample& sample, const std::string& kinds, const std::string& ulps) {
  SCOPED_TRACE(sample.name);
  const std::vector<Sample> samples{sample};
  const Graph graph = recordSamples(samples);
  auto onCpu = std::make_shared<Program>(compile(graph, {.backend = "cpu"}));
  auto wide = std::make_shared<Program>(
      compile(graph, {.backend = "reference", .backendOptions = {.float64 = !sample.ownDtype}}));
  EXPECT_EQ(kindsOf(*onCpu), kinds);
  Data data = makeData(samples, allSizes()[0], sample.name);
  Session tested(onCpu, {.threads = 2}), oracle(wide, {.threads = 1});
  tested.bindWeights(data.weights);
  oracle.bindWeights(data.weights);
  for (Sizes sizes : allSizes()) {
    data.inputs = makeData(samples, sizes, sample.name).inputs;
    const Arrays got = tested.run("forward", data.inputs);
    const Arrays want = oracle.run("forward", data.inputs);
    for (const auto& [name, value] : got)
      EXPECT_EQ(firstDifference(value, want.at(name), toleranceOf(ulps, value.dtype(), false),
                                "kernels " + ulps + " " + std::string(nameOf(value.dtype()))),
                "")
          << name << " rows=" << sizes.rows << " cols=" << sizes.cols;
  }
}

// Elements [from, from + count) of the last axis of a [2, rows, n].
Tensor lastSlice(const Tensor& x, int64_t from, int64_t count) {
  return slice(x, {0, 0, from}, {2, rows(), count}, {1, 1, 1});
}

TEST(CpuKernels, LinearTakesEveryActivationInItsEpilogue) {
  for (DType d : {f32, bf16})
    for (Activation activation :
         {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu})
      for (int64_t n : {1, 33, 200}) {
        auto record = one([=](Ts t) {
          return fused::linear(t[0], t[1],
                               {.bias = t[2], .residual = t[3], .activation = activation});
        });
        expectKernels({std::string(nameOf(activation)) + std::to_string(n),
                       {{d, {2, rows(), 65}},
                        {d, {n, 65}, Fill::Normal, 0, true},
                        {d, {n}, Fill::Normal, 0, true},
                        {d, {2, rows(), n}}},
                       record},
                      "linear", "linear");
      }
}

TEST(CpuKernels, AttentionTakesWindowAndSoftcap) {
  for (DType d : {f32, bf16})
    for (Causal causal : {Causal::top_left, Causal::bottom_right, Causal::positions})
      for (int64_t window : {1, 5, 130}) {
        fused::AttentionOptions options{.scale = 0.25,
                                        .softcap = 3,
                                        .causal = causal,
                                        .window = window,
                                        .maskedRow = MaskedRow::zero};
        const bool placed = options.causal == Causal::positions;
        std::vector<Input> inputs{{d, {2, 4, rows(), 16}},
                                  {d, {2, 2, placed ? Dim(300) : rows() + 4, 16}},
                                  {d, {2, 2, placed ? Dim(300) : rows() + 4, 24}}};
        if (placed) inputs.push_back({DType::I64, {2}, Fill::Index, 40});
        auto record = one([=](Ts t) {
          auto o = options;
          if (placed) o.positions = t[3];
          return fused::attention(t[0], t[1], t[2], o);
        });
        expectKernels({std::string(nameOf(causal)) + std::to_string(window), inputs, record},
                      "attention", "attention");
      }
}

TEST(CpuKernels, CrossAttentionReadsAnotherLength) {
  for (DType d : {f32, bf16})
    expectKernels({"cross",
                   {{d, {2, 4, rows(), 32}},
                    {d, {2, 4, cols(), 32}},
                    {d, {2, 4, cols(), 32}},
                    {DType::Bool, {2, 1, 1, cols()}}},
                   one([](Ts t) {
                     return fused::attention(
                         t[0], t[1], t[2],
                         {.mask = t[3], .scale = 0.2, .maskedRow = MaskedRow::zero});
                   })},
                  "attention", "attention");
}

TEST(CpuKernels, NormsAreOneRegionEach) {
  for (DType d : {f32, bf16}) {
    const Input x{d, {2, rows(), cols()}}, g{d, {cols()}};
    expectKernels(
        {"layer", {x, g, g}, one([](Ts t) { return fused::layerNorm(t[0], t[1], t[2], 1e-5); })},
        "region", "rms_norm");
    expectKernels(
        {"layer_plain", {x}, one([](Ts t) { return fused::layerNorm(t[0], {}, {}, 1e-5); })},
        "region", "rms_norm");
    expectKernels({"rms_plain", {x}, one([](Ts t) { return fused::rmsNorm(t[0], {}, 1e-5); })},
                  "region", "rms_norm");
    expectKernels({"modulate", {x, {d, {2, 1, cols()}}, {d, {2, 1, cols()}}}, one([](Ts t) {
                     return fused::adalnModulate(t[0], t[1], t[2], 1e-5);
                   })},
                  "region", "rms_norm");
    expectKernels({"gated", {x, {d, {2, 1, cols()}}, x}, one([](Ts t) {
                     return fused::gatedResidual(t[0], t[1], t[2]);
                   })},
                  "region", "rms_norm");
    expectKernels({"scaled_silu", {x, g}, one([](Ts t) {
                     return neg(fused::layerNorm(t[0] * t[0], t[1], {}, 1e-5));
                   })},
                  "region", "rms_norm");
  }
}

// The mean is far above the spread: the mean of squares less the squared mean would lose it.
TEST(CpuKernels, LayerNormKeepsASmallSpreadOnALargeMean) {
  expectKernels({"offset", {{f32, {rows(), 257}, Fill::Integers}}, one([](Ts t) {
                   return fused::layerNorm(t[0] + 512.0, {}, {}, 1e-5);
                 })},
                "region", "linear");
}

TEST(CpuKernels, AddNormWritesBothResultsInOneRegion) {
  for (DType d : {f32, bf16})
    for (Norm norm : valuesOf<Norm>()) {
      const Input x{d, {2, rows(), cols()}};
      Record record = [=](Graph&, Ts t) {
        auto [sum, y] = fused::addNorm(t[0], t[1], {.gain = t[2], .norm = norm});
        return std::vector<Tensor>{sum, y};
      };
      expectKernels({"add_" + std::string(nameOf(norm)), {x, x, {d, {cols()}}}, record}, "region",
                    "rms_norm");
    }
}

TEST(CpuKernels, MaskedScaledSoftmaxIsOneRegion) {
  for (DType d : {f32, bf16})
    for (DType mask : {DType::Bool, d})
      expectKernels(
          {"softmax", {{d, {2, 3, rows(), cols()}}, {mask, {2, 1, rows(), cols()}}}, one([](Ts t) {
             return fused::softmax(
                 t[0], -1,
                 {.mask = t[1], .scale = 0.5, .softcap = 4, .maskedRow = MaskedRow::zero});
           })},
          "region", "softmax");
}

TEST(CpuKernels, RotationsAreOneRegionWithTheirNorm) {
  for (DType d : {f32, bf16})
    for (Pairing pairing : valuesOf<Pairing>())
      for (int64_t angles : {3, 16, 32}) {
        const Input x{d, {2, 3, rows(), 64}}, table{f32, {rows(), angles}};
        const std::string name = std::string(nameOf(pairing)) + std::to_string(angles);
        expectKernels({"partial" + name, {x, table, table}, one([=](Ts t) {
                         return fused::rope(t[0], t[1], t[2], pairing);
                       })},
                      "region", "rope");
        expectKernels({"norm" + name,
                       {x, {d, {64}}, table, table},
                       one([=](Ts t) {
                         return fused::normRope(t[0], t[1], t[2], t[3],
                                                {.pairing = pairing, .epsilon = 1e-5});
                       }),
                       false,
                       true},
                      "region", "rope");
      }
}

TEST(CpuKernels, RopeAppendRotatesAndWrites) {
  for (DType d : {f32, bf16})
    for (bool norm : {false, true}) {
      std::vector<Input> inputs{{d, {2, 3, 300, 64}},
                                {d, {2, 3, rows(), 64}},
                                {f32, {rows(), 32}},
                                {f32, {rows(), 32}},
                                {DType::I64, {2}, Fill::Index, 40},
                                {d, {64}}};
      expectKernels({norm ? "norm" : "plain", inputs, one([=](Ts t) {
                       return fused::ropeAppend(t[0], t[1], norm ? t[5] : Tensor(), t[2], t[3],
                                                t[4], 2, {.epsilon = 1e-5});
                     }),
                     false, true},
                    "region update", "rope");
    }
}

TEST(CpuKernels, EmbeddingScalesAndAddsPositionsInOneRegion) {
  for (DType d : {f32, bf16})
    expectKernels(
        {"embedding",
         {{DType::I64, {2, rows()}, Fill::Index, 9},
          {d, {9, 40}, Fill::Normal, 0, true},
          {d, {rows(), 40}}},
         one([](Ts t) { return fused::embedding(t[0], t[1], {.positions = t[2], .scale = 3}); })},
        "region", "rope");
}

// A projection of queries, keys and values at once: nothing is copied on the way to its readers.
TEST(CpuKernels, SlicesOfAMergedProjectionAreReadInPlace) {
  for (DType d : {f32, bf16}) {
    auto heads = [](const Tensor& x, int64_t from, int64_t count) {
      return transpose(reshape(lastSlice(x, from * 16, count * 16), {2, rows(), count, 16}),
                       {0, 2, 1, 3});
    };
    const Input qkv{d, {2, rows(), (4 + 2 + 2) * 16}}, table{f32, {rows(), 8}};
    expectKernels({"attention", {qkv}, one([=](Ts t) {
                     Tensor y = fused::attention(heads(t[0], 0, 4), heads(t[0], 4, 2),
                                                 heads(t[0], 6, 2), {.scale = 0.25});
                     return reshape(transpose(y, {0, 2, 1, 3}), {2, rows(), 64});
                   })},
                  "attention", "attention");
    expectKernels({"rope", {qkv, table, table}, one([=](Ts t) {
                     return fused::rope(heads(t[0], 4, 2), t[1], t[2], Pairing::half);
                   })},
                  "region", "rope");
    expectKernels({"norm_rope",
                   {qkv, table, table, {d, {16}}},
                   one([=](Ts t) {
                     return fused::normRope(heads(t[0], 4, 2), t[3], t[1], t[2], {.epsilon = 1e-5});
                   }),
                   false,
                   true},
                  "region", "rope");
    expectKernels({"append",
                   {qkv, {d, {2, 2, 300, 16}}, {DType::I64, {2}, Fill::Index, 40}},
                   one([=](Ts t) { return update(t[1], heads(t[0], 6, 2), t[2], 2); })},
                  "update", "rope");
    expectKernels({"gate", {{d, {2, rows(), 400}}}, one([](Ts t) {
                     return fused::glu(lastSlice(t[0], 0, 200), lastSlice(t[0], 200, 200));
                   })},
                  "region", "glu");
  }
}

// The exponential may be written over its operand only if no view of that memory is read later.
TEST(CpuKernels, AnOperandWhoseViewIsReadLaterIsNotOverwritten) {
  for (const char* backend : {"reference", "cpu"}) {
    Graph g;
    const Tensor a = matmul(g.input("x", f32, {4, 6}), g.input("w", f32, {6, 6}));
    const Tensor view = reshape(a, {6, 4});
    g.output("y", matmul(view, exp(a)));
    Session session(compile(g, {.backend = backend}));
    Array x(f32, {4, 6}), w(f32, {6, 6});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 7 - 3) / 8);
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i % 5 - 2) / 4);
    const Array y = session.run("forward", {{"x", x}, {"w", w}}).at("y");
    double product[24] = {};
    for (int i = 0; i < 24; ++i)
      for (int k = 0; k < 6; ++k) product[i] += x.at(i / 6 * 6 + k) * w.at(k * 6 + i % 6);
    for (int i = 0; i < 36; ++i) {
      double want = 0;
      for (int k = 0; k < 4; ++k) want += product[i / 6 * 4 + k] * std::exp(product[k * 6 + i % 6]);
      EXPECT_NEAR(y.at(i), want, 1e-5) << backend << " " << i;
    }
  }
}

// A program file may say anything of how attention's operands lie.
TEST(CpuKernels, AttentionRefusesViewsThatItCannotRead) {
  const std::string two = R"(["0", "2", "3", "3", "1"])",
                    three = R"(["0", "2", "3", "4", "12", "4", "1"])",
                    four = R"(["0", "2", "3", "4", "8", "96", "32", "8", "1"])",
                    five = R"(["0", "1", "2", "3", "4", "8", "192", "96", "32", "8", "1"])";
  auto refusal = [](const char* kind, const char* causal,
                    const std::vector<std::string>& views) -> std::string {
    std::string config = "{\"causal\": \"" + std::string(causal) +
                         "\", \"mask\": false, \"masked_row\": \"zero\", \"scale\": 1, "
                         "\"softcap\": 0, \"window\": 0, \"views\": [";
    for (const std::string& view : views) config += (&view == &views[0] ? "" : ", ") + view;
    auto program = std::make_shared<Program>();
    program->backend = "cpu";
    EntryPoint entry;
    for (int slot = 0; slot < 6; ++slot)
      entry.slots.push_back({.dtype = slot == 3 || slot == 4 ? DType::I64 : f32});
    std::vector<int> operands{0, 1, 2};
    if (kind == std::string("paged_attention")) operands = {0, 1, 2, 3, 4};
    try {
      openDevice(program, {.threads = 1})
          ->makeKernel(*program, entry, {kind, "", config + "]}", operands, {5}, ""});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
      return e.what();
    }
    return "none";
  };
  using testing::HasSubstr;
  EXPECT_EQ(refusal("attention", "none", {three, three, three, three}), "none");
  EXPECT_EQ(refusal("attention", "none", {four, four, four, four}), "none");
  for (const auto& views : {std::vector{two, two, two, two},
                            {five, five, five, five},
                            {four, three, four, four},
                            {three, three, three, four}})
    EXPECT_THAT(refusal("attention", "none", views),
                HasSubstr("expected views of 3 or 4 dims each"));
  for (const auto& views : {std::vector{four, four, four}, {four, four, four, four, four}})
    EXPECT_THAT(refusal("attention", "none", views), HasSubstr("expected four views"));
  const std::string blocks = "expected views with heads, and positions, for keys in blocks";
  EXPECT_EQ(refusal("paged_attention", "positions", {four, four, four, four}), "none");
  EXPECT_THAT(refusal("paged_attention", "positions", {three, three, three, three}),
              HasSubstr(blocks));
  EXPECT_THAT(refusal("paged_attention", "none", {four, four, four, four}), HasSubstr(blocks));
}

// Threads take blocks of four from other places on, and the last block is not full.
TEST(CpuKernels, RandomBitsOfManyBlocksAreThoseOfTheReference) {
  Graph g;
  g.output("y", randomBits(g.input("seed", DType::I64, {}), {3 * 4096 + 2}));
  Array seed(DType::I64, {});
  seed.as<int64_t>()[0] = (int64_t(7) << 32) + 5;
  Arrays results[2];
  for (int i : {0, 1})
    results[i] = Session(compile(g, {.backend = i ? "cpu" : "reference"}), {.threads = 3})
                     .run("forward", {{"seed", seed}});
  const auto want = results[0].at("y").as<int32_t>(), got = results[1].at("y").as<int32_t>();
  EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin(), got.end()));
}

// Elements are made several at a time, and the last ones are fewer.
TEST(CpuKernels, NothingIsTouchedBehindTheLastElement) {
  struct Case {
    const char* kind;
    DType from, to;
    int64_t operands, results;  // elements
    size_t read, written;       // bytes
  };
  const Case cases[] = {{"random_bits", DType::I64, DType::I32, 1, 5, 8, 20},
                        {"random_bits", DType::I64, DType::I32, 1, 7, 8, 28},
                        {"cast", DType::I8, DType::I4, 5, 5, 5, 3},
                        {"cast", DType::I4, DType::I8, 5, 5, 3, 5}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.kind) + " of " + std::string(nameOf(c.from)));
    auto program = std::make_shared<Program>();
    program->backend = "cpu";
    EntryPoint entry;
    for (DType dtype : {c.from, c.to}) entry.slots.push_back({.dtype = dtype});
    const auto device = openDevice(program, {.threads = 1});
    const auto kernel = device->makeKernel(*program, entry, {c.kind, "", "{}", {0}, {1}, ""});
    const SymbolValues symbols;
    kernel->bind({{{c.operands}, {c.results}}, &symbols});
    cpu::EndOfPages from(c.read), to(c.written);
    std::fill_n(from.start(), c.read, char(3));
    void* pointers[] = {from.start(), to.start()};
    kernel->run(pointers, nullptr);
    if (c.to == DType::I4) EXPECT_EQ(to.start()[2], 3) << "the last half has no neighbour";
  }
}

}  // namespace
}  // namespace lathe::conformance
