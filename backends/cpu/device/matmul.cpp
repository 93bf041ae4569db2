// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/matmul.h"

#include <algorithm>
#include <string>

#include "backends/cpu/device/matmul_loops.h"
#include "backends/cpu/device/primitives.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// Below this many multiply-adds a primitive costs more than it saves.
constexpr int64_t kTinyWork = 2048;

// Loops: plain loops. Direct: oneDNN on the operands in place. Staged: dense f32 copies of the
// operands, for dtypes and strides that oneDNN does not take on this CPU.
enum class Path { Loops, Direct, Staged };

// Strides of dims of size 1 are free: give them the value of a dense row-major matrix.
void tidy(int64_t rows, int64_t cols, int64_t& rowStride, int64_t& colStride) {
  if (cols == 1 && rowStride != 1) colStride = 1;
  if (rows == 1 && colStride != 1) rowStride = 1;
  if (rows == 1 && colStride == 1) rowStride = std::max(rowStride, cols);
  if (cols == 1 && rowStride == 1) colStride = std::max(colStride, rows);
}

bool isPlain(int64_t rows, int64_t cols, int64_t rowStride, int64_t colStride) {
  return (colStride == 1 && rowStride >= cols) || (rowStride == 1 && colStride >= rows);
}

// How the batch items and one side of each are dealt to the pool.
struct Plan {
  MatmulArgs args;
  Path path = Path::Loops;
  int64_t items = 1;
  bool splitRows = true;
  int64_t parts = 1;  ///< of each item
  int64_t part = 0;   ///< rows or columns of a part but the last

  int64_t side() const { return splitRows ? args.m : args.n; }
};

Plan makePlan(const MatmulArgs& given, int threads, KernelIsa isa) {
  Plan plan;
  plan.args = given;
  MatmulArgs& x = plan.args;
  if (x.dtype == DType::Bool)
    throw Error(ErrorCode::Unsupported,
                "expected a matmul of numbers, got bool; cast the operands");
  if (x.outDType != x.dtype &&
      !(x.outDType == DType::F32 && (x.dtype == DType::BF16 || x.dtype == DType::F16)))
    throw Error(ErrorCode::Unsupported, "expected a matmul of " + std::string(nameOf(x.dtype)) +
                                            " to give the same dtype or f32 from a narrower " +
                                            "float, got " + std::string(nameOf(x.outDType)));
  if (x.m < 0 || x.n < 0 || x.k < 0 || x.batchDims < 0 || x.batchDims > kMaxBatchDims)
    throw Error(ErrorCode::InvalidArgument,
                "expected matmul dims of at least 0 and at most " + std::to_string(kMaxBatchDims) +
                    " batch dims, got " + std::to_string(x.m) + "x" + std::to_string(x.k) + "x" +
                    std::to_string(x.n) + " with " + std::to_string(x.batchDims));
  for (int d = 0; d < x.batchDims; ++d) plan.items *= x.batch[size_t(d)];
  if (plan.items == 0 || x.m == 0 || x.n == 0) {
    plan.items = 0;
    return plan;
  }
  tidy(x.m, x.k, x.aRowStride, x.aColStride);
  tidy(x.k, x.n, x.bRowStride, x.bColStride);
  if (x.m == 1) x.cRowStride = std::max(x.cRowStride, x.n);

  const bool floats = x.dtype == DType::F32 || x.dtype == DType::BF16 || x.dtype == DType::F16;
  if (floats && x.k > 0 && x.m * x.n * x.k >= kTinyWork) {
    const bool native = x.dtype == DType::F32 ||
                        (x.dtype == DType::BF16 && isa.arithmetic != Bf16Arithmetic::Widened);
    const bool plain = isPlain(x.m, x.k, x.aRowStride, x.aColStride) &&
                       isPlain(x.k, x.n, x.bRowStride, x.bColStride);
    plan.path = native && plain ? Path::Direct : Path::Staged;
  }
  plan.splitRows = x.m >= x.n;
  if (plan.items < threads) {
    const int64_t grain = 16, wanted = ceilDiv(threads, plan.items);
    plan.part = std::min(plan.side(), roundUp(ceilDiv(plan.side(), wanted), grain));
  } else {
    plan.part = plan.side();
  }
  plan.parts = ceilDiv(plan.side(), plan.part);
  return plan;
}

MatmulKey partKey(const Plan& plan, int64_t size) {
  const MatmulArgs& x = plan.args;
  MatmulKey key;
  key.m = plan.splitRows ? size : x.m;
  key.n = plan.splitRows ? x.n : size;
  key.k = x.k;
  if (plan.path == Path::Staged) {
    key.aRow = x.k;
    key.bRow = key.n;
    key.cRow = key.n;
    return key;
  }
  key.dtype = x.dtype;
  key.outDType = x.outDType;
  key.aRow = x.aRowStride;
  key.aCol = x.aColStride;
  key.bRow = x.bRowStride;
  key.bCol = x.bColStride;
  key.cRow = x.cRowStride;
  return key;
}

// One worker's slice: oneDNN's scratchpad, then dense A, B and C of the staged path.
struct Slice {
  size_t scratchpad = 0, a = 0, b = 0, c = 0;
  size_t bytes() const { return scratchpad + a + b + c; }
};

Slice sliceOf(const Plan& plan) {
  Slice slice;
  if (plan.items == 0 || plan.path == Path::Loops) return slice;
  for (int64_t size : {plan.part, plan.side() - plan.part * (plan.parts - 1)})
    slice.scratchpad =
        std::max(slice.scratchpad, alignUp64(matmulPrimitive(partKey(plan, size))->scratchBytes()));
  if (plan.path == Path::Staged) {
    MatmulKey key = partKey(plan, plan.part);
    slice.a = alignUp64(size_t(key.m * key.k) * 4);
    slice.b = alignUp64(size_t(key.k * key.n) * 4);
    slice.c = alignUp64(size_t(key.m * key.n) * 4);
  }
  return slice;
}

// Where a part of a batch item starts.
struct Operands {
  const char* a;
  const char* b;
  char* c;
};

Operands itemOperands(const MatmulArgs& x, int64_t item) {
  int64_t a = 0, b = 0, c = 0;
  for (int d = x.batchDims - 1; d >= 0; --d) {
    size_t at = size_t(d);
    int64_t index = item % x.batch[at];
    item /= x.batch[at];
    a += index * x.aBatchStrides[at];
    b += index * x.bBatchStrides[at];
    c += index * x.cBatchStrides[at];
  }
  const int64_t in = int64_t(sizeOf(x.dtype)), out = int64_t(sizeOf(x.outDType));
  return {static_cast<const char*>(x.a) + a * in, static_cast<const char*>(x.b) + b * in,
          static_cast<char*>(x.c) + c * out};
}

void runPart(const Plan& plan, const Slice& sizes, int64_t item, int64_t part, char* slice) {
  const MatmulArgs& x = plan.args;
  Operands at = itemOperands(x, item);
  const int64_t begin = part * plan.part, end = std::min(plan.side(), begin + plan.part);
  if (plan.path == Path::Loops) {
    if (plan.splitRows)
      matmulLoops(x, at.a, at.b, at.c, begin, end, 0, x.n);
    else
      matmulLoops(x, at.a, at.b, at.c, 0, x.m, begin, end);
    return;
  }
  const int64_t in = int64_t(sizeOf(x.dtype)), out = int64_t(sizeOf(x.outDType));
  if (plan.splitRows) {
    at.a += begin * x.aRowStride * in;
    at.c += begin * x.cRowStride * out;
  } else {
    at.b += begin * x.bColStride * in;
    at.c += begin * out;
  }
  const MatmulKey key = partKey(plan, end - begin);
  auto primitive = matmulPrimitive(key);
  if (plan.path == Path::Direct) {
    primitive->execute(at.a, at.b, at.c, slice);
    return;
  }
  float* a = reinterpret_cast<float*>(slice + sizes.scratchpad);
  float* b = reinterpret_cast<float*>(slice + sizes.scratchpad + sizes.a);
  float* c = reinterpret_cast<float*>(slice + sizes.scratchpad + sizes.a + sizes.b);
  widenBlock(x.dtype, at.a, x.aRowStride, x.aColStride, key.m, key.k, a);
  widenBlock(x.dtype, at.b, x.bRowStride, x.bColStride, key.k, key.n, b);
  primitive->execute(a, b, c, slice);
  narrowBlock(c, key.m, key.n, x.outDType, at.c, x.cRowStride);
}

}  // namespace

size_t matmulScratchBytes(const MatmulArgs& args, int threads, KernelIsa isa) {
  return sliceOf(makePlan(args, threads, isa)).bytes() * size_t(threads);
}

void matmul(const MatmulArgs& args, ThreadPool& pool, Scratch scratch, KernelIsa isa) {
  const Plan plan = makePlan(args, pool.threads(), isa);
  if (plan.items == 0) return;
  const Slice sizes = sliceOf(plan);
  const size_t needed = sizes.bytes() * size_t(pool.threads());
  if (scratch.bytes < needed)
    throw Error(ErrorCode::InvalidArgument,
                "expected " + std::to_string(needed) + " bytes of scratch for a matmul, got " +
                    std::to_string(scratch.bytes) + "; ask matmulScratchBytes");
  pool.runDynamic(plan.items * plan.parts, [&](int64_t index, int worker) {
    runPart(plan, sizes, index / plan.parts, index % plan.parts,
            static_cast<char*>(scratch.data) + size_t(worker) * sizes.bytes());
  });
}

}  // namespace lathe::cpu
