// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention.h"

#include "backends/cpu/device/kernels/kernels.h"

namespace lathe::cpu {
namespace {

// Sizes and strides of one of q, k, v or the result, which lies as [b, h, s, d], [b, s, h, d] or
// without heads as [b, s, d].
struct Layout {
  int64_t heads, tokens, depth;
  AttentionStrides strides;
};
Layout layoutOf(const Shape& s, bool transposed) {
  if (s.size() == 3) return {1, s[1], s[2], {s[1] * s[2], 0, s[2]}};
  if (transposed) return {s[2], s[1], s[3], {s[1] * s[2] * s[3], s[3], s[2] * s[3]}};
  return {s[1], s[2], s[3], {s[1] * s[2] * s[3], s[2] * s[3], s[3]}};
}

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const CallInfo& info)
      : pool_(info.pool), causal_(info.config.at("causal").asString()) {
    args_.dtype = info.in(0);
    args_.scale = float(info.config.at("scale").asDouble());
    const std::string& row = info.config.at("masked_row").asString();
    args_.maskedRow = row == "nan"    ? MaskedRow::Nan
                      : row == "zero" ? MaskedRow::Zero
                                      : MaskedRow::Uniform;
    hasMask_ = info.config.at("mask").asBool();
    if (hasMask_)
      args_.maskKind = info.in(3) == DType::Bool   ? MaskKind::Bool
                       : info.in(3) == DType::BF16 ? MaskKind::AdditiveBf16
                                                   : MaskKind::AdditiveF32;
    JsonValue transposed = info.config.at("transposed");
    for (size_t i = 0; i < 4; ++i) transposed_[i] = transposed.at(i).asBool();
    args_.causal = causal_ != "none";
  }

  size_t bind(const KernelShapes& s) override {
    Layout q = layoutOf(s.shapes[0], transposed_[0]), k = layoutOf(s.shapes[1], transposed_[1]),
           v = layoutOf(s.shapes[2], transposed_[2]),
           out = layoutOf(s.shapes.back(), transposed_[3]);
    args_.batch = s.shapes[0][0];
    args_.qHeads = q.heads;
    args_.kvHeads = k.heads;
    args_.qLen = q.tokens;
    args_.kLen = k.tokens;
    args_.headDim = q.depth;
    args_.valueDim = v.depth;
    args_.qStrides = q.strides;
    args_.kStrides = k.strides;
    args_.vStrides = v.strides;
    args_.outStrides = out.strides;
    args_.causalOffset = causal_ == "bottom_right" ? args_.kLen - args_.qLen : 0;
    if (hasMask_) {
      // Aligned at the last axis of [b, h, q, k] (or [b, q, k]); a literal 1 broadcasts.
      const Shape& mask = s.shapes[3];
      bool heads = s.shapes[0].size() == 4;
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
    args_.q = p[0];
    args_.k = p[1];
    args_.v = p[2];
    size_t next = 3;
    args_.mask = hasMask_ ? p[next++] : nullptr;
    args_.positions = causal_ == "positions" ? static_cast<const int64_t*>(p[next++]) : nullptr;
    args_.out = p[next];
    attention(args_, pool_, {scratch, scratchBytes_});
  }

 private:
  ThreadPool& pool_;
  std::string causal_;
  bool hasMask_ = false, transposed_[4] = {};
  AttentionArgs args_;
  size_t scratchBytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeAttention(const CallInfo& info) {
  return std::make_unique<AttentionKernel>(info);
}

}  // namespace lathe::cpu
