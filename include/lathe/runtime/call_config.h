// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the calls of a program tell their kernels, a struct per family of calls. `fields` is the one
// list of its names: compilers write them (lathe/backends/call_attributes.h), and devices read
// them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/dim_expr.h"
#include "lathe/runtime/enums.h"
#include "lathe/runtime/json_reader.h"

namespace lathe {

/// An operand that is read, or a result that is written, through strides: offset, size per axis,
/// stride per axis, in elements.
using ViewTerms = std::vector<DimExpr>;

/// activation(x w^T + bias) + residual
struct LinearConfig {
  Activation activation = Activation::none;
  bool bias = false, residual = false;      ///< whether they are among the operands
  std::optional<bool> constantWeight = {};  ///< the weight's values are the same in every run
  std::optional<WeightLayout> layout = {};  ///< of a weight that lies dense; else a backend's own
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("activation", self.activation);
    field("bias", self.bias);
    field("residual", self.residual);
    field("constant", self.constantWeight);
    field("layout", self.layout);
  }
};

/// y[r] = w[indices[r]] x[r]: operands x, w and the indices.
struct GroupedLinearConfig {
  WeightLayout layout = WeightLayout::out_in;
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("layout", self.layout);
  }
};

/// activation(x ((q - zero) scale)^T + bias) + residual, with packed q. Operands x, q and the
/// scale, then zero, bias and residual where there are such.
struct QuantizedLinearConfig {
  int64_t block = 1;  ///< neighbours of a row that share a scale
  Activation activation = Activation::none;
  bool zero = false, bias = false, residual = false;
  bool quantizesX = false;  ///< rows of x are rounded to 8 bits
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("block", self.block);
    field("activation", self.activation);
    field("zero", self.zero);
    field("bias", self.bias);
    field("residual", self.residual);
    field("quantizes_x", self.quantizesX);
  }
};

/// Operands q, k, v, then the mask and the positions where there are such.
struct AttentionConfig {
  double scale = 1, softcap = 0;
  int64_t window = 0;
  Causal causal = Causal::none;
  MaskedRow maskedRow = MaskedRow::nan;
  bool mask = false;
  std::vector<ViewTerms> views = {};  ///< of q, k, v and the result
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("scale", self.scale);
    field("softcap", self.softcap);
    field("window", self.window);
    field("causal", self.causal);
    field("masked_row", self.maskedRow);
    field("mask", self.mask);
    field("views", self.views);
  }
};

struct MatmulConfig {
  bool transposeB = false;  ///< b is [.., n, k]
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("transpose_b", self.transposeB);
  }
};

/// Two strides; top, bottom, left and right padding.
struct ConvolutionConfig {
  std::vector<int64_t> strides = {}, padding = {};
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("strides", self.strides);
    field("padding", self.padding);
  }
};

struct UpdateConfig {
  int64_t axis = 0;
  std::optional<ViewTerms> view = {};  ///< of the new block
  std::optional<int64_t> check = {};   ///< its number among the index checks of the op it came from
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("axis", self.axis);
    field("view", self.view);
    field("check", self.check);
  }
};

struct PackConfig {
  bool outIn = true;  ///< the weight is [n, k]
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("out_in", self.outIn);
  }
};

struct TopKConfig {
  int64_t k = 1;
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("k", self.k);
  }
};

struct CumSumConfig {
  int64_t axis = 0;
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("axis", self.axis);
  }
};

/// Calls all_reduce, reduce_scatter, all_gather, all_to_all and all_slice, which the session runs
/// itself on memory of the host.
struct CollectiveConfig {
  Combine combine = Combine::sum;  ///< of all_reduce and reduce_scatter
  int64_t axis = 0, parts = 1;     ///< of all but all_reduce: what is cut, and in how many pieces
  std::optional<int64_t> concat = {};  ///< of all_to_all: the axis along which x was a piece
  int64_t ranks = 1;
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("combine", self.combine);
    field("axis", self.axis);
    field("parts", self.parts);
    field("concat", self.concat);
    field("ranks", self.ranks);
  }
};

/// Calls send and receive, which the session runs itself, too.
struct MessageConfig {
  int64_t stage = 0;  ///< of a pipeline: to which it goes, or from which it comes
  int64_t stages = 1;
  bool result = false;  ///< it is left out of runs whose outputs nobody wants
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("stage", self.stage);
    field("stages", self.stages);
    field("result", self.result);
  }
};

// A value of each kind that a field may have. Throws Error (InvalidFile) for another one.
void readValue(const JsonValue& json, bool& value);
void readValue(const JsonValue& json, int64_t& value);
void readValue(const JsonValue& json, double& value);
void readValue(const JsonValue& json, std::vector<int64_t>& value);
void readValue(const JsonValue& json, ViewTerms& value);
void readValue(const JsonValue& json, std::vector<ViewTerms>& value);
template <KeywordEnum Enum>
void readValue(const JsonValue& json, Enum& value) {
  const std::string& name = json.asString();
  if (auto known = parseKeyword<Enum>(name)) return void(value = *known);
  throw json.error("expected one of " + choicesOf<Enum>() + ", got " + json.show());
}

/// Throws Error (InvalidFile) for a config that lacks a field, or has another kind of value there.
template <class Config>
Config readConfig(const JsonValue& json) {
  Config config;
  Config::fields(config, [&]<class T>(std::string_view name, T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (auto found = json.find(name)) readValue(*found, value.emplace());
    } else {
      readValue(json.at(name), value);
    }
  });
  return config;
}

}  // namespace lathe
