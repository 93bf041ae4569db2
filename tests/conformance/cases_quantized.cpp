// SPDX-License-Identifier: Apache-2.0
// Integers in few bits. Operands are small whole numbers and scales halves, so that no quotient is
// near a tie in one width of floats alone.
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

// 0.5, 1, 1.5 or 2, from integers in [0, 4).
Tensor scaleOf(const Tensor& steps, DType dtype) { return cast(steps, dtype) * 0.5 + 0.5; }
Tensor narrowed(const Tensor& bytes, DType dtype) {
  return isPacked(dtype) ? cast(bytes, dtype) : bytes;
}
DType byteOf(DType dtype) {
  return dtype == DType::U4 || dtype == DType::U8 ? DType::U8 : DType::I8;
}
Tensor widened(const Tensor& q) { return isPacked(q.dtype()) ? cast(q, byteOf(q.dtype())) : q; }

constexpr DType kNarrow[] = {DType::I8, DType::U8, DType::I4, DType::U4};

Samples quantizeSamples(DType d) {
  Samples samples;
  for (DType to : kNarrow) {
    const std::string name(nameOf(to));
    auto sample = [&](const std::string& kind, Dims x, Dims scales, int64_t axis, int64_t block,
                      bool zero) {
      std::vector<Input> inputs{{d, x, Fill::Integers}, {DType::I64, scales, Fill::Index, 4}};
      if (zero) inputs.push_back({DType::U8, scales, Fill::Index, 9});
      samples.push_back({name + kind, inputs, one([=](Ts t) {
                           const Tensor none, scale = scaleOf(t[1], DType::F32);
                           return widened(
                               quantize(t[0], scale, zero ? t[2] : none, axis, block, to));
                         }),
                         true});
    };
    sample("_rows", {rows(), 33}, {rows(), 1}, 1, 33, false);
    sample("_blocks", {7, 64}, {7, 2}, -1, 32, false);
    sample("_ragged_zero", {7, 33}, {7, 5}, 1, 8, true);
    sample("_columns_zero", {9, cols()}, {3, cols()}, 0, 4, true);
  }
  return samples;
}

Samples dequantizeSamples(DType d) {
  Samples samples;
  for (DType from : kNarrow) {
    const std::string name(nameOf(from));
    auto sample = [&](const std::string& kind, Dims q, Dims scales, int64_t axis, int64_t block,
                      bool zero) {
      std::vector<Input> inputs{{byteOf(from), q, Fill::Index, 8, true},
                                {DType::I64, scales, Fill::Index, 4}};
      if (zero) inputs.push_back({DType::U8, scales, Fill::Index, 9});
      samples.push_back({name + kind, inputs, one([=](Ts t) {
                           const Tensor none, scale = scaleOf(t[1], d);
                           return dequantize(narrowed(t[0], from), scale, zero ? t[2] : none, axis,
                                             block, d);
                         }),
                         true});
    };
    sample("_rows", {11, 33}, {11, 1}, 1, 33, false);
    sample("_blocks", {7, 64}, {7, 2}, -1, 32, false);
    sample("_ragged_zero", {7, 33}, {7, 5}, 1, 8, true);
    sample("_columns_zero", {9, 5}, {3, 5}, 0, 4, true);
  }
  return samples;
}

Samples quantizedLinearSamples(DType d) {
  Samples samples;
  for (DType from : kNarrow)
    for (int64_t block : {33, 16}) {
      const bool zero = byteOf(from) == DType::U8;
      const int64_t scales = block == 33 ? 1 : 3;
      const DType scaleType = block == 33 ? DType::F32 : DType::BF16;
      std::vector<Input> inputs{{d, {2, rows(), 33}, Fill::Integers},
                                {byteOf(from), {31, 33}, Fill::Index, 8, true},
                                {DType::I64, {31, scales}, Fill::Index, 4, true}};
      if (zero) inputs.push_back({DType::U8, {31, scales}, Fill::Index, 9, true});
      std::vector<Input> more = inputs;
      more.push_back({d, {31}, Fill::Integers, 0, true});
      more.push_back({d, {2, rows(), 31}, Fill::Integers});
      auto record = [=](bool hasMore) {
        return one([=](Ts t) {
          fused::QuantizedLinearOptions options;
          if (zero) options.zero = t[3];
          if (hasMore) {
            options.bias = t[t.size() - 2];
            options.residual = t.back();
          }
          return fused::quantizedLinear(t[0], narrowed(t[1], from), scaleOf(t[2], scaleType), block,
                                        options);
        });
      };
      auto recordRounded = [=](Ts t) {
        fused::QuantizedLinearOptions options{.quantizesX = true};
        if (zero) options.zero = t[3];
        return fused::quantizedLinear(t[0], narrowed(t[1], from), scaleOf(t[2], scaleType), block,
                                      options);
      };
      const std::string name = std::string(nameOf(from)) + "_block" + std::to_string(block);
      samples.push_back({name, inputs, record(false), true});
      samples.push_back({name + "_bias_residual", more, record(true), true});
      // Products with small u8 cancel against what lies between them and the middle of their range;
      // cpu_quantized_test bounds those by their magnitude.
      if (from == DType::U8) continue;
      inputs[0].fill = Fill::Normal;
      samples.push_back({name + "_fractions", inputs, record(false)});
      samples.push_back({name + "_rounded_rows", inputs, one(recordRounded)});
    }
  samples.push_back({"computed_weight",
                     {{d, {rows(), 33}},
                      {DType::I8, {31, 33}, Fill::Integers},
                      {DType::I64, {31, 1}, Fill::Index, 4}},
                     one([](Ts t) {
                       return fused::quantizedLinear(t[0], t[1], scaleOf(t[2], DType::F32), 33,
                                                     {.activation = Activation::silu});
                     })});
  return samples;
}

}  // namespace

void addQuantized(Rows& table) {
  table.push_back({"lathe.quantize", true, floats(), quantizeSamples, /*isFound=*/false});
  table.push_back({"lathe.dequantize", true, floats(), dequantizeSamples, false});
  table.push_back({"lathe.quantized_linear", true, floats(), quantizedLinearSamples, false});
}

}  // namespace lathe::conformance
