// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the kernels of one call on the host, as a program's device would: the first variant that
// fits the sizes, its launches with grids and arguments from the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/hostexec/launch.h"
#include "backends/cuda/lowering/kernel/kernel_text.h"

namespace lathe::cuda {

/// One operand or result: bytes before, bytes after.
struct RunBuffer {
  std::vector<std::byte> bytes;
  bool isOutput = false;  ///< not initialised before the run
};

template <class T>
RunBuffer bufferOf(const std::vector<T>& values) {
  RunBuffer b;
  b.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(b.bytes.data(), values.data(), b.bytes.size());
  return b;
}

template <class T>
std::vector<T> valuesOf(const RunBuffer& b) {
  std::vector<T> values(b.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), b.bytes.data(), b.bytes.size());
  return values;
}

class KernelSetRun {
 public:
  using Symbols = std::map<std::string, int64_t, std::less<>>;

  KernelSetRun(const KernelSet& set, host::Mode mode) : set_(set), mode_(mode) {
    std::vector<host::KernelText> texts;
    for (const KernelText& k : set.kernels) texts.push_back({k.name, k.source});
    kernels_ = host::HostCompiler(mode).compile(texts);
  }

  /// `same`: result `second` lies in the memory of operand `first`.
  void run(std::vector<RunBuffer>& buffers, const Symbols& symbols, host::Options options,
           std::pair<int, int> same = {-1, -1}) {
    options.mode = mode_;
    const Variant* variant = chosen(symbols);
    ASSERT_NE(variant, nullptr) << "no variant fits";
    what_ = variant->what;
    host::MemoryMap memory(mode_ == host::Mode::Check);
    std::vector<void*> places;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (int(i) == same.second) {
        places.push_back(places[size_t(same.first)]);
        continue;
      }
      places.push_back(memory.allocate(std::max<size_t>(buffers[i].bytes.size(), 1),
                                       "buffer " + std::to_string(i)));
      if (buffers[i].isOutput || buffers[i].bytes.empty()) continue;
      std::memcpy(places[i], buffers[i].bytes.data(), buffers[i].bytes.size());
      memory.forget(places[i], buffers[i].bytes.size());
    }
    auto value = [&](const DimExpr& e) { return e.evaluate(symbols).value(); };
    // As many bytes as were asked for: what lies behind them is a program's next buffer.
    auto room = [&](const DimExpr& bytes, const char* name) {
      return memory.allocate(std::max<size_t>(size_t(value(bytes)), 1), name);
    };
    std::vector<void*> scratch{room(variant->scratchBytes, "scratch")};
    for (const DimExpr& bytes : variant->temporaries) scratch.push_back(room(bytes, "temporary"));
    auto* status = static_cast<int64_t*>(memory.allocate(8, "status"));
    *status = 0;
    memory.forget(status, 8);
    host::LaunchHistory history;
    for (const Launch& l : variant->launches) {
      if (l.unlessSame[0] >= 0 &&
          places[size_t(l.unlessSame[0])] == places[size_t(l.unlessSame[1])])
        continue;
      auto kernel = std::ranges::find(kernels_, l.kernel, &host::Kernel::name);
      ASSERT_NE(kernel, kernels_.end()) << l.kernel;
      host::LaunchRequest request;
      const auto [x, y, z] = gridOf(l, value);
      request.grid = {x, y, z};
      if (x == 0 || y == 0 || z == 0) continue;
      request.threads = uint32_t(l.threads);
      request.sharedBytes = size_t(l.sharedBytes);
      request.overlaps = l.waits;
      request.options = options;
      std::vector<int64_t> words;
      for (const Argument& a : l.arguments) {
        void* p = nullptr;
        switch (a.kind) {
          case Argument::Kind::Buffer:
            p = places[size_t(a.index)];
            break;
          case Argument::Kind::Scratch:
            p = static_cast<std::byte*>(scratch[size_t(a.index)]) + value(a.value);
            break;
          case Argument::Kind::Status:
            p = status;
            break;
          case Argument::Kind::Counters:
            p = memory.allocate(size_t(a.index) + 1, "counters");
            request.counters = {static_cast<char*>(p), size_t(a.index)};
            std::memset(p, 0, size_t(a.index));
            memory.forget(p, size_t(a.index));
            break;
          case Argument::Kind::Size:
            words.push_back(value(a.value));
            continue;
        }
        words.push_back(reinterpret_cast<int64_t>(p));
      }
      std::vector<void*> arguments;
      for (int64_t& w : words) arguments.push_back(&w);
      request.arguments = arguments.data();
      host::Result result = host::launch(*kernel, request, memory, history);
      EXPECT_EQ(result.errors, 0) << result.report;
      EXPECT_EQ(result.bankConflicts, 0u) << l.kernel;
    }
    EXPECT_EQ(memory.overrun(), "");
    status_ = *status;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (!buffers[i].bytes.empty())
        std::memcpy(buffers[i].bytes.data(), places[i], buffers[i].bytes.size());
  }

  int64_t status() const { return status_; }
  const std::string& what() const { return what_; }  ///< of the variant that ran last

 private:
  const Variant* chosen(const Symbols& symbols) const {
    for (const Variant& v : set_.variants)
      if (std::ranges::all_of(v.when, [&](const Condition& c) {
            int64_t value = c.value.evaluate(symbols).value();
            return c.low <= value && value <= c.high;
          }))
        return &v;
    return nullptr;
  }

  KernelSet set_;
  host::Mode mode_;
  std::vector<host::Kernel> kernels_;
  int64_t status_ = 0;
  std::string what_;
};

}  // namespace lathe::cuda
