// SPDX-License-Identifier: Apache-2.0
// Attention of one query and few keys inside the kernel of the product behind it: the numbers are
// those of the two kernels, bit for bit, in every mode; what does not fit runs as the two.
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/cost.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

struct Form {
  const char* name;
  DType dtype = DType::BF16;
  int64_t keyHeads = 2, group = 4, depth = 64, valueDepth = 64, columns = 256;
  int64_t window = 0;
  double softcap = 0;
  Causal causal = Causal::positions;
  MaskedRow maskedRow = MaskedRow::nan;
  bool bias = false, residual = true, activation = false;
  bool states = true;  ///< keys and values are, and this run appends to them
  bool isOne = true;   ///< one kernel for one sequence and few keys
  int64_t queries = 1;
};
void PrintTo(const Form& f, std::ostream* os) { *os << f.name; }

/// `apart`: what attention gives is a result too, so that the two ops stay two kernels.
Graph graphOf(const Form& f, bool apart) {
  Graph g;
  const Dim batch = g.dim("batch", 0, 4), keys = g.dim("keys", 1, 600);
  const int64_t heads = f.keyHeads * f.group;
  const Tensor q = g.input("q", f.dtype, {batch, heads, f.queries, f.depth});
  fused::AttentionOptions options;
  options.causal = f.causal;
  options.window = f.window;
  options.softcap = f.softcap;
  options.scale = 0.2;
  options.maskedRow = f.maskedRow;
  Tensor at;
  if (f.causal == Causal::positions) options.positions = at = g.input("at", DType::I64, {batch});
  auto held = [&](const std::string& name, int64_t depth) {
    if (!f.states) return g.input(name, f.dtype, {batch, f.keyHeads, keys, depth});
    g.state(name, f.dtype, {batch, f.keyHeads, keys, depth});
    const Tensor row = g.input(name + "_row", f.dtype, {batch, f.keyHeads, f.queries, depth});
    const Tensor now = update(g.readState(name), row, at, 2);
    g.writeState(name, now);
    return now;
  };
  const Tensor k = held("k", f.depth), v = held("v", f.valueDepth);
  const Tensor seen = fused::attention(q, k, v, options);
  const Tensor rows =
      reshape(transpose(seen, {0, 2, 1, 3}), {batch, f.queries, heads * f.valueDepth});
  fused::LinearOptions linear;
  if (f.bias) linear.bias = g.weight("bias", f.dtype, {f.columns});
  if (f.activation) linear.activation = Activation::silu;
  if (f.residual) linear.residual = g.input("residual", f.dtype, {batch, f.queries, f.columns});
  g.output("y",
           fused::linear(rows, g.weight("w", f.dtype, {f.columns, heads * f.valueDepth}), linear));
  if (apart) g.output("seen", seen);
  return g;
}

Array values(const Slot& slot, const SymbolValues& sizes, int seed) {
  Shape shape;
  for (const DimExpr& d : slot.shape) shape.push_back(d.evaluate(sizes).value());
  Array a(slot.dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, std::sin(double(i % 4099) * 0.7 + seed));
  return a;
}

/// A call of the entry with these sizes, whose keys in front of `at` are there.
Arrays runOf(Session& session, const SymbolValues& sizes, const std::vector<int64_t>& at,
             double special = 0) {
  const EntryPoint& entry = session.program().entry("forward");
  Arrays inputs;
  int seed = 1;
  for (const Port& input : entry.inputs)
    inputs[input.name] = values(entry.slots[size_t(input.slot)], sizes, ++seed);
  if (inputs.count("at")) inputs["at"] = Array::fromInts(at, {int64_t(at.size())});
  if (special != 0 && inputs.at("q").size()) inputs["q"].set(3, special);
  if (!entry.statesIn.empty()) session.setSymbol("keys", sizes.at("keys"));
  for (const Port& state : entry.statesIn)
    session.setState(state.name, values(entry.slots[size_t(state.slot)], sizes, ++seed));
  return session.run("forward", inputs);
}

std::vector<Launch> launchesOf(const Program& program, const SymbolValues& sizes) {
  const KernelTable table = kernelTableOf(program);
  const Call& call = program.entry("forward").calls.back();
  for (const Variant& v : table.at(call.callee)) {
    if (!std::ranges::all_of(v.when, [&](const Condition& c) {
          const int64_t value = c.value.evaluate(sizes).value();
          return c.low <= value && value <= c.high;
        }))
      continue;
    return v.launches;
  }
  return {};
}

std::string kindOf(const Program& program) { return program.entry("forward").calls.back().kind; }

class AttendedLinear : public ::testing::TestWithParam<Form> {};

TEST_P(AttendedLinear, IsWhatTheTwoKernelsGive) {
  const Form& f = GetParam();
  auto one = std::make_shared<Program>(compile(graphOf(f, false), {.backend = "cuda"})),
       two = std::make_shared<Program>(compile(graphOf(f, true), {.backend = "cuda"}));
  ASSERT_EQ(kindOf(*one), f.isOne ? "attended_linear" : "linear");
  ASSERT_EQ(kindOf(*two), "linear");
  Session reference(compile(graphOf(f, false), {.backend = "reference"}));
  reference.bindRandomWeights(3);
  struct Run {
    int64_t batch, keys;
    std::vector<int64_t> at;
    const char* options;
  };
  for (const Run& r : {Run{1, 1, {0}, "check"}, Run{1, 200, {137}, "check,random,seed=3"},
                       Run{1, 256, {255}, "check,reverse"}, Run{1, 256, {63}, "fast"},
                       Run{1, 130, {129}, "check,eager"}, Run{1, 257, {200}, "fast"},
                       Run{1, 600, {599}, "fast,reverse"}, Run{3, 64, {5, 0, 63}, "fast"},
                       Run{0, 64, {}, "check"}}) {
    SCOPED_TRACE(std::to_string(r.batch) + " of " + std::to_string(r.keys) + " keys, " + r.options);
    const SymbolValues sizes{{"batch", r.batch}, {"keys", r.keys}};
    if (f.isOne) {
      const std::vector<Launch> launches = launchesOf(*one, sizes);
      const bool few = r.batch <= 1 && r.keys <= 256;
      ASSERT_EQ(launches.size(), few ? 1u : 2u);
      EXPECT_EQ(launches[0].cluster, few ? f.keyHeads : 1);
      EXPECT_TRUE(launches[0].waits);
    }
    for (double special : {0.0, double(INFINITY), double(NAN)}) {
      HostProgram together(one, r.options), apart(two, r.options);
      together.session().bindRandomWeights(3);
      apart.session().bindRandomWeights(3);
      const Arrays got = runOf(together.session(), sizes, r.at, special);
      const Array y = got.at("y"), same = runOf(apart.session(), sizes, r.at, special).at("y"),
                  want = runOf(reference, sizes, r.at, special).at("y");
      ASSERT_EQ(y.shape(), want.shape());
      const double bound = largestValue(want) * (f.dtype == DType::BF16 ? 0x1p-6 : 0x1p-9);
      for (int64_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(y.at(i) == same.at(i) || (std::isnan(y.at(i)) && std::isnan(same.at(i))))
            << "element " << i << " is " << y.at(i) << ", of two kernels " << same.at(i);
        ASSERT_TRUE(isNear(y.at(i), want.at(i), bound))
            << "element " << i << " is " << y.at(i) << ", expected " << want.at(i);
      }
      // Where everything is checked, and of two kernels for many keys but in depth, plain values.
      if (std::string(r.options).starts_with("check") || (r.keys > 256 && !test::inDepth())) break;
    }
  }
}

const Form kForms[] = {
    {.name = "clusterOfTwo"},
    {.name = "clusterOfFour", .keyHeads = 4, .group = 1},
    {.name = "clusterOfEight", .keyHeads = 8, .group = 2, .depth = 32, .valueDepth = 16},
    {.name = "f16WithBias",
     .dtype = DType::F16,
     .bias = true,
     .residual = false,
     .activation = true},
    {.name = "oddDepths", .group = 3, .depth = 40, .valueDepth = 24, .columns = 160},
    {.name = "windowAndSoftcap", .window = 50, .softcap = 3},
    {.name = "everyRowOfATile", .group = 16, .depth = 16, .valueDepth = 8},
    {.name = "withoutStates", .states = false},
    {.name = "everyKey", .causal = Causal::none, .states = false},
    {.name = "rowsWithoutKeys", .maskedRow = MaskedRow::zero, .states = false},
    // What stays two kernels.
    {.name = "oneKeyHead", .keyHeads = 1, .isOne = false},
    {.name = "threeKeyHeads", .keyHeads = 3, .columns = 192, .isOne = false},
    {.name = "moreRowsThanATile", .group = 17, .depth = 16, .valueDepth = 8, .isOne = false},
    {.name = "deepHeads", .depth = 128, .valueDepth = 128, .isOne = false},
    {.name = "f32", .dtype = DType::F32, .isOne = false},
    {.name = "twoQueries", .causal = Causal::none, .states = false, .isOne = false, .queries = 2},
};
INSTANTIATE_TEST_SUITE_P(Forms, AttendedLinear, ::testing::ValuesIn(kForms),
                         [](const auto& i) { return std::string(i.param.name); });

// A product whose blocks are more than run at a time, or no whole number of clusters, is a kernel
// of its own: the call has two launches for every size.
TEST(AttendedLinearBlocks, AreWholeClustersThatRunAtATime) {
  for (int64_t columns : {8192, 16 * 9}) {
    const Form f{.name = "", .keyHeads = 8, .group = 1, .columns = columns};
    const Program program = compile(graphOf(f, false), {.backend = "cuda"});
    const std::vector<Launch> launches = launchesOf(program, {{"batch", 1}, {"keys", 64}});
    ASSERT_FALSE(launches.empty()) << columns;
    if (launches.size() == 1) {
      EXPECT_EQ(launches[0].grid[0].count.asConstant().value() % 8, 0) << columns;
      EXPECT_LE(launches[0].grid[0].count.asConstant().value(), 128) << columns;
    }
    if (columns == 8192) EXPECT_EQ(launches.size(), 2u);
  }
}

// Operands that come behind the attention are there where the product stands.
TEST(AttendedLinearBlocks, AResidualThatIsMadeBehindTheAttention) {
  Graph g;
  const Tensor q = g.input("q", DType::BF16, {1, 4, 1, 64}),
               k = g.input("k", DType::BF16, {1, 2, 70, 64}),
               v = g.input("v", DType::BF16, {1, 2, 70, 64});
  const Tensor seen = fused::attention(q, k, v, {.scale = 0.125});
  const Tensor x = g.input("x", DType::BF16, {1, 1, 128});
  fused::LinearOptions options;
  options.residual = fused::rmsNorm(x, g.weight("gain", DType::BF16, {128}), 1e-5);
  g.output("y", fused::linear(reshape(seen, {1, 1, 256}), g.weight("w", DType::BF16, {128, 256}),
                              options));
  auto program = std::make_shared<Program>(compile(g, {.backend = "cuda"}));
  EXPECT_EQ(kindOf(*program), "attended_linear");
  HostProgram host(program, "check,random,seed=5");
  Session reference(compile(g, {.backend = "reference"}));
  host.session().bindRandomWeights(1);
  reference.bindRandomWeights(1);
  const Array got = runOf(host.session(), {}, {}).at("y"), want = runOf(reference, {}, {}).at("y");
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_TRUE(isNear(got.at(i), want.at(i), largestValue(want) / 64)) << i;
}

// Whose residual the attention is does not multiply it; under a mask it is a kernel of its own.
TEST(AttendedLinearBlocks, OthersThanTheProductOfItsRowsDoNotJoin) {
  for (bool masked : {false, true}) {
    Graph g;
    const Tensor q = g.input("q", DType::BF16, {1, 4, 1, 64}),
                 k = g.input("k", DType::BF16, {1, 2, 70, 64}),
                 v = g.input("v", DType::BF16, {1, 2, 70, 64}),
                 x = g.input("x", DType::BF16, {1, 1, 256});
    fused::AttentionOptions attention{.scale = 0.125};
    if (masked) attention.mask = g.input("mask", DType::F32, {1, 1, 1, 70});
    const Tensor rows = reshape(fused::attention(q, k, v, attention), {1, 1, 256});
    fused::LinearOptions linear;
    linear.residual = masked ? x : rows;
    g.output("y", fused::linear(masked ? rows : x, g.weight("w", DType::BF16, {256, 256}), linear));
    auto program = std::make_shared<Program>(compile(g, {.backend = "cuda"}));
    EXPECT_EQ(kindOf(*program), "linear");
    HostProgram host(program, "check");
    Session reference(compile(g, {.backend = "reference"}));
    host.session().bindRandomWeights(1);
    reference.bindRandomWeights(1);
    const Array got = runOf(host.session(), {}, {}).at("y"),
                want = runOf(reference, {}, {}).at("y");
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(isNear(got.at(i), want.at(i), largestValue(want) / 64)) << i;
  }
}

// The rows between the two ops are neither written nor read.
TEST(AttendedLinearBlocks, CostsWhatTheTwoCostWithoutTheRowsBetween) {
  const Form f{.name = "", .states = false};
  auto costOf = [](const Program& program, const std::string& kind) {
    const CallCosts costs = costsOf(program).at("forward");
    const std::vector<Call>& calls = program.entry("forward").calls;
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i].kind == kind) return costs[i].value();
    return Cost();
  };
  const Program one = compile(graphOf(f, false), {.backend = "cuda"}),
                two = compile(graphOf(f, true), {.backend = "cuda"});
  const Cost joined = costOf(one, "attended_linear"), attention = costOf(two, "attention"),
             product = costOf(two, "linear");
  const DimExpr between = DimExpr::symbol("batch") * (f.keyHeads * f.group * f.valueDepth * 2);
  EXPECT_EQ(attention.written, between);
  EXPECT_EQ(joined.flops, attention.flops + product.flops);
  EXPECT_EQ(joined.read, attention.read + product.read - between);
  EXPECT_EQ(joined.written, product.written);
  EXPECT_TRUE(joined.narrow);
}

}  // namespace
}  // namespace lathe::cuda
