// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of nn:: share: a graph to record into, counting ops in its text, errors by line.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "lathe/frontend/nn/nn.h"
#include "lathe/runtime/error.h"

namespace lathe {

/// A graph with one float input [batch, seq, 64].
struct Recording {
  explicit Recording(DType dtype = DType::F32)
      : batch(g.dim("batch", 1, 8)),
        seq(g.dim("seq", 1, 128)),
        x(g.input("x", dtype, {batch, seq, 64})) {}
  std::string text(const Tensor& y) {
    g.output("y", y);
    return g.text();
  }
  Graph g;
  Dim batch, seq;
  Tensor x;
};

/// Queries of four heads over keys and values of `groups` heads.
struct Qkv {
  Qkv(Recording& r, int64_t groups, DType dtype)
      : q(r.g.input("q", dtype, {r.batch, 4, r.seq, 16})),
        k(r.g.input("k", dtype, {r.batch, groups, r.seq, 16})),
        v(r.g.input("v", dtype, {r.batch, groups, r.seq, 16})) {}
  Tensor q, k, v;
};

/// Two layers over a vocabulary of 100.
inline nn::TransformerLMOptions small(nn::ModelStyle style) {
  return {.vocabSize = 100,
          .dModel = 64,
          .dHidden = 172,
          .layers = 2,
          .heads = 4,
          .maxPositions = 128,
          .style = std::move(style)};
}

inline int countOf(const std::string& text, const std::string& piece) {
  int n = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != text.npos; at += piece.size()) ++n;
  return n;
}
inline int ops(const std::string& text, const std::string& name) {
  return countOf(text, "lathe." + name + " ");
}
inline bool has(const std::string& text, const std::string& piece) {
  return countOf(text, piece) > 0;
}

/// Runs a mistake that must be reported where it was made: within the few lines of this call.
inline void expectError(const std::function<void()>& mistake, const std::string& words, LATHE_AT) {
  try {
    mistake();
    FAIL() << "expected an error: " << words;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_EQ(e.file(), at.file_name()) << e.what();
    EXPECT_NEAR(int(e.line()), int(at.line()), 5) << e.what();
    EXPECT_TRUE(has(e.what(), words)) << e.what();
  }
}

class NnTest : public ::testing::TestWithParam<DType> {};
/// Casts that a module records only where it widens 16-bit floats.
inline int castsOf(DType dtype, int narrow) { return dtype == DType::BF16 ? narrow : 0; }

/// Runs a suite in the three float dtypes that modules compute in.
#define LATHE_NN_DTYPES(suite)                                                                    \
  using suite = NnTest;                                                                           \
  INSTANTIATE_TEST_SUITE_P(DTypes, suite, ::testing::Values(DType::F32, DType::BF16, DType::F64), \
                           [](const auto& info) { return std::string(nameOf(info.param)); })

}  // namespace lathe
