// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/kernel_text.h"

#include <fmt/format.h>

#include <utility>

namespace lathe::cuda {

std::string_view elementType(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return "double";
    case DType::F32:
      return "float";
    case DType::BF16:
      return "bf16";
    case DType::F16:
      return "f16";
    case DType::I64:
      return "i64";
    case DType::I32:
      return "i32";
    case DType::I16:
      return "i16";
    case DType::I8:
      return "i8";
    case DType::U8:
    case DType::Bool:
    case DType::I4:  // bytes of two
    case DType::U4:
      return "u8";
  }
  return {};
}

std::string realLiteral(double value, bool wide) {
  return wide ? fmt::format("{:a}", value) : fmt::format("{:a}f", float(value));
}

void KernelParameters::add(std::string declaration, Argument argument) {
  list_ += (list_.empty() ? "" : ", ") + std::move(declaration);
  arguments_.push_back(std::move(argument));
}

void KernelParameters::input(std::string_view type, std::string_view name, int index) {
  add(fmt::format("const {}* {}", type, name), {Argument::Kind::Buffer, index, 0});
}

void KernelParameters::output(std::string_view type, std::string_view name, int index) {
  add(fmt::format("{}* __restrict__ {}", type, name), {Argument::Kind::Buffer, index, 0});
}

void KernelParameters::scratch(std::string_view type, std::string_view name, const DimExpr& at) {
  add(fmt::format("{}* {}", type, name), {Argument::Kind::Scratch, 0, at});
}

void KernelParameters::counters(std::string_view name, int64_t count) {
  add(fmt::format("u32* {}", name), {Argument::Kind::Counters, int(count * 4), 0});
}

void KernelParameters::status(std::string_view name, IndexCheck check) {
  add(fmt::format("i64* {}", name), {Argument::Kind::Status, int(checks_.size()), 0});
  checks_.push_back(std::move(check));
}

std::string KernelParameters::size(std::string_view name, const DimExpr& value) {
  if (auto constant = value.asConstant()) return fmt::format("{}ll", *constant);
  auto [entry, isNew] = sizes_.try_emplace(value.text(), name);
  if (isNew) add(fmt::format("i64 {}", name), {Argument::Kind::Size, 0, value});
  return entry->second;
}

std::string launchBounds(int threads, int blocks) {
  return fmt::format("__launch_bounds__({}, {})", threads, blocks);
}

std::string kernelFunction(std::string_view name, int threads, const KernelParameters& parameters,
                           std::string_view body, int blocks) {
  return fmt::format("extern \"C\" __global__ void {}\n{}({}) {{\n{}}}\n",
                     launchBounds(threads, blocks), name, parameters.list(), body);
}

}  // namespace lathe::cuda
