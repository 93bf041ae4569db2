// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configs of calls (lathe/runtime/call_config.h) as attributes of `lathe.kernel`.
#include "lathe/ir/attributes.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/call_config.h"
#include "mlir/IR/Builders.h"

namespace lathe {

/// Beside the config, for the plan of memory: the operand whose buffer a result takes, or one per
/// result (-1: none); and the dims of a buffer that is larger than its type says.
constexpr const char* kReuse = "reuse";
constexpr const char* kBuffer = "buffer";

using CallAttributes = llvm::SmallVector<mlir::NamedAttribute>;

// Views as lists of texts, keywords as texts: programs hold them so. All else as attributes of ops.
mlir::Attribute configAttribute(mlir::Builder& b, const ViewTerms& value);
mlir::Attribute configAttribute(mlir::Builder& b, const std::vector<ViewTerms>& value);
template <class T>
mlir::Attribute configAttribute(mlir::Builder& b, const T& value) {
  if constexpr (KeywordEnum<T>)
    return b.getStringAttr(nameOf(value));
  else
    return toAttribute(b.getContext(), AttrValue(value));
}

// False for an attribute that is null or of another kind.
bool fromAttribute(mlir::Attribute attribute, bool& value);
bool fromAttribute(mlir::Attribute attribute, int64_t& value);
bool fromAttribute(mlir::Attribute attribute, double& value);
bool fromAttribute(mlir::Attribute attribute, std::string& value);
bool fromAttribute(mlir::Attribute attribute, std::vector<int64_t>& value);
bool fromAttribute(mlir::Attribute attribute, ViewTerms& value);
bool fromAttribute(mlir::Attribute attribute, std::vector<ViewTerms>& value);
template <KeywordEnum Enum>
bool fromAttribute(mlir::Attribute attribute, Enum& value) {
  std::string name;
  auto known = fromAttribute(attribute, name) ? parseKeyword<Enum>(name) : std::nullopt;
  if (known) value = *known;
  return known.has_value();
}
[[noreturn]] void failConfig(KernelOp call, std::string_view field);

template <class Config>
CallAttributes attributesOf(mlir::Builder b, const Config& config) {
  CallAttributes attributes;
  Config::fields(config, [&]<class T>(std::string_view name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) attributes.push_back(b.getNamedAttr(name, configAttribute(b, *value)));
    } else {
      attributes.push_back(b.getNamedAttr(name, configAttribute(b, value)));
    }
  });
  return attributes;
}

/// The config that attributesOf wrote. Throws Error (Unsupported) for a call of another pass that
/// lacks a field, or has another kind of value there.
template <class Config>
Config configOf(KernelOp call) {
  Config config;
  Config::fields(config, [&]<class T>(std::string_view name, T& value) {
    mlir::Attribute attribute = call.getConfig().get(name);
    bool good;
    if constexpr (requires { value.has_value(); })
      good = !attribute || fromAttribute(attribute, value.emplace());
    else
      good = fromAttribute(attribute, value);
    if (!good) failConfig(call, name);
  });
  return config;
}

}  // namespace lathe
