// SPDX-License-Identifier: Apache-2.0
// Layers whose outputs gate each other: the same bits, whether the gate is applied beside the
// products or behind them, and what a gate is.
#include "backends/cpu/device/gated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/quantized_linear.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cpu_matmul_values.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Bytes = std::vector<char>;

// What `run` makes of [m, n] products: gated by it, or gated afterwards; a byte behind stays 77.
template <class Spec, class Args, class Prepare, class Run>
std::pair<Bytes, Bytes> bothWays(Spec spec, Args args, DType dtype, Activation gate, KernelIsa isa,
                                 ThreadPool& pool, Prepare prepare, Run run) {
  const int64_t n = spec.weights.n;
  const size_t bytes = size_t(args.m * n) * sizeOf(dtype);
  Bytes products(bytes), behind(bytes / 2 + 1, 77), beside(bytes / 2 + 1, 77);
  Buffer scratch(prepare(spec, pool.threads(), isa));
  args.c = products.data();
  run(spec, args, pool, scratch.scratch(), isa);
  gateProducts(products.data(), args.m, n, dtype, gate, behind.data(), pool, isa);
  spec.gate = gate;
  args.c = beside.data();
  run(spec, args, pool, scratch.scratch(), isa);
  EXPECT_TRUE(scratch.guardsHold());
  return {behind, beside};
}

TEST(Gated, BesideProductsOrBehindThem) {
  std::set<DType> ran;
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::BF16, DType::F32})
      // Some rows, chunks of them; parts of K; one pair of panels and several groups; all of it.
      for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{17, 33, 128},
                             {33, 1312, 256},
                             {300, 40, 128},
                             {64, 64, 1280},
                             {290, 2600, 1280},
                             {530, 70, 256}})
        for (int threads : {1, 2, 3}) {
          LinearSpec spec;
          spec.outDType = dtype;
          spec.weights = {dtype, k, n};
          if (!gatesInside(spec, m, isa)) continue;
          ran.insert(dtype);
          SCOPED_TRACE(label(isa) + " " + std::string(nameOf(dtype)) + " " + std::to_string(m) +
                       "x" + std::to_string(k) + "x" + std::to_string(n) + " threads " +
                       std::to_string(threads));
          ThreadPool pool(threads);
          const Values a = randomValues(dtype, m * k, 1);
          const Values w = randomValues(dtype, n * k, 2);
          Buffer packed(spec.weights.bytes());
          packWeights(spec.weights, w.data(), dtype, true, packed.start(), pool, isa);
          LinearArgs args;
          args.m = m;
          args.a = a.data();
          args.weights = packed.start();
          const auto [behind, beside] =
              bothWays(spec, args, dtype, Activation::silu, isa, pool, prepareLinear, linear);
          EXPECT_EQ(behind, beside);
          EXPECT_EQ(beside.back(), 77) << "nothing is written behind";
        }
  EXPECT_THAT(ran, Contains(DType::BF16));
}

// Scales or zero points of [n, scales] as kernels read them.
Buffer laidOut(const QuantizedLinearSpec& spec, const Values& values, ThreadPool& pool,
               KernelIsa isa) {
  const PackedShape shape{spec.scaleDType, spec.weights.scales(), spec.weights.n};
  const bool several = spec.weights.scales() > 1;
  Buffer bytes(several ? shape.bytes() : size_t(shape.n) * 4);
  if (several)
    packWeights(shape, values.data(), spec.scaleDType, true, bytes.start(), pool, isa);
  else
    std::memcpy(bytes.start(), values.data(), size_t(shape.n) * 4);
  return bytes;
}

TEST(Gated, BesideProductsOfQuantizedWeights) {
  int ran = 0;
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (bool blocks : {false, true})
        for (bool bytes : {false, true})
          for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{33, 1312, 256},
                                 {300, 64, 128},
                                 {40, 96, 1280},
                                 {290, 2600, 1280}}) {
            QuantizedLinearSpec spec;
            spec.dtype = DType::BF16;
            spec.weights = {weights, k, n, blocks ? 32 : k};
            spec.scaleDType = blocks ? DType::BF16 : DType::F32;
            spec.hasZero = blocks != (weights == DType::I8);
            spec.quantizesX = bytes;
            if (!gatesInside(spec, m, isa)) continue;
            ++ran;
            SCOPED_TRACE(label(isa) + " " + std::string(nameOf(weights)) +
                         (bytes ? " rows " : " ") + std::to_string(m) + "x" + std::to_string(k) +
                         "x" + std::to_string(n));
            ThreadPool pool(2);
            const Values a = randomValues(DType::BF16, m * k, 1);
            const int64_t scales = spec.weights.scales();
            const Values scale = randomValues(spec.scaleDType, n * scales, 2);
            const Values zero = integerValues(spec.scaleDType, n * scales, 3);
            std::vector<uint8_t> q(size_t(n * k));
            for (size_t i = 0; i < q.size(); ++i) q[i] = uint8_t(i * 37 % 251);
            Buffer packed(spec.weights.bytes());
            packQuantized(spec.weights, q.data(), packed.start(), pool);
            Buffer scaleBytes = laidOut(spec, scale, pool, isa),
                   zeroBytes = laidOut(spec, zero, pool, isa);
            QuantizedLinearArgs args;
            args.m = m;
            args.a = a.data();
            args.weights = packed.start();
            args.scale = scaleBytes.start();
            args.zero = zeroBytes.start();
            const auto [behind, beside] = bothWays(spec, args, DType::BF16, Activation::gelu, isa,
                                                   pool, prepareQuantizedLinear, quantizedLinear);
            EXPECT_EQ(behind, beside);
            EXPECT_EQ(beside.back(), 77);
          }
  EXPECT_GT(ran, 0);
}

TEST(Gated, GatesOfEveryLength) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 2}, {3, 62}, {2, 66}, {5, 8200}}) {
        SCOPED_TRACE(label(isa) + " " + std::string(nameOf(dtype)) + " " + std::to_string(n));
        ThreadPool pool(2);
        const Values p = randomValues(dtype, m * n, 3);
        const int64_t half = n / 2;
        std::vector<float> wide(size_t(m * half + 1), 7);
        std::vector<uint16_t> narrow(size_t(m * half + 1), 7);
        const bool bf16 = dtype == DType::BF16;
        gateProducts(p.data(), m, n, dtype, Activation::silu,
                     bf16 ? static_cast<void*>(narrow.data()) : wide.data(), pool, isa);
        for (int64_t i = 0; i < m * half; ++i) {
          const double g = p.exact[size_t(i / half * n + i % half)];
          const double u = p.exact[size_t(i / half * n + half + i % half)];
          const double expected = g / (1 + std::exp(-g)) * u;
          const double got = bf16 ? bf16ToFloat(narrow[size_t(i)]) : wide[size_t(i)];
          ASSERT_NEAR(got, expected, (bf16 ? 0x1p-8 : 2e-6) * std::abs(expected) + 1e-9) << i;
        }
        EXPECT_EQ(wide.back(), 7);
        EXPECT_EQ(narrow.back(), 7);
      }
}

TEST(Gated, WhatHasNoPairsIsRefused) {
  const KernelIsa amx{Isa::Amx, true};
  LinearSpec spec;
  spec.outDType = DType::BF16;
  spec.weights = {DType::BF16, 64, 256};
  EXPECT_TRUE(gatesInside(spec, 17, amx));
  EXPECT_FALSE(gatesInside(spec, 16, amx)) << "one row of tiles";
  EXPECT_TRUE(gatesInside(spec, 17, KernelIsa{Isa::Avx512}));
  EXPECT_FALSE(gatesInside(spec, 4, KernelIsa{Isa::Avx512})) << "few rows";
  EXPECT_FALSE(gatesInside(spec, 17, KernelIsa{Isa::Avx512, true})) << "oneDNN's products";
  LinearSpec odd = spec, wide = spec;
  odd.weights.n = 192;
  wide.outDType = DType::F32;
  EXPECT_FALSE(gatesInside(odd, 17, amx));
  EXPECT_FALSE(gatesInside(wide, 17, amx));
  ThreadPool pool(1);
  odd.gate = Activation::silu;
  Buffer scratch(prepareLinear(odd, 1, KernelIsa::of(Isa::Avx2)));
  LinearArgs args;
  args.m = 17;
  EXPECT_THROW(linear(odd, args, pool, scratch.scratch(), KernelIsa::of(Isa::Avx2)), Error);
}

// What `call` says when it refuses.
std::string refusalOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    return e.what();
  }
  return "taken";
}

// A gated layer leaves no place for them: nothing may be ignored.
TEST(Gated, WhatWouldBeIgnoredIsRefused) {
  const KernelIsa amx{Isa::Amx, true};
  ThreadPool pool(1);
  const char byte = 0;
  LinearSpec spec;
  spec.outDType = DType::BF16;
  spec.weights = {DType::BF16, 64, 256};
  spec.gate = Activation::silu;
  LinearArgs args;
  args.m = 17;
  auto refusal = [&] { return refusalOf([&] { linear(spec, args, pool, {}, amx); }); };
  EXPECT_THAT(refusal(), HasSubstr("ask prepareLinear")) << "the scratch alone is missing";
  spec.activation = Activation::relu;
  EXPECT_THAT(refusal(), HasSubstr("got relu"));
  spec.activation = Activation::none;
  args.residual = &byte;
  EXPECT_THAT(refusal(), HasSubstr("got a residual"));
  args.residual = nullptr;
  spec.hasBias = true;
  EXPECT_THAT(refusal(), HasSubstr("ask gatesInside"));
}

TEST(Gated, WhatQuantizedLayersWouldIgnoreIsRefused) {
  const KernelIsa amx{Isa::Amx, true};
  ThreadPool pool(1);
  const char byte = 0;
  QuantizedLinearSpec spec;
  spec.dtype = DType::BF16;
  spec.weights = {DType::I8, 64, 256, 64};
  spec.gate = Activation::silu;
  Buffer scratch(prepareQuantizedLinear(spec, 1, amx));
  QuantizedLinearArgs args;
  args.m = 17;
  auto refusal = [&] {
    return refusalOf([&] { quantizedLinear(spec, args, pool, scratch.scratch(), amx); });
  };
  spec.activation = Activation::gelu;
  EXPECT_THAT(refusal(), HasSubstr("got gelu"));
  spec.activation = Activation::none;
  args.bias = &byte;
  EXPECT_THAT(refusal(), HasSubstr("got a bias"));
  args.bias = nullptr;
  args.residual = &byte;
  EXPECT_THAT(refusal(), HasSubstr("got a residual"));
}

}  // namespace
}  // namespace lathe::cpu
