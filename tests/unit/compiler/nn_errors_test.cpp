// SPDX-License-Identifier: Apache-2.0
// Misuse of modules: the words, and the user's line.
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

TEST(NnErrors, WrongLastDimNamesTheModuleAndTheUsersLine) {
  Recording r;
  nn::SwiGLU mlp(r.g, "blocks.3.mlp", 65, 172);
  expectError(
      [&] { mlp(r.x); },
      "SwiGLU 'blocks.3.mlp': expected 65 elements along the last axis, got f32[batch, seq, 64]");
  nn::RMSNorm norm(r.g, "norm", 1);
  expectError([&] { norm(r.x); }, "RMSNorm 'norm': expected 1 elements");
  nn::Linear linear(r.g, "proj", 32, 64);
  expectError([&] { linear(r.x); }, "Linear 'proj': expected 32 elements");
}

TEST(NnErrors, MistakesInsideABlockAreReportedAtTheCall) {
  Recording r;
  nn::TransformerBlock block(
      r.g, "b", {.attention = {.dModel = 64, .heads = 4, .rope = nn::RopeOptions{}}, .dHidden = 8});
  Tensor wrong = r.g.input("wrong", DType::I64, {r.seq, r.batch});
  expectError([&] { block(r.x, wrong); }, "lathe.mul");
}

// An operand that a module made is told with the module and the line that called it.
TEST(NnErrors, OperandsAreToldWithTheModuleThatMadeThem) {
  Recording r;
  const unsigned line = __LINE__ + 1;
  Tensor y = nn::Linear(r.g, "blocks.3.proj", 64, 32)(r.x);
  expectError([&] { y + r.x; }, "\n  operand 0: f32[batch, seq, 32] of blocks.3.proj from " +
                                    std::string(std::source_location::current().file_name()) + ":" +
                                    std::to_string(line) +
                                    "\n  operand 1: f32[batch, seq, 64] from ");
}

// However deep modules call each other, the user's own line is that of the outermost.
TEST(NnErrors, MistakesInNestedScopesAreToldAtTheOutermost) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {2, 3}), y = g.input("y", DType::F32, {4, 5});
  auto lineOf = [&] {
    try {
      add(x, y);
    } catch (const Error& e) {
      return e.line();
    }
    return 0u;
  };
  const unsigned own = lineOf();
  EXPECT_NE(own, 0u);
  for (int again = 0; again < 2; ++again) {  // a second module has a line of its own
    const auto call = std::source_location::current();
    {
      Scope model(g.recorder(), "model", call);
      EXPECT_EQ(lineOf(), call.line());
      {
        Scope block(g.recorder(), "model.block", std::source_location::current());
        EXPECT_EQ(lineOf(), call.line());
        Scope layer(g.recorder(), "model.block.layer", std::source_location::current());
        EXPECT_EQ(lineOf(), call.line());
      }
      EXPECT_EQ(lineOf(), call.line());
    }
    EXPECT_EQ(lineOf(), own);
  }
  const auto other = std::source_location::current();
  Scope scope(g.recorder(), "other", other);
  EXPECT_EQ(lineOf(), other.line());
}

TEST(NnErrors, HeadsMustDivide) {
  Graph g;
  expectError([&] { nn::CausalSelfAttention(g, "a", {.dModel = 64, .heads = 5}); },
              "expected heads that divide dModel, got 5 heads and dModel 64");
  expectError([&] { nn::CausalSelfAttention(g, "a", {.dModel = 64, .heads = 4, .kvHeads = 3}); },
              "expected kvHeads that divide heads, got 3 for 4 heads");
}

TEST(NnErrors, RopeNeedsAnEvenHeadAndASaneScaling) {
  Graph g;
  expectError([&] { nn::RoPE(g, "rope", {.headDim = 15}); },
              "RoPE 'rope': expected an even head size to pair its elements, got 15");
  expectError(
      [&] {
        nn::CausalSelfAttention(g, "a", {.dModel = 60, .heads = 4, .rope = nn::RopeOptions{}});
      },
      "RoPE 'a.rope': expected an even head size to pair its elements, got 15");
  expectError([&] { nn::RoPE(g, "rope", {.headDim = 16, .theta = -1}); },
              "expected a positive theta");
  const nn::RopeScalingOptions bad{.type = nn::RopeScalingOptions::Type::Llama3,
                                   .factor = 8,
                                   .lowFreqFactor = 4,
                                   .highFreqFactor = 4};
  expectError([&] { nn::RoPE(g, "rope", {.headDim = 16, .scaling = bad}); },
              "expected 0 < lowFreqFactor < highFreqFactor");
}

TEST(NnErrors, AttentionChecksItsOperands) {
  Recording r;
  Qkv a(r, 3, DType::F32);
  expectError([&] { nn::attention(a.q, a.k, a.v); },
              "expected key and value heads whose number divides the query heads");
  expectError([&] { nn::attention(a.q, r.x, r.x); }, "rank 3 or of rank 4");
  expectError([&] { nn::attention(r.x, cast(r.x, DType::BF16), r.x); }, "one float dtype");
  expectError([&] { nn::attention(Tensor(), r.x, r.x); }, "got an empty handle");
}

TEST(NnErrors, SizesAndIds) {
  Graph g;
  expectError([&] { nn::Linear(g, "p", 0, 4); },
              "Linear 'p', input size: expected at least 1, got 0");
  for (double eps : {-1.0, std::nan(""), double(INFINITY)})
    expectError([&] { nn::RMSNorm(g, "n", 4, {.eps = eps}); }, "expected an epsilon of 0 or more");
  expectError(
      [&] { nn::TransformerLM(g, "", {.vocabSize = 8, .dModel = 8, .layers = 1, .heads = 1}); },
      "TransformerLM, dHidden: expected at least 1, got 0");
  nn::TransformerLM lm(g, "lm", small({}));
  Tensor floats = g.input("ids", DType::F32, {2, 3});
  expectError([&] { lm.forward(floats); },
              "TransformerLM 'lm': expected integer ids [batch, seq], got f32[2, 3]");
  nn::Embedding table(g, "t", 8, 8);
  expectError([&] { table(Tensor()); }, "Embedding 't': expected a tensor, got an empty handle");
}

TEST(NnErrors, CacheNeedsItsStatesDeclared) {
  Graph g;
  nn::TransformerLM lm(g, "", small({}));
  Tensor ids = g.input("ids", DType::I64, {2, 3}),
         positions = g.input("positions", DType::I64, {2});
  expectError([&] { lm.step(ids, positions); }, "state 'k_cache.0' is not declared");
}

}  // namespace
}  // namespace lathe
