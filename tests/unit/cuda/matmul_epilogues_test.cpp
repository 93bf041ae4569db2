// SPDX-License-Identifier: Apache-2.0
// What is elementwise behind a projection is computed by its kernel: up to 64 rows with a norm in
// front, up to 128 without.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/frontend/nn/activations.h"
#include "lathe/ir/ops.h"
#include "tests/closeness.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

struct Form {
  const char* name;
  /// Of the projection's result [rows, columns]; records the outputs.
  std::function<void(Graph& g, const Tensor& y)> behind;
  DType dtype = DType::BF16;
  int64_t depth = 72, columns = 48;
  bool bias = false, activation = false, residual = false, norm = false;
  /// Whether all rows up to the limit are one launch.
  bool isOne = true;
  bool pairs = false;
};
void PrintTo(const Form& f, std::ostream* os) { *os << f.name; }

Graph graphOf(const Form& f) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 200);
  Tensor x = g.input("x", f.dtype, {rows, f.depth});
  if (f.norm)
    x = fused::rmsNorm(x, g.weight("gain", f.dtype, {f.depth}), 1e-5, GainRounding::before_gain);
  fused::LinearOptions options;
  if (f.bias) options.bias = g.weight("bias", f.dtype, {f.columns});
  if (f.activation) options.activation = Activation::gelu;
  if (f.residual) options.residual = g.input("residual", f.dtype, {rows, f.columns});
  f.behind(g, fused::linear(x, g.weight("w", f.dtype, {f.columns, f.depth}), options));
  return g;
}

Array values(DType dtype, Shape shape, double step) {
  Array a(dtype, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i)
    a.set(i, dtype == DType::Bool ? double(i % 3 == 0) : std::sin(double(i % 4099) * step) * 2);
  return a;
}

class MatmulEpilogues : public ::testing::TestWithParam<Form> {};

TEST_P(MatmulEpilogues, AreOneKernelAndTheReferences) {
  const Form& f = GetParam();
  const Graph graph = graphOf(f);
  auto program = std::make_shared<Program>(compile(graph, {.backend = "cuda"}));
  Session reference(compile(graph, {.backend = "reference"}));
  reference.bindRandomWeights(3);
  const int64_t most = f.norm || f.pairs ? 64 : 128;
  uint64_t seed = 1;
  for (int64_t rows : {1, 3, 16, 17, 33, 65, 128, 129}) {
    if (f.isOne) EXPECT_EQ(launchesOf(*program, rows) == 1, rows <= most) << rows << " rows";
    HostProgram cuda(program, "check,random,seed=" + std::to_string(seed++));
    cuda.session().bindRandomWeights(3);
    Arrays inputs;
    const EntryPoint& entry = program->entry("forward");
    for (const Port& input : entry.inputs) {
      const Slot& slot = entry.slots[size_t(input.slot)];
      Shape shape;
      for (const DimExpr& d : slot.shape) shape.push_back(d.evaluate({{"rows", rows}}).value());
      inputs[input.name] = values(slot.dtype, shape, 0.37 + double(inputs.size()));
    }
    Array& x = inputs.at("x");
    x.set(x.size() - 1, NAN);  // a row of NaN, and no other
    if (rows > 2) x.set(f.depth, INFINITY);
    const Arrays got = cuda.session().run("forward", inputs),
                 want = reference.run("forward", inputs);
    for (const auto& [name, wanted] : want) {
      const Array& result = got.at(name);
      ASSERT_EQ(result.shape(), wanted.shape()) << name;
      // A sum of the product may be rounded the other way, and each op behind it again.
      const double bound = wanted.dtype() == DType::Bool ? 0
                           : f.dtype == DType::BF16      ? largestValue(wanted) / 64
                           : f.dtype == DType::F16       ? largestValue(wanted) / 512
                                                         : largestValue(wanted) * 1e-5;
      int wrong = 0;
      for (int64_t i = 0; i < wanted.size() && wrong < 4; ++i)
        if (!isNear(result.at(i), wanted.at(i), bound)) {
          ++wrong;
          ADD_FAILURE() << name << ", " << rows << " rows, element " << i << " is " << result.at(i)
                        << ", expected " << wanted.at(i);
        }
    }
  }
}

void squaredRelu(Graph& g, const Tensor& y) {
  Tensor positive = nn::relu(y);
  g.output("y", positive * positive);
}
void softcap(Graph& g, const Tensor& y) { g.output("y", tanh(cast(y, DType::F32) / 30.0) * 30.0); }
void layerScale(Graph& g, const Tensor& y) {
  Tensor residual = g.input("before", y.dtype(), y.shape());
  g.output("y", residual + y * g.weight("scale", y.dtype(), {48}));
}
void quickGelu(Graph& g, const Tensor& y) { g.output("y", nn::quickGelu(y)); }
// A factor per row, which lies in a transposed matrix, and a second result.
void rowFactors(Graph& g, const Tensor& y) {
  const Dim rows = y.shape()[0];
  Tensor factor = transpose(g.input("factor", y.dtype(), {1, rows}), {1, 0});
  Tensor scaled = y * factor;
  g.output("y", scaled);
  g.output("z", scaled + 1.0);
}
// Operands that are turned, cut and spread on their way in.
void movedOperands(Graph& g, const Tensor& y) {
  const Dim rows = y.shape()[0];
  constexpr int64_t columns = 48;
  Tensor turned = transpose(g.input("turned", y.dtype(), {columns, rows}), {1, 0});
  Tensor cut = sliceAxis(g.input("wide", y.dtype(), {rows, 100}), -1, 7, columns);
  g.output("y", y * turned + cut);
}
// The projection itself is a result, and what is made of it.
void both(Graph& g, const Tensor& y) {
  g.output("y", y);
  g.output("z", exp(clamp(y, {}, 4.0)));
}
void compared(Graph& g, const Tensor& y) {
  Tensor keep = g.input("keep", DType::Bool, y.shape());
  g.output("y", where(keep, y, -1.0));
  g.output("nan", isNan(y));
}
// Two ways that meet again, in an order in which neither may go alone.
void diamond(Graph& g, const Tensor& y) {
  Tensor a = sin(y), b = cos(y);
  g.output("y", a * b);
}
// Pairs of columns that are no gate of the dialect.
void quickGate(Graph& g, const Tensor& y) {
  const int64_t half = 24;
  g.output("y", nn::quickGelu(sliceAxis(y, -1, half, half)) * sliceAxis(y, -1, 0, half));
}
void rotatedPairs(Graph& g, const Tensor& y) {
  const int64_t half = 24;
  Tensor a = sliceAxis(y, -1, 0, half), b = sliceAxis(y, -1, half, half);
  g.output("y", a * 0.5 - b);
  g.output("z", b * 0.5 + a);
}
// A reduction, and pieces of which one is read alone, are no epilogues.
void reduced(Graph& g, const Tensor& y) { g.output("y", reduceSum(nn::relu(y), {-1}, true)); }
// What another op between the two reads of the product comes behind it.
void lessItsLargest(Graph& g, const Tensor& y) { g.output("y", y - reduceMax(y, {-1}, true)); }

INSTANTIATE_TEST_SUITE_P(
    Forms, MatmulEpilogues,
    ::testing::Values(
        Form{"squared_relu", squaredRelu}, Form{"squared_relu_f16", squaredRelu, DType::F16},
        Form{"squared_relu_f32", squaredRelu, DType::F32},
        Form{"squared_relu_behind_a_norm", squaredRelu, DType::BF16, 72, 48, false, false, false,
             true},
        Form{"squared_relu_of_odd_columns", squaredRelu, DType::BF16, 72, 45},
        Form{"squared_relu_of_odd_depth", squaredRelu, DType::BF16, 67, 48},
        Form{"softcap", softcap},
        Form{"softcap_behind_a_norm", softcap, DType::BF16, 136, 88, false, false, false, true},
        Form{"softcap_f32", softcap, DType::F32, 64, 33},
        Form{"layer_scale", layerScale, DType::BF16, 72, 48, true},
        Form{"layer_scale_f32", layerScale, DType::F32, 72, 48, true},
        Form{"quick_gelu", quickGelu, DType::F16, 72, 48, true},
        Form{"behind_all_of_linear", squaredRelu, DType::BF16, 72, 48, true, true, true},
        Form{"behind_all_of_linear_f32", squaredRelu, DType::F32, 72, 44, true, true, true},
        Form{"row_factors", rowFactors}, Form{"moved_operands", movedOperands}, Form{"both", both},
        Form{"compared", compared}, Form{"diamond", diamond},
        Form{.name = "quick_gate", .behind = quickGate, .pairs = true},
        Form{.name = "rotated_pairs", .behind = rotatedPairs, .pairs = true},
        Form{.name = "less_its_largest", .behind = lessItsLargest, .isOne = false},
        Form{.name = "reduced", .behind = reduced, .isOne = false}),
    [](const auto& info) { return std::string(info.param.name); });

// What is added to a sum that is not rounded has the result's dtype.
TEST(UnroundedProducts, TakeResidualsOfTheResultsDtype) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 64);
  fused::LinearOptions options;
  options.unrounded = true;
  options.residual = g.input("residual", DType::F32, {rows, 48});
  g.output("y", fused::linear(g.input("x", DType::BF16, {rows, 64}),
                              g.weight("w", DType::BF16, {48, 64}), options));
  HostProgram cuda(std::make_shared<Program>(compile(g, {.backend = "cuda"})), "check");
  Session reference(compile(g, {.backend = "reference"}));
  cuda.session().bindRandomWeights(3);
  reference.bindRandomWeights(3);
  for (int64_t n : {1, 20}) {
    Array x(DType::BF16, {n, 64}), residual(DType::F32, {n, 48});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i)));
    for (int64_t i = 0; i < residual.size(); ++i) residual.set(i, std::cos(double(i)) * 3);
    const Arrays inputs{{"x", x}, {"residual", residual}};
    EXPECT_LE(largestError(cuda.session().run("forward", inputs).at("y"),
                           reference.run("forward", inputs).at("y")),
              1e-5)
        << n << " rows";
  }
}

}  // namespace
}  // namespace lathe::cuda
