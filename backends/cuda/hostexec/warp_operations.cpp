// SPDX-License-Identifier: Apache-2.0
// Operations of a whole warp: the last lane performs them on the arguments that the other lanes
// left on their stacks.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cuda/hostexec/checks.h"
#include "lathe/runtime/dtype.h"

namespace lathe::cuda::host {
namespace {

typedef float Row __attribute__((vector_size(32)));

// C += A B on 16x8 with k = 16, one k after the other.
[[gnu::target("avx2")]] void multiply(const float (&a)[16][16], const float (&b)[16][8],
                                      float (&c)[16][8]) {
  for (int m = 0; m < 16; ++m) {
    Row sum, row;
    std::memcpy(&sum, c[m], sizeof sum);
    for (int k = 0; k < 16; ++k) {
      std::memcpy(&row, b[k], sizeof row);
      sum += a[m][k] * row;
    }
    std::memcpy(c[m], &sum, sizeof sum);
  }
}

template <bool Half>
float valueOf(u32 bits) {
  return Half ? f16ToFloat(uint16_t(bits)) : bf16ToFloat(uint16_t(bits));
}

// PTX ISA, "Matrix fragments for mma.m16n8k16": g = lane / 4, t = lane % 4.
template <bool Half>
void mma(void* const* arguments) {
  float a[16][16], b[16][8], c[16][8];
  for (int i = 0; i < 32; ++i) {
    const auto& x = *static_cast<LtMma*>(arguments[i]);
    const int g = i >> 2, t = i & 3;
    for (int e = 0; e < 4; ++e) {
      const int row = g + 8 * (e & 1), k = 2 * t + 8 * (e >> 1);
      a[row][k] = valueOf<Half>(x.a[e] & 0xffff);
      a[row][k + 1] = valueOf<Half>(x.a[e] >> 16);
      c[g + 8 * (e >> 1)][2 * t + (e & 1)] = x.c[e];
    }
    for (int e = 0; e < 2; ++e) {
      const u32 pair = e ? x.b1 : x.b0;
      b[2 * t + 8 * e][g] = valueOf<Half>(pair & 0xffff);
      b[2 * t + 8 * e + 1][g] = valueOf<Half>(pair >> 16);
    }
  }
  multiply(a, b, c);
  for (int i = 0; i < 32; ++i)
    for (int e = 0; e < 4; ++e)
      static_cast<LtMma*>(arguments[i])->c[e] = c[(i >> 2) + 8 * (e >> 1)][2 * (i & 3) + (e & 1)];
}

void ldmatrix(Executor& x, u16 warp, void* const* arguments) {
  LtFiber* me = lt_self;
  Block& block = x.blockOf(*me);
  for (int m = 0; m < static_cast<LtLdsm*>(arguments[0])->tiles; ++m) {
    u16 tile[8][8];
    u32 addresses[8];
    u32 banks[8] = {};
    for (int r = 0; r < 8; ++r) {
      const u32 address = static_cast<LtLdsm*>(arguments[m * 8 + r])->addr;
      // Checks speak of the lane that gave the row's address.
      lt_self = &x.fibers[size_t(block.first + warp * 32 + m * 8 + r)];
      const Place place{0, lt_self->file, lt_self->line};
      if (address % 16)
        x.fatal(text("ldmatrix: row address %s is not 16-byte aligned, %s at %s",
                     sharedName(x, address).chars, whoIs(*lt_self).chars, place.text(x).chars));
      checkShared(x, block, address, {16, false, place});
      std::memcpy(tile[r], block.arena + address, 16);
      // The same row is one access.
      if (std::find(addresses, addresses + r, address) == addresses + r) ++banks[address / 16 % 8];
      addresses[r] = address;
    }
    lt_self = me;
    x.bankConflicts += *std::max_element(banks, banks + 8) - 1;
    for (int i = 0; i < 32; ++i) {
      auto& lane = *static_cast<LtLdsm*>(arguments[i]);
      const int g = i >> 2, t = (i & 3) * 2;
      lane.r[m] = lane.trans ? tile[t][g] | u32(tile[t + 1][g]) << 16
                             : tile[g][t] | u32(tile[g][t + 1]) << 16;
    }
  }
}

void shuffle(void* const* arguments) {
  for (int i = 0; i < 32; ++i) {
    auto& lane = *static_cast<LtShfl*>(arguments[i]);
    std::memcpy(lane.out, static_cast<LtShfl*>(arguments[lane.from])->in, lane.bytes);
  }
}

void ballot(void* const* arguments) {
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) bits |= u32(static_cast<LtBallot*>(arguments[i])->condition) << i;
  for (int i = 0; i < 32; ++i) static_cast<LtBallot*>(arguments[i])->bits = bits;
}

void perform(Executor& x, int op, void** arguments, LtTree tree) {
  const u16 warp = lt_self->warp;
  switch (op) {
    case LT_SHFL:
      return shuffle(arguments);
    case LT_BALLOT:
      return ballot(arguments);
    case LT_WREDUCE:
      return tree(arguments, 32);
    case LT_WSYNC:
      x.orderLanes(x.warpOf(*lt_self));
      return;
    case LT_LDSM:
      return ldmatrix(x, warp, arguments);
    case LT_MMA:
      return static_cast<LtMma*>(arguments[0])->half ? mma<true>(arguments) : mma<false>(arguments);
  }
}

}  // namespace
}  // namespace lathe::cuda::host

using namespace lathe::cuda::host;

extern "C" void lt_warp(int op, void* argument, LtTree tree, const char* file, int line) {
  Executor& x = *current;
  LtFiber* me = lt_self;
  Block& b = x.blockOf(*me);
  Warp& w = b.warps[me->warp];
  x.maybeLand();
  if (w.arrived == 0) {
    w.op = u8(op);
    w.file = file;
    w.line = line;
  } else if (w.op != op || w.line != line || w.file != file) {
    x.fatal(text("divergent warp operation in warp %u: %s is at %s, lanes before it at %s",
                 me->warp, whoIs(*me).chars, placeOf(file, line).chars,
                 placeOf(w.file, w.line).chars));
  }
  w.argument[me->lane] = argument;
  me->op = u8(op);
  me->file = file;
  me->line = line;
  if (++w.arrived < 32) {
    me->state = Waiting;
    x.yield();
    return;
  }
  w.arrived = 0;
  ++x.warpOps;
  perform(x, op, w.argument, tree);
  for (int i = 31; i >= 0; --i)
    if (i != me->lane) x.wake(x.fibers[size_t(b.first + me->warp * 32 + i)]);
}
