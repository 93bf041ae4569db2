// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pattern is made of, for the matcher and for readers of pattern files.
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "lathe/runtime/dtype.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace lathe {

/// One node of a pattern's DAG. A tensor handle of the pattern is an index into the nodes.
struct PatternNode {
  enum class Kind { Any, Constant, Op, Result, AnyOf, Optional };
  struct Condition {
    std::string text;  ///< says what is wanted: "a weight"
    std::function<bool(mlir::Value)> holds;
    bool ofType = false;  ///< asks about the type alone: a miss shows it
  };
  Kind kind = Kind::Any;
  std::string op;  ///< Op: "lathe.mul"
  bool commutative = false;
  bool oneUse = false;
  bool mayEscape = false;  ///< users outside the match are allowed
  /// AnyOf: alternatives; Optional: {op, otherwise}; Result: {op}; Constant of a replacement: whose
  /// dtype it has
  std::vector<std::optional<size_t>> operands;
  unsigned result = 0;  ///< Result: which one of the op
  std::vector<mlir::NamedAttribute> attributes;
  std::vector<std::string> free;         ///< attributes that may have any value
  std::function<bool(double)> constant;  ///< Constant: what the splat's value must satisfy
  std::optional<double> exact;           ///< Constant: the value, within `tolerance`
  double tolerance = 0;
  std::vector<Condition> conditions;
  std::optional<DType> dtype;  ///< the one that a condition asks for
  std::string text;            ///< says what `constant` wants
  std::source_location at;
  std::string place;  ///< of a pattern read from a file, instead of `at`: "gate.pdll:5"
};

}  // namespace lathe
