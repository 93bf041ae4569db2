// SPDX-License-Identifier: Apache-2.0
// Part of every program of the AMX twin: the library's own dispatch must lead to it.
#include <gtest/gtest.h>

#include "backends/cpu/device/amx_tiles.h"
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/linear.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {

const bool runsOnTwin = true;

namespace {

TEST(AmxTwin, TakesThePlaceOfTheLibrarysKernels) {
  const KernelIsa isa = tiers().at(0);
  ASSERT_EQ(isa.tier, Isa::Amx);
  const int64_t before = amxTwinProducts;
  alignas(64) uint16_t a[kTileRows * 32] = {}, b[32 * 32] = {};
  alignas(64) float c[kTileRows * 32];
  amxBegin();
  attentionKernels(true, isa).product(a, 32, b, 32, 32, 32, kTileRows, false, c);
  amxEnd();
  EXPECT_EQ(amxTwinProducts - before, 4);

  ThreadPool pool(1);
  LinearSpec spec;
  spec.weights = {DType::BF16, 32, 64};
  std::vector<char> weights(spec.weights.bytes()), scratch(prepareLinear(spec, 1, isa) + 64);
  char* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  LinearArgs args;
  args.m = 32;
  args.a = a;
  args.weights = weights.data();
  std::vector<float> out(32 * 64);
  args.c = out.data();
  linear(spec, args, pool, {aligned, scratch.size() - 64}, isa);
  EXPECT_EQ(amxTwinProducts - before, 4 + 8);
}

}  // namespace
}  // namespace lathe::cpu
