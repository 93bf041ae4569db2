// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/data/data_kernels.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <optional>
#include <utility>

namespace lathe::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 132 * 16;  // kernels stride over what is left

DimExpr product(const std::vector<DimExpr>& sizes, size_t from, size_t to) {
  DimExpr n = 1;
  for (size_t i = from; i < to; ++i) n = n * sizes[i];
  return n;
}

std::vector<DimExpr> denseStrides(const std::vector<DimExpr>& sizes) {
  std::vector<DimExpr> strides;
  for (size_t i = 0; i < sizes.size(); ++i) strides.push_back(product(sizes, i + 1, sizes.size()));
  return strides;
}

bool isOne(const DimExpr& e) { return e == DimExpr(1); }

// Every value of the expression is a multiple of `factor`.
bool isMultiple(const DimExpr& e, int64_t factor) {
  for (const auto& [monomial, coefficient] : e.terms())
    if (coefficient % factor != 0) return false;
  return true;
}

std::string_view wordType(int64_t bytes) {
  switch (bytes) {
    case 16:
      return "uint4";
    case 8:
      return "uint2";
    case 4:
      return "u32";
    case 2:
      return "u16";
    default:
      return "u8";
  }
}

// The largest number of elements that one word may hold where all of these are its multiples.
int64_t elementsPerWord(DType dtype, std::initializer_list<DimExpr> multiples,
                        const std::vector<DimExpr>& more = {}) {
  int64_t elements = 16 / int64_t(sizeOf(dtype));
  auto fits = [&](const DimExpr& e) { return isMultiple(e, elements); };
  for (; elements > 1; elements /= 2) {
    bool all = true;
    for (const DimExpr& e : multiples) all = all && fits(e);
    for (const DimExpr& e : more) all = all && fits(e);
    if (all) break;
  }
  return elements;
}

DimExpr inWords(const DimExpr& elements, int64_t perWord) {
  return elements.dividedBy(DimExpr(perWord)).value();
}

// A struct of parameters' values with member functions in kernel text.
class HooksPrinter {
 public:
  explicit HooksPrinter(KernelParameters& parameters) : parameters_(parameters) {}
  /// The value as text inside the member functions.
  std::string size(const std::string& name, const DimExpr& value) {
    if (value.asConstant()) return parameters_.size(name, value);
    values_ += fmt::format("{}{}", values_.empty() ? "" : ", ", parameters_.size(name, value));
    fields_ += fmt::format("  i64 {};\n", name);
    return name;
  }
  /// `LT_MEMBER i64 name(i64 i) const`: the element that the i-th of `sizes` begins at.
  void addIndex(std::string_view name, const std::vector<DimExpr>& sizes,
                const std::vector<DimExpr>& strides) {
    std::string body;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      const std::string stride = size(fmt::format("{}_stride{}", name, axis), strides[axis]);
      if (axis == 0) {
        body += fmt::format("    at += i * {};\n", stride);
        break;
      }
      const std::string extent = size(fmt::format("{}_size{}", name, axis), sizes[axis]);
      body += fmt::format("    at += i % {0} * {1};\n    i /= {0};\n", extent, stride);
    }
    members_ +=
        fmt::format("  LT_MEMBER i64 {}(i64 i) const {{\n    i64 at = 0;\n{}    return at;\n  }}\n",
                    name, body);
  }
  std::string declaration() const {
    return fmt::format("struct Hooks {{\n{}{}}};\n\n", fields_, members_);
  }
  std::string initializer() const { return fmt::format("Hooks{{{}}}", values_); }

 private:
  KernelParameters& parameters_;
  std::string fields_, members_, values_;
};

Launch flatLaunch(const std::string& name, const DimExpr& threads, const KernelParameters& p) {
  Launch launch;
  launch.kernel = name;
  launch.threads = kThreads;
  launch.grid[0] = {threads, kThreads, kMostBlocks};
  launch.waits = true;
  launch.arguments = p.arguments();
  launch.checks = p.checks();
  return launch;
}

void addKernel(KernelSet& set, std::string_view file, const std::string& name, int threads,
               const KernelParameters& p, std::string_view declarations, std::string_view body) {
  set.kernels.push_back(
      {name, fmt::format("#include \"{}\"\n\n{}{}", file, declarations,
                         kernelFunction(
                             name, threads, p,
                             fmt::format("  grid_dep_launch();\n  grid_dep_wait();\n{}", body)))});
}

KernelSet oneVariant(std::string what) {
  KernelSet set;
  set.variants.resize(1);
  set.variants[0].what = std::move(what);
  return set;
}

// Adds the launch of a flat copy of `count` words.
void addFlatCopy(KernelSet& set, const std::string& name, std::string_view word,
                 const DimExpr& count, const std::vector<DimExpr>& sizes,
                 const std::vector<DimExpr>& strides, const DimExpr& offset, int result) {
  KernelParameters p;
  p.input(word, "x", 0);
  p.output(word, "y", result);
  HooksPrinter hooks(p);
  hooks.addIndex("from", sizes, strides);
  const std::string shift = p.size("offset", offset), n = p.size("count", count);
  addKernel(set, "lathe_copy.cuh", name, kThreads, p, hooks.declaration(),
            fmt::format("  copyWords(y, x + {}, {}, {});\n", shift, n, hooks.initializer()));
  set.variants[0].launches.push_back(flatLaunch(name, count, p));
}

void addTransposedCopy(KernelSet& set, const CopyKernel& c, size_t denseAxis) {
  const size_t last = c.sizes.size() - 1;
  const std::vector<DimExpr> resultStrides = denseStrides(c.sizes);
  std::vector<DimExpr> sizes, from, to;
  for (size_t i = 0; i < last; ++i)
    if (i != denseAxis) {
      sizes.push_back(c.sizes[i]);
      from.push_back(c.strides[i]);
      to.push_back(resultStrides[i]);
    }
  KernelParameters p;
  const std::string_view word = wordType(int64_t(sizeOf(c.dtype)));
  p.input(word, "x", 0);
  p.output(word, "y", 1);
  HooksPrinter hooks(p);
  hooks.addIndex("from", sizes, from);
  hooks.addIndex("to", sizes, to);
  const DimExpr pairs = product(sizes, 0, sizes.size());
  const std::string offset = p.size("offset", c.offset), n = p.size("pairs", pairs),
                    rows = p.size("rows", c.sizes[denseAxis]),
                    columns = p.size("columns", c.sizes[last]),
                    source = p.size("sourceStride", c.strides[last]),
                    result = p.size("resultStride", resultStrides[denseAxis]);
  addKernel(set, "lathe_copy.cuh", c.name, kThreads, p, hooks.declaration(),
            fmt::format("  copyTransposed(y, x + {}, {}, {}, {}, {}, {}, {});\n", offset, n, rows,
                        columns, source, result, hooks.initializer()));
  Launch launch = flatLaunch(c.name, 1, p);
  launch.grid = {GridAxis{c.sizes[denseAxis], 32}, GridAxis{c.sizes[last], 32, kMostOnAxis},
                 GridAxis{pairs, 1, 1024}};
  set.variants[0].launches.push_back(std::move(launch));
}

}  // namespace

KernelSet copyKernels(const CopyKernel& c) {
  const size_t rank = c.sizes.size();
  KernelSet set = oneVariant("copy");
  if (rank > 1 && !isOne(c.strides[rank - 1]) && !isOne(c.sizes[rank - 1]))
    for (size_t axis = 0; axis + 1 < rank; ++axis)
      if (isOne(c.strides[axis]) && !isOne(c.sizes[axis])) {
        set.variants[0].what = "transposed copy";
        addTransposedCopy(set, c, axis);
        return set;
      }
  // Words of several elements where rows are dense and begin at their multiples.
  std::vector<DimExpr> sizes = c.sizes, strides = c.strides;
  int64_t perWord = 1;
  if (rank > 0 && isOne(strides.back())) {
    std::vector<DimExpr> others(strides.begin(), strides.end() - 1);
    perWord = elementsPerWord(c.dtype, {c.offset, sizes.back()}, others);
    sizes.back() = inWords(sizes.back(), perWord);
    for (DimExpr& stride : others) stride = inWords(stride, perWord);
    others.push_back(1);
    strides = others;
  }
  addFlatCopy(set, c.name, wordType(perWord * int64_t(sizeOf(c.dtype))), product(sizes, 0, rank),
              sizes, strides, inWords(c.offset, perWord), 1);
  return set;
}

namespace {

// What the kernels of updates know of their rows, in words.
struct UpdateWords {
  int64_t perWord;
  std::string_view word;
  DimExpr outer, row;  // lines between axis 0 and the axis; words of one row
  std::vector<DimExpr> lineSizes, lineStrides;  // of the value, in front of the axis
  DimExpr stride, offset;                       // from row to row of the value
};
UpdateWords wordsOf(const UpdateKernel& u, const DimExpr& batch) {
  std::vector<DimExpr> valueSizes = u.sizes;
  valueSizes[0] = batch;
  valueSizes[u.axis] = u.count;
  std::vector<DimExpr> strides = u.valueStrides.empty() ? denseStrides(valueSizes) : u.valueStrides;
  strides.resize(u.axis + 1);
  const DimExpr inner = product(u.sizes, u.axis + 1, u.sizes.size());
  UpdateWords w;
  w.perWord = elementsPerWord(u.dtype, {inner, u.offset}, strides);
  w.word = wordType(w.perWord * int64_t(sizeOf(u.dtype)));
  w.outer = product(u.sizes, 1, u.axis);
  w.row = inWords(inner, w.perWord);
  w.offset = inWords(u.offset, w.perWord);
  for (DimExpr& stride : strides) stride = inWords(stride, w.perWord);
  w.stride = strides.back();
  w.lineSizes.assign(valueSizes.begin(), valueSizes.begin() + int64_t(u.axis));
  w.lineStrides.assign(strides.begin(), strides.end() - 1);
  return w;
}

// The old elements first, unless they are where the new ones go.
void addOldElements(KernelSet& set, const UpdateKernel& u, int result) {
  const DimExpr all = product(u.sizes, 0, u.sizes.size());
  const int64_t copied = elementsPerWord(u.dtype, {all});
  addFlatCopy(set, u.name + "_copy", wordType(copied * int64_t(sizeOf(u.dtype))),
              inWords(all, copied), {inWords(all, copied)}, {1}, 0, result);
  set.variants[0].launches.back().unlessSame = {0, result};
}

}  // namespace

KernelSet updateKernels(const UpdateKernel& u) {
  KernelSet set = oneVariant("update");
  const UpdateWords w = wordsOf(u, u.sizes[0]);
  addOldElements(set, u, 3);
  KernelParameters p;
  p.input(w.word, "value", 1);
  p.input(elementType(u.positions), "positions", 2);
  p.output(w.word, "y", 3);
  p.status("status", {u.check, u.sizes[u.axis], u.count});
  HooksPrinter hooks(p);
  hooks.addIndex("start", w.lineSizes, w.lineStrides);
  const std::string offset = p.size("offset", w.offset), batchText = p.size("batch", u.sizes[0]),
                    outerText = p.size("outer", w.outer),
                    length = p.size("length", u.sizes[u.axis]), count = p.size("count", u.count),
                    row = p.size("rowWords", w.row), stride = p.size("stride", w.stride);
  addKernel(
      set, "lathe_update.cuh", u.name, kThreads, p, hooks.declaration(),
      fmt::format("  updateRows(y, value + {}, positions, status, {}, {}, {}, {}, {}, {}, "
                  "{});\n",
                  offset, batchText, outerText, length, count, row, stride, hooks.initializer()));
  set.variants[0].launches.push_back(flatLaunch(u.name, u.sizes[0] * w.outer * u.count * w.row, p));
  return set;
}

KernelSet pagedUpdateKernels(const PagedUpdateKernel& u) {
  KernelSet set = oneVariant("paged update");
  const UpdateWords w = wordsOf(u, u.batch);
  addOldElements(set, u, 4);
  KernelParameters p;
  p.input(w.word, "value", 1);
  p.input(elementType(u.table), "table", 2);
  p.input(elementType(u.positions), "positions", 3);
  p.output(w.word, "y", 4);
  const DimExpr length = u.sizes[u.axis];
  p.status("placeStatus", {u.check, u.entries * length, u.count, length});
  p.status("blockStatus", {u.check, u.sizes[0], 0});
  HooksPrinter hooks(p);
  hooks.addIndex("start", w.lineSizes, w.lineStrides);
  const std::string offset = p.size("offset", w.offset);
  const std::string sizes =
      fmt::format("{}, {}, {}, {}, {}, {}", p.size("batch", u.batch), p.size("outer", w.outer),
                  p.size("entries", u.entries), p.size("blocks", u.sizes[0]),
                  p.size("length", length), p.size("count", u.count));
  const std::string row = p.size("rowWords", w.row), stride = p.size("stride", w.stride);
  addKernel(set, "lathe_paged_update.cuh", u.name, kThreads, p, hooks.declaration(),
            fmt::format("  updateBlocks(y, value + {}, table, positions, placeStatus, blockStatus, "
                        "PagedSizes{{{}}}, {}, {}, {});\n",
                        offset, sizes, row, stride, hooks.initializer()));
  set.variants[0].launches.push_back(flatLaunch(u.name, u.batch * w.outer * u.count * w.row, p));
  return set;
}

KernelSet topKKernels(const TopKKernel& t) {
  const std::string_view element = elementType(t.dtype);
  KernelParameters p;
  p.input(element, "x", 0);
  p.output(element, "values", 1);
  p.output("i64", "indices", 2);
  Launch launch;
  launch.kernel = t.name;
  launch.waits = true;
  const std::optional<int64_t> columns = t.columns.asConstant();
  if (columns && *columns <= 1024 && t.k <= 32) {
    KernelSet set = oneVariant("top-k, a warp per row");
    launch.threads = 128;
    launch.grid[0] = {t.rows, 4};
    const std::string rows = p.size("rows", t.rows);
    addKernel(set, "lathe_top_k.cuh", t.name, launch.threads, p, "",
              fmt::format("  topKByWarp<{}, {}, {}>(values, indices, x, {});\n", element, *columns,
                          t.k, rows));
    launch.arguments = p.arguments();
    set.variants[0].launches.push_back(std::move(launch));
    return set;
  }
  KernelSet set = oneVariant("top-k, a block per row");
  // The row of a size that only a call knows may be too short.
  if (!columns)
    set.variants[0].when.push_back({t.columns, t.k, std::numeric_limits<int64_t>::max()});
  constexpr int64_t kEntryBytes = 16, kSharedEntries = 4096;
  const int64_t places = int64_t(std::bit_ceil(uint64_t(t.k)));
  launch.threads = 512;
  launch.grid[0] = {t.rows, 1, 132 * 2};
  std::string entries;
  if (places <= kSharedEntries) {
    launch.sharedBytes = places * kEntryBytes;
    entries = "  LATHE_DYN_SHARED(bytes);\n  TopKEntry* entries = (TopKEntry*)bytes;\n";
  } else {
    p.scratch("TopKEntry", "scratch", 0);
    entries = fmt::format("  TopKEntry* entries = scratch + blockIdx.x * {}ll;\n", places);
    set.variants[0].scratchBytes = 132 * 2 * places * kEntryBytes;
  }
  const std::string rows = p.size("rows", t.rows), row = p.size("columns", t.columns);
  addKernel(
      set, "lathe_top_k.cuh", t.name, launch.threads, p, "",
      fmt::format("{}  for (i64 row = blockIdx.x; row < {}; row += gridDim.x)\n"
                  "    topKOfRow<512>(values + row * {}, indices + row * {}, x + row * {}, {}, "
                  "{}, {}, entries);\n",
                  entries, rows, t.k, t.k, row, row, t.k, places));
  launch.arguments = p.arguments();
  set.variants[0].launches.push_back(std::move(launch));
  return set;
}

KernelSet cumSumKernels(const CumSumKernel& c) {
  const std::string_view element = elementType(c.dtype);
  KernelParameters p;
  p.input(element, "x", 0);
  p.output(element, "y", 1);
  const std::string outer = p.size("outer", c.outer), length = p.size("length", c.length);
  if (isOne(c.inner)) {
    KernelSet set = oneVariant("cumsum, a block per row");
    addKernel(set, "lathe_cumsum.cuh", c.name, kThreads, p, "",
              fmt::format("  cumsumRows<{}>(y, x, {}, {});\n", kThreads, outer, length));
    Launch launch = flatLaunch(c.name, 1, p);
    launch.grid[0] = {c.outer, 1, kMostBlocks};
    set.variants[0].launches.push_back(std::move(launch));
    return set;
  }
  KernelSet set = oneVariant("cumsum, a thread per line");
  const std::string inner = p.size("inner", c.inner);
  addKernel(set, "lathe_cumsum.cuh", c.name, kThreads, p, "",
            fmt::format("  cumsumLines(y, x, {}, {}, {});\n", outer, length, inner));
  set.variants[0].launches.push_back(flatLaunch(c.name, c.outer * c.inner, p));
  return set;
}

KernelSet randomBitsKernels(const RandomBitsKernel& r) {
  KernelSet set = oneVariant("random bits");
  KernelParameters p;
  p.input("i64", "seed", 0);
  p.output("i32", "y", 1);
  const std::string count = p.size("count", r.count);
  addKernel(set, "lathe_random.cuh", r.name, kThreads, p, "",
            fmt::format("  randomBits(y, seed, {});\n", count));
  // Four words a thread.
  Launch launch = flatLaunch(r.name, 1, p);
  launch.grid[0] = {r.count, 4 * kThreads, kMostBlocks};
  set.variants[0].launches.push_back(std::move(launch));
  return set;
}

KernelSet packedCastKernels(const PackedCastKernel& c) {
  const bool packs = isPacked(c.to);
  KernelSet set = oneVariant(packs ? "bytes to halves" : "halves to bytes");
  KernelParameters p;
  p.input("u8", "x", 0);
  p.output("u8", "y", 1);
  const std::string count = p.size("count", c.count);
  const std::string function =
      packs ? "packHalves" : fmt::format("unpackHalves<{}>", c.from == DType::I4);
  addKernel(set, "lathe_packed_cast.cuh", c.name, kThreads, p, "",
            fmt::format("  {}(y, x, {});\n", function, count));
  Launch launch = flatLaunch(c.name, 1, p);
  launch.grid[0] = {c.count, (packs ? 2 : 1) * kThreads, kMostBlocks};
  set.variants[0].launches.push_back(std::move(launch));
  return set;
}

}  // namespace lathe::cuda
