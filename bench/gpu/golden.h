// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every primitive of the device header returns: kernels of golden/, their inputs, and how far
// two machines' outputs may be apart.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lathe::cuda::golden {

using Words = std::vector<uint32_t>;

/// Part of a case's output that one primitive wrote.
struct Region {
  enum class Type { Bits, F32, F64 };
  std::string name;
  size_t words = 0;
  Type type = Type::Bits;
  /// |a - b| <= atol + ulps * (one step of the type at b); NaN meets NaN, +0 meets -0.
  double ulps = 0, atol = 0;
};

/// One launch of `kernel(const u32* in, u32* out, long long n)`. The output starts as zeros.
struct Case {
  std::string kernel;
  uint32_t blocks = 1, threads = 32, cluster = 1;
  int64_t n = 0;
  Words input;
  std::vector<Region> regions;
  /// By region: what the PTX manual says, where it says it in full.
  std::map<std::string, Words> manual = {};

  size_t outputWords() const;
};

/// All of golden/*.cu.
std::vector<Case> allCases();

/// How two outputs of one region compare.
struct Difference {
  size_t words = 0;    ///< that are not the same bits
  size_t outside = 0;  ///< values that differ by more than the region allows
  double worstUlps = 0;
  std::string first;  ///< the first value outside
};
Difference compare(const Region& region, const uint32_t* got, const uint32_t* want);

/// The fragment maps of the PTX manual, as outputs of golden_ldmatrix and golden_mma (the tiles
/// with a single 1) and of the shuffles of 4-byte values.
Words ldmatrixByManual();
Words mmaByManual();
Words shufflesByManual(const Words& input);

}  // namespace lathe::cuda::golden
