// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/golden.h"

namespace lathe::cuda::golden {
namespace {

// Inputs are functions of the index alone: the finalizer of MurmurHash3 (Appleby), with other
// constants.
uint32_t mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

// Floats with biased exponents in [low, low + count).
Words floats(uint32_t salt, size_t size, uint32_t low, uint32_t count) {
  Words words(size);
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t u = mix(i * 2654435761u + salt), e = mix(u ^ 0x51ed270bu) % count;
    words[i] = (u & 0x807fffffu) | (low + e) << 23;
  }
  return words;
}

// Every other word any bits at all: NaN, infinities, denormals.
Words anyFloats(uint32_t salt, size_t size) {
  Words words = floats(salt, size, 111, 24);
  for (uint32_t i = 0; i < size; i += 2) words[i] = mix(i + salt * 77);
  return words;
}

// Values at, just below and just above a rounding point of the target type.
Words roundingPoints(size_t n) {
  const uint32_t bf16Lows[] = {0x8000u, 0x7fffu, 0x8001u, 0u};
  const uint32_t f16Lows[] = {0x1000u, 0x0fffu, 0x1001u, 0u};
  Words words(2 * n);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t u = mix(i + 5);
    words[i] = i << 16 | bf16Lows[mix(i) & 3];
    words[n + i] = (u & 0x807fe000u) | (100 + i % 46) << 23 | f16Lows[u >> 5 & 3];
  }
  return words;
}

std::vector<Region> rows(size_t words, Region::Type type, std::initializer_list<const char*> names,
                         double ulps = 0, double atol = 0) {
  std::vector<Region> regions;
  for (const char* name : names) regions.push_back({name, words, type, ulps, atol});
  return regions;
}

constexpr Region::Type kBits = Region::Type::Bits, kF32 = Region::Type::F32,
                       kF64 = Region::Type::F64;

Case conversions() {
  const size_t n = 65536;
  Case c{"golden_conversions", 256, 256, 1, int64_t(n), roundingPoints(n), {}};
  c.regions = rows(n, kBits, {"to_bf16", "to_f16"});
  for (Region& r : rows(n, kF32, {"to_f32(f16)", "to_f32(bf16)"})) c.regions.push_back(r);
  for (Region& r : rows(n, kBits, {"pack_bf16x2", "pack_f16x2", "convert<i32>", "convert<i8>"}))
    c.regions.push_back(r);
  return c;
}

Case exact() {
  const size_t n = 16384;
  Case c{"golden_exact", 64, 256, 1, int64_t(n), anyFloats(1, 3 * n), {}};
  c.regions = rows(n, kF32,
                   {"div", "mul, add", "fma", "sqrt", "1/sqrt", "floor", "ceil", "rint", "fmod",
                    "abs", "max_nan", "min_nan"});
  for (Region& r :
       rows(n, kBits,
            {"div f64", "mul, add f64", "fma f64", "sqrt f64", "1/sqrt f64", "floor f64",
             "ceil f64", "rint f64", "fmod f64", "abs f64", "max_nan f64", "min_nan f64"}))
    c.regions.push_back(r);
  return c;
}

// Bounds of the CUDA programming guide's tables and of the PTX manual, and one step more for the
// host's own library.
Case library() {
  const size_t n = 8192;
  Words input = floats(2, n, 111, 24), second = floats(3, n, 120, 9);
  input.insert(input.end(), second.begin(), second.end());
  Case c{"golden_library", 32, 256, 1, int64_t(n), input, {}};
  const double tiny = 0x1p-126;  // below it the fast functions give zero
  auto add = [&](std::vector<Region> more) {
    c.regions.insert(c.regions.end(), more.begin(), more.end());
  };
  add(rows(n, kF32, {"exp", "exp2", "log", "sin", "cos", "tanh", "erf"}, 3));
  add(rows(n, kF32, {"pow"}, 9));
  add(rows(n, kF32, {"fast_ex2"}, 4, tiny));
  add(rows(n, kF32, {"fast_lg2"}, 4, 0x1p-21));
  add(rows(n, kF32, {"fast_rsqrt", "fast_rcp", "fast_div"}, 4, tiny));
  add(rows(n, kF32, {"fast_tanh"}, 0x1p13));
  add(rows(n, kF32, {"fast_exp"}, 4, tiny));
  add(rows(2 * n, kF64,
           {"exp f64", "exp2 f64", "log f64", "sin f64", "cos f64", "tanh f64", "erf f64"}, 3));
  add(rows(2 * n, kF64, {"pow f64"}, 4));
  return c;
}

Case memory() {
  return {"golden_memory",
          1,
          128,
          1,
          128,
          anyFloats(4, 512),
          rows(512, kBits,
               {"global 16", "global nc 16", "global 8", "global 4", "shared 16 address",
                "shared 16 pointer", "shared 8", "shared 4"})};
}

Case shuffles() {
  Case c{"golden_shuffles", 1, 32, 1, 32, anyFloats(5, 32), {}};
  c.regions = rows(320, kBits, {"shfl u32", "shfl u8", "shfl u16", "shfl f64", "shfl uint4"});
  c.regions.push_back({"ballot", 96});
  c.manual["shfl u32"] = shufflesByManual(c.input);
  return c;
}

Case reductions() {
  Case c{"golden_reductions", 4, 256, 1, 1024, floats(6, 1024, 120, 16), {}};
  c.regions = rows(1024, kF32,
                   {"warp_sum", "warp_max", "warp_min", "warp_prod", "group_reduce<8>",
                    "group_reduce<2>", "block_sum", "block_max", "block_min", "block_prod"});
  for (Region& r :
       rows(1024, kBits,
            {"warp_sum u32", "or", "and", "argmax", "argmin", "any, all", "block_sum f64"}))
    c.regions.push_back(r);
  return c;
}

Case ldmatrix() {
  Case c{"golden_ldmatrix", 1, 32, 1, 32, Words(1), {{"ldmatrix", 12 * 32}}};
  c.manual["ldmatrix"] = ldmatrixByManual();
  return c;
}

Case mma() {
  const size_t single = 384, random = 64;
  // |a b| < 4 in 16 terms and |c| < 4: rounding of the sum to f32 in any order.
  const double atol = 17 * 4 * 0x1p-22;
  Case c{"golden_mma",
         uint32_t(single + random),
         32,
         1,
         int64_t(single + random),
         floats(7, random * 512, 125, 3),
         {}};
  for (const char* type : {"mma_bf16", "mma_f16"}) {
    const std::string name = std::string(type) + " map";
    c.regions.push_back({name, single * 128, kF32});
    c.regions.push_back({type, random * 128, kF32, 0, atol});
    c.manual[name] = mmaByManual();
  }
  return c;
}

}  // namespace

size_t Case::outputWords() const {
  size_t words = 0;
  for (const Region& r : regions) words += r.words;
  return words;
}

std::vector<Case> allCases() {
  const Case copies{
      "golden_async",
      1,
      128,
      1,
      128,
      anyFloats(8, 1024),
      rows(512, kBits,
           {"cp_async_16", "cp_async_8, cp_async_4", "cut short", "bulk_load, mbarrier"})};
  const Case barriers{"golden_barriers",
                      1,
                      128,
                      1,
                      128,
                      anyFloats(9, 128),
                      rows(128, kBits, {"named_sync", "block_sync"})};
  Case cluster{"golden_cluster",
               8,
               64,
               4,
               512,
               floats(10, 512, 120, 16),
               rows(512, kBits, {"cluster rank and size", "cluster_read"})};
  for (Region& r : rows(512, kF32, {"cluster_sum", "cluster_max"})) cluster.regions.push_back(r);
  const Case grid{"golden_grid",
                  16,
                  64,
                  1,
                  1024,
                  anyFloats(11, 1024),
                  {{"global stores", 1024}, {"counters, status", 8}, {"grid_last_block", 64}}};
  return {conversions(), exact(), library(), memory(), shuffles(), reductions(),
          ldmatrix(),    mma(),   copies,    barriers, cluster,    grid};
}

}  // namespace lathe::cuda::golden
