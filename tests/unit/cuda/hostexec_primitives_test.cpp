// SPDX-License-Identifier: Apache-2.0
// The host twin's primitives: conversions bit by bit, arithmetic that nothing makes undefined,
// collectives, copies and fragments, against plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cuda/hostexec/sanitizer.h"

#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_cases.h"

namespace lathe::cuda {
namespace {

std::string kernel(const std::string& parameters, const std::string& body, int threads) {
  return "#include \"lathe_device.cuh\"\nextern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(threads) + ")\nprobe(" + parameters + ") {\n" + body + "\n}\n";
}

class HostPrimitives : public testing::Test {
 protected:
  static void SetUpTestSuite() { driver_ = openHost(host::parseOptions("check")); }
  static void TearDownTestSuite() { driver_.reset(); }

  // Runs `body` with `in` and `out` of the given element types in one block.
  template <class Out, class In>
  static std::vector<Out> run(const std::string& parameters, const std::string& body,
                              const std::vector<In>& in, size_t outputs, uint32_t threads = 32,
                              size_t shared = 0) {
    auto f = driver_->load({{"probe", kernel(parameters, body, int(threads)), "", ""}})[0];
    void *x = driver_->allocate(in.size() * sizeof(In), "in"),
         *y = driver_->allocate(outputs * sizeof(Out), "out");
    driver_->upload(x, in.data(), in.size() * sizeof(In));
    int64_t n = int64_t(in.size());
    void* arguments[] = {&x, &y, &n};
    driver_->launch(f, configOf(1, 1, threads, shared), arguments);
    std::vector<Out> result(outputs);
    driver_->download(result.data(), y, outputs * sizeof(Out));
    driver_->release(x);
    driver_->release(y);
    return result;
  }
  static inline std::unique_ptr<HostDriver> driver_;
};

const std::string kEach = "for (i64 i = threadIdx.x; i < n; i += 32) ";

std::vector<float> awkwardFloats() {
  std::vector<float> v = {0.0f,       -0.0f,  INFINITY,      -INFINITY,      NAN,      65504,
                          65519.996f, 65520,  65536,         6.1e-5f,        5.96e-8f, 2.98e-8f,
                          2.981e-8f,  1e-30f, 1e38f,         -3.3e38f,       127.5f,   -128.9f,
                          255.9f,     256,    2147483648.0f, -2147483648.0f, 9.3e18f,  -9.3e18f};
  std::mt19937 rng(3);
  for (int i = 0; i < 20000; ++i) v.push_back(std::bit_cast<float>(uint32_t(rng())));
  for (int i = 0; i < 20000; ++i)
    v.push_back(std::bit_cast<float>(0x38000000u + uint32_t(rng() % 0x10000000)));
  return v;
}

TEST_F(HostPrimitives, everyHalfWidensExactly) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  const auto wide = run<float>("const f16* in, float* out, i64 n",
                               kEach + "out[i] = to_f32(in[i]);", all, all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const float want = f16ToFloat(all[i]);
    if (std::isnan(want))
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(want)) << i;
  }
}

TEST_F(HostPrimitives, narrowingRoundsToNearestEven) {
  const auto in = awkwardFloats();
  const auto half = run<uint16_t>("const float* in, f16* out, i64 n",
                                  kEach + "out[i] = from_f32<f16>(in[i]);", in, in.size());
  const auto brain = run<uint16_t>("const float* in, bf16* out, i64 n",
                                   kEach + "out[i] = from_f32<bf16>(in[i]);", in, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (std::isnan(in[i])) {
      ASSERT_EQ(half[i], 0x7fff);
      ASSERT_EQ(brain[i], 0x7fff);
    } else {
      ASSERT_EQ(half[i], floatToF16(in[i])) << in[i];
      ASSERT_EQ(brain[i], floatToBf16(in[i])) << in[i];
    }
  }
}

template <class T>
T saturated(float x) {
  if (std::isnan(x)) return 0;
  if (double(x) >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (double(x) <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return T(x);
}

TEST_F(HostPrimitives, floatsToIntegersSaturate) {
  const auto in = awkwardFloats();
  auto check = [&]<class T>(T, const std::string& name) {
    const auto out = run<T>("const float* in, " + name + "* out, i64 n",
                            kEach + "out[i] = convert<" + name + ">(in[i]);", in, in.size());
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], saturated<T>(in[i])) << name << in[i];
  };
  check(int64_t(), "i64");
  check(int32_t(), "i32");
  check(int16_t(), "i16");
  check(int8_t(), "i8");
  check(uint8_t(), "u8");
}

TEST_F(HostPrimitives, integersAreDefinedForAllOperands) {
  const std::string body =
      "for (i64 i = 0; i < n; ++i) for (i64 j = 0; j < n; ++j) if (threadIdx.x == 0) {\n"
      "auto* o = out + (i * n + j) * 7; auto a = in[i], b = in[j];\n"
      "o[0] = int_add(a, b); o[1] = int_sub(a, b); o[2] = int_mul(a, b); o[3] = int_div(a, b);\n"
      "o[4] = int_mod(a, b); o[5] = shift_left(a, b); o[6] = shift_right(a, b); }";
  auto check = [&]<class T>(T, const std::string& name) {
    using U = std::make_unsigned_t<T>;
    const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    const std::vector<T> in = {
        0,   1,          T(-1), 2, 3, T(-3), 7, T(-7), T(8 * sizeof(T) - 1), T(8 * sizeof(T)),
        low, T(low + 1), high};
    const size_t n = in.size();
    const auto out =
        run<T>("const " + name + "* in, " + name + "* out, i64 n", body, in, n * n * 7);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        const T a = in[i], b = in[j], *o = &out[(i * n + j) * 7];
        using W = __int128;
        EXPECT_EQ(o[0], T(W(a) + b));
        EXPECT_EQ(o[1], T(W(a) - b));
        EXPECT_EQ(o[2], T(W(a) * b));
        EXPECT_EQ(o[3], b == 0 ? T(0) : T(W(a) / b));
        EXPECT_EQ(o[4], b == 0 ? T(0) : T((W(a) % b + b) % b)) << int64_t(a) << " " << int64_t(b);
        const bool within = b >= 0 && W(b) < W(8 * sizeof(T));
        EXPECT_EQ(o[5], within ? T(W(a) << int(b)) : T(0));
        EXPECT_EQ(o[6], within ? T(U(U(a) >> int(b))) : T(0));
      }
  };
  check(int64_t(), "i64");
  check(int32_t(), "i32");
  check(int16_t(), "i16");
  check(int8_t(), "i8");
  check(uint8_t(), "u8");
}

TEST_F(HostPrimitives, reductionsKeepNanAndTheFirstBest) {
  const std::string body =
      "const float x = in[threadIdx.x];\n"
      "const float a = block_max<96>(x), b = block_min<96>(x);\n"
      "const arg_pair<float> p = block_reduce<96>(arg_pair<float>{x, (i64)threadIdx.x}, "
      "ArgMax{});\n"
      "const arg_pair<float> q = block_reduce<96>(arg_pair<float>{x, (i64)threadIdx.x}, "
      "ArgMin{});\n"
      "const double s = block_sum<96>((double)x);\n"
      "const i64 k = block_sum<96>((i64)threadIdx.x), m = block_max<96>((i64)threadIdx.x);\n"
      "const bool any = block_any<96>(x > 4), all = block_all<96>(x < 4);\n"
      "const float g = group_reduce<8>((float)threadIdx.x, Sum{});\n"
      "if (threadIdx.x == 70) { out[0] = a; out[1] = b; out[2] = p.index; out[3] = q.index;\n"
      "out[4] = s; out[5] = k; out[6] = m; out[7] = any; out[8] = all; out[9] = g; }";
  auto results = [&](std::vector<float> x) {
    return run<double>("const float* in, double* out, i64 n", body, x, 10, 96);
  };
  std::vector<float> x(96);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i * 37 % 11) / 4;
  auto r = results(x);
  EXPECT_EQ(r[0], 2.5);
  EXPECT_EQ(r[1], 0);
  EXPECT_EQ(r[2], double(std::max_element(x.begin(), x.end()) - x.begin()));
  EXPECT_EQ(r[3], 0);
  double sum = 0;
  for (float v : x) sum += double(v);
  EXPECT_EQ(r[4], sum);
  EXPECT_EQ(r[5], 95 * 96 / 2);
  EXPECT_EQ(r[6], 95);
  EXPECT_EQ(r[7], 0);
  EXPECT_EQ(r[8], 1);
  EXPECT_EQ(r[9], 64 + 65 + 66 + 67 + 68 + 69 + 70 + 71);
  x[50] = NAN;
  x[60] = NAN;
  r = results(x);
  EXPECT_TRUE(std::isnan(r[0]));
  EXPECT_TRUE(std::isnan(r[1]));
  EXPECT_EQ(r[2], 50);
  EXPECT_EQ(r[3], 50);
  r = results(std::vector<float>(96, -0.0f));
  EXPECT_TRUE(std::signbit(r[0]));
  std::vector<float> zeros(96, -0.0f);
  zeros[93] = 0.0f;
  r = results(zeros);
  EXPECT_FALSE(std::signbit(r[0]));
  EXPECT_TRUE(std::signbit(r[1]));
}

TEST_F(HostPrimitives, shufflesMoveAnyType) {
  const auto out = run<int64_t>(
      "const i64* in, i64* out, i64 n",
      "const i64 x = in[lane_id()];\n"
      "out[lane_id()] = shfl_xor(x, 5); out[32 + lane_id()] = shfl_down(x, 3);\n"
      "out[64 + lane_id()] = shfl_up(x, 30); out[96 + lane_id()] = shfl_idx(x, 35);\n"
      "out[128 + lane_id()] = shfl_xor((u8)x, 1); out[160 + lane_id()] = warp_ballot(x & 8);",
      [] {
        std::vector<int64_t> v(32);
        for (size_t i = 0; i < 32; ++i) v[i] = (int64_t(i) << 40) + int64_t(i);
        return v;
      }(),
      192);
  auto value = [](int64_t i) { return (i << 40) + i; };
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(out[size_t(i)], value(i ^ 5));
    EXPECT_EQ(out[size_t(32 + i)], value(i + 3 < 32 ? i + 3 : i));
    EXPECT_EQ(out[size_t(64 + i)], value(i >= 30 ? i - 30 : i));
    EXPECT_EQ(out[size_t(96 + i)], value(3));
    EXPECT_EQ(out[size_t(128 + i)], i ^ 1);
    EXPECT_EQ(out[size_t(160 + i)], 0xff00ff00);
  }
}

TEST_F(HostPrimitives, copiesFillWithZeroAndNamedBarriersOrder) {
  const auto out = run<float>(
      "const float* in, float* out, i64 n",
      "LATHE_DYN_SHARED(raw); float* s = (float*)raw; const u32 a = smem_addr(raw);\n"
      "const int t = threadIdx.x;\n"
      "if (t < 32) cp_async_16(a + t * 16, in + t * 4, t % 5 * 4 < 16 ? t % 5 * 4 : 16);\n"
      "else if (t < 64) { cp_async_8(a + 512 + t * 8, in, 4); cp_async_4(a + 1024 + t * 4, in, 0); "
      "}\n"
      "cp_async_commit(); cp_async_wait<0>();\n"
      "if (t < 64) { named_sync(1, 64); if (t >= 32) for (int i = 0; i < 4; ++i) out[(t - 32) * 4 "
      "+ "
      "i] = s[(t - 32) * 4 + i]; else { out[128 + t] = s[(512 + (t + 32) * 8) / 4 + 1]; out[160 + "
      "t] = s[(1024 + (t + 32) * 4) / 4]; } }",
      [] {
        std::vector<float> v(128);
        for (size_t i = 0; i < v.size(); ++i) v[i] = float(i + 1);
        return v;
      }(),
      192, 96, 4096);
  for (size_t t = 0; t < 32; ++t) {
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(out[t * 4 + i], i < t % 5 ? float(t * 4 + i + 1) : 0) << t << " " << i;
    EXPECT_EQ(out[128 + t], 0);
    EXPECT_EQ(out[160 + t], 0);
  }
}

TEST_F(HostPrimitives, fragmentsMultiplyAsMatrices) {
  std::mt19937 rng(5);
  std::vector<uint16_t> in(16 * 16 + 16 * 8);
  for (uint16_t& x : in) x = floatToF16(float(int(rng() % 17) - 8) / 4);
  // A is [16][16] row-major; B is [8][16], its columns.
  const auto out = run<float>(
      "const f16* in, float* out, i64 n",
      "LATHE_SHARED(f16, s, 16 * 16 + 16 * 8);\n"
      "for (i64 i = threadIdx.x; i < n; i += 32) s[i] = in[i];\n"
      "warp_sync();\n"
      "const int lane = (int)lane_id();\n"
      "frag_a a; u32 b[2]; frag_c c{{1, 1, 1, 1}};\n"
      "ldmatrix_x4(a.r, smem_addr(s + (lane & 15) * 16 + (lane >> 4) * 8));\n"
      "ldmatrix_x2(b, smem_addr(s + 256 + (lane & 7) * 16 + (lane >> 3 & 1) * 8));\n"
      "mma_f16(c, a, b[0], b[1]);\n"
      "for (int i = 0; i < 4; ++i) out[((lane >> 2) + 8 * (i >> 1)) * 8 + 2 * (lane & 3) + (i & "
      "1)] = c.r[i];",
      in, 128);
  for (size_t m = 0; m < 16; ++m)
    for (size_t j = 0; j < 8; ++j) {
      double want = 1;
      for (size_t k = 0; k < 16; ++k)
        want += double(f16ToFloat(in[m * 16 + k])) * f16ToFloat(in[256 + j * 16 + k]);
      EXPECT_EQ(out[m * 8 + j], want);
    }
}

// Two rows of one bank group in turn are two accesses, however often each comes.
TEST_F(HostPrimitives, bankConflictsCountRowsAndNotTurns) {
  auto conflicts = [](const std::string& row) {
    driver_->setOptions(host::parseOptions("check,count"));
    driver_->takeLaunches();
    run<uint32_t>("const u32* in, u32* out, i64 n",
                  "LATHE_SHARED(u32, s, 256);\n"
                  "for (i64 i = threadIdx.x; i < n; i += 32) s[i] = in[i];\n"
                  "warp_sync();\n"
                  "const int lane = (int)lane_id();\n"
                  "u32 r[2];\n"
                  "ldmatrix_x2(r, smem_addr(s + 4 * (" +
                      row +
                      ")));\n"
                      "out[lane] = r[0] + r[1];",
                  std::vector<uint32_t>(256, 1), 32);
    uint64_t all = 0;
    for (const LaunchRecord& l : driver_->takeLaunches()) all += l.bankConflicts;
    driver_->setOptions(host::parseOptions("check"));
    return all;
  };
  EXPECT_EQ(conflicts("lane & 7"), 0u);        // eight rows, eight bank groups
  EXPECT_EQ(conflicts("0"), 0u);               // one row
  EXPECT_EQ(conflicts("(lane & 1) * 8"), 2u);  // two rows of one group, in each of two tiles
  EXPECT_EQ(conflicts("(lane & 3) * 8"), 6u);
}

// What no GPU forgives ends the kernel, and names the thread and the line.
TEST_F(HostPrimitives, misuseIsToldWithItsPlace) {
  struct Misuse {
    const char* body;  ///< of 64 threads, with `in` of 256 bytes
    std::string report;
  };
  const std::string shared =
      "LATHE_DYN_SHARED(raw); LATHE_SHARED(u64, bar, 2); const int t = threadIdx.x;"
      " const u32 at = smem_addr(raw); ";
  const Misuse all[] = {
      {"named_sync(0, 64);", "named_sync(0, 64): expected an id in 1..15 and whole warps of the "},
      {"named_sync(16, 64);", "named_sync(16, 64): expected an id in 1..15"},
      {"named_sync(1, 48);", "named_sync(1, 48): expected an id in 1..15 and whole warps"},
      {"named_sync(1, 96);", "named_sync(1, 96): expected an id in 1..15 and whole warps"},
      {"named_sync(1, t < 32 ? 64 : 32);",
       "misuse_4.cu:4 expects 32 threads, earlier ones at "
       "misuse_4.cu:4 expect 64"},
      {"mbar_wait(bar, 0);", "wait on an mbarrier that was not initialised: "},
      {"mbar_arrive(bar + 1);", "arrive on an mbarrier that was not initialised: "},
      {"if (t == 0) { mbar_init(bar, 1); mbar_arrive_expect_tx(bar, 16); mbar_arrive(bar); }",
       "mbarrier: more arrivals than its count of 1: block (0,0,0) thread (0,0,0)"},
      {"if (t == 0) { mbar_init(bar, 1); bulk_load(raw, in, 24, bar); }",
       "bulk copy: size and addresses must be multiples of 16, "},
      {"if (t == 0) { mbar_init(bar, 1); bulk_load(raw, in + 2, 16, bar); }",
       "bulk copy: size and addresses must be multiples of 16, "},
      {"if (t == 0) { mbar_init(bar, 1); bulk_load(raw + 8, in, 16, bar); }",
       "bulk copy: size and addresses must be multiples of 16, "},
      {"cp_async_16(at + 8, in);", "cp.async of 16 bytes: misaligned shared address, "},
      {"cp_async_8(at, in + 1);", "cp.async of 8 bytes: misaligned global address, "},
      {"cp_async_8(at, in, 12);", "cp.async: at most 8 bytes can be copied, got 12, "},
      {"ld_shared_16(at + 4);", "misaligned 16-byte access to dynamic shared memory + 4 (512 "},
      {"ld_shared_16(0x7ffffff0u);", "shared memory out of bounds: address 0x7ffffff0 by "},
      {"u32 r[4]; ldmatrix_x4(r, at + 8);",
       "ldmatrix: row address dynamic shared memory + 8 (512 bytes) is not 16-byte aligned, "},
      {"smem_addr(in);", "smem_addr of a pointer outside the block's shared memory: "},
      {"LATHE_SHARED(float, big, 60000); big[t] = 0;",
       "shared memory exceeds 227 KiB at array big: "},
      {"counter_add_acq_rel((u32*)in + 64, 1);", "counter outside every buffer: "},
      {"counter_load_acquire((u32*)in - 1);", "counter outside every buffer: "},
      {"volatile float deep[1 << 16]; deep[t] = 1; ((float*)in)[t] = deep[t];",
       "memory fault at the stack guard: a kernel thread uses more than 124 KiB of stack by "},
      {"if (t < 32)\nnamed_sync(1, 64);\nelse\nnamed_sync(2, 64);",
       "threads 0-31: wait at named_sync misuse_22.cu:5\n    block (0,0,0) threads 32-63: wait at "
       "named_sync misuse_22.cu:7"},
  };
  std::vector<KernelCode> codes;
  for (const Misuse& m : all) {
    const std::string name = "misuse_" + std::to_string(codes.size());
    std::string text = kernel("int* in", shared + m.body, 64);
    codes.push_back({name, text.replace(text.find("probe"), 5, name), "", ""});
  }
  const auto functions = driver_->load(codes);
  void* in = driver_->allocate(256, "in");
  driver_->zero(in, 256);
  for (size_t i = 0; i < functions.size(); ++i) {
    const bool isFault = all[i].report.starts_with("memory fault");
    if (isFault && host::haveAsan()) continue;  // whose own report ends the program
    void* arguments[] = {&in};
    driver_->launch(functions[i], configOf(1, 1, 64, 512), arguments);
    std::string told = "nothing";
    try {
      driver_->synchronize();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Numeric);
      told = e.what();
    }
    EXPECT_THAT(told, testing::HasSubstr(all[i].report)) << codes[i].source;
    if (told.find("at array big") == told.npos)
      EXPECT_THAT(told, testing::HasSubstr(codes[i].name + ".cu:"));
  }
  driver_->release(in);
}

}  // namespace
}  // namespace lathe::cuda
