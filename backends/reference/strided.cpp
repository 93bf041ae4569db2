// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/strided.h"

#include <algorithm>

#include "lathe/runtime/thread_pool.h"

namespace lathe::reference {
namespace {

// Loops over `sizes`, the last fastest: without dims of 1, and with neighbours joined that one
// stride walks through. At least two of them.
struct Nest {
  Shape sizes, strides;
  Nest(const Shape& shape, const Shape& by) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      if (!sizes.empty() && strides.back() == by[i] * shape[i]) {
        sizes.back() *= shape[i];
        strides.back() = by[i];
      } else {
        sizes.push_back(shape[i]);
        strides.push_back(by[i]);
      }
    }
    while (sizes.size() < 2) {
      sizes.insert(sizes.begin(), 1);
      strides.insert(strides.begin(), 0);
    }
  }
};

// Rows [begin, end) of all rows of the nest. Square tiles, as either side may be the near one.
template <class From, class To, class Convert>
void copyRows(const From* from, const Nest& nest, To* to, int64_t begin, int64_t end,
              Convert convert) {
  constexpr int64_t kTile = 32;
  const size_t outer = nest.sizes.size() - 2;
  const int64_t rows = nest.sizes[outer], columns = nest.sizes[outer + 1];
  const int64_t down = nest.strides[outer], right = nest.strides[outer + 1];
  while (begin < end) {
    const int64_t row = begin % rows, count = std::min({kTile, rows - row, end - begin});
    int64_t at = row * down, rest = begin / rows;
    for (size_t axis = outer; axis-- > 0; rest /= nest.sizes[axis])
      at += rest % nest.sizes[axis] * nest.strides[axis];
    To* out = to + begin * columns;
    for (int64_t left = 0; left < columns; left += kTile) {
      const int64_t width = std::min(kTile, columns - left);
      for (int64_t r = 0; r < count; ++r)
        for (int64_t c = left; c < left + width; ++c)
          out[r * columns + c] = convert(from[at + r * down + c * right]);
    }
    begin += count;
  }
}

template <class To, class From, class Convert>
std::shared_ptr<const std::vector<To>> copied(const From* from, const Shape& shape,
                                              const Shape& strides, Convert convert) {
  auto to = std::make_shared<std::vector<To>>(size_t(elementCount(shape)));
  if (to->empty()) return to;
  const Nest nest(shape, strides);
  const int64_t columns = nest.sizes.back(), rows = int64_t(to->size()) / columns;
  constexpr int64_t kOneThread = 1 << 18, kGrain = 32;
  if (int64_t(to->size()) < kOneThread) {
    copyRows(from, nest, to->data(), 0, rows, convert);
    return to;
  }
  ThreadPool::global().parallelFor(0, rows, kGrain, [&](int64_t begin, int64_t end, int) {
    copyRows(from, nest, to->data(), begin, end, convert);
  });
  return to;
}

}  // namespace

Shape stridesIn(const Dense& x) { return x.stored ? x.stored->strides : stridesOf(x.shape); }

Dense strided(const Dense& x, Shape shape, Shape strides, int64_t offset) {
  Dense y{x.dtype, std::move(shape), nullptr, nullptr, nullptr};
  auto same = [](auto v) { return v; };
  if (!elementCount(y.shape)) offset = 0;
  if (x.stored)
    y.stored = std::make_shared<const Stored>(
        Stored{x.stored->array, std::move(strides), x.stored->offset + offset});
  else if (x.isReal())
    y.reals = copied<double>(x.reals->data() + offset, y.shape, strides, same);
  else
    y.integers = copied<int64_t>(x.integers->data() + offset, y.shape, strides, same);
  return y;
}

Dense settled(const Dense& x) {
  if (!x.stored) return x;
  Dense y{x.dtype, x.shape, nullptr, nullptr, nullptr};
  readStored(*x.stored, [&](const auto* first, auto convert) {
    y.reals = copied<double>(first, x.shape, x.stored->strides, convert);
  });
  return y;
}

}  // namespace lathe::reference
