// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/grouped_linear.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/device/matmul.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// Rows of one weight that are brought together at a time: as many repay reading it again.
constexpr int64_t kChunkRows = 256;
// Of weights that are not packed: one size, so that one primitive serves every number of rows.
constexpr int64_t kUnpackedRows = 16;
// What reading a panel of weights costs beside multiplying it, in rows.
constexpr int64_t kReadingRows = 16;
// For each of several threads: what one has not begun another takes.
constexpr int64_t kThreadShares = 4;

bool isPacked(const GroupedSpec& spec) { return spec.layout == WeightLayout::packed; }

int64_t chunkRows(const GroupedSpec& spec) { return isPacked(spec) ? kChunkRows : kUnpackedRows; }

// The panels of columns that are dealt out.
int64_t panelsOf(const GroupedSpec& spec) { return ceilDiv(spec.n, kPanelColumns); }

LinearSpec linearOf(const GroupedSpec& spec, int64_t columns, int64_t ldc) {
  LinearSpec linear;
  linear.weights = {spec.dtype, spec.k, columns};
  linear.outDType = spec.out();
  linear.ldc = ldc;
  return linear;
}

MatmulArgs matmulOf(const GroupedSpec& spec) {
  MatmulArgs args;
  const bool outIn = spec.layout == WeightLayout::out_in;
  args.dtype = spec.dtype;
  args.outDType = spec.out();
  args.m = kUnpackedRows;
  args.n = spec.n;
  args.k = spec.k;
  args.aRowStride = spec.k;
  args.bRowStride = outIn ? 1 : spec.n;
  args.bColStride = outIn ? spec.k : 1;
  args.cRowStride = spec.n;
  return args;
}

// A worker works on one thread.
ThreadPool& alone() {
  static ThreadPool one(1);
  return one;
}

// One worker's slice of the scratch: rows of A and of C, and what its products want.
struct Slice {
  Slice(const GroupedSpec& spec, size_t matmul)
      : a(alignUp64(size_t(chunkRows(spec) * spec.k) * sizeOf(spec.dtype))),
        c(alignUp64(size_t(chunkRows(spec) * spec.n) * sizeOf(spec.out()))),
        matmul(matmul) {}
  size_t bytes() const { return a + c + matmul; }
  size_t a, c, matmul;
};

// The rows of each group one behind the other: order[begin[g]..begin[g + 1]).
struct Order {
  Order(const GroupedSpec& spec, const GroupedArgs& args, void* memory)
      : begin(static_cast<int64_t*>(memory)), rows(begin + spec.groups + 1) {
    std::fill(begin, begin + spec.groups + 1, 0);
    for (int64_t r = 0; r < args.rows; ++r) ++begin[args.groupOfRow[r]];
    std::partial_sum(begin, begin + spec.groups, begin);
    begin[spec.groups] = args.rows;
    // From the ends of the groups down: in a group the rows keep their order.
    for (int64_t r = args.rows; r-- > 0;) rows[--begin[args.groupOfRow[r]]] = r;
  }
  static size_t bytes(const GroupedSpec& spec, int64_t rows) {
    return alignUp64(size_t(spec.groups + 1 + rows) * sizeof(int64_t));
  }
  int64_t count(int64_t group) const { return begin[group + 1] - begin[group]; }

  int64_t* begin;
  int64_t* rows;
};

class Worker {
 public:
  Worker(const GroupedSpec& spec, const GroupedArgs& args, const Order& order, const Slice& sizes,
         char* slice, KernelIsa isa)
      : spec_(spec),
        args_(args),
        order_(order),
        sizes_(sizes),
        slice_(slice),
        isa_(isa),
        size_(sizeOf(spec.dtype)),
        outSize_(sizeOf(spec.out())) {}

  // Panels [panel0, panel1) of all rows of a group.
  void run(int64_t group, int64_t panel0, int64_t panel1) const {
    const int64_t count = order_.count(group), chunks = ceilDiv(count, chunkRows(spec_));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t first = order_.begin[group] + count * chunk / chunks,
                    end = order_.begin[group] + count * (chunk + 1) / chunks;
      runRows(group, order_.rows + first, end - first, panel0, panel1);
    }
  }

 private:
  void runRows(int64_t group, const int64_t* rows, int64_t count, int64_t panel0,
               int64_t panel1) const {
    const int64_t column = panel0 * kPanelColumns;
    const int64_t columns = std::min(spec_.n, panel1 * kPanelColumns) - column;
    const bool direct = isPacked(spec_) && follow(rows, count);
    char* c = direct ? at(rows[0], column) : slice_ + sizes_.a;
    const Scratch scratch{slice_ + sizes_.a + sizes_.c, sizes_.matmul};
    if (isPacked(spec_)) {
      const PackedShape whole{spec_.dtype, spec_.k, spec_.n};
      LinearArgs args;
      args.m = count;
      args.a = gathered(rows, count, count);
      args.weights = static_cast<const char*>(args_.weights) + size_t(group) * whole.bytes() +
                     size_t(panel0 * whole.panelBytes());
      args.c = c;
      linear(linearOf(spec_, columns, direct ? spec_.n : columns), args, alone(), scratch, isa_);
    } else {
      MatmulArgs args = matmulOf(spec_);
      args.a = gathered(rows, count, kUnpackedRows);
      args.b = static_cast<const char*>(args_.weights) + size_t(group * spec_.k * spec_.n) * size_;
      args.c = c;
      matmul(args, alone(), scratch, isa_);
    }
    if (direct) return;
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(at(rows[i], column), c + size_t(i * columns) * outSize_,
                  size_t(columns) * outSize_);
  }

  // The rows of A, where they lie if that is one behind the other; `whole` rows, zeros behind.
  const void* gathered(const int64_t* rows, int64_t count, int64_t whole) const {
    bool lie = count == whole;
    for (int64_t i = 1; lie && i < count; ++i) lie = rowOfA(rows[i]) == rowOfA(rows[i - 1]) + 1;
    const size_t bytes = size_t(spec_.k) * size_;
    const char* a = static_cast<const char*>(args_.a);
    if (lie) return a + size_t(rowOfA(rows[0])) * bytes;
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(slice_ + size_t(i) * bytes, a + size_t(rowOfA(rows[i])) * bytes, bytes);
    std::memset(slice_ + size_t(count) * bytes, 0, size_t(whole - count) * bytes);
    return slice_;
  }

  static bool follow(const int64_t* rows, int64_t count) {
    return rows[count - 1] - rows[0] == count - 1;  // they ascend
  }
  int64_t rowOfA(int64_t row) const { return args_.rowOfA[row]; }
  char* at(int64_t row, int64_t column) const {
    return static_cast<char*>(args_.c) + size_t(row * spec_.n + column) * outSize_;
  }

  const GroupedSpec& spec_;
  const GroupedArgs& args_;
  const Order& order_;
  const Slice& sizes_;
  char* slice_;
  KernelIsa isa_;
  size_t size_, outSize_;  // of an element of A, and of C
};

}  // namespace

GroupedLinear::GroupedLinear(const GroupedSpec& spec, int threads, KernelIsa isa)
    : spec_(spec), threads_(threads), isa_(isa) {
  if (!isPacked(spec)) {
    matmulBytes_ = matmulScratchBytes(matmulOf(spec), 1, isa);
    return;
  }
  // A thread may have any number of panels, with the last, narrower one or without it.
  for (int64_t panels = 1; panels <= panelsOf(spec); ++panels)
    for (int64_t missing : {int64_t(0), panelsOf(spec) * kPanelColumns - spec.n})
      matmulBytes_ = std::max(
          matmulBytes_, prepareLinear(linearOf(spec, panels * kPanelColumns - missing, 0), 1, isa));
  matmulBytes_ = alignUp64(matmulBytes_);
}

size_t GroupedLinear::scratchBytes(int64_t rows) const {
  return Order::bytes(spec_, rows) + Slice(spec_, matmulBytes_).bytes() * size_t(threads_);
}

void GroupedLinear::run(const GroupedArgs& args, ThreadPool& pool, Scratch scratch) const {
  const GroupedSpec& spec = spec_;
  if (args.rows == 0 || spec.n == 0) return;
  const size_t needed = scratchBytes(args.rows);
  if (scratch.bytes < needed)
    throw Error(ErrorCode::InvalidArgument, "expected " + std::to_string(needed) +
                                                " bytes of scratch for a grouped layer, got " +
                                                std::to_string(scratch.bytes) +
                                                "; ask GroupedLinear::scratchBytes");
  const int64_t threads = threads_;
  const Slice sizes(spec, matmulBytes_);
  const size_t ordered = Order::bytes(spec, args.rows);
  char* base = static_cast<char*>(scratch.data);
  const Order order(spec, args, base);
  // All panels of all groups in a row, each as long as it takes, are cut into equal stretches.
  // A product that is not packed is one piece.
  const int64_t pieces = isPacked(spec) ? panelsOf(spec) : 1;
  auto costOf = [&](int64_t group) {
    const int64_t rows = order.count(group);
    return rows ? rows + kReadingRows : 0;
  };
  int64_t total = 0;
  for (int64_t g = 0; g < spec.groups; ++g) total += costOf(g) * pieces;
  const int64_t shares = threads == 1 ? 1 : threads * kThreadShares;
  pool.runDynamic(shares, [&](int64_t share, int worker) {
    const Worker mine(spec, args, order, sizes, base + ordered + size_t(worker) * sizes.bytes(),
                      isa_);
    const int64_t first = total * share / shares, end = total * (share + 1) / shares;
    int64_t at = 0;
    for (int64_t g = 0; g < spec.groups && at < end; ++g) {
      const int64_t cost = costOf(g);
      if (cost == 0) continue;
      // A piece belongs to the share that its beginning lies in.
      const int64_t piece0 = std::clamp<int64_t>(ceilDiv(first - at, cost), 0, pieces);
      const int64_t piece1 = std::clamp<int64_t>(ceilDiv(end - at, cost), 0, pieces);
      if (piece0 < piece1)
        mine.run(g, isPacked(spec) ? piece0 : 0, isPacked(spec) ? piece1 : panelsOf(spec));
      at += cost * pieces;
    }
  });
}

}  // namespace lathe::cpu
