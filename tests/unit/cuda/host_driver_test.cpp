// SPDX-License-Identifier: Apache-2.0
// The driver of host execution: memory, launches, recordings, misuse; the compiler and its cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/hostexec/process.h"
#include "backends/cuda/hostexec/sanitizer.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_cases.h"

namespace lathe::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class F>
std::string messageOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

// A folder of its own for each test.
class HostDriverTest : public testing::Test {
 protected:
  HostDriverTest() {
    char name[] = "/tmp/lathe-host-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~HostDriverTest() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<HostDriver> open(const char* options = "fast") {
    return openHost(host::parseOptions(options), folder_ + "/cache");
  }
  std::string folder_;
};

std::string kernel(const std::string& name, const std::string& parameters, const std::string& body,
                   int threads = 64) {
  return "#include \"lathe_device.cuh\"\nextern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(threads) + ")\n" + name + "(" + parameters + ") {\n" + body + "\n}\n";
}

template <class... A>
void launch(Driver& d, Driver::Function f, LaunchConfig config, A... values) {
  void* arguments[] = {&values...};
  d.launch(f, config, arguments);
}

template <class T>
std::vector<T> read(Driver& d, const T* p, size_t n) {
  std::vector<T> v(n);
  d.download(v.data(), p, n * sizeof(T));
  return v;
}

TEST_F(HostDriverTest, memoryIsAlignedFilledWithNanAndChecked) {
  auto d = open();
  for (size_t bytes : {0, 1, 31, 33, 257, 4096, 70000}) {
    auto* p = static_cast<unsigned char*>(d->allocate(bytes, "buffer"));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
    for (unsigned char c : read(*d, p, bytes)) ASSERT_EQ(c, 0xff);
    EXPECT_THAT(messageOf([&] { d->zero(p, bytes + 1); }),
                HasSubstr("zero: expected " + std::to_string(bytes + 1) + " bytes inside one"));
    d->zero(p, bytes);
    for (unsigned char c : read(*d, p, bytes)) ASSERT_EQ(c, 0);
    d->release(p);
  }
  int onHost = 0;
  EXPECT_THAT(messageOf([&] { d->upload(&onHost, &onHost, 4); }), HasSubstr("upload: expected 4"));
  EXPECT_THAT(messageOf([&] { d->release(&onHost); }), HasSubstr("memory of this driver"));
  d->release(nullptr);
}

TEST_F(HostDriverTest, writesPastTheEndAreToldWithoutChecks) {
  auto d = open();
  auto f = d->load({{"over", kernel("over", "int* p, i64 n", "p[n] = 1;"), "", ""}})[0];
  auto* p = static_cast<int*>(d->allocate(100, "victim"));
  launch(*d, f, configOf(1, 1, 32), p, int64_t(25));
  EXPECT_THAT(messageOf([&] { d->synchronize(); }), HasSubstr("past the end of victim"));
  EXPECT_THAT(messageOf([&] { d->release(p); }),
              HasSubstr("a kernel wrote past the end of victim (buffer of 100 bytes)"));
  if (host::haveAsan()) return;  // which reports faults in its own way, and ends the program
  auto* q = static_cast<int*>(d->allocate(1024, "page"));
  launch(*d, f, configOf(1, 1, 32), q, int64_t(256));
  EXPECT_THAT(messageOf([&] { d->synchronize(); }),
              AllOf(HasSubstr("memory fault at page + 1024 (buffer of 1024 bytes)"),
                    HasSubstr("thread (0,0,0)"), HasSubstr("over.cu:4")));
}

// As on a GPU, whose context is lost, but that the driver goes on when the error has been told.
TEST_F(HostDriverTest, workBehindAnErrorIsLeftOut) {
  auto d = open("check");
  auto f = d->load({{"store", kernel("store", "int* p, i64 n", "p[n] = 1;", 32), "", ""}})[0];
  auto *p = static_cast<int*>(d->allocate(8, "p")), *q = static_cast<int*>(d->allocate(8, "q"));
  const int sevens[] = {7, 7};
  d->upload(p, sevens, 8);
  d->zero(q, 8);
  launch(*d, f, configOf(1, 1, 32), p, int64_t(2));
  d->copy(q, p, 8);
  launch(*d, f, configOf(1, 1, 32), q, int64_t(3));
  EXPECT_THAT(messageOf([&] { d->synchronize(); }), HasSubstr("write of 4 bytes at p + 8"));
  EXPECT_EQ(read(*d, q, 2)[0], 0);
  d->copy(q, p, 8);
  EXPECT_EQ(read(*d, q, 2)[0], 7);
}

TEST_F(HostDriverTest, recordedLaunchesRunAgainWithTheirArguments) {
  auto d = open();
  auto f = d->load({{"add",
                     kernel("add", "float* p, float x, i64 n, bool twice",
                            "for (i64 i = threadIdx.x; i < n; i += 64) p[i] += twice ? 2 * "
                            "x : x;"),
                     "", ""}})[0];
  auto *p = static_cast<float*>(d->allocate(33 * 4, "p")),
       *q = static_cast<float*>(d->allocate(33 * 4, "q"));
  d->zero(p, 33 * 4);
  auto recorded = d->record([&] {
    float x = 1.5f;
    launch(*d, f, configOf(1, 1, 64), p, x, int64_t(33), true);
    d->copy(q, p, 33 * 4);
    x = 100;
    EXPECT_THAT(messageOf([&] { d->upload(p, &x, 4); }), HasSubstr("upload inside record"));
    EXPECT_THAT(messageOf([&] { d->download(&x, p, 4); }), HasSubstr("download inside record"));
    EXPECT_THAT(messageOf([&] { d->record([] {}); }), HasSubstr("record inside record"));
  });
  EXPECT_EQ(read(*d, p, 33)[0], 0) << "recording must not run";
  d->replay(*recorded);
  d->replay(*recorded);
  for (float v : read(*d, q, 33)) EXPECT_EQ(v, 6);
}

TEST_F(HostDriverTest, refusesWhatNoGpuLaunches) {
  auto d = open();
  auto f = d->load({{"none", kernel("none", "", ""), "", ""}})[0];
  auto message = [&](LaunchConfig c) { return messageOf([&] { d->launch(f, c, nullptr); }); };
  EXPECT_THAT(message(configOf(1, 1, 33)), HasSubstr("whole warps"));
  EXPECT_THAT(message(configOf(1, 1, 1056)), HasSubstr("at most 1024 threads"));
  EXPECT_THAT(message(configOf(0, 1, 32)), HasSubstr("at least 1"));
  EXPECT_THAT(message(configOf(1, 65536, 32)), HasSubstr("65535"));
  EXPECT_THAT(message(configOf(1, 1, 32, 232449)), HasSubstr("232448"));
  LaunchConfig c = configOf(6, 1, 32);
  c.cluster = 4;
  EXPECT_THAT(message(c), HasSubstr("divides the grid's x of 6"));
}

TEST_F(HostDriverTest, clustersShareAndAreChecked) {
  const std::string sum =
      kernel("sums", "const float* x, float* y",
             "const float s = cluster_sum<64>(x[blockIdx.x * 64 + threadIdx.x]);\n"
             "const arg_pair<float> best = cluster_reduce<64>(arg_pair<float>{x[blockIdx.x * 64 + "
             "threadIdx.x], (i64)(blockIdx.x * 64 + threadIdx.x)}, ArgMax{});\n"
             "if (threadIdx.x == 5) { y[blockIdx.x * 2] = s; y[blockIdx.x * 2 + 1] = "
             "(float)best.index; }");
  for (const char* options : {"fast", "check,random,seed=3"}) {
    auto d = open(options);
    auto f = d->load({{"sums", sum, "", ""}})[0];
    std::vector<float> x(8 * 64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97);
    auto* in = static_cast<float*>(d->allocate(x.size() * 4, "x"));
    auto* out = static_cast<float*>(d->allocate(16 * 4, "y"));
    d->upload(in, x.data(), x.size() * 4);
    LaunchConfig c = configOf(8, 1, 64);
    c.cluster = 4;
    launch(*d, f, c, in, out);
    d->synchronize();
    const auto y = read(*d, out, 16);
    for (size_t cluster = 0; cluster < 2; ++cluster) {
      float want = 0;
      size_t best = cluster * 256;
      for (size_t i = cluster * 256; i < cluster * 256 + 256; ++i) {
        want += x[i];
        if (x[i] > x[best]) best = i;
      }
      for (size_t b = 0; b < 4; ++b) {
        EXPECT_EQ(y[(cluster * 4 + b) * 2], want);
        EXPECT_EQ(y[(cluster * 4 + b) * 2 + 1], float(best));
      }
    }
  }
  // Without the second barrier a block may leave, or write, while others still read.
  auto d = open("check,reverse");
  auto f = d->load({{"race",
                     kernel("race", "float* y",
                            "LATHE_SHARED(float, part, 1);\n"
                            "if (threadIdx.x == 0) part[0] = 1;\n"
                            "y[blockIdx.x * 64 + threadIdx.x] = cluster_read(part, "
                            "cluster_rank() ^ 1);"),
                     "", ""}})[0];
  auto* y = static_cast<float*>(d->allocate(128 * 4, "y"));
  LaunchConfig c = configOf(2, 1, 64);
  c.cluster = 2;
  launch(*d, f, c, y);
  EXPECT_THAT(messageOf([&] { d->synchronize(); }), HasSubstr("part + 0 (array of 4 bytes)"));
}

TEST_F(HostDriverTest, aClusterHasNoRanksBehindItsLast) {
  for (int rank : {0, 1, 2, 3, 4, 7}) {
    auto d = open("fast");
    auto f = d->load({{"reads",
                       kernel("reads", "float* y",
                              "LATHE_SHARED(float, part, 1);\n"
                              "if (threadIdx.x == 0) part[0] = (float)cluster_rank();\n"
                              "cluster_sync();\n"
                              "if (threadIdx.x == 0) y[blockIdx.x] = cluster_read(part, " +
                                  std::to_string(rank) + ");\ncluster_sync();"),
                       "", ""}})[0];
    auto* y = static_cast<float*>(d->allocate(4 * 4, "y"));
    LaunchConfig c = configOf(4, 1, 32);
    c.cluster = 2;
    launch(*d, f, c, y);
    const std::string told = messageOf([&] { d->synchronize(); });
    if (rank < 2) {
      EXPECT_EQ(told, "nothing thrown");
      for (float v : read(*d, y, 4)) EXPECT_EQ(v, float(rank));
    } else {
      EXPECT_THAT(told,
                  HasSubstr("cluster_read of rank " + std::to_string(rank) + " in a cluster of 2"));
    }
  }
}

// Each byte has its own history, in shared and in global memory: neighbours by two threads are no
// race, also not behind an access of both; one byte is, also behind a write of its neighbour.
TEST_F(HostDriverTest, racesAreFoundPerByte) {
  struct Case {
    const char* body;  ///< of 64 threads: `g` in global, `s` in shared memory
    const char* report;
  };
  const std::string at = "const int t = threadIdx.x, b = blockIdx.x;\n";
  const Case cases[] = {
      {"g[b * 64 + t] = s[t] = (u8)t; g[b * 64 + t] += s[t];", ""},
      {"if (t < 32) ((u16*)s)[t] = 7; block_sync(); s[t] = (u8)t; block_sync();\n"
       "if (t < 32) ((u16*)g)[b * 32 + t] = ((u16*)s)[t];",
       ""},
      {"s[t] = (u8)t; block_sync(); g[b * 64 + t] = s[t ^ 1];", ""},
      {"s[t & ~1] = 1; g[b * 64 + t] = 2;", "data race (write after write) on s + "},
      {"g[b * 64 + (t & 62)] = 3;", "data race (write after write) on g + "},
      {"g[(b * 64 + t) / 2] = 3;", "data race (write after write) on g + "},
      {"((bf16*)g)[b] = to_bf16((float)t);", "data race (write after write) on g + "},
      {"const auto f = [&] { return to_bf16((float)t); }; ((bf16*)g)[b] = f();",
       "data race (write after write) on g + "},
      // Thread 1 writes beside what thread 0 wrote and thread 33 reads.
      {"if (t < 2) s[t] = 1; if (t == 33) g[b] = s[0];", "data race (read after write) on s + 0"},
      {"if (t < 2) g[b * 64 + t] = 1; if (t == 33) s[t] = g[b * 64];",
       "data race (read after write) on g + "},
      // Thread 1 reads beside what thread 0 read and thread 33 writes.
      {"s[t] = 0; block_sync(); if (t < 2) g[b * 64 + t] = s[t]; if (t == 33) s[0] = 1;",
       "data race (write after read) on s + 0"},
      {"if (t == 0) s[0] = g[b * 64]; if (t == 33) g[b * 64] = 1;",
       "data race (write after read) on g + "},
      // Blocks of one launch know no order.
      {"if (b == 0 && t == 0) s[0] = g[100]; if (b == 1 && t == 0) g[100] = 1;",
       "data race (write after read) on g + 100"},
      // A byte beside one that was written is uninitialised.
      {"if (t == 0) { s[0] = 1; g[b] = s[1]; }", "read of uninitialised s + 1"},
      // A wide access meets the history of both bytes.
      {"if (t == 0) s[1] = 1; if (t == 32) *(u32*)s = 2;",
       "data race (write after write) on s + 1"},
  };
  auto d = open("check");
  std::vector<KernelCode> codes;
  for (const Case& c : cases) {
    const std::string name = "bytes_" + std::to_string(codes.size());
    codes.push_back(
        {name, kernel(name, "u8* g", "LATHE_SHARED(u8, s, 64);\n" + at + c.body), "", ""});
  }
  const auto functions = d->load(codes);
  auto* g = static_cast<unsigned char*>(d->allocate(128, "g"));
  for (size_t i = 0; i < functions.size(); ++i) {
    d->zero(g, 128);
    launch(*d, functions[i], configOf(2, 1, 64), g);
    const std::string found = messageOf([&] { d->synchronize(); });
    EXPECT_THAT(found, HasSubstr(*cases[i].report ? cases[i].report : "nothing thrown"))
        << cases[i].body;
  }
}

// What the previous kernel wrote may not be there yet, and what it reads may still be wanted.
TEST_F(HostDriverTest, overlappingLaunchesWaitForWhatTheOtherTouches) {
  auto d = open("check");
  const auto functions =
      d->load({{"touch",
                kernel("touch", "int* to, const int* from", "to[threadIdx.x] = from[threadIdx.x];"),
                "", ""},
               {"late",
                kernel("late", "int* to, const int* from",
                       "grid_dep_wait();\nto[threadIdx.x] = from[threadIdx.x];"),
                "", ""}});
  int* buffers[4];
  for (int i = 0; i < 4; ++i) {
    buffers[i] = static_cast<int*>(d->allocate(64 * 4, "buffer" + std::to_string(i)));
    d->zero(buffers[i], 64 * 4);
  }
  struct Form {
    int to, from;  ///< of the second kernel; the first writes buffer 0 and reads buffer 1
    const char* report;
  };
  for (const Form& form : {Form{2, 3, ""},
                           {2, 1, ""},
                           {2, 0, "read of buffer0 + "},
                           {1, 3, "write of buffer1 + "},
                           {0, 3, "write of buffer0 + "}})
    for (bool waits : {false, true}) {
      const bool told = *form.report && !waits;
      LaunchConfig config = configOf(1, 1, 64);
      launch(*d, functions[0], config, buffers[0], buffers[1]);
      config.overlaps = true;
      launch(*d, functions[waits ? 1 : 0], config, buffers[form.to], buffers[form.from]);
      const std::string found = messageOf([&] { d->synchronize(); });
      EXPECT_THAT(found, HasSubstr(told ? form.report : "nothing thrown")) << form.to << form.from;
      if (told) EXPECT_THAT(found, HasSubstr("before griddepcontrol.wait"));
    }
}

// Several tensors lie in one allocation: each parameter reaches its own alone, launched or
// recorded.
TEST_F(HostDriverTest, parametersHaveBoundsOfTheirOwn) {
  auto d = open("check");
  const auto functions =
      d->load({{"shift",
                kernel("shift", "const int* x, long long by, int* y",
                       "const int t = blockIdx.x * 64 + threadIdx.x;\ny[t] = x[t + by];"),
                "", ""},
               {"swap",
                kernel("swap", "int* x, int* y",
                       "const int t = blockIdx.x * 64 + threadIdx.x, a = x[t];\n"
                       "x[t] = y[127 - t];\nblock_sync();\ny[127 - t] = a;"),
                "", ""}});
  auto* arena = static_cast<int*>(d->allocate(3 * 512, "arena"));
  std::vector<int> values(384);
  for (size_t i = 0; i < values.size(); ++i) values[i] = int(i);
  d->upload(arena, values.data(), 3 * 512);
  LaunchConfig c = configOf(2, 1, 64);
  c.extents = {512, -1, 512};
  auto shift = [&](int64_t by) { launch(*d, functions[0], c, arena + 128, by, arena + 256); };
  shift(0);
  EXPECT_EQ(read(*d, arena + 256, 1)[0], 128);
  for (bool recorded : {false, true}) {
    auto message = [&](int64_t by) {
      return messageOf([&] {
        if (recorded)
          d->replay(*d->record([&] { shift(by); }));
        else
          shift(by);
        d->synchronize();
      });
    };
    EXPECT_THAT(message(1), HasSubstr("global memory out of bounds: read of 4 bytes at x + 512 "
                                      "(parameter of 512 bytes in arena) by block (1,0,0) thread "
                                      "(63,0,0)"));
    EXPECT_THAT(message(-1), HasSubstr("read of 4 bytes at x - 4 (parameter of 512 bytes in "));
    EXPECT_EQ(message(0), "nothing thrown");
  }
  // In place: two parameters are one tensor, and threads of two blocks meet in it.
  c.extents = {512, 512};
  launch(*d, functions[1], c, arena, arena);
  EXPECT_THAT(messageOf([&] { d->synchronize(); }), HasSubstr("data race"));
  launch(*d, functions[1], c, arena + 128, arena + 256);
  d->synchronize();
  EXPECT_EQ(read(*d, arena + 128, 1)[0], 255);
  // Nothing known: bounds are those of the allocation.
  c.extents = {};
  launch(*d, functions[0], c, arena, int64_t(1), arena + 256);
  d->synchronize();
  EXPECT_EQ(read(*d, arena + 256, 128)[127], 255);
}

TEST_F(HostDriverTest, lastBlockSeesAllAndLeavesTheCounterAtZero) {
  const std::string text =
      kernel("total", "const i64* x, i64* parts, u32* counter, i64* y, i64* status",
             "const i64 s = block_sum<64>(x[blockIdx.x * 64 + threadIdx.x]);\n"
             "if (threadIdx.x == 0) parts[blockIdx.x] = s;\n"
             "if (grid_last_block(counter, gridDim.x) && threadIdx.x == 0) {\n"
             "  i64 t = 0;\n  for (u32 i = 0; i < gridDim.x; ++i) t = int_add(t, parts[i]);\n"
             "  *y = t;\n  lt_report_index(status, 42);\n}");
  for (const char* options : {"fast,threads=2", "check,random,seed=11"}) {
    auto d = open(options);
    auto f = d->load({{"total", text, "", ""}})[0];
    std::vector<int64_t> x(31 * 64);
    int64_t want = 0;
    for (size_t i = 0; i < x.size(); ++i) want += x[i] = int64_t(i) * 1000000007;
    auto* in = static_cast<int64_t*>(d->allocate(x.size() * 8, "x"));
    d->upload(in, x.data(), x.size() * 8);
    auto* parts = static_cast<int64_t*>(d->allocate(31 * 8, "parts"));
    auto* counter = static_cast<uint32_t*>(d->allocate(4, "counter"));
    auto* y = static_cast<int64_t*>(d->allocate(8, "y"));
    auto* status = static_cast<int64_t*>(d->allocate(8, "status"));
    d->zero(counter, 4);
    for (int run = 0; run < 2; ++run) {
      launch(*d, f, configOf(31, 1, 64), in, parts, counter, y, status);
      EXPECT_EQ(read(*d, y, 1)[0], want);
      EXPECT_EQ(read(*d, counter, 1)[0], 0u);
      EXPECT_EQ(read(*d, status, 1)[0], 42 | int64_t(1) << 62);
    }
  }
}

TEST_F(HostDriverTest, trafficIsCounted) {
  auto d = open("check,count");
  auto f = d->load({{"silu_mul", kernelText("silu_mul"), "", ""},
                    {"softmax_mask", kernelText("softmax_mask"), "", ""}});
  runCase(*d, f[0], "silu_mul");
  runCase(*d, f[1], "softmax_mask");
  const auto launches = d->takeLaunches();
  ASSERT_EQ(launches.size(), 2u);
  const uint64_t n = 16 * 1024 + 8;
  EXPECT_EQ(launches[0].kernel, "silu_mul");
  EXPECT_EQ(launches[0].traffic.read, 4 * n);
  EXPECT_EQ(launches[0].traffic.distinctRead, 4 * n);
  EXPECT_EQ(launches[0].traffic.written, 2 * n);
  EXPECT_EQ(launches[0].traffic.distinctWritten, 2 * n);
  // Two passes over the mask and over what it leaves.
  EXPECT_EQ(launches[1].traffic.distinctWritten, 4u * 12 * 1000);
  EXPECT_GT(launches[1].traffic.read, 2u * 12 * 1000);
  EXPECT_LE(launches[1].traffic.distinctRead, 5u * 12 * 1000);
  EXPECT_EQ(launches[1].barriers, 12u);
  EXPECT_TRUE(d->takeLaunches().empty());
  // What a launch wrote itself it does not fetch.
  auto again = d->load({{"again",
                         kernel("again", "int* p, int* q",
                                "p[threadIdx.x] = 1;\nblock_sync();\n"
                                "q[threadIdx.x] = p[63 - threadIdx.x];"),
                         "", ""}})[0];
  auto *p = static_cast<int*>(d->allocate(256, "p")), *q = static_cast<int*>(d->allocate(256, "q"));
  launch(*d, again, configOf(1, 1, 64), p, q);
  d->synchronize();
  const LaunchRecord own = d->takeLaunches().at(0);
  EXPECT_EQ(own.traffic.read, 256u);
  EXPECT_EQ(own.traffic.distinctRead, 0u);
  EXPECT_EQ(own.traffic.distinctWritten, 512u);
}

TEST_F(HostDriverTest, compileErrorsShowNumberedLines) {
  auto d = open();
  EXPECT_THAT(messageOf([&] {
                d->load({{"good", kernel("good", "", ""), "", ""},
                         {"bad", kernel("bad", "int* p", "  p[0] = nothing;"), "", ""}});
              }),
              AllOf(HasSubstr("kernel bad does not compile for the host ("), HasSubstr("bad.cu:4"),
                    HasSubstr("> 4 |   p[0] = nothing;"), testing::Not(HasSubstr(folder_))));
  EXPECT_THAT(messageOf([&] { d->load({{"absent", "", "cubin", ""}}); }),
              HasSubstr("kernel absent: host execution needs its CUDA C++ text"));
  EXPECT_THAT(messageOf([&] { d->load({{"../x", "text", "", ""}}); }), HasSubstr("C identifier"));
}

TEST_F(HostDriverTest, textsAreCompiledOnce) {
  auto texts = [](const std::string& body) {
    std::vector<host::KernelText> t;
    for (const char* name : {"a", "b", "c", "d", "e"})
      t.push_back({name, kernel(name, "int* p", "p[0] = " + body + ";")});
    t.push_back({"a", kernel("a", "int* p", "p[1] = " + body + ";")});
    return t;
  };
  const std::string cache = folder_ + "/kept";
  host::HostCompiler first(host::Mode::Fast, cache), second(host::Mode::Fast, cache),
      checked(host::Mode::Check, cache);
  auto kernels = first.compile(texts("1"));
  EXPECT_EQ(first.compiled(), 6);
  ASSERT_EQ(kernels.size(), 6u);
  int value[2] = {0, 0};
  int* p = value;
  void* arguments[] = {&p};
  kernels[5].entry(arguments);
  EXPECT_EQ(value[0], 0);
  EXPECT_EQ(value[1], 1);
  second.compile(texts("1"));
  EXPECT_EQ(second.compiled(), 0);
  second.compile(texts("2"));
  EXPECT_EQ(second.compiled(), 6);
  checked.compile(texts("1"));
  EXPECT_EQ(checked.compiled(), 6);
  // Nothing of the work is left over.
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    EXPECT_NE(entry.path().filename().string().substr(0, 4), "new-") << entry.path();
}

// Another version of a compiler makes other code of the same text.
TEST_F(HostDriverTest, anotherCompilerCompilesAnew) {
  const std::vector<host::KernelText> texts = {{"a", kernel("a", "int* p", "p[0] = 1;")}};
  auto compiledBy = [&](const std::string& version) {
    const std::string path = folder_ + "/" + version;
    std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo g++ " << version
                        << "; else exec " << host::findProgram("c++") << " \"$@\"; fi\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    setenv("LATHE_HOST_CXX", path.c_str(), 1);
    host::HostCompiler compiler(host::Mode::Fast, folder_ + "/kept");
    unsetenv("LATHE_HOST_CXX");
    compiler.compile(texts);
    return compiler.compiled();
  };
  EXPECT_EQ(compiledBy("12.1"), 1);
  EXPECT_EQ(compiledBy("12.1"), 0);
  EXPECT_EQ(compiledBy("12.2"), 1);
}

// As ranks do that are threads of one process.
TEST_F(HostDriverTest, threadsThatWantOneTextCompileItOnce) {
  const std::string cache = folder_ + "/kept";
  std::vector<host::HostCompiler> compilers;
  for (int i = 0; i < 4; ++i) compilers.emplace_back(host::Mode::Fast, cache);
  std::latch together(4);
  std::vector<std::thread> threads;
  for (host::HostCompiler& compiler : compilers)
    threads.emplace_back([&] {
      together.arrive_and_wait();
      EXPECT_EQ(compiler.compile({{"a", kernel("a", "int* p", "p[0] = 1;")}}).size(), 1u);
    });
  for (std::thread& thread : threads) thread.join();
  int compiled = 0;
  for (const host::HostCompiler& compiler : compilers) compiled += compiler.compiled();
  EXPECT_EQ(compiled, 1);
}

TEST_F(HostDriverTest, brokenCacheEntriesAreMadeAgain) {
  const std::string cache = folder_ + "/kept";
  const std::vector<host::KernelText> texts = {{"a", kernel("a", "int* p", "p[0] = 1;")}};
  host::HostCompiler(host::Mode::Fast, cache).compile(texts);
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    if (entry.path().extension() == ".so") std::filesystem::resize_file(entry.path(), 100);
  host::HostCompiler again(host::Mode::Fast, cache);
  EXPECT_EQ(again.compile(texts).size(), 1u);
  EXPECT_EQ(again.compiled(), 1);
  std::filesystem::permissions(cache, std::filesystem::perms::all);
  EXPECT_THAT(messageOf([&] { host::HostCompiler(host::Mode::Fast, cache); }),
              HasSubstr("writable by nobody else"));
}

TEST_F(HostDriverTest, optionsAndCompilersAreNamed) {
  EXPECT_THAT(messageOf([] { host::parseOptions("check,quick"); }),
              AllOf(HasSubstr("expected fast, check"), HasSubstr("got \"quick\"")));
  EXPECT_THAT(messageOf([] { host::parseOptions("seed=x"); }), HasSubstr("seed=x"));
  const host::Options o = host::parseOptions("check,random,seed=7");
  EXPECT_EQ(o.mode, host::Mode::Check);
  EXPECT_EQ(o.async, host::Async::Random);
  EXPECT_EQ(o.order, host::Order::Random);
  EXPECT_EQ(o.seed, 7u);
  EXPECT_NE(o.preemptEvery, 0u);
  setenv("LATHE_HOST_CXX", "/no/such/compiler", 1);
  EXPECT_THAT(messageOf([&] { open(); }), HasSubstr("/no/such/compiler"));
  unsetenv("LATHE_HOST_CXX");
  EXPECT_THAT(open("check")->facts().name,
              AllOf(HasSubstr("host execution ("), HasSubstr("check")));
}

// Every compiler of the machine understands the twin, and all modes of it.
TEST_F(HostDriverTest, bothCompilersWork) {
  for (const char* compiler : {"g++", "clang++"}) {
    if (host::findProgram(compiler).empty()) continue;
    setenv("LATHE_HOST_CXX", compiler, 1);
    for (const char* options : {"fast", "check,random"}) {
      auto d = open(options);
      for (const char* name : {"softmax_mask", "attention"}) {
        auto f = d->load({{name, kernelText(name), "", ""}})[0];
        EXPECT_LE(runCase(*d, f, name), 1) << compiler << " " << options << " " << name;
      }
    }
    unsetenv("LATHE_HOST_CXX");
  }
}

TEST_F(HostDriverTest, theTwinsHaveTheSameHeaders) {
  EXPECT_TRUE(deviceHeaders().contains("lathe_device.cuh"));
  for (const auto& [name, text] : deviceHeaders()) {
    ASSERT_TRUE(hostHeaders().contains(name)) << name;
    EXPECT_EQ(name == "lathe_device.cuh", hostHeaders().at(name) != text) << name;
  }
}

}  // namespace
}  // namespace lathe::cuda
