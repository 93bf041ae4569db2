// SPDX-License-Identifier: Apache-2.0
// Projections and what stands around them, as one kernel or as their parts.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"

namespace lathe {
namespace {

// A projection whose halves are rotated and given back.
struct Case {
  const char* name;
  const char* body;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

constexpr const char* kHead = R"(module {
  lathe.dim @s 1 to 64
  func.func @forward(%x: tensor<1x?x16xf32, #lathe.dims<1, s, 16>> {lathe.name = "x"},
                     %c: tensor<?x4xf32, #lathe.dims<s, 4>> {lathe.name = "c"},
                     %n: tensor<?x4xf32, #lathe.dims<s, 4>> {lathe.name = "n"},
                     %c2: tensor<?x2xf32, #lathe.dims<s, 2>> {lathe.name = "c2"},
                     %n2: tensor<?x2xf32, #lathe.dims<s, 2>> {lathe.name = "n2"})
      -> (RESULT {lathe.name = "q"}, RESULT {lathe.name = "k"}) {
    %w = lathe.weight "w" : tensor<16x16xf32>
    %p = lathe.linear %x, %w : tensor<1x?x16xf32, #lathe.dims<1, s, 16>>, tensor<16x16xf32>
    %a = lathe.slice %p starts <0, 0, 0> sizes <1, s, 8> strides [1, 1, 1] : tensor<1x?x16xf32, #lathe.dims<1, s, 16>>
    %b = lathe.slice %p starts <0, 0, 8> sizes <1, s, 8> strides [1, 1, 1] : tensor<1x?x16xf32, #lathe.dims<1, s, 16>>
)";
#define ROPE(pairing, x, tables, type, table) \
  "lathe.rope " pairing " " x ", " tables " : " type ", " table ", " table "\n"
#define ROW "tensor<1x?x8xf32, #lathe.dims<1, s, 8>>"
#define HEAD "tensor<1x1x?x8xf32, #lathe.dims<1, 1, s, 8>>"
#define WIDE "tensor<?x4xf32, #lathe.dims<s, 4>>"
#define SLIM "tensor<?x2xf32, #lathe.dims<s, 2>>"
#define HEADS                                         \
  "    %ah = lathe.reshape %a to <1, 1, s, 8> : " ROW \
  "\n    %bh = lathe.reshape %b to <1, 1, s, 8> : " ROW "\n"

class RotatedParts : public ::testing::TestWithParam<Case> {};

TEST_P(RotatedParts, AgreeWithTheReference) {
  std::string text = std::string(kHead) + GetParam().body + "  }\n}\n";
  const std::string result =
      std::string(GetParam().body).find("%ah") == std::string::npos ? ROW : HEAD;
  for (size_t at = 0; (at = text.find("RESULT", at)) != std::string::npos;)
    text.replace(at, 6, result);
  Graph g = Graph::parse(text, "rotated.mlir");
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  for (int64_t rows : {1, 33}) {
    Arrays inputs;
    for (auto [name, columns] : {std::pair{"x", 16}, {"c", 4}, {"n", 4}, {"c2", 2}, {"n2", 2}}) {
      Array a(DType::F32, name[0] == 'x' ? Shape{1, rows, columns} : Shape{rows, columns});
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
      inputs[name] = a;
    }
    const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5) << name << " " << i;
  }
}

// One input x of `columns` and some numbers of rows.
void expectTheReferences(const Graph& g, int64_t columns, const std::vector<int64_t>& rows) {
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  for (int64_t count : rows) {
    Array a(DType::F32, {count, columns});
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
    const Arrays got = cuda.run("forward", {{"x", a}}), want = reference.run("forward", {{"x", a}});
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5)
            << name << " " << i << " of " << count << " rows";
  }
}

// What the layer's kernel computes of a norm on its way, nobody else gets.
TEST(NormedLayers, ANormWithOtherReadersIsComputedForThem) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 64);
  Tensor x = g.input("x", DType::F32, {rows, 32});
  Tensor norm =
      fused::rmsNorm(x, g.weight("gain", DType::F32, {32}), 1e-5, GainRounding::after_gain);
  g.output("y", matmul(norm, transpose(g.weight("w", DType::F32, {48, 32}), {1, 0})));
  g.output("z", norm * 2.0);
  g.output("norm", norm);
  expectTheReferences(g, 32, {1, 33});
}

// Up to some number of rows the norm is the layer's kernel's, and from the next one on its own.
TEST(NormedLayers, EveryNumberOfRowsHasAKernel) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 200);
  Tensor x = g.input("x", DType::F32, {rows, 16});
  Tensor norm =
      fused::rmsNorm(x, g.weight("gain", DType::F32, {16}), 1e-5, GainRounding::after_gain);
  g.output("y", matmul(norm, transpose(g.weight("w", DType::F32, {8, 16}), {1, 0})));
  expectTheReferences(g, 16, {16, 17, 64, 65, 128, 129});
}

// Layers of the same operands' types that differ in what they give: rounded, in f32, both, or in
// the other type of 16 bits.
TEST(LayersOfOneShape, GiveWhatEachIsToGive) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 64);
  auto layer = [&](const std::string& name, const fused::LinearOptions& options) {
    const Tensor x = g.input("x" + name, DType::BF16, {rows, 16});
    return fused::linear(x, g.weight("w" + name, DType::BF16, {24, 16}), options);
  };
  g.output("rounded", layer("0", {}));
  g.output("wide", layer("1", {.unrounded = true}));
  const Tensor both = layer("2", {});
  g.output("both", both);
  g.output("widened", cast(both, DType::F32));
  g.output("other", cast(layer("3", {}), DType::F16));
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  // Sums of more bits than bf16 has, which f32 holds.
  auto filled = [](Shape shape, int64_t by) {
    Array a(DType::BF16, shape);
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i * by % 31) - 15);
    return a;
  };
  Arrays weights;
  for (int64_t i = 0; i < 4; ++i) weights["w" + std::to_string(i)] = filled({24, 16}, 7 + 2 * i);
  cuda.bindWeights(weights);
  reference.bindWeights(weights);
  for (int64_t count : {1, 33}) {
    Arrays inputs;
    for (int64_t i = 0; i < 4; ++i)
      inputs["x" + std::to_string(i)] = filled({count, 16}, 5 + 2 * i);
    const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
    for (const auto& [name, value] : want) {
      ASSERT_EQ(got.at(name).dtype(), value.dtype()) << name;
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_EQ(got.at(name).at(i), value.at(i)) << count << " " << name << " " << i;
    }
  }
}

// No kernel holds the other layer behind its own: they run as their parts, and nothing is said.
TEST(LayersOfOneShape, WithOpsBehindEachAreNoError) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 64);
  for (const char* name : {"a", "b"}) {
    const Tensor x = g.input(std::string("x") + name, DType::F32, {rows, 4});
    const Tensor w = g.weight(name, DType::F32, {5, 4});
    g.output(name, fused::linear(x, w, {.activation = Activation::relu}) + 1e-3);
  }
  testing::internal::CaptureStderr();
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  Array x(DType::F32, {3, 4});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 7) - 3);
  const Arrays inputs{{"xa", x}, {"xb", x}};
  const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
  for (const auto& [name, value] : want)
    for (int64_t i = 0; i < value.size(); ++i)
      ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5) << name << " " << i;
}

// The halves of a gate that lie side by side, and those that take turns.
TEST(GatedLayers, HalvesLieWhereverTheirSlicesSay) {
  for (int64_t stride : {1, 2}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 64);
    Tensor x = g.input("x", DType::F32, {rows, 16});
    Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}));
    Tensor gate = sliceAxis(y, -1, 0, 16, stride),
           up = sliceAxis(y, -1, stride == 1 ? 16 : 1, 16, stride);
    g.output("y", fused::glu(gate, up));
    Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
    Session reference(compile(g, {.backend = "reference"}));
    cuda.bindRandomWeights(3);
    reference.bindRandomWeights(3);
    for (int64_t count : {1, 33}) {
      Array a(DType::F32, {count, 16});
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
      const Array got = cuda.run("forward", {{"x", a}}).at("y"),
                  want = reference.run("forward", {{"x", a}}).at("y");
      for (int64_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got.at(i), want.at(i), 1e-5) << "stride " << stride << ", element " << i;
    }
  }
}

// Queries and keys of one projection, as `heads` makes them of their columns [batch, s, 8, 8].
using HeadsOf = std::function<Tensor(Graph&, const std::string& name, const Tensor& columns)>;
void expectTheReferencesRotations(const HeadsOf& heads) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), s = g.dim("s", 1, 64);
  const Tensor x = g.input("x", DType::F32, {batch, s, 16});
  const Tensor y = fused::linear(x, g.weight("w", DType::F32, {128, 16}));
  const Tensor cosines[] = {g.input("qc", DType::F32, {batch, 1, s, 4}),
                            g.input("kc", DType::F32, {batch, 8, s, 4})};
  const Tensor sines[] = {g.input("qs", DType::F32, {batch, 1, s, 4}),
                          g.input("ks", DType::F32, {batch, 8, s, 4})};
  for (int i : {0, 1}) {
    const std::string name = i ? "k" : "q";
    const Tensor columns = reshape(sliceAxis(y, -1, 64 * i, 64), {batch, s, 8, 8});
    g.output(name, fused::rope(heads(g, name, columns), cosines[i], sines[i], Pairing::half));
  }
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  for (auto [sequences, rows] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {3, 25}}) {
    Arrays inputs;
    auto fill = [&](const char* name, Shape shape, int64_t by) {
      Array a(DType::F32, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i * by % 13) / 7 - 0.9);
      inputs[name] = a;
    };
    fill("x", {sequences, rows, 16}, 1);
    fill("qc", {sequences, 1, rows, 4}, 2);
    fill("qs", {sequences, 1, rows, 4}, 3);
    fill("kc", {sequences, 8, rows, 4}, 5);
    fill("ks", {sequences, 8, rows, 4}, 7);
    const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5)
            << name << " " << i << " of " << sequences << " x " << rows;
  }
}

TEST(RotatedLayers, QueriesAndKeysMayHaveTablesOfDifferentShapes) {
  expectTheReferencesRotations([](Graph&, const std::string&, const Tensor& columns) {
    return transpose(columns, {0, 2, 1, 3});
  });
}

// There are as many heads as elements of a head: the norm is over the heads all the same.
TEST(RotatedLayers, ANormOverHeadsIsNoneOfAHead) {
  expectTheReferencesRotations([](Graph& g, const std::string& name, const Tensor& columns) {
    const Tensor gain = g.weight(name + "_gain", DType::F32, {8});
    const Tensor normed =
        fused::rmsNorm(transpose(columns, {0, 3, 1, 2}), gain, 1e-5, GainRounding::after_gain);
    return transpose(normed, {0, 3, 2, 1});
  });
}

// All heads of a token have one norm.
TEST(RotatedLayers, ANormOfAllHeadsIsNoneOfEach) {
  expectTheReferencesRotations([](Graph& g, const std::string& name, const Tensor& columns) {
    const Tensor gain = g.weight(name + "_gain", DType::F32, {64});
    const Tensor all = reshape(columns, {columns.dim(0), columns.dim(1), 64});
    const Tensor normed = fused::rmsNorm(all, gain, 1e-5, GainRounding::after_gain);
    return transpose(reshape(normed, columns.shape()), {0, 2, 1, 3});
  });
}

// A graph with inputs of f32, all of given shapes, on both.
void expectTheReferences(const Graph& g, const std::map<std::string, Shape>& shapes) {
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  Arrays inputs;
  for (const auto& [name, shape] : shapes) {
    Array a(DType::F32, shape);
    for (int64_t i = 0; i < a.size(); ++i)
      a.set(i, double((i + int64_t(name.back())) * 5 % 13) / 7 - 0.9);
    inputs[name] = a;
  }
  const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
  for (const auto& [name, value] : want)
    for (int64_t i = 0; i < value.size(); ++i)
      ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5) << name << " " << i;
}

// Heads of 8 that share columns with those of the other slice, and leave some out.
// What stays of a cache beside its update is copied, whichever variant of the kernel the rows take.
TEST(RotatedLayers, ACacheThatIsStillReadKeepsItsRows) {
  Graph g;
  const Dim s = g.dim("s", 1, 64);
  g.state("cache", DType::F32, {1, 2, 64, 8});
  const Tensor x = g.input("x", DType::F32, {1, s, 16}), at = g.input("at", DType::I64, {1});
  const Tensor cosine = g.input("c", DType::F32, {s, 4}), sine = g.input("n", DType::F32, {s, 4});
  const Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}));
  auto rotated = [&](int64_t from) {
    const Tensor heads = transpose(reshape(sliceAxis(y, -1, from, 16), {1, s, 2, 8}), {0, 2, 1, 3});
    return fused::rope(heads, cosine, sine, Pairing::half);
  };
  g.output("queries", rotated(0));
  const Tensor cache = g.readState("cache");
  g.output("keys", update(cache, rotated(16), at, 2));
  g.writeState("cache", cache + 1.0);
  Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
  Session reference(compile(g, {.backend = "reference"}));
  cuda.bindRandomWeights(3);
  reference.bindRandomWeights(3);
  for (int64_t rows : {1, 5, 17, 40, 63}) {
    Arrays inputs{{"at", Array(DType::I64, {1})}};
    inputs["at"].set(0, 1);
    for (auto [name, shape] :
         {std::pair<const char*, Shape>{"x", {1, rows, 16}}, {"c", {rows, 4}}, {"n", {rows, 4}}}) {
      Array a(DType::F32, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
      inputs[name] = a;
    }
    const Arrays got = cuda.run("forward", inputs), want = reference.run("forward", inputs);
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(got.at(name).at(i), value.at(i), 1e-5)
            << name << " " << i << " of " << rows << " rows";
  }
}

TEST(RotatedLayers, SlicesMayShareColumns) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 16});
  const Tensor c = g.input("c", DType::F32, {3, 4}), n = g.input("n", DType::F32, {3, 4});
  const Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}));
  for (int64_t from : {0, 8}) {
    const Tensor heads = reshape(sliceAxis(y, -1, from, 16), {1, 3, 2, 8});
    g.output(from ? "k" : "q", fused::rope(transpose(heads, {0, 2, 1, 3}), c, n, Pairing::half));
  }
  expectTheReferences(g, {{"x", {3, 16}}, {"c", {3, 4}}, {"n", {3, 4}}});
}

// Of four rows the first alone is rotated.
TEST(RotatedLayers, SlicesMayTakeSomeRows) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {4, 16});
  const Tensor c = g.input("c", DType::F32, {1, 4}), n = g.input("n", DType::F32, {1, 4});
  const Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}));
  for (int64_t from : {0, 16}) {
    const Tensor heads = reshape(slice(y, {0, from}, {1, 16}, {1, 1}), {1, 1, 2, 8});
    g.output(from ? "k" : "q", fused::rope(transpose(heads, {0, 2, 1, 3}), c, n, Pairing::half));
  }
  expectTheReferences(g, {{"x", {4, 16}}, {"c", {1, 4}}, {"n", {1, 4}}});
}

// What a layer adds to its product, or makes of it, stands in front of the gate.
TEST(GatedLayers, TheLayersOwnEpilogueComesFirst) {
  for (const char* what : {"bias", "residual", "activation"}) {
    SCOPED_TRACE(what);
    Graph g;
    const Tensor x = g.input("x", DType::F32, {3, 16});
    std::map<std::string, Shape> shapes{{"x", {3, 16}}};
    fused::LinearOptions options;
    switch (*what) {
      case 'b':
        options.bias = g.weight("b", DType::F32, {32});
        break;
      case 'r':
        options.residual = g.input("r", DType::F32, {3, 32});
        shapes["r"] = {3, 32};
        break;
      default:
        options.activation = Activation::gelu_tanh;
    }
    const Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}), options);
    g.output("y", fused::glu(sliceAxis(y, -1, 0, 16), sliceAxis(y, -1, 16, 16)));
    expectTheReferences(g, shapes);
  }
}

TEST(GatedLayers, HalvesMayBeOfSomeRows) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {8, 16});
  const Tensor y = fused::linear(x, g.weight("w", DType::F32, {32, 16}));
  auto half = [&](int64_t from) { return slice(y, {0, from}, {4, 16}, {1, 1}); };
  g.output("y", fused::glu(half(0), half(16)));
  expectTheReferences(g, {{"x", {8, 16}}});
}

// Columns of a table, by indices that are checked, behind a layer and behind a gate.
TEST(LayersOfOneShape, WhatStandsBehindMayBeLookedUp) {
  for (bool isGated : {false, true}) {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {4, 16});
    const Tensor y = fused::linear(x, g.weight("w", DType::F32, {isGated ? 32 : 16, 16}));
    const Tensor chosen =
        gather(g.input("t", DType::F32, {4, 5}), g.input("ids", DType::I64, {16}), 1);
    g.output("y", isGated ? fused::glu(sliceAxis(y, -1, 0, 16), sliceAxis(y, -1, 16, 16)) * chosen
                          : y * chosen);
    Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
    Session reference(compile(g, {.backend = "reference"}));
    cuda.bindRandomWeights(3);
    reference.bindRandomWeights(3);
    Array a(DType::F32, {4, 16}), t(DType::F32, {4, 5}), ids(DType::I64, {16});
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, double(i) / 9 - 1);
    for (int64_t i = 0; i < 16; ++i) ids.set(i, double(i * 3 % 5));
    const Array got = cuda.run("forward", {{"x", a}, {"t", t}, {"ids", ids}}).at("y"),
                want = reference.run("forward", {{"x", a}, {"t", t}, {"ids", ids}}).at("y");
    for (int64_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got.at(i), want.at(i), 1e-5) << i;
    ids.set(7, 5);
    EXPECT_THROW(cuda.run("forward", {{"x", a}, {"t", t}, {"ids", ids}}), Error);
  }
}

// A table of numbers, which the functions for one element and for eight both read.
TEST(LayersOfOneShape, WhatStandsBehindMayReadATable) {
  for (bool isGated : {false, true}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 64);
    const Tensor x = g.input("x", DType::BF16, {rows, 16});
    const Tensor y = fused::linear(x, g.weight("w", DType::BF16, {isGated ? 32 : 16, 16}));
    Array numbers(DType::BF16, {16});
    for (int64_t i = 0; i < 16; ++i) numbers.set(i, double(i % 3) - 1);
    const Tensor table = g.constant(numbers);
    g.output("y", isGated ? fused::glu(sliceAxis(y, -1, 0, 16), sliceAxis(y, -1, 16, 16),
                                       Activation::relu) *
                                table
                          : y * table);
    Session cuda(compile(g, {.backend = "cuda"}), {.device = "host"});
    Session reference(compile(g, {.backend = "reference"}));
    Array w(DType::BF16, {isGated ? 32 : 16, 16});
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i * 7 % 5) - 2);
    cuda.bindWeights({{"w", w}});
    reference.bindWeights({{"w", w}});
    for (int64_t count : {1, 33}) {
      Array a(DType::BF16, {count, 16});
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 3) - 1);
      const Array got = cuda.run("forward", {{"x", a}}).at("y"),
                  want = reference.run("forward", {{"x", a}}).at("y");
      for (int64_t i = 0; i < want.size(); ++i)
        ASSERT_EQ(got.at(i), want.at(i)) << i << " of " << count << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, RotatedParts,
    ::testing::Values(
        Case{"without_heads",
             "    %q = " ROPE("half", "%a", "%c, %n", ROW, WIDE) "    %k = " ROPE(
                 "half", "%b", "%c, %n", ROW, WIDE) "    return %q, %k : " ROW ", " ROW "\n"},
        Case{"widths_differ",
             HEADS "    %q = " ROPE("half", "%ah", "%c, %n", HEAD, WIDE) "    %k = " ROPE(
                 "half", "%bh", "%c2, %n2", HEAD, SLIM) "    return %q, %k : " HEAD ", " HEAD "\n"},
        Case{"pairings_differ",
             HEADS "    %q = " ROPE("half", "%ah", "%c, %n", HEAD, WIDE) "    %k = " ROPE(
                 "interleaved", "%bh", "%c, %n", HEAD, WIDE) "    return %q, %k : " HEAD ", " HEAD
                                                             "\n"},
        Case{"the_kernels_own_form",
             HEADS "    %q = " ROPE("half", "%ah", "%c, %n", HEAD, WIDE) "    %k = " ROPE(
                 "half", "%bh", "%c, %n", HEAD, WIDE) "    return %q, %k : " HEAD ", " HEAD "\n"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
