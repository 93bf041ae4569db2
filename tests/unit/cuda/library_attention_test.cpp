// SPDX-License-Identifier: Apache-2.0
// Attention of prompts goes to cuDNN where a record says so and it is installed.
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/device/attention_call.h"
#include "backends/cuda/device/program_code.h"
#include "backends/cuda/hostexec/host_driver.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/session.h"
#include "tests/closeness.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/cuda/attention_cases.h"
#include "tests/unit/cuda/host_program.h"
#include "tests/unit/cuda/tuning_records.h"
#include "tests/unit/test_files.h"

namespace lathe::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHeads = 4, kKeyHeads = 2, kDepth = 64;

// A prompt over keys of a cache.
Graph graphOf(Causal causal) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), queries = g.dim("queries", 1, 256),
            keys = g.dim("keys", 1, 512);
  Tensor q = g.input("q", DType::BF16, {batch, kHeads, queries, kDepth});
  Tensor k = g.input("k", DType::BF16, {batch, kKeyHeads, keys, kDepth});
  Tensor v = g.input("v", DType::BF16, {batch, kKeyHeads, keys, kDepth});
  fused::AttentionOptions options{.scale = 0.125, .causal = causal};
  if (causal == Causal::positions) options.positions = g.input("positions", DType::I64, {batch});
  g.output("y", fused::attention(q, k, v, options));
  return g;
}

Arrays inputsOf(Causal causal, int64_t batch, int64_t queries, int64_t keys) {
  auto values = [](Shape shape, double step) {
    Array a(DType::BF16, std::move(shape));
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, std::sin(double(i % 4099) * step));
    return a;
  };
  Arrays inputs{{"q", values({batch, kHeads, queries, kDepth}, 0.31)},
                {"k", values({batch, kKeyHeads, keys, kDepth}, 0.17)},
                {"v", values({batch, kKeyHeads, keys, kDepth}, 0.73)}};
  if (causal == Causal::positions) {
    Array positions(DType::I64, {batch});
    for (int64_t b = 0; b < batch; ++b) positions.set(b, double(b % 2 ? keys - queries : 0));
    inputs["positions"] = positions;
  }
  return inputs;
}

class OnMock : public ::testing::Test {
 protected:
  OnMock()
      : cuda_("LATHE_LIBCUDA", test::mockPath("mock_cuda")),
        dnn_("LATHE_CUDNN", test::mockPath("mock_cudnn")) {
    test::mockFunction<void()>("mock_cudnn", "mockDnnReset")();
  }
  std::unique_ptr<Session> open(const std::string& wanted, Causal causal = Causal::positions) {
    auto program = compiledAs(graphOf(causal), wanted);
    // What the mock driver takes for machine code.
    for (const KernelCode& k : kernelCodeOf(*program))
      program->blobs["cuda.sm_90a/" + k.name] = "cubin " + k.name;
    return std::make_unique<Session>(program, SessionOptions{.device = "gpu"});
  }
  size_t calls() {
    std::istringstream in(test::mockFunction<const char*()>("mock_cudnn", "mockDnnLog")());
    size_t found = 0;
    for (std::string line; std::getline(in, line);) found += line == "cudnnBackendExecute";
    return found;
  }
  test::Variable cuda_, dnn_;
};

TEST_F(OnMock, PromptsAreTheLibrarysWhereItWasMeasuredToBeAhead) {
  auto session = open("library");
  const Arrays inputs = inputsOf(Causal::positions, 2, 40, 64);
  session->run("forward", inputs);
  EXPECT_EQ(calls(), 1u);
  // Recorded at the second run and played; the third only plays.
  session->run("forward", inputs);
  session->run("forward", inputs);
  EXPECT_EQ(calls(), 2u);
  EXPECT_EQ(session->device().report().back(),
            "attention of prompts: " + test::mockPath("mock_cudnn"));
  session->run("forward", inputsOf(Causal::positions, 2, 8, 64));
  EXPECT_EQ(calls(), 2u) << "few queries are ours";
}

TEST_F(OnMock, WithoutARecordTheyAreOurs) {
  auto session = open("");
  session->run("forward", inputsOf(Causal::positions, 2, 40, 64));
  EXPECT_EQ(calls(), 0u);
}

TEST_F(OnMock, WithoutTheLibraryTheReportSaysSo) {
  test::Variable nowhere("LATHE_CUDNN", "/nowhere/libcudnn.so.9");
  auto session = open("library");
  session->run("forward", inputsOf(Causal::positions, 2, 40, 64));
  EXPECT_THAT(session->device().report().back(),
              HasSubstr("attention of prompts: own kernels; cuDNN was not found:\n"
                        "  LATHE_CUDNN=/nowhere"));
}

TEST_F(OnMock, WhatItDeclinesIsOursAndTold) {
  test::Variable none("LATHE_MOCK_DNN_ENGINES", "0");
  auto session = open("library", Causal::top_left);
  session->run("forward", inputsOf(Causal::top_left, 1, 40, 40));
  EXPECT_EQ(calls(), 0u);
  EXPECT_THAT(session->device().report().back(),
              HasSubstr(", own kernels for what it declines: cuDNN attention of 1 x 4/2 heads"));
}

// The kernels that stand in, with the lengths that nobody reads then, by host execution.
TEST(LibraryAttention, OwnKernelsStandIn) {
  for (Causal causal : {Causal::none, Causal::top_left, Causal::positions}) {
    const Graph graph = graphOf(causal);
    auto program = compiledAs(graph, "library");
    const KernelTable table = kernelTableOf(*program);
    EXPECT_EQ(toJson(table).find(R"("what":"library, else tiled)") == std::string::npos, false);
    Session reference(compile(graph, {.backend = "reference"}));
    HostProgram cuda(program, "check,random,seed=3");
    for (auto [batch, queries, keys] : {std::array<int64_t, 3>{1, 17, 17}, {3, 33, 70}}) {
      const Arrays inputs = inputsOf(causal, batch, queries, keys);
      const Array got = cuda.session().run("forward", inputs).at("y"),
                  want = reference.run("forward", inputs).at("y");
      EXPECT_LE(largestError(got, want), 1.0 / 64) << queries << " queries of " << keys;
    }
  }
}

AttentionKernel kernel(Causal causal = Causal::positions) {
  AttentionKernel a;
  a.queryHeads = 4;
  a.keyHeads = 2;
  a.causal = causal;
  return attentionCase(std::move(a), 1, 1, 1).kernel;
}

TEST(LibraryAttention, LengthsAreThoseOfTheCache) {
  AttentionKernel a = kernel();
  KernelSet set;
  addAttention(a, attentionCandidates(a, {1, 4096, 4096}).at(0), "own", {}, set);
  addLibrary(a, set);
  ASSERT_EQ(set.kernels.size(), 2u);
  const KernelText& text = set.kernels[1];
  EXPECT_EQ(text.name, "attention_lengths");
  EXPECT_EQ(set.variants.at(0).launches.at(0).kernel, text.name);
  EXPECT_EQ(set.variants[0].scratchBytes, a.batch * DimExpr(8));
  auto driver = openHost({.mode = host::Mode::Check});
  auto functions =
      driver->load({{.name = text.name, .source = text.source, .cubin = {}, .ptx = {}}});
  const std::vector<int64_t> positions{0, 5, 60, 61, 1000, -3};
  int64_t batches = int64_t(positions.size()), queries = 3, keys = 64;
  std::vector<int32_t> lengths(size_t(2 * batches));
  void* from = driver->allocate(positions.size() * 8, "positions");
  void* to = driver->allocate(lengths.size() * 4, "lengths");
  driver->upload(from, positions.data(), positions.size() * 8);
  void* arguments[] = {&from, &to, &batches, &queries, &keys};
  driver->launch(functions[0], {.grid = {1, 1, 1}, .threads = 128}, arguments);
  driver->synchronize();
  driver->download(lengths.data(), to, lengths.size() * 4);
  EXPECT_THAT(lengths, ::testing::ElementsAre(3, 8, 63, 64, 64, 3, 3, 3, 3, 3, 3, 3));
  driver->release(from);
  driver->release(to);
}

TEST(LibraryAttention, OnlyWhatItKnowsIsOffered) {
  EXPECT_TRUE(plainAttentionOf(kernel()));
  EXPECT_TRUE(plainAttentionOf(kernel(Causal::none)));
  EXPECT_FALSE(plainAttentionOf(kernel(Causal::bottom_right)));
  EXPECT_EQ(plainAttentionOf(kernel(Causal::none))->y.buffer.index, 3);
  EXPECT_EQ(plainAttentionOf(kernel())->y.buffer.index, 4) << "behind the positions";
  auto declines = [](auto change) {
    AttentionKernel a = kernel();
    change(a);
    EXPECT_FALSE(plainAttentionOf(a));
  };
  declines([](AttentionKernel& a) { a.mask = DType::Bool; });
  declines([](AttentionKernel& a) { a.softcap = 30; });
  declines([](AttentionKernel& a) { a.window = 128; });
  declines([](AttentionKernel& a) { a.blockKeys = 16; });
  declines([](AttentionKernel& a) { a.dtype = DType::F32; });
  declines([](AttentionKernel& a) { a.depth = 68; });
}

TEST(LibraryAttention, ItIsTheLastCandidateOfPromptsAlone) {
  TuningScope scope;
  attentionKernels(kernel());
  size_t prompts = 0;
  for (const TuningScope::Asked& asked : scope.asked) {
    const TuningQuestion& q = asked.question;
    const bool few = q.problem.find(" queries=1 ") != std::string::npos;
    prompts += !few;
    EXPECT_EQ(q.candidates.back() == "library", !few) << q.problem;
    if (few) continue;
    EXPECT_EQ(q.withoutText, std::set<size_t>{q.candidates.size() - 1});
    EXPECT_NE(asked.answer, q.candidates.size() - 1) << "not without a measurement";
  }
  EXPECT_EQ(prompts, 4u);
}

// Operands begin in the middle of buffers and of scratch memory; without keys there is no call.
TEST(LibraryAttention, OperandsLieWhereTheirViewsBegin) {
  auto buffer = [](int i) { return Argument{Argument::Kind::Buffer, i, 0}; };
  const Argument scratch{Argument::Kind::Scratch, 1, 32};
  PlainAttention a;
  a.keys = DimExpr::symbol("keys");
  a.q = {buffer(0), 16, 1, 2, 3};
  a.k = {buffer(0), a.keys * 8, 4, 5, 6};
  a.v = {scratch, 8, 7, 8, 9};
  a.y = {buffer(1), 0, 1, 1, 1};
  a.lengths = Argument{Argument::Kind::Scratch, 0, 0};
  auto callFor = [&](int64_t keys) {
    return AttentionCall(
        a, [=](const DimExpr& e) { return e.evaluate({{"keys", keys}}).value(); },
        [](const Argument& at) { return at.index * 256 + *at.value.asConstant(); });
  };
  const AttentionCall call = callFor(5);
  std::array<std::byte, 512> first{}, second{}, scratchMemory{};
  void* buffers[] = {first.data(), second.data()};
  const LibraryAttentionOperands o = call.operands(buffers, scratchMemory.data());
  EXPECT_EQ(o.q, first.data() + 32);
  EXPECT_EQ(o.k, first.data() + 80);
  EXPECT_EQ(o.v, scratchMemory.data() + 256 + 32 + 16);
  EXPECT_EQ(o.y, second.data());
  EXPECT_EQ(static_cast<const void*>(o.lengths), scratchMemory.data());
  EXPECT_EQ(call.attention().keys, 5);
  EXPECT_TRUE(call.some());
  EXPECT_FALSE(callFor(0).some());
}

// A program that asks for the library's time alone says what is missing.
TEST_F(OnMock, MeasuringTheLibraryIsNotMeasuringItsStandIn) {
  test::Variable nowhere("LATHE_CUDNN", "/nowhere/libcudnn.so.9");
  Program candidates = compile(graphOf(Causal::positions),
                               {.backend = "cuda", .backendOptions = {.target = "candidates"}});
  const KernelTable table = kernelTableOf(candidates);
  size_t required = 0;
  for (const auto& [callee, variants] : table)
    for (const Launch& l : variants.at(0).launches)
      required += l.attention && l.attention->required;
  EXPECT_EQ(required, 2u) << "prompts of up to 64 and of up to 256 tokens";
}

}  // namespace
}  // namespace lathe::cuda
