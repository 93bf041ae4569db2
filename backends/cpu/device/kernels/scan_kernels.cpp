// SPDX-License-Identifier: Apache-2.0
// Kernels whose rows carry an order: running sums, the k largest, counter-based random bits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/device/kernels.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// How a stored element is read into and written from the type that it is summed and compared in.
template <class Stored, class Wide, Wide (*Load)(Stored), Stored (*Store)(Wide)>
struct Access {
  using StoredType = Stored;
  static Wide load(const void* p, int64_t i) { return Load(static_cast<const Stored*>(p)[i]); }
  static void store(void* p, int64_t i, Wide v) { static_cast<Stored*>(p)[i] = Store(v); }
};
template <class T>
T same(T v) {
  return v;
}
template <class T, class W>
W widen(T v) {
  return W(v);
}
template <class T, class W>
T narrow(W v) {
  return T(v);
}

template <class Fn>
void dispatch(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::F64:
      return fn(Access<double, double, same<double>, same<double>>());
    case DType::F32:
      return fn(Access<float, float, same<float>, same<float>>());
    case DType::BF16:
      return fn(Access<uint16_t, float, bf16ToFloat, floatToBf16>());
    case DType::F16:
      return fn(Access<uint16_t, float, f16ToFloat, floatToF16>());
    case DType::I64:
      return fn(Access<int64_t, int64_t, same<int64_t>, same<int64_t>>());
    case DType::I32:
      return fn(Access<int32_t, int64_t, widen<int32_t, int64_t>, narrow<int32_t, int64_t>>());
    case DType::I16:
      return fn(Access<int16_t, int64_t, widen<int16_t, int64_t>, narrow<int16_t, int64_t>>());
    case DType::I8:
      return fn(Access<int8_t, int64_t, widen<int8_t, int64_t>, narrow<int8_t, int64_t>>());
    case DType::U8:
      return fn(Access<uint8_t, int64_t, widen<uint8_t, int64_t>, narrow<uint8_t, int64_t>>());
    case DType::Bool:
    case DType::I4:
    case DType::U4:
      break;
  }
  throw Error(
      ErrorCode::Unsupported,
      "expected elements that are ordered and have an address, got " + std::string(nameOf(dtype)));
}

class CumSumKernel final : public Kernel {
 public:
  explicit CumSumKernel(const CallInfo& info)
      : pool_(info.pool),
        dtype_(info.in(0)),
        axis_(size_t(readConfig<CumSumConfig>(info.config).axis)) {}
  size_t bind(const KernelShapes& s) override {
    outer_ = inner_ = 1;
    for (size_t i = 0; i < axis_; ++i) outer_ *= s.shapes[0][i];
    for (size_t i = axis_ + 1; i < s.shapes[0].size(); ++i) inner_ *= s.shapes[0][i];
    length_ = s.shapes[0][axis_];
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    dispatch(dtype_, [&](auto access) {
      using A = decltype(access);
      pool_.run(outer_ * inner_, [&](int64_t row, int) {
        int64_t base = row / inner_ * length_ * inner_ + row % inner_;
        decltype(A::load(p[0], 0)) sum = 0;
        for (int64_t i = 0; i < length_; ++i) {
          using Unsigned =
              std::conditional_t<std::is_integral_v<decltype(sum)>, uint64_t, decltype(sum)>;
          sum = decltype(sum)(Unsigned(sum) + Unsigned(A::load(p[0], base + i * inner_)));
          A::store(p[1], base + i * inner_, sum);
        }
      });
    });
  }

 private:
  ThreadPool& pool_;
  DType dtype_;
  size_t axis_;
  int64_t outer_ = 1, length_ = 0, inner_ = 1;
};

class TopKKernel final : public Kernel {
 public:
  explicit TopKKernel(const CallInfo& info)
      : pool_(info.pool),
        where_(at(info.call)),
        dtype_(info.in(0)),
        k_(readConfig<TopKConfig>(info.config).k) {}
  size_t bind(const KernelShapes& s) override {
    columns_ = s.shapes[0].back();
    rows_ = elementCount(std::span(s.shapes[0]).first(s.shapes[0].size() - 1));
    if (k_ > columns_)
      throw Error(ErrorCode::InvalidArgument,
                  where_ + "expected at least k = " + std::to_string(k_) + " elements along axis " +
                      std::to_string(s.shapes[0].size() - 1) + ", got size " +
                      std::to_string(columns_));
    return size_t(columns_) * sizeof(int64_t) * size_t(pool_.threads());
  }
  void run(void* const* p, std::byte* scratch) override {
    auto* orders = reinterpret_cast<int64_t*>(scratch);
    dispatch(dtype_, [&](auto access) {
      using A = decltype(access);
      pool_.run(rows_, [&](int64_t row, int worker) {
        int64_t *order = orders + worker * columns_, base = row * columns_;
        std::iota(order, order + columns_, int64_t(0));
        std::partial_sort(order, order + k_, order + columns_, [&](int64_t i, int64_t j) {
          auto a = A::load(p[0], base + i), b = A::load(p[0], base + j);
          bool nanA = a != a, nanB = b != b;  // NaN counts as the largest
          if (nanA != nanB) return nanA;
          return a > b || ((a == b || nanA) && i < j);
        });
        for (int64_t i = 0; i < k_; ++i) {
          A::store(p[1], row * k_ + i, A::load(p[0], base + order[i]));
          static_cast<int64_t*>(p[2])[row * k_ + i] = order[i];
        }
      });
    });
  }

 private:
  ThreadPool& pool_;
  std::string where_;
  DType dtype_;
  int64_t k_, rows_ = 1, columns_ = 0;
};

// Philox-4x32-10 (Salmon et al., SC 2011).
class RandomBitsKernel final : public Kernel {
 public:
  explicit RandomBitsKernel(const CallInfo& info) : pool_(info.pool) {}
  size_t bind(const KernelShapes& s) override {
    count_ = elementCount(s.shapes[1]);
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    uint64_t seed = *static_cast<const uint64_t*>(p[0]);
    auto* out = static_cast<uint32_t*>(p[1]);
    pool_.parallelFor(0, (count_ + 3) / 4, 1024, [&](int64_t begin, int64_t end, int) {
      for (int64_t block = begin; block < end; ++block) {
        uint32_t c[4] = {uint32_t(block), uint32_t(uint64_t(block) >> 32), 0, 0};
        uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
        for (int round = 0; round < 10; ++round) {
          uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
          uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b),
                              uint32_t(a >> 32) ^ c[3] ^ k1, uint32_t(a)};
          std::copy(next, next + 4, c);
          k0 += 0x9E3779B9u;
          k1 += 0xBB67AE85u;
        }
        for (int64_t i = 0; i < 4 && block * 4 + i < count_; ++i) out[block * 4 + i] = c[i];
      }
    });
  }

 private:
  ThreadPool& pool_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeCumSum(const CallInfo& info) {
  return std::make_unique<CumSumKernel>(info);
}
std::unique_ptr<Kernel> makeTopK(const CallInfo& info) {
  return std::make_unique<TopKKernel>(info);
}
std::unique_ptr<Kernel> makeRandomBits(const CallInfo& info) {
  return std::make_unique<RandomBitsKernel>(info);
}

}  // namespace lathe::cpu
