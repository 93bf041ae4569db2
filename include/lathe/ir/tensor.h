// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor: a value of a graph under construction. A cheap handle; copies name the same value.
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/dim_expr.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"

namespace lathe {

/// A size: a number, a symbol declared with Graph::dim, or a polynomial of both.
using Dim = DimExpr;
using Dims = std::vector<Dim>;

class Recorder;
/// What handles share with the recorder that they belong to: null once it is gone. Handles follow a
/// graph that is moved, and say so when it was destroyed or overwritten.
struct RecorderLink {
  Recorder* recorder;
};
/// The caller's line, as the last parameter of everything that records.
#define LATHE_AT std::source_location at = std::source_location::current()

/// A symbolic value. Made by Graph::input, Graph::weight and the functions of lathe/ir/ops.h.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Recorder* recorder, size_t id);

  bool defined() const { return link_ != nullptr; }
  /// These throw Error for an empty handle and for one whose graph is gone.
  DType dtype(LATHE_AT) const;
  int64_t rank(LATHE_AT) const;
  /// Size of an axis; negative axes count from the back. Throws Error outside the rank.
  Dim dim(int64_t axis, LATHE_AT) const;
  Dims shape(LATHE_AT) const;

  /// Null for an empty handle. Throws Error where the graph was destroyed or overwritten.
  Recorder* recorder(LATHE_AT) const;
  size_t id() const { return id_; }

 private:
  Recorder* expectLive(const char* what, std::source_location at) const;
  std::shared_ptr<RecorderLink> link_;
  size_t id_ = 0;
};

/// A keyword of one of the dialect's enumerations, for example {"causal", "top_left"}. A value of
/// the C++ enumeration converts to it; one that is none of them becomes its number, which errors
/// show.
struct Keyword {
  Keyword(std::string_view enumeration, std::string value)
      : enumeration(enumeration), value(std::move(value)) {}
  template <KeywordEnum Enum>
  Keyword(Enum choice)
      : Keyword(Keywords<Enum>::enumeration, isKeyword(choice) ? std::string(nameOf(choice))
                                                               : std::to_string(uint32_t(choice))) {
  }
  std::string_view enumeration;
  std::string value;
};
using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, Dims,
                               DType, Keyword, Array>;
struct NamedAttr {
  std::string_view name;
  AttrValue value;
};

/// Where recorded ops go. Models become IR (GraphRecorder); fusion patterns become a small DAG.
class Recorder {
 public:
  Recorder();
  virtual ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  const std::shared_ptr<RecorderLink>& link() const { return link_; }

  /// Records one op and returns its first result; further results have the ids that follow.
  /// Throws Error at `at` if the op's constraints do not hold.
  virtual Tensor emit(std::string_view op, const std::vector<Tensor>& operands,
                      const std::vector<NamedAttr>& attributes, std::source_location at) = 0;
  virtual DType dtypeOf(size_t id) const = 0;
  virtual Dims shapeOf(size_t id) const = 0;
  /// Throws Error at `at` for an id that no value has.
  virtual void expectValue(size_t id, std::source_location at) const = 0;
  /// A scalar of the dtype of value `like`: the number in `x * 0.5`. Throws Error at `at` for one
  /// that the dtype cannot hold: a fraction, NaN or too large a number for integers.
  virtual Tensor scalar(double value, size_t like, std::source_location at);
  /// An axis of value `id` that may count from the back, as the op's attribute stores it.
  virtual int64_t axisFromFront(size_t id, int64_t axis) const;

  /// Ops recorded while a scope is open carry its path, and the line of the outermost call.
  virtual void pushScope(std::string_view path, std::source_location at) = 0;
  virtual void popScope() = 0;
  /// The number of a value's axes; nothing where it is unknown, as in a pattern.
  virtual std::optional<int64_t> rankOf(size_t id) const { return int64_t(shapeOf(id).size()); }

 private:
  std::shared_ptr<RecorderLink> link_;
};

/// Opens a module's scope for the current block: `blocks.3.attn`.
class Scope {
 public:
  /// Throws Error at `at` for a null recorder.
  Scope(Recorder* recorder, std::string_view path, std::source_location at);
  ~Scope() {
    if (link_->recorder) link_->recorder->popScope();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::shared_ptr<RecorderLink> link_;
};

}  // namespace lathe
