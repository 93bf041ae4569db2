// SPDX-License-Identifier: Apache-2.0
// Sessions of programs by hand, on a device of the host and on one with memory of its own: what is
// checked of a run, what states keep, where constants and empty tensors lie, and what is told.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "lathe/runtime/device.h"
#include "lathe/runtime/session.h"
#include "runtime/executor.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::messageOf;

struct CountedMemory final : DeviceMemory {
  void* allocate(size_t bytes, std::string_view) override {
    ++allocated;
    return std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  }
  void release(void* p) override {
    ++released;
    std::free(p);
  }
  void upload(void* to, const void* from, size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { move(to, from, bytes); }
  void zero(void* to, size_t bytes) override {
    EXPECT_GT(bytes, 0u) << "nothing is asked for nothing";
    std::memset(to, 0, bytes);
  }
  void synchronize() override { ++waits; }
  void move(void* to, const void* from, size_t bytes) {
    EXPECT_GT(bytes, 0u) << "nothing is asked for nothing";
    std::memcpy(to, from, bytes);
  }
  int allocated = 0, released = 0, waits = 0;
};
CountedMemory* memoryOfLast = nullptr;

// y = x + c + s, all of one size, or of x's size where c has one element; the next s is y.
class Sum final : public Kernel {
 public:
  size_t bind(const KernelShapes& shapes) override {
    shapes_ = shapes.shapes;
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    auto at = [&](size_t operand, int64_t i) {
      const int64_t count = elementCount(shapes_[operand]);
      return static_cast<const float*>(p[operand])[count == 1 ? 0 : i];
    };
    const size_t result = shapes_.size() - 1;
    for (int64_t i = 0; i < elementCount(shapes_[result]); ++i) {
      float sum = 0;
      for (size_t operand = 0; operand < result; ++operand) sum += at(operand, i);
      static_cast<float*>(p[result])[i] = sum;
    }
  }

 private:
  std::vector<Shape> shapes_;
};

class SumDevice final : public Device {
 public:
  explicit SumDevice(bool hasMemory) : hasMemory_(hasMemory) { memoryOfLast = &memory_; }
  DeviceMemory* memory() override { return hasMemory_ ? &memory_ : nullptr; }
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint&, const Call& call) override {
    if (call.kind == "none") throw Error(ErrorCode::InvalidFile, "no kernel 'none'");
    return std::make_unique<Sum>();
  }

 private:
  const bool hasMemory_;
  CountedMemory memory_;
};

const bool registered = [] {
  for (bool own : {false, true})
    registerDevice(own ? "sum-own" : "sum-host",
                   [own](std::shared_ptr<const Program>, const DeviceOptions&) {
                     return std::make_unique<SumDevice>(own);
                   });
  return true;
}();

const DimExpr kRows = DimExpr::symbol("rows"), kCache = DimExpr::symbol("cache");

// y = x + 10 + s; the next s is y, which is computed elsewhere. "rows" is given by x, of which a
// state may keep more rows; "cache" is of a state alone, whose next value is y, too.
Program sums(const std::string& device) {
  Program p;
  p.backend = device;
  p.symbols = {{"rows", 2, 8, 2}, {"cache", 1, 4, 1}};
  p.states = {{"s", DType::F32, {kRows}},
              {"k", DType::F32, {kRows, 2, kCache}},
              {"bias", DType::F32, {DimExpr(3)}},
              {"scalar", DType::F32, {}}};
  p.constants = {Array::fromFloats(std::vector<float>{10}, {1})};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {kRows}, 0, -1},
             {SlotKind::Constant, DType::F32, {DimExpr(1)}, 0, -1},
             {SlotKind::State, DType::F32, {kRows}, 0, -1},
             {SlotKind::Result, DType::F32, {kRows}, 0, -1},
             {SlotKind::State, DType::F32, {kRows, 2, kCache}, 1, -1},
             {SlotKind::State, DType::F32, {DimExpr(3)}, 2, -1},
             {SlotKind::State, DType::F32, {}, 3, -1}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 3}};
  e.statesIn = {{"s", 2}, {"k", 4}, {"bias", 5}, {"scalar", 6}};
  e.statesOut = {{"s", 3}};
  e.calls = {{"sum", "", "{}", {0, 1, 2}, {3}, "test"}};
  p.entries.push_back(e);
  return p;
}

Array floats(Shape shape, float first) {
  Array a(DType::F32, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, first + float(i));
  return a;
}
std::vector<double> valuesOf(const Array& a) {
  std::vector<double> all;
  for (int64_t i = 0; i < a.size(); ++i) all.push_back(double(a.at(i)));
  return all;
}
using Values = std::vector<double>;

class Devices : public ::testing::TestWithParam<const char*> {
 protected:
  Session open(const SessionOptions& options = {}) const {
    EXPECT_TRUE(registered);
    return Session(sums(GetParam()), options);
  }
  static Values run(Session& s, float first, int64_t rows = 2) {
    return valuesOf(s.run("forward", {{"x", floats({rows}, first)}}).at("y"));
  }
};

TEST_P(Devices, StatesThatAreComputedElsewhereAreCopiedBack) {
  Session s = open();
  EXPECT_EQ(run(s, 1), (Values{11, 12}));
  EXPECT_EQ(run(s, 1), (Values{22, 24}));
  EXPECT_EQ(valuesOf(s.state("s")), (Values{22, 24}));
  std::vector<Array> outputs;
  const std::vector<Array> inputs{floats({2}, 0)};
  s.run(0, inputs, outputs, 3);
  EXPECT_EQ(valuesOf(outputs[0]), (Values{52, 57}));
  EXPECT_EQ(messageOf([&] { s.run(0, inputs, outputs, 0); }),
            "Session::run: expected at least 1 run, got 0");
}

TEST_P(Devices, MemoryIsToldByWhatItIsFor) {
  Session s = open();
  EXPECT_EQ(s.memory().states, 0);
  EXPECT_FALSE(s.state("s").defined());
  run(s, 1, 4);
  // Four rows, four rows of two by one, three and one numbers of four bytes.
  EXPECT_EQ(s.memory().states, 4 * (4 + 8 + 3 + 1));
  EXPECT_EQ(s.memory().arena, 0);
  EXPECT_EQ(s.memory().scratch, 4096) << "64 bytes, by pages";
  EXPECT_EQ(s.memory().derived, 0);
}

TEST_P(Devices, RunsAreToldWhatTheyTake) {
  Session s = open();
  auto run = [&](Array x) {
    return messageOf([&] {
      std::vector<Array> outputs;
      s.run(0, std::vector<Array>{std::move(x)}, outputs);
    });
  };
  const std::string input = "input 'x' of entry point 'forward': expected f32[rows], got ";
  EXPECT_EQ(run(Array(DType::F64, {2})), input + "f64[2]; convert it first, in C++ with Array::to");
  EXPECT_EQ(run(Array(DType::F32, {2, 1})), input + "f32[2, 1]; the ranks differ");
  EXPECT_EQ(run(floats({3}, 0)),
            "'rows' = 3 is outside its range 2 to 8, multiples of 2 in entry point 'forward'");
  EXPECT_EQ(run(floats({10}, 0)),
            "'rows' = 10 is outside its range 2 to 8, multiples of 2 in entry point 'forward'");
  EXPECT_EQ(run(floats({0}, 0)),
            "'rows' = 0 is outside its range 2 to 8, multiples of 2 in entry point 'forward'");
  for (int64_t rows : {2, 8}) {
    s.resetStates();
    EXPECT_EQ(run(floats({rows}, 0)), "");
  }
  EXPECT_EQ(run(floats({2}, 0)),
            "state 's' holds f32[8], this run needs f32[2]; call resetStates() before a run with "
            "other sizes");
  std::vector<Array> outputs;
  EXPECT_EQ(messageOf([&] { s.run(1, std::vector<Array>{floats({2}, 0)}, outputs); }),
            "there is no entry point 1: the program has 1, forward, counted from 0; entryIndex() "
            "gives the number of a name");
  EXPECT_EQ(messageOf([&] { s.run("forward", {}); }),
            "entry point 'forward': input 'x' is missing; it takes x");
  EXPECT_EQ(messageOf([&] { s.run("forward", {{"x", floats({2}, 0)}, {"z", Array()}}); }),
            "entry point 'forward' has no input 'z'; it takes x");
  EXPECT_EQ(messageOf([&] { s.setSymbol("cache", 5); }), "'cache' = 5 is outside its range 1 to 4");
  EXPECT_EQ(messageOf([&] { s.setSymbol("rows", 2); }),
            "'rows' takes its value from the inputs of each run; setSymbol is for those that only "
            "states have");
  EXPECT_EQ(messageOf([&] { s.setSymbol("sow", 2); }),
            "the program has no symbol 'sow'; it has rows, cache");
  EXPECT_EQ(messageOf([&] { s.state("t"); }),
            "the program has no state 't'; it has s, k, bias, scalar");
}

TEST_P(Devices, StatesAreSetAsTheyAreDeclared) {
  Session s = open();
  s.setState("s", floats({2}, 100));
  s.setState("bias", floats({3}, 7));
  const Array before = s.state("s");
  EXPECT_EQ(run(s, 1), (Values{111, 113}));
  EXPECT_EQ(valuesOf(before), (Values{100, 101})) << "what was asked for is the caller's";
  EXPECT_EQ(valuesOf(s.state("s")), (Values{111, 113}));
  EXPECT_EQ(valuesOf(s.state("bias")), (Values{7, 8, 9}));
  EXPECT_EQ(messageOf([&] { s.setState("s", Array()); }),
            "state 's': expected f32 of rank 1, got nothing");
  EXPECT_EQ(messageOf([&] { s.setState("s", Array(DType::F64, {2})); }),
            "state 's': expected f32 of rank 1, got f64[2]");
  EXPECT_EQ(messageOf([&] { s.setState("s", floats({2, 1}, 0)); }),
            "state 's': expected f32 of rank 1, got f32[2, 1]");
  // Of another size it replaces what was there.
  s.resetStates();
  s.setState("s", floats({2}, 0));
  s.setState("s", floats({4}, 0));
  EXPECT_EQ(run(s, 0, 4), (Values{10, 12, 14, 16}));
}

// Row by row: what is gathered, copied and kept is what begins with rows.
TEST_P(Devices, RowsAreOfStatesThatBeginWithThem) {
  Session s = open();
  s.setSymbol("cache", 3);
  run(s, 0, 4);
  s.setState("k", floats({4, 2, 3}, 0));
  s.setState("bias", floats({3}, 7));
  s.gatherStateRows("rows", std::vector<int64_t>{3, 1, 1, 0});
  EXPECT_EQ(valuesOf(s.state("s")), (Values{13, 11, 11, 10}));
  EXPECT_EQ(valuesOf(s.state("k")), (Values{18, 19, 20, 21, 22, 23, 6, 7, 8, 9, 10, 11,
                                            6,  7,  8,  9,  10, 11, 0, 1, 2, 3, 4,  5}));
  EXPECT_EQ(valuesOf(s.state("bias")), (Values{7, 8, 9}));
  EXPECT_EQ(messageOf([&] { s.gatherStateRows("rows", std::vector<int64_t>{0, 1, 2, 4}); }),
            "gatherStateRows: expected 4 rows from 0 to 3 for the state 's'");
  EXPECT_EQ(messageOf([&] { s.gatherStateRows("rows", std::vector<int64_t>{0, 1}); }),
            "gatherStateRows: expected 4 rows from 0 to 3 for the state 's'");
  s.copyStateBlock("rows", 0, 3);
  EXPECT_EQ(valuesOf(s.state("s")), (Values{13, 11, 11, 13}));
  EXPECT_EQ(s.state("k").at(18), 18);
  EXPECT_EQ(valuesOf(s.state("bias")), (Values{7, 8, 9}));
  EXPECT_EQ(messageOf([&] { s.copyStateBlock("rows", 4, 0); }),
            "copyStateBlock: expected one of 4 rows of the state 's', got 4");
  EXPECT_EQ(messageOf([&] { s.copyStateBlock("rows", 0, -1); }),
            "copyStateBlock: expected one of 4 rows of the state 's', got -1");
}

TEST_P(Devices, KeptRowsAreCopiedUpToACount) {
  Session s = open();
  s.setSymbol("cache", 3);
  for (int64_t rows : {1, 9})
    EXPECT_EQ(messageOf([&] { s.keepStateRows("rows", rows); }),
              "keepStateRows: expected from 2 to 8 rows, got " + std::to_string(rows));
  EXPECT_EQ(messageOf([&] { s.keepStateRows("sow", 2); }),
            "keepStateRows: the program has no symbol 'sow'");
  EXPECT_EQ(messageOf([&] { s.selectStateRows(0); }),
            "selectStateRows: expected one of 0 rows that keepStateRows() keeps, got 0");
  for (int64_t rows : {2, 8}) s.keepStateRows("rows", rows);
  s.selectStateRows(4);
  EXPECT_EQ(run(s, 0), (Values{10, 11}));
  EXPECT_EQ(valuesOf(s.state("s")), (Values{0, 0, 0, 0, 10, 11, 0, 0}));
  EXPECT_EQ(messageOf([&] { s.selectStateRows(8); }),
            "selectStateRows: expected one of 8 rows that keepStateRows() keeps, got 8");
  s.selectStateRows(7);
  EXPECT_EQ(messageOf([&] { run(s, 0); }),
            "state 's' keeps 8 rows, this run needs 2 from row 7 on");
  s.setState("k", floats({8, 2, 3}, 0));
  s.setState("bias", floats({3}, 7));
  s.copyStateRow(4, 0, "cache", 2);
  // Two of three positions of either head; a state without positions as a whole.
  EXPECT_EQ(valuesOf(s.state("s")), (Values{10, 0, 0, 0, 10, 11, 0, 0}));
  Values k = valuesOf(s.state("k"));
  EXPECT_EQ(Values(k.begin(), k.begin() + 7), (Values{24, 25, 2, 27, 28, 5, 6}));
  s.copyStateRow(5, 1, "cache", 0);
  k = valuesOf(s.state("k"));
  EXPECT_EQ(Values(k.begin() + 6, k.begin() + 12), (Values{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(s.state("s").at(1), 11);
  s.copyStateRow(5, 2, "cache", 3);
  k = valuesOf(s.state("k"));
  EXPECT_EQ(Values(k.begin() + 12, k.begin() + 18), (Values{30, 31, 32, 33, 34, 35}));
  s.copyStateRow(6, 6, "cache", 3);
  // A state that keeps no rows is neither moved nor taken for one that does.
  s.copyStateRow(0, 1, "cache", 1);
  EXPECT_EQ(valuesOf(s.state("bias")), (Values{7, 8, 9}));
  s.selectStateRows(4);
  run(s, 0);
  EXPECT_EQ(valuesOf(s.state("bias")), (Values{7, 8, 9}));
  for (int64_t count : {-1, 4})
    EXPECT_EQ(messageOf([&] { s.copyStateRow(4, 0, "cache", count); }),
              "copyStateRow: expected from 0 to 3 of 'cache', got " + std::to_string(count));
  EXPECT_EQ(messageOf([&] { s.copyStateRow(8, 0, "cache", 1); }),
            "copyStateRow: expected one of 8 rows that keepStateRows() keeps, got 8");
}

// States that keep more rows than a run takes are no measure of the next run.
TEST_P(Devices, KeptRowsDoNotSayHowManyARunTakes) {
  Program p = sums(GetParam());
  p.entries[0].slots[0].shape = {DimExpr(1)};  // "rows" is of states and results alone
  Session s(std::move(p));
  s.keepStateRows("rows", 8);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(s.run("forward", {{"x", floats({1}, 0)}}).at("y").shape(), Shape{2}) << i;
}

INSTANTIATE_TEST_SUITE_P(Memories, Devices, ::testing::Values("sum-host", "sum-own"),
                         [](const auto& info) {
                           return std::string(info.param) == "sum-host" ? "Host" : "Own";
                         });

// What nobody reads is neither moved nor cleared, and all that was taken is given back.
TEST(OwnMemory, EmptyTensorsAreNotMoved) {
  const DimExpr n = DimExpr::symbol("n");
  Program p;
  p.backend = "sum-own";
  p.symbols = {{"n", 0, 4, 1}};
  p.states = {{"s", DType::F32, {n}}};
  p.constants = {Array(DType::F32, {0})};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {n}, 0, -1},
             {SlotKind::Constant, DType::F32, {DimExpr(0)}, 0, -1},
             {SlotKind::State, DType::F32, {n}, 0, -1},
             {SlotKind::Result, DType::F32, {n}, 0, -1}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 3}};
  e.statesIn = {{"s", 2}};
  e.statesOut = {{"s", 3}};
  e.calls = {{"sum", "", "{}", {0, 2}, {3}, "test"}};
  p.entries.push_back(e);
  Session s(std::move(p));
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(s.run("forward", {{"x", Array(DType::F32, {0})}}).at("y").size(), 0);
  EXPECT_EQ(s.state("s").size(), 0);
}

TEST(OwnMemory, CallsAreTimedToTheirEnds) {
  Session s(sums("sum-own"), {.profile = true});
  const int before = memoryOfLast->waits;
  for (int run = 0; run < 3; ++run) s.run("forward", {{"x", floats({2}, 0)}});
  EXPECT_EQ(memoryOfLast->waits - before, 3);
  const std::vector<CallProfile> profile = s.profile("forward");
  ASSERT_EQ(profile.size(), 1u);
  EXPECT_EQ(profile[0].kind, "sum");
  EXPECT_EQ(profile[0].origin, "test");
  EXPECT_EQ(profile[0].runs, 3);
  EXPECT_GT(profile[0].seconds, 0);
  Session plain(sums("sum-host"));
  plain.run("forward", {{"x", floats({2}, 0)}});
  EXPECT_EQ(plain.profile("forward")[0].runs, 0);
}

TEST(OwnMemory, BuffersGrowByPages) {
  CountedMemory memory;
  {
    GrowingBuffer buffer;
    EXPECT_NE(buffer.reserve(1, &memory), nullptr);
    EXPECT_EQ(buffer.bytes(), 4096);
    buffer.reserve(4096, &memory);
    EXPECT_EQ(memory.allocated, 1);
    buffer.reserve(4097, &memory);
    EXPECT_EQ(buffer.bytes(), 8192);
    EXPECT_EQ(memory.allocated, 2);
    EXPECT_EQ(memory.released, 1);
  }
  EXPECT_EQ(memory.released, 2);
  GrowingBuffer host;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(host.reserve(5000, nullptr)) % 4096, 0u);
  EXPECT_EQ(host.bytes(), 8192);
}

TEST(Calls, ThatHaveNoKernelAreNamed) {
  Program p = sums("sum-host");
  p.entries[0].calls.push_back({"none", "f", "{}", {0}, {3}, "test"});
  EXPECT_EQ(messageOf([&] { Session s(std::move(p)); }),
            "call 1 of entry point 'forward', 'none': no kernel 'none'");
  EXPECT_EQ(messageOf([] { Session s{std::shared_ptr<const Program>()}; }),
            "Session: expected a program, got a null pointer; compile one or open an artifact");
}

// A size that is negative for some values of its symbols.
TEST(Calls, SizesBelowZeroAreErrors) {
  Program p = sums("sum-host");
  p.entries[0].slots.push_back({SlotKind::Arena, DType::F32, {kRows - DimExpr(3)}, 0, -1});
  Session s(std::move(p));
  EXPECT_EQ(messageOf([&] { s.run("forward", {{"x", floats({2}, 0)}}); }),
            "size " + (kRows - DimExpr(3)).text() + " has no valid value in entry point 'forward'");
  EXPECT_EQ(valuesOf(s.run("forward", {{"x", floats({4}, 0)}}).at("y")), (Values{10, 11, 12, 13}));
}

}  // namespace
}  // namespace lathe
