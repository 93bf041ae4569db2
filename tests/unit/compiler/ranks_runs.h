// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small graphs on several ranks: their text, and what they compute simulated, as threads and alone.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/ir/composed_ops.h"
#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"

namespace lathe::ranks {

using namespace std::chrono_literals;

inline int occurrences(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

inline std::string sharded(const Graph& g, const Mesh& mesh = {},
                           NumericsMode mode = NumericsMode::Relaxed) {
  return irAt(g, "sharded", {.pipeline = {.mode = mode, .mesh = mesh}});
}

inline std::string errorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline void expectIn(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), text.npos) << "expected '" << part << "' in: " << text;
}

// Two layers of an MLP with norms and residuals between them, `rows` long.
struct Mlps {
  Graph g;
  Tensor x, y;
  explicit Mlps(const Dim& rows, DType dtype = DType::F32) {
    x = g.input("x", dtype, {rows, 16});
    y = x;
    for (int i = 0; i < 2; ++i) {
      const std::string path = "blocks." + std::to_string(i);
      y = y + nn::SwiGLU(g, path + ".mlp", 16, 24)(nn::RMSNorm(g, path + ".norm", 16)(y));
    }
  }
};

inline Array numbers(DType dtype, Shape shape) {
  Array x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i) * 0.7));
  return x;
}

// One run after the other.
inline std::vector<Arrays> runEach(Session& session, const std::vector<Arrays>& inputs) {
  std::vector<Arrays> all;
  for (const Arrays& in : inputs) {
    Arrays out;
    for (auto& [name, array] : session.run("forward", in)) out[name] = array.clone();
    all.push_back(std::move(out));
  }
  return all;
}

inline std::vector<Arrays> runsAlone(Program program, const std::vector<Arrays>& inputs) {
  Session session(std::move(program));
  session.bindRandomWeights(7);
  return runEach(session, inputs);
}
inline Arrays runAlone(Program program, const Arrays& inputs) {
  return runsAlone(std::move(program), {inputs})[0];
}

// `device` is of the backend cuda.
inline std::vector<Arrays> runsAsThreads(const Graph& g, int ranks,
                                         const std::vector<Arrays>& inputs, const Mesh& mesh,
                                         const WeightSource& weights = {},
                                         CompileOptions options = {},
                                         const std::string& device = {}) {
  options.pipeline.mesh = mesh;
  auto program = std::make_shared<const Program>(compile(g, options));
  EXPECT_EQ(program->allRanks(), ranks);
  auto ends = threadRanks(ranks, 60s);
  auto bind = [&](Session& session) {
    weights ? session.bindWeights(weights) : session.bindRandomWeights(7);
  };
  std::vector<std::thread> others;
  for (int r = 1; r < ranks; ++r)
    others.emplace_back([&, end = ends[size_t(r)]] {
      Session session(program, {.device = device, .ranks = end});
      bind(session);
      session.serve();
    });
  std::vector<Arrays> out;
  {
    Session session(program, {.device = device, .ranks = ends[0]});
    bind(session);
    out = runEach(session, inputs);
  }
  for (std::thread& t : others) t.join();
  return out;
}
inline Arrays runAsThreads(const Graph& g, int ranks, const Arrays& inputs, const Mesh& mesh,
                           const WeightSource& weights = {}, CompileOptions options = {},
                           const std::string& device = {}) {
  return runsAsThreads(g, ranks, {inputs}, mesh, weights, std::move(options), device)[0];
}

inline double apart(const Arrays& got, const Arrays& expected) {
  double worst = 0;
  for (const auto& [name, array] : expected) {
    EXPECT_EQ(got.at(name).shape(), array.shape());
    for (int64_t i = 0; i < array.size(); ++i) {
      const double d = std::abs(got.at(name).at(i) - array.at(i));
      worst = std::isnan(d) ? 1e300 : std::max(worst, d);
    }
  }
  return worst;
}

// All ranks in one graph in float64, as threads in float64, and as threads of the backend cpu.
inline void expectNoOtherValues(const Graph& g, const Arrays& inputs, Mesh mesh = {}) {
  const CompileOptions exact{.backend = "reference", .backendOptions = {.float64 = true}};
  auto with = [&](const Mesh& on) {
    CompileOptions options = exact;
    options.pipeline.mesh = on;
    return runAlone(compile(g, options), inputs);
  };
  const Arrays whole = with({.ranks = 1});
  for (int64_t ranks : {2, 4}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    mesh.ranks = ranks;
    mesh.simulate = true;
    EXPECT_LE(apart(with(mesh), whole), 1e-12);
    mesh.simulate = false;
    EXPECT_LE(apart(runAsThreads(g, int(ranks), inputs, mesh, {}, exact), whole), 1e-12);
    EXPECT_LE(apart(runAsThreads(g, int(ranks), inputs, mesh), whole), 1e-4);
  }
}

}  // namespace lathe::ranks
