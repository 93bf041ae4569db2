// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "tests/unit/cuda/matmul_cases.h"

namespace lathe::cuda {
namespace {

/// lathe.matmul of [aBatch.., m, k] and [bBatch.., k, n] (or [.., n, k]), all sizes symbols.
struct MatmulCase {
  DType dtype = DType::F32;
  std::vector<int64_t> aBatch, bBatch;
  int64_t m = 1, n = 1, k = 1;
  bool swapped = false;     ///< b lies as [n, k]
  bool areNumbers = false;  ///< the kernel knows the sizes
};

int64_t wrapped(int64_t x, DType dtype) {
  switch (dtype) {
    case DType::I32:
      return int32_t(uint32_t(x));
    case DType::I16:
      return int16_t(uint16_t(x));
    case DType::I8:
      return int8_t(uint8_t(x));
    case DType::U8:
      return uint8_t(x);
    default:
      return x;
  }
}

void expectMatmul(const MatmulCase& c, host::Mode mode, const char* options) {
  KernelSetRun::Symbols symbols;
  auto size = [&](const std::string& name, int64_t value) {
    if (c.areNumbers) return DimExpr(value);
    symbols[name] = value;
    return DimExpr::symbol(name);
  };
  MatmulKernel p;
  p.name = "matmul";
  p.dtype = c.dtype;
  p.m = size("m", c.m);
  p.n = size("n", c.n);
  p.k = size("k", c.k);
  p.transposedB = !c.swapped;
  p.constantB = false;
  DimExpr aStep = p.m * p.k, bStep = p.k * p.n;
  int64_t matrices = 1;
  const size_t rank = c.aBatch.size();
  p.batch.resize(rank);
  p.aStrides.resize(rank);
  p.bStrides.resize(rank);
  for (size_t i = rank; i-- > 0;) {
    const int64_t here = std::max(c.aBatch[i], c.bBatch[i]);
    const DimExpr named = size("d" + std::to_string(i), here);
    matrices *= here;
    p.batch[i] = named;
    if (c.aBatch[i] != 1) {
      p.aStrides[i] = aStep;
      aStep = aStep * named;
    }
    if (c.bBatch[i] != 1) {
      p.bStrides[i] = bStep;
      bStep = bStep * named;
    }
  }
  p.hooks = linearHooks(p, 2);
  auto count = [](const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  };
  const std::vector<double> a = randomValues(count(c.aBatch) * c.m * c.k, c.dtype, 1),
                            b = randomValues(count(c.bBatch) * c.k * c.n, c.dtype, 2);
  std::vector<double> want(size_t(matrices * c.m * c.n)), magnitude(want.size());
  for (int64_t at = 0; at < matrices; ++at) {
    int64_t rest = at, aAt = 0, bAt = 0, aStride = c.m * c.k, bStride = c.k * c.n;
    for (size_t i = rank; i-- > 0;) {
      const int64_t here = std::max(c.aBatch[i], c.bBatch[i]), index = rest % here;
      rest /= here;
      if (c.aBatch[i] != 1) aAt += index * aStride;
      if (c.bBatch[i] != 1) bAt += index * bStride;
      aStride *= c.aBatch[i];
      bStride *= c.bBatch[i];
    }
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0, all = 0;
        for (int64_t q = 0; q < c.k; ++q) {
          const double term = a[size_t(aAt + i * c.k + q)] *
                              b[size_t(bAt + (c.swapped ? j * c.k + q : q * c.n + j))];
          sum += term;
          all += std::abs(term);
        }
        const size_t to = size_t((at * c.m + i) * c.n + j);
        want[to] = isFloat(c.dtype) ? sum : double(wrapped(int64_t(sum), c.dtype));
        magnitude[to] = isFloat(c.dtype) ? all : 0;
      }
  }
  KernelSetRun run(kernelsOf(p), mode);
  std::vector<RunBuffer> buffers(3);
  buffers[0].bytes = encoded(a, c.dtype);
  buffers[1].bytes = encoded(b, c.dtype);
  buffers[2].bytes.resize(want.size() * sizeOf(c.dtype));
  buffers[2].isOutput = true;
  run.run(buffers, symbols, schedule(options));
  const std::vector<double> got = decoded(buffers[2].bytes, c.dtype);
  if (isFloat(c.dtype))
    expectNear(got, want, magnitude, c.dtype, run.what());
  else
    EXPECT_EQ(got, want) << nameOf(c.dtype);
}

// Sums of the narrow types leave their range and wrap around.
TEST(Matmul, EveryElementType) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                      DType::I16, DType::I8, DType::U8})
    expectMatmul({dtype, {}, {}, 33, 31, 65}, host::Mode::Fast, "fast");
}

TEST(Matmul, BatchesBroadcast) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    expectMatmul({dtype, {2, 3}, {2, 3}, 5, 7, 9}, host::Mode::Fast, "fast");
    expectMatmul({dtype, {2, 1}, {1, 3}, 17, 8, 24, true}, host::Mode::Fast, "fast");
    // One right matrix for all: one product of more rows.
    expectMatmul({dtype, {2, 3}, {1, 1}, 3, 33, 16}, host::Mode::Fast, "fast");
    expectMatmul({dtype, {1, 1}, {3, 2}, 1, 70, 40, false, true}, host::Mode::Fast, "fast");
  }
}

TEST(Matmul, NoRaces) {
  expectMatmul({DType::I32, {2}, {1}, 65, 33, 17}, host::Mode::Check,
               "check,random,seed=2,preempt=97");
  // Whether rows begin at 16 bytes is known only when it runs.
  expectMatmul({DType::F16, {2}, {2}, 33, 40, 72}, host::Mode::Check, "check,late");
  expectMatmul({DType::BF16, {2}, {2}, 20, 33, 31, true}, host::Mode::Check, "check,eager");
}

// As many as 65,535 blocks stand along the second and third axis of a grid.
TEST(Matmul, MoreTilesOfColumnsThanAnAxisOfTheGridHasBlocks) {
  for (DType dtype : {DType::BF16, DType::I8}) {
    MatmulKernel p;
    p.name = "matmul";
    p.dtype = dtype;
    p.m = DimExpr::symbol("m");
    p.n = DimExpr::symbol("n");
    p.k = 1;
    p.constantB = false;
    p.batch = {DimExpr::symbol("batch")};
    p.aStrides = {p.m};
    p.bStrides = {p.n};
    p.hooks = linearHooks(p, 2);
    const KernelSet set = kernelsOf(p);
    ASSERT_FALSE(set.variants.empty());
    for (const Variant& v : set.variants) {
      const Launch& l = v.launches.at(0);
      EXPECT_EQ(whyNotEveryGrid(l), "") << v.what;
      const KernelSetRun::Symbols symbols{{"m", 300}, {"n", int64_t{1} << 24}, {"batch", 70000}};
      const int64_t rows = (300 + l.grid[0].per - 1) / l.grid[0].per,
                    columns = (int64_t{1} << 24) / l.grid[1].per;
      EXPECT_GT(columns, kMostOnAxis);
      EXPECT_EQ(gridOf(l, [&](const DimExpr& e) { return e.evaluate(symbols).value(); }),
                (std::array<uint32_t, 3>{uint32_t(rows * columns), 1, kMostOnAxis}))
          << v.what;
    }
  }
}

// An empty sum is zero.
TEST(Matmul, NoTerms) {
  expectMatmul({DType::F32, {}, {}, 3, 5, 0}, host::Mode::Fast, "fast");
  expectMatmul({DType::BF16, {}, {}, 3, 5, 0, true, true}, host::Mode::Fast, "fast");
}

}  // namespace
}  // namespace lathe::cuda
