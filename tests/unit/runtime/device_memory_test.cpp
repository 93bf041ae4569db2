// SPDX-License-Identifier: Apache-2.0
// Sessions on a device with memory of its own, which plays launches again where it is told that
// nothing but the contents of buffers has changed. Its memory lies at one address for each name, as
// that of an allocator may which gives the last freed block away first.
#include "lathe/runtime/device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "lathe/runtime/session.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

constexpr size_t kBlock = 1 << 12;

class NamedMemory final : public DeviceMemory {
 public:
  void* allocate(size_t bytes, std::string_view name) override {
    EXPECT_LE(bytes, kBlock) << name;
    auto& block = blocks_[std::string(name)];
    if (!block) block = {std::aligned_alloc(256, kBlock), std::free};
    return block.get();
  }
  void release(void*) override {}
  void upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void zero(void* to, size_t bytes) override { std::memset(to, 0, bytes); }
  void synchronize() override {}

 private:
  std::map<std::string, std::shared_ptr<void>> blocks_;
};

int played = 0;

class PlayingDevice final : public Device {
 public:
  DeviceMemory* memory() override { return &memory_; }
  void run(const void* entry, bool same, const std::function<void()>& launch) override {
    std::vector<std::function<void()>>& launches = recorded_[entry];
    if (same && !launches.empty()) {
      for (auto& one : launches) one();
      ++played;
      return;
    }
    launches.clear();
    recording_ = &launches;
    launch();
  }
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint&, const Call&) override {
    return std::make_unique<Adding>(*this);
  }

 private:
  // y = x + s, and the next s is y; x, s and y of one size.
  class Adding final : public Kernel {
   public:
    explicit Adding(PlayingDevice& device) : device_(device) {}
    size_t bind(const KernelShapes& shapes) override {
      count_ = elementCount(shapes.shapes[0]);
      return 0;
    }
    void run(void* const* p, std::byte*) override {
      auto work = [n = count_, x = static_cast<const float*>(p[0]), s = static_cast<float*>(p[1]),
                   y = static_cast<float*>(p[2])] {
        for (int64_t i = 0; i < n; ++i) s[i] = y[i] = x[i] + s[i];
      };
      work();
      device_.recording_->push_back(work);
    }

   private:
    PlayingDevice& device_;
    int64_t count_ = 0;
  };

  NamedMemory memory_;
  std::map<const void*, std::vector<std::function<void()>>> recorded_;
  std::vector<std::function<void()>>* recording_ = nullptr;
};

const bool registered = [] {
  registerDevice("playing", [](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<PlayingDevice>();
  });
  return true;
}();

Program adding() {
  const DimExpr n = DimExpr::symbol("n");
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {n}, 0, -1},
             {SlotKind::State, DType::F32, {n}, 0, -1},
             {SlotKind::Result, DType::F32, {n}, 0, -1}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 2}};
  e.statesIn = e.statesOut = {{"s", 1}};
  e.calls = {{"add", "", "{}", {0, 1}, {2}, "test"}};
  Program p;
  p.backend = "playing";
  p.symbols = {{"n", 1, 64, 1}};
  p.states = {{"s", DType::F32, {n}}};
  p.entries.push_back(e);
  return p;
}

Array ramp(int64_t n, double from) {
  Array a(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) a.set(i, from + double(i));
  return a;
}

// Sizes that grow, shrink and come back: played again is only what was launched for the same ones.
TEST(DeviceMemory, LaunchesArePlayedAgainForTheirOwnSizesAlone) {
  ASSERT_TRUE(registered);
  Session session(adding());
  played = 0;
  int64_t before = 0;
  int again = 0, runs = 0;
  for (int64_t n : {4, 4, 4, 8, 8, 4, 64, 64, 3, 4, 4}) {
    if (n != before) session.resetStates();
    const int inARow = n == before ? ++runs : runs = 1;
    again += inARow > 1;
    const Array y = session.run("forward", {{"x", ramp(n, 10 * inARow)}}).at("y");
    ASSERT_EQ(y.shape(), Shape{n});
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int r = 1; r <= inARow; ++r) sum += 10 * r + double(i);
      EXPECT_EQ(y.at(i), sum) << "element " << i << " of " << n << ", run " << inARow;
    }
    EXPECT_EQ(played, again) << n;
    before = n;
  }
}

// What a session gave to its caller stays as it was, whatever is played.
TEST(DeviceMemory, ResultsAreTheCallers) {
  Session session(adding());
  const Array first = session.run("forward", {{"x", ramp(4, 1)}}).at("y");
  const Array second = session.run("forward", {{"x", ramp(4, 5)}}).at("y");
  const Array third = session.run("forward", {{"x", ramp(4, 0)}}).at("y");
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(first.at(i), 1 + double(i));
    EXPECT_EQ(second.at(i), 6 + 2 * double(i));
    EXPECT_EQ(third.at(i), 6 + 3 * double(i));
  }
  EXPECT_EQ(session.state("s").at(3), third.at(3));
}

// Nothing else joins what lies there; the other rank is told at once.
TEST(DeviceMemory, RanksNeedCollectivesOfIt) {
  Program program = adding();
  program.ranks = 2;
  const auto shared = std::make_shared<const Program>(std::move(program));
  const auto ends = threadRanks(2, std::chrono::seconds(60));
  const char* why = "the device of backend 'playing' cannot join what ranks hold in its memory";
  std::thread other([&] {
    test::expectError(ErrorCode::Unsupported, why, [&] { Session(shared, {.ranks = ends[1]}); });
  });
  test::expectError(ErrorCode::Unsupported, why, [&] { Session(shared, {.ranks = ends[0]}); });
  other.join();
  test::expectError(ErrorCode::Io, why, [&] { ends[0]->throwIfEnded(); });
}

}  // namespace
}  // namespace lathe
