// SPDX-License-Identifier: Apache-2.0
// Costs as numbers, their way through a program, and the roofs that turn them into times.
#include <gmock/gmock.h>

#include "lathe/runtime/cost.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/machine.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;

template <class Fn>
std::string errorOf(Fn fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

DimExpr expr(const char* text) { return DimExpr::parse(text).value(); }

// One call: a result of [seq, 8] f32 from an argument of the same shape, through a temporary.
Program twoCalls() {
  Program p;
  p.symbols = {{"seq", 1, 64, 2}};
  EntryPoint e;
  e.name = "forward";
  const SymbolicShape shape{expr("seq"), 8};
  e.slots = {{SlotKind::Argument, DType::F32, shape},
             {SlotKind::Arena, DType::F32, shape},
             {SlotKind::Result, DType::F32, shape}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 2}};
  e.calls = {{"region", "region_0", "{}", {0}, {1}, "a"},
             {"region", "region_1", "{}", {1}, {2}, "b"}};
  p.entries = {e};
  return p;
}

TEST(CostValues, SumsLeaveTheRangeOfIntegers) {
  DimExpr big = expr("9000000000000000000*a");
  EXPECT_EQ(evaluate(big, {{"a", 1000000}}), 9e24);
  EXPECT_THAT(errorOf([&] { evaluate(big, {}); }), HasSubstr("symbol 'a' has no value; add a=N"));
}

TEST(CostValues, SubstitutionKeepsTheOtherSymbols) {
  EXPECT_EQ(substitute(expr("2*a*b+3*a+b"), {{"a", 5}}), expr("11*b+15"));
}

TEST(CostValues, CostsTravelWithTheProgram) {
  Program p = twoCalls();
  storeCosts(p, {{"forward",
                  {Cost{expr("8*seq"), expr("32*seq"), expr("32*seq"), 16, true}, std::nullopt}}});
  CallCosts costs = costsOf(p).at("forward");
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_EQ(costs[0]->flops, expr("8*seq"));
  EXPECT_EQ(costs[0]->held, DimExpr(16));
  EXPECT_TRUE(costs[0]->narrow);
  EXPECT_FALSE(costs[1].has_value());
}

TEST(CostValues, AProgramWithoutCostsHasNone) {
  CallCosts costs = costsOf(twoCalls()).at("forward");
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_FALSE(costs[0] || costs[1]);
}

TEST(CostValues, ABlobThatDoesNotFitIsRefused) {
  Program p = twoCalls();
  p.blobs["costs"] = R"({"forward": [null]})";
  EXPECT_THAT(errorOf([&] { costsOf(p); }), HasSubstr("expected 2 costs, one for each call"));
  p.blobs["costs"] =
      R"({"forward": [null, {"flops": "1/2", "read": "0", "written": "0", "held": "0"}]})";
  EXPECT_THAT(errorOf([&] { costsOf(p); }), HasSubstr("expected an expression of sizes"));
}

TEST(CostValues, SizesAreCheckedAgainstTheProgram) {
  Program p = twoCalls();
  checkSymbolValues(p, {{"seq", 64}});
  EXPECT_THAT(errorOf([&] { checkSymbolValues(p, {{"sqe", 2}}); }),
              HasSubstr("no symbol 'sqe'; the model has seq"));
  EXPECT_THAT(errorOf([&] { checkSymbolValues(p, {{"seq", 66}}); }),
              HasSubstr("symbol 'seq': expected 1 to 64, multiples of 2, got 66"));
  EXPECT_THAT(errorOf([&] { checkSymbolValues(p, {{"seq", 3}}); }), HasSubstr("got 3"));
}

TEST(CostValues, MemoryIsWhatThePlanNeeds) {
  Program p = twoCalls();
  const EntryPoint& e = p.entries[0];
  EXPECT_EQ(heldMemory(p, e).inputs, expr("32*seq"));
  EXPECT_EQ(heldMemory(p, e).outputs, expr("32*seq"));
  EXPECT_EQ(temporaryBytes(e, {{"seq", 64}}), 2048);
  EXPECT_EQ(liveBytes(e), (std::vector<DimExpr>{expr("32*seq"), expr("32*seq")}));
}

// A view of a state, an argument or a result is memory that is there already.
TEST(CostValues, ViewsHoldNoMemoryOfTheirOwn) {
  Program p = twoCalls();
  EntryPoint& e = p.entries[0];
  const SymbolicShape rows{expr("seq"), 8}, flat{expr("8*seq")};
  e.slots.push_back({SlotKind::State, DType::F32, rows});
  e.slots.push_back({SlotKind::State, DType::F32, flat, 0, 3});
  e.slots.push_back({SlotKind::Argument, DType::F32, flat, 0, 0});
  e.slots.push_back({SlotKind::Result, DType::F32, flat, 0, 2});
  const HeldMemory held = heldMemory(p, e);
  EXPECT_EQ(held.states, expr("32*seq"));
  EXPECT_EQ(held.inputs, expr("32*seq"));
  EXPECT_EQ(held.outputs, expr("32*seq"));
}

TEST(Machine, NamedOnesHaveTheirMakersFigures) {
  EXPECT_EQ(parseMachine("h100").bytesPerSecond, 3.35e12);
  EXPECT_EQ(parseMachine("h200").narrowFlops, parseMachine("h100").narrowFlops);
  EXPECT_GT(parseMachine("h200").bytesPerSecond, parseMachine("h100").bytesPerSecond);
  EXPECT_EQ(parseMachine("a100").narrowFlops, 312e12);
}

TEST(Machine, ManyCoresShareTheSocketsMemory) {
  EXPECT_EQ(parseMachine("xeon:4").bytesPerSecond, 2 * parseMachine("xeon:2").bytesPerSecond);
  EXPECT_EQ(parseMachine("xeon:64").bytesPerSecond, parseMachine("xeon:32").bytesPerSecond);
  EXPECT_EQ(parseMachine("epyc:64").wideFlops, 2 * parseMachine("epyc:32").wideFlops);
}

TEST(Machine, NumbersMayBeGiven) {
  MachineRoofs m = parseMachine("flops=2e12,bandwidth=1e11");
  EXPECT_EQ(m.narrowFlops, 2e12);
  EXPECT_EQ(m.wideFlops, 2e12);
  EXPECT_EQ(parseMachine("bandwidth=1e11,flops=2e12,flops32=1e12").wideFlops, 1e12);
}

TEST(Machine, MistakesNameWhatThereIs) {
  for (const char* text :
       {"h101", "epyc", "epyc:0", "xeon:2.5", "flops=1e12", "flops=x,bandwidth=1",
        "flops=1,bandwidth=-1", "speed=1,bandwidth=1", ""})
    EXPECT_THAT(errorOf([&] { parseMachine(text); }), HasSubstr("expected host, h100")) << text;
}

TEST(Machine, TheLongerOfArithmeticAndTrafficCounts) {
  MachineRoofs m{"m", 1e12, 1e11, 1e9};
  Prediction compute = predict({.flops = 2e12, .read = 1e8, .narrow = true}, m);
  EXPECT_TRUE(compute.computeBound);
  EXPECT_EQ(compute.seconds, 2);
  EXPECT_EQ(predict({.flops = 2e12, .read = 1e8}, m).seconds, 20);
  Prediction memory = predict({.flops = 1, .read = 1e9, .written = 1e9}, m);
  EXPECT_FALSE(memory.computeBound);
  EXPECT_EQ(memory.seconds, 2);
}

}  // namespace
}  // namespace lathe
