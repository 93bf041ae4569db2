// SPDX-License-Identifier: Apache-2.0
// The calls `attention` and `paged_attention`, whose keys and values are views of blocks and whose
// last operand is the table.
#include "backends/cpu/device/attention.h"

#include <algorithm>
#include <string>

#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/kernels/views.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// Without heads a view is [batch, tokens, depth].
AttentionStrides stridesOf(const View& v) {
  if (v.strides.size() == 3) return {v.strides[0], 0, v.strides[1]};
  return {v.strides[0], v.strides[1], v.strides[2]};
}

// An operand of integers in 32 or 64 bits, read in 64.
class Integers {
 public:
  void bind(DType dtype, int64_t count) {
    isWide_ = dtype == DType::I64;
    wide_.resize(isWide_ ? 0 : size_t(count));
  }
  const int64_t* read(const void* from) {
    if (isWide_) return static_cast<const int64_t*>(from);
    std::copy_n(static_cast<const int32_t*>(from), wide_.size(), wide_.begin());
    return wide_.data();
  }

 private:
  bool isWide_ = true;
  std::vector<int64_t> wide_;
};

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const CallInfo& info, bool paged)
      : pool_(info.pool), where_(at(info.call)), dtypes_(info.dtypes), paged_(paged) {
    const auto config = readConfig<AttentionConfig>(info.config);
    causal_ = config.causal;
    args_.dtype = info.in(0);
    args_.scale = float(config.scale);
    args_.maskedRow = config.maskedRow;
    hasMask_ = config.mask;
    if (hasMask_)
      args_.maskKind = info.in(3) == DType::Bool   ? MaskKind::Bool
                       : info.in(3) == DType::BF16 ? MaskKind::AdditiveBf16
                                                   : MaskKind::AdditiveF32;
    args_.softcap = float(config.softcap);
    args_.window = config.window;
    for (const ViewTerms& view : config.views) {
      views_.emplace_back(view);
      if (views_.back().rank() != views_[0].rank() || views_[0].rank() < 3 || views_[0].rank() > 4)
        throw info.config.error("expected views of 3 or 4 dims each");
    }
    if (views_.size() != 4) throw info.config.error("expected four views");
    if (paged_ && (views_[0].rank() != 4 || causal_ != Causal::positions))
      throw info.config.error("expected views with heads, and positions, for keys in blocks");
    args_.causal = causal_ != Causal::none;
  }

  size_t bind(const KernelShapes& s) override {
    View q = views_[0].evaluate(*s.symbols), k = views_[1].evaluate(*s.symbols),
         v = views_[2].evaluate(*s.symbols), out = views_[3].evaluate(*s.symbols);
    const bool heads = q.sizes.size() == 4;
    const size_t tokens = q.sizes.size() - 2, depth = tokens + 1;
    args_.batch = q.sizes[0];
    args_.qHeads = heads ? q.sizes[1] : 1;
    args_.kvHeads = heads ? k.sizes[1] : 1;
    args_.qLen = q.sizes[tokens];
    args_.kLen = k.sizes[tokens];
    const size_t placesOperand = hasMask_ ? 4 : 3;
    if (causal_ == Causal::positions) positions_.bind(dtypes_[placesOperand], args_.batch);
    if (paged_) {
      args_.blockKeys = args_.kLen;
      args_.tableEntries = s.shapes[placesOperand + 1][1];
      table_.bind(dtypes_[placesOperand + 1], args_.batch * args_.tableEntries);
      args_.kLen *= args_.tableEntries;
      blocks_ = k.sizes[0];
    }
    args_.headDim = q.sizes[depth];
    args_.valueDim = v.sizes[depth];
    args_.qStrides = stridesOf(q);
    args_.kStrides = stridesOf(k);
    args_.vStrides = stridesOf(v);
    args_.outStrides = stridesOf(out);
    const int64_t bytes = int64_t(sizeOf(args_.dtype));
    offsets_ = {q.offset * bytes, k.offset * bytes, v.offset * bytes};
    args_.causalOffset = causal_ == Causal::bottom_right ? args_.kLen - args_.qLen : 0;
    if (hasMask_) {
      // Aligned at the last axis of [b, h, q, k] (or [b, q, k]); a literal 1 broadcasts.
      const Shape& mask = s.shapes[3];
      int64_t stride = 1;
      args_.maskStrides = {0, 0, 0, 0};
      for (size_t i = 0; i < mask.size(); ++i) {
        size_t axis = 3 - i;
        if (!heads && axis == 1) axis = 0;
        int64_t dim = mask[mask.size() - 1 - i];
        args_.maskStrides[axis] = dim == 1 ? 0 : stride;
        stride *= dim;
      }
    }
    scratchBytes_ = attentionScratchBytes(args_, pool_.threads());
    return scratchBytes_;
  }

  void run(void* const* p, std::byte* scratch) override {
    auto operand = [&](size_t i) { return static_cast<const char*>(p[i]) + offsets_[i]; };
    args_.q = operand(0);
    args_.k = operand(1);
    args_.v = operand(2);
    size_t next = 3;
    args_.mask = hasMask_ ? p[next++] : nullptr;
    args_.positions = causal_ == Causal::positions ? positions_.read(p[next++]) : nullptr;
    if (paged_) {
      args_.table = table_.read(p[next++]);
      checkTable();
    }
    args_.out = p[next];
    attention(args_, pool_, {scratch, scratchBytes_});
  }

 private:
  void checkTable() const {
    const int64_t entries = args_.batch * args_.tableEntries;
    auto outside = [&](int64_t block) { return uint64_t(block) >= uint64_t(blocks_); };
    const int64_t* wrong = std::find_if(args_.table, args_.table + entries, outside);
    if (wrong == args_.table + entries) return;
    const int64_t at = wrong - args_.table;
    throw outsideOfBlocks(where_, *wrong, at % args_.tableEntries, at / args_.tableEntries,
                          blocks_);
  }

  ThreadPool& pool_;
  std::string where_;
  std::vector<DType> dtypes_;
  bool paged_;
  Integers positions_, table_;
  int64_t blocks_ = 0;
  Causal causal_ = Causal::none;
  bool hasMask_ = false;
  std::vector<SymbolicView> views_;   // q, k, v, result
  std::array<int64_t, 3> offsets_{};  // bytes of q, k, v
  AttentionArgs args_;
  size_t scratchBytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeAttention(const CallInfo& info) {
  return std::make_unique<AttentionKernel>(info, false);
}
std::unique_ptr<Kernel> makePagedAttention(const CallInfo& info) {
  return std::make_unique<AttentionKernel>(info, true);
}

}  // namespace lathe::cpu
