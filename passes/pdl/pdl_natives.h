// SPDX-License-Identifier: Apache-2.0
#pragma once
// The native constraints and rewrites that pattern files may use. A fixed list: what a file asks
// for is known to exist before anything is matched.
#include <functional>
#include <string>
#include <string_view>

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Value.h"

namespace lathe {

/// An argument: a value (an op stands for its result), or an attribute.
struct NativeArgument {
  mlir::Value value;
  mlir::Attribute attribute;
};
using NativeArguments = llvm::ArrayRef<NativeArgument>;

/// `parameters` names the arguments as PDLL declares them: "v: Value, number: Attr".
struct Native {
  std::string_view name, parameters, text;
  /// One letter per argument: 'v' for a value, 'a' for an attribute.
  std::string kinds() const;
};
struct NativeConstraint : Native {
  bool (*holds)(NativeArguments);
  bool approximates = false;  ///< says something of the whole pattern: DagPattern::approximate
};
/// Gives an attribute for an op of the replacement; null declines the match.
struct NativeRewrite : Native {
  mlir::Attribute (*make)(NativeArguments);
};

llvm::ArrayRef<NativeConstraint> nativeConstraints();
llvm::ArrayRef<NativeRewrite> nativeRewrites();

/// What an argument of this parameter is, "an integer"; nothing if the attribute is that.
std::string_view whyNoArgument(std::string_view parameter, mlir::Attribute attribute);

/// The declarations in PDLL, which `#include "lathe.pdll"` gives.
std::string pdllPrelude();

}  // namespace lathe
