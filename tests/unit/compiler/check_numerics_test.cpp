// SPDX-License-Identifier: Apache-2.0
// What every step did to the numbers, and how far results may be from those wanted.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/inspect/check_numerics.h"
#include "lathe/lathe.h"
#include "lathe/passes/match.h"
#include "tests/unit/compiler/planted.h"

namespace lathe {
namespace {

using test::addWrongTanh;
using test::planted;
using ::testing::HasSubstr;

struct Model {
  Graph graph;
  int tanhLine = 0;
  explicit Model(DType dtype = DType::F32) {
    Dim batch = graph.dim("batch", 1, 8), seq = graph.dim("seq", 1, 64);
    Tensor x = graph.input("x", dtype, {batch, seq, 16});
    Tensor y = matmul(x, swapAxes(graph.weight("w", dtype, {16, 16}), 0, 1));
    y = nn::softmax(y, 2) * 4;
    y = tanh(y), tanhLine = __LINE__;
    graph.output("y", y + x);
  }
};

const NumericsRow& rowOf(const NumericsTable& table, const std::string& step) {
  auto it = std::find_if(table.rows.begin(), table.rows.end(),
                         [&](const NumericsRow& r) { return r.step == step; });
  EXPECT_NE(it, table.rows.end()) << step;
  return *it;
}

TEST(CheckNumerics, HasARowForEveryStepAndOneForTheBackend) {
  NumericsTable table = checkNumerics(Model().graph);
  EXPECT_TRUE(table.within);
  EXPECT_EQ(table.rows.front().step, "canonicalize");
  EXPECT_EQ(table.rows.back().stage, "program");
  EXPECT_EQ(table.rows.back().step, "cpu");
  EXPECT_GT(rowOf(table, "fuse").rewrites, 0u);
  EXPECT_FALSE(rowOf(table, "to-kernels").ran);
  EXPECT_TRUE(rowOf(table, "form-regions").ran);
  EXPECT_EQ(table.results, 1u);
  EXPECT_EQ(table.sizes.size(), 2u);
}

TEST(RunStages, TellsTheNumberOfEachStepUpToTheStage) {
  for (Stage until : {Stage::Canonical, Stage::Fused, Stage::Program}) {
    std::vector<size_t> numbers, of;
    runStages(Model().graph, until, {}, {}, [&](const StepDone& step, mlir::ModuleOp) {
      numbers.push_back(step.number);
      of.push_back(step.of);
    });
    ASSERT_FALSE(numbers.empty());
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], i + 1);
      EXPECT_EQ(of[i], numbers.size());
    }
  }
}

TEST(CheckNumerics, BlamesTheStepTheOpAndTheLine) {
  Model model;
  TrialOptions options;
  options.compile.pipeline.patterns = planted({addWrongTanh});
  NumericsTable table = checkNumerics(model.graph, options);
  EXPECT_FALSE(table.within);
  const NumericsRow& row = rowOf(table, "user-fusions");
  EXPECT_FALSE(row.deviation.within);
  EXPECT_GT(row.deviation.absolute, 1e-3);
  EXPECT_THAT(row.deviation.where, HasSubstr("forward: y["));
  EXPECT_EQ(row.op, "lathe.erf");
  EXPECT_EQ(row.was, "lathe.tanh");
  EXPECT_THAT(row.at, HasSubstr("check_numerics_test.cpp:" + std::to_string(model.tanhLine)));
  EXPECT_FALSE(table.rows.back().deviation.within);
}

TEST(CheckNumerics, BlamesALaterStepForNothingThatAnEarlierOneDid) {
  TrialOptions options;
  options.compile.pipeline.patterns = planted({addWrongTanh});
  NumericsTable table = checkNumerics(Model().graph, options);
  EXPECT_EQ(rowOf(table, "cse-fused").op, "");
  EXPECT_FALSE(rowOf(table, "cse-fused").deviation.within);
}

const bool nudged = [] {
  registerBackend(std::make_unique<test::OddBackend>(
      "nudged",
      [](mlir::ModuleOp module) {
        module.walk([](ConstantOp constant) {
          if (splatValue(constant.getResult()) == 4)
            constant.setValueAttr(mlir::DenseElementsAttr::get(tensorType(constant.getResult()),
                                                               std::nextafter(4.0f, 5.0f)));
        });
      },
      nullptr));
  return true;
}();

// Where an earlier step was wrong, a step that changes a last bit is still told with the op of it.
TEST(CheckNumerics, TellsWhatALaterStepChangesBehindAWrongOne) {
  TrialOptions options;
  options.compile.backend = "nudged";
  EXPECT_EQ(rowOf(checkNumerics(Model().graph, options), "odd-step").op, "lathe.constant");
  options.compile.pipeline.patterns = planted({addWrongTanh});
  const NumericsTable table = checkNumerics(Model().graph, options);
  EXPECT_FALSE(rowOf(table, "user-fusions").deviation.within);
  EXPECT_EQ(rowOf(table, "odd-step").op, "lathe.constant");
}

const bool swappedGate = [] {
  registerBackend(std::make_unique<test::OddBackend>(
      "swapped-gate",
      [](mlir::ModuleOp module) {
        module.walk([](GluOp gate) {
          mlir::Value first = gate->getOperand(0);
          gate->setOperand(0, gate->getOperand(1));
          gate->setOperand(1, first);
        });
      },
      nullptr));
  return true;
}();

// What an op was is looked up in the form that the step got, where earlier steps had a say.
TEST(CheckNumerics, TellsWhatAnOpWasJustBeforeTheStep) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4, 16}), up = g.input("up", DType::F32, {4, 16});
  g.output("y", x * sigmoid(x) * up);
  TrialOptions options;
  options.compile.backend = "swapped-gate";
  const NumericsTable table = checkNumerics(g, options);
  EXPECT_TRUE(rowOf(table, "fuse").deviation.within);
  const NumericsRow& row = rowOf(table, "odd-step");
  EXPECT_FALSE(row.deviation.within);
  EXPECT_EQ(row.op, "lathe.glu");
  EXPECT_EQ(row.was, "lathe.glu");
}

TEST(CheckNumerics, OwnPrecisionAllowsTheRoundingOfTheGraphItself) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    TrialOptions options;
    options.precision = Precision::OwnDtype;
    NumericsTable table = checkNumerics(Model(dtype).graph, options);
    for (const NumericsRow& row : table.rows)
      EXPECT_TRUE(row.deviation.within) << row.step << " " << row.deviation.where;
  }
}

TEST(CheckNumerics, StrictModeTakesNothingButTheSameBits) {
  Model model;
  TrialOptions options;
  options.compile.pipeline.mode = NumericsMode::Strict;
  Trial strict(model.graph.impl().finished(), options);
  EXPECT_EQ(strict.allowed(0), 0);
  options.compile.pipeline.mode = NumericsMode::Relaxed;
  EXPECT_EQ(Trial(model.graph.impl().finished(), options).allowed(0), 1e-6);
}

// gelu(x w) as it is spelled in 16 bits, whose 1.414 is not sqrt(2).
Graph erfGelu(DType dtype) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  Tensor x = matmul(g.input("x", dtype, {n, 48}), g.weight("w1", dtype, {48, 48}));
  Tensor y = (0.5 * x) * (1.0 + erf(x / 1.4142135623730951));
  g.output("y", matmul(y, g.weight("w2", dtype, {48, 48})));
  return g;
}

TEST(CheckNumerics, AllowsWhatTheGraphs16BitConstantsAllow) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    NumericsTable table = checkNumerics(erfGelu(dtype));
    for (const NumericsRow& row : table.rows)
      EXPECT_TRUE(row.deviation.within) << row.step << " " << row.deviation.where;
    EXPECT_FALSE(rowOf(table, "fuse").deviation.identical);
  }
}

TEST(CheckNumerics, AllowsNoMoreThanThoseConstantsDo) {
  // The tanh form of gelu is nearer to gelu than one bf16 step, and further than the constant.
  TrialOptions options;
  options.compile.pipeline.patterns =
      planted({[](PatternLibrary& library, mlir::MLIRContext* context) {
        addPattern(library, context, "wrong-gelu", [](DagPattern& p) {
          Tensor x = p.any();
          p.root(erf(x));
          p.replaceWith(tanh((x + 0.0895 * (x * x * x)) * 1.1283791670955126));
          p.approximate();
        });
      }});
  NumericsTable table = checkNumerics(erfGelu(DType::BF16), options);
  EXPECT_FALSE(rowOf(table, "user-fusions").deviation.within);
}

TEST(CheckNumerics, AllowsNothingForConstantsThat16BitsHold) {
  Graph g;
  Tensor x = g.input("x", DType::BF16, {8, 4});
  g.output("y", exp(x * 0.5) + 0.7);  // no pattern asks for 0.7
  EXPECT_EQ(Trial(g.impl().finished(), {}).allowed(0), 1e-6);
}

TEST(CheckNumerics, TakesSizesAndInputsFromTheCaller) {
  TrialOptions options;
  options.sizes = {{"seq", 3}, {"batch", 1}};
  Array x(DType::F32, {1, 3, 16});
  x.set(0, 100);
  options.inputs["x"] = x;
  NumericsTable table = checkNumerics(Model().graph, options);
  EXPECT_EQ(table.sizes.at("seq"), 3);
  EXPECT_TRUE(table.within);
}

TEST(CheckNumerics, RefusesAnInputThatNoEntryPointHas) {
  TrialOptions options;
  options.inputs["z"] = Array(DType::F32, {1});
  try {
    checkNumerics(Model().graph, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "no entry point has an input 'z'");
  }
}

// --- what a backend's own order of sums may change

// f32 products one behind the other, a norm behind each.
Graph deepProducts() {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("n", 1, 64), 512});
  for (int i = 0; i < 8; ++i) {
    Tensor y = matmul(x, g.weight("w" + std::to_string(i), DType::F32, {512, 512}));
    x = y * rsqrt(reduceMean(y * y, {1}, true) + 1e-6);
  }
  g.output("y", x);
  return g;
}

// Weights of a product as a kernel might round them: 8 or 11 bits of 24.
template <int kBits>
void roundWeightsOfProducts(mlir::ModuleOp module) {
  module.walk([](mlir::Operation* op) {
    if (!mlir::isa<MatmulOp, LinearOp>(op)) return;
    mlir::OpBuilder b(op);
    mlir::Value w = op->getOperand(1);
    mlir::RankedTensorType type = tensorType(w);
    mlir::Type element = kBits == 8 ? mlir::Type(b.getBF16Type()) : mlir::Type(b.getF16Type());
    auto narrow = mlir::cast<mlir::RankedTensorType>(type.clone(element));
    w = CastOp::create(b, op->getLoc(), narrow, w, element).getResult();
    w = CastOp::create(b, op->getLoc(), type, w, type.getElementType()).getResult();
    op->setOperand(1, w);
  });
}

const bool registered = [] {
  registerBackend(
      std::make_unique<test::OddBackend>("bf16-weights", nullptr, roundWeightsOfProducts<8>));
  registerBackend(
      std::make_unique<test::OddBackend>("f16-weights", nullptr, roundWeightsOfProducts<11>));
  return true;
}();

TEST(CheckNumerics, AllowsABackendItsOwnOrderOfSums) {
  const Graph graph = deepProducts();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    TrialOptions options;
    options.seed = seed;
    NumericsTable table = checkNumerics(graph, options);
    EXPECT_TRUE(table.within) << table.rows.back().deviation.where;
    EXPECT_FALSE(table.rows.back().deviation.identical);
  }
}

TEST(CheckNumerics, AllowsABackendNoMoreThanRoundedSums) {
  const Graph graph = deepProducts();
  const double allowed = Trial(graph.impl().finished(), {}).allowedOfBackend(0);
  EXPECT_GE(allowed, contractOf(DType::F32, Precision::OwnDtype));
  EXPECT_LE(allowed, 1e-4);
  for (const char* backend : {"bf16-weights", "f16-weights"}) {
    TrialOptions options;
    options.compile.backend = backend;
    NumericsTable table = checkNumerics(graph, options);
    EXPECT_FALSE(table.rows.back().deviation.within) << backend;
    EXPECT_GT(table.rows.back().deviation.share, 5 * allowed) << backend;
  }
}

// Rounding grows with what the sums come to on the way, not with the number of products alone.
TEST(CheckNumerics, FollowsRoundingThroughWhatComesAfter) {
  auto allowed = [](double scale) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {8, 256});
    Tensor y = matmul(x, g.weight("w", DType::F32, {256, 8}));
    g.output("y", sin(y * scale));
    return Trial(g.impl().finished(), {}).allowedOfBackend(0);
  };
  EXPECT_GT(allowed(1000), 50 * allowed(1));
}

// --- how far is far

Deviation between(std::vector<float> got, std::vector<float> want, double allowed) {
  Shape shape{int64_t(got.size())};
  return deviationOf(Array::fromFloats(got, shape), Array::fromFloats(want, shape), DType::F32,
                     allowed, "y");
}

// What 16 bits do not hold is infinite in any program of them, and float64's number beside it. A
// form that never makes it is right with the number.
TEST(CheckNumerics, AccusesNobodyOfNumbersThatTheirDtypeDoesNotHold) {
  Graph product("product"), norm("norm");
  const Tensor x = product.input("x", DType::F16, {64});
  product.output("y", x * 300.0 * 300.0);
  const Tensor y = norm.input("x", DType::F16, {6, 8}) * 300.0;
  norm.output("y", y * rsqrt(reduceMean(y * y, {1}, true) + 1e-5));
  for (const Graph* graph : {&product, &norm})
    for (Precision precision : {Precision::Float64, Precision::OwnDtype}) {
      TrialOptions options;
      options.precision = precision;
      const NumericsTable table = checkNumerics(*graph, options);
      for (const NumericsRow& row : table.rows)
        EXPECT_TRUE(row.deviation.within) << row.step << ": " << row.deviation.where;
    }
}

// An infinity where neither float64 nor the graph's own dtypes have one is a mistake.
TEST(Deviation, OthersAreRightElementByElement) {
  const Array want = Array::fromFloats({1, 2, 3, 4}, {4}),
              other = Array::fromFloats({1, INFINITY, NAN, 8}, {4});
  auto deviation = [&](std::vector<float> got) {
    return deviationOf(Array::fromFloats(std::move(got), {4}), want, DType::F32, 1e-5, "y",
                       {&other, 0.01});
  };
  EXPECT_TRUE(deviation({1, INFINITY, NAN, 8.05f}).within);
  EXPECT_TRUE(deviation({1, 2, 3, 4}).identical);
  EXPECT_FALSE(deviation({1, INFINITY, NAN, 8}).identical);
  EXPECT_FALSE(deviation({1, -INFINITY, 3, 4}).within);
  EXPECT_FALSE(deviation({NAN, 2, 3, 4}).within);
  EXPECT_FALSE(deviation({1, 2, INFINITY, 4}).within);
  EXPECT_EQ(deviation({1, 2, 3, 8.5f}).beyond, 1);
}

TEST(Deviation, MeasuresInSteps) {
  Deviation d = between({1, std::nextafter(2.f, 3.f)}, {1, 2}, 1e-6);
  EXPECT_EQ(d.ulps, 1);
  EXPECT_FALSE(d.identical);
  EXPECT_TRUE(d.within);
  EXPECT_THAT(d.where, HasSubstr("y[1] is 2.0000002"));
}

// In every float dtype and binade: one step is one, and 16 bits are allowed four at 1.
TEST(Deviation, CountsTheStepsOfEachDType) {
  const std::pair<DType, int> bits[] = {
      {DType::F16, 11}, {DType::BF16, 8}, {DType::F32, 24}, {DType::F64, 53}};
  for (auto [dtype, precision] : bits)
    for (double scale : {0.25, 1.0, 2048.0})
      for (double value : {1.0, 1.5, -1.75}) {
        const double step = std::ldexp(scale, 1 - precision);
        Array want(dtype, {1}), got(dtype, {1});
        want.set(0, value * scale);
        for (int steps : {1, -3, 40}) {
          if (value == 1 && steps < 0) continue;  // half as far below a power of two
          got.set(0, value * scale + steps * step);
          EXPECT_EQ(deviationOf(got, want, dtype, 1, "y").ulps, std::abs(steps))
              << nameOf(dtype) << " " << value * scale;
        }
      }
  for (auto [dtype, precision] : {bits[0], bits[1]})
    EXPECT_EQ(contractOf(dtype, Precision::OwnDtype), std::ldexp(4, 1 - precision))
        << nameOf(dtype);
}

TEST(Deviation, TakesTheMedianForTheScaleOfWhatCancels) {
  EXPECT_TRUE(between({1, 1, 1e-7f}, {1, 1, 0}, 1e-6).within);
  EXPECT_FALSE(between({1, 1, 1e-4f}, {1, 1, 0}, 1e-6).within);
  // One large value is no licence for the others.
  EXPECT_FALSE(between({1e9f, 1.1f, 1}, {1e9f, 1, 1}, 1e-6).within);
}

// Most of a masked result is zero, which says nothing of its scale.
TEST(Deviation, TakesNoZerosForTheScale) {
  const Array want = Array::fromFloats({0, 0, 0, 8, 0}, {5});
  const Array got = Array::fromFloats({0.5, 0, 0, 8, 0}, {5});
  EXPECT_EQ(medianMagnitude(want), 8);
  EXPECT_EQ(deviationOf(got, want, DType::F32, 1, "y").share, 0.5 / 8);
  EXPECT_EQ(medianMagnitude(Array(DType::F32, {3})), 0);
}

// A result that is not within is told before those that are, however far these are off.
TEST(Deviation, TellsThePlaceOfWhatIsNotAllowed) {
  auto results = [](float a, float b) {
    return TrialResults{{"f", "a", DType::F32, Array::fromFloats({a}, {1})},
                        {"f", "b", DType::F32, Array::fromFloats({b}, {1})}};
  };
  const TrialResults want = results(1, 1);
  EXPECT_EQ(deviationOf(results(1.5f, 1.0625f), want, {1, 1e-6}).where,
            "f: b[0] is 1.0625, want 1");
  EXPECT_EQ(deviationOf(results(1.0625f, 1.5f), want, {1e-6, 1}).where,
            "f: a[0] is 1.0625, want 1");
  EXPECT_EQ(deviationOf(results(1.0625f, 1.5f), want, {1, 1}).where, "f: b[0] is 1.5, want 1");
}

TEST(Deviation, TellsNanInfinityAndTheSignOfZero) {
  const float nan = NAN, inf = INFINITY;
  EXPECT_TRUE(between({nan, inf}, {nan, inf}, 0).identical);
  EXPECT_FALSE(between({nan}, {1}, 1).within);
  EXPECT_FALSE(between({inf}, {-inf}, 1).within);
  EXPECT_TRUE(between({-0.f}, {0.f}, 1e-6).within);
  EXPECT_FALSE(between({-0.f}, {0.f}, 0).within);
}

// A maximum over NaN would not see it: inf / inf and nan / nan are infinitely far.
TEST(Deviation, IsInfiniteInEveryUnitWhereOneIsNoNumber) {
  const float nan = NAN, inf = INFINITY;
  for (const auto& [got, want] : {std::pair{nan, 1.f},
                                  {1.f, nan},
                                  {inf, 1.f},
                                  {1.f, inf},
                                  {inf, -inf},
                                  {nan, inf},
                                  {inf, nan}}) {
    const Deviation d = between({1, got, 1.5f}, {1, want, 1}, 1);
    EXPECT_FALSE(d.within) << got << " " << want;
    EXPECT_EQ(d.absolute, INFINITY) << got << " " << want;
    EXPECT_EQ(d.relative, INFINITY) << got << " " << want;
    EXPECT_EQ(d.ulps, INFINITY) << got << " " << want;
    EXPECT_THAT(d.where, HasSubstr("y[1] is ")) << got << " " << want;
  }
}

TEST(Deviation, TakesIntegersExactly) {
  Array got = Array::fromInts(std::vector<int64_t>{(1ll << 60) + 1}, {1});
  Array want = Array::fromInts(std::vector<int64_t>{1ll << 60}, {1});
  EXPECT_FALSE(deviationOf(got, want, DType::I64, 1, "y").within);
  EXPECT_TRUE(deviationOf(want, want, DType::I64, 1, "y").within);
}

TEST(Trial, KeepsIdsAndPositionsInsideWhatTheyIndex) {
  Graph g;
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 8), cache = g.dim("cache", 1, 32);
  g.state("kept", DType::F32, {batch, cache, 4});
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor at = g.input("at", DType::I64, {batch});
  Tensor x = gather(g.weight("table", DType::F32, {3, 4}), ids, 0);
  Tensor rows = iota(x, {seq}, 0) + reshape(at, {batch, 1});
  x = x + gather(g.weight("places", DType::F32, {9, 4}), rows, 0);
  Tensor kept = update(g.readState("kept"), x, at, 1);
  g.writeState("kept", kept);
  g.output("y", kept);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    TrialOptions options;
    options.seed = seed;
    options.sizes = {{"seq", 7}};
    Trial trial(g.impl().finished(), options);
    const std::vector<Array>& in = trial.arguments("forward");
    for (int64_t i = 0; i < in[0].size(); ++i) EXPECT_LT(in[0].at(i), 3);
    for (int64_t i = 0; i < in[1].size(); ++i) EXPECT_LE(in[1].at(i), 2);
  }
}

// Each entry point begins with states of zeros, whatever those before it wrote; and so does a
// repetition.
TEST(Trial, EntryPointsBeginWithFreshStates) {
  Graph g;
  g.state("sum", DType::F32, {4});
  for (const char* entry : {"add", "again", "third"}) {
    g.entry(entry);
    Tensor sum = g.readState("sum") + g.input("x", DType::F32, {4});
    g.writeState("sum", sum);
    g.output("y", sum * 2);
  }
  const NumericsTable table = checkNumerics(g);
  EXPECT_TRUE(table.within) << table.rows.back().deviation.where;
  for (const NumericsRow& row : table.rows)
    EXPECT_TRUE(row.deviation.identical) << row.step << " " << row.deviation.where;
}

// Units in the last place are those of the dtype, whatever the arrays hold; where a dtype's numbers
// lie evenly, below its smallest normal one, those of that one.
TEST(Deviations, CountUnitsOfTheDtype) {
  struct Row {
    DType dtype;
    double want, unit;
  };
  for (const Row& row : std::vector<Row>{
           {DType::F64, 1, 0x1p-52},
           {DType::F64, 3, 0x1p-51},
           {DType::F64, 0x1p-1022, 0x1p-1074},
           {DType::F64, 0x1p-1040, 0x1p-1074},
           {DType::F32, 1, 0x1p-23},
           {DType::F32, -5, 0x1p-21},
           {DType::F32, 0x1p-126, 0x1p-149},
           {DType::F32, 0x1p-140, 0x1p-149},
           {DType::F32, 0, 0x1p-149},
           {DType::BF16, 1, 0x1p-7},
           {DType::BF16, 0x1p-126, 0x1p-133},
           {DType::BF16, 0x1p-130, 0x1p-133},
           {DType::BF16, 0, 0x1p-133},
           {DType::F16, 1, 0x1p-10},
           {DType::F16, 1000, 0x1p-1},
           {DType::F16, 0x1p-14, 0x1p-24},
           {DType::F16, 0x1p-20, 0x1p-24},
           {DType::F16, 0, 0x1p-24},
       }) {
    Array want(DType::F64, {2}), got(DType::F64, {2});
    want.set(1, row.want);
    for (double units : {1.0, 3.0}) {
      got.set(1, row.want + units * row.unit);
      const Deviation d = deviationOf(got, want, row.dtype, 0, "y");
      EXPECT_EQ(d.ulps, units) << nameOf(row.dtype) << " " << row.want;
      EXPECT_FALSE(d.identical);
      EXPECT_EQ(d.beyond, 1);
    }
    EXPECT_TRUE(deviationOf(want, want, row.dtype, 0, "y").identical);
  }
}

// What quantizes weights says so; the steps behind it are held to the new ones.
TEST(CheckNumerics, OneStepChangesTheWeights) {
  TrialOptions options;
  options.compile.backendOptions.weights = parseWeightFormats("int8");
  const NumericsTable table = checkNumerics(Model().graph, options);
  EXPECT_TRUE(table.within);
  for (const NumericsRow& row : table.rows)
    EXPECT_EQ(row.changesWeights, row.step == "quantize-weights") << row.step;
  EXPECT_TRUE(rowOf(table, "quantize-weights").changesWeights);
}

// Nor is a step behind it that changes nothing as far from the numbers as the quantization is.
TEST(CheckNumerics, AnIdleStepBehindOtherWeightsChangesNothing) {
  registerBackend(std::make_unique<test::OddBackend>("idle-step", nullptr, nullptr));
  TrialOptions options;
  options.compile.backend = "idle-step";
  options.compile.backendOptions.weights = parseWeightFormats("int4");
  const NumericsTable table = checkNumerics(Model().graph, options);
  const NumericsRow& quantized = rowOf(table, "quantize-weights");
  EXPECT_TRUE(quantized.changesWeights);
  EXPECT_GT(quantized.deviation.absolute, 1e-3);
  EXPECT_TRUE(rowOf(table, "odd-step").deviation.within);
  EXPECT_EQ(rowOf(table, "odd-step").deviation.absolute, 0);
  EXPECT_TRUE(table.within);
}

}  // namespace
}  // namespace lathe
