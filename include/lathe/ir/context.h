// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contexts that hold the lathe dialect, and the gate for text from outside.
#include <memory>
#include <optional>
#include <string>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class DialectRegistry;
class MLIRContext;
}  // namespace mlir

namespace lathe {

/// The dialects that any stage of a graph may hold.
void registerDialects(mlir::DialectRegistry& registry);
/// Single-threaded: a whole pipeline takes milliseconds, and rewrite numbers must be stable.
std::unique_ptr<mlir::MLIRContext> createContext();

struct PrescanLimits {
  size_t bytes = 64u << 20;
  unsigned depth = 256;
};
/// Why text must not reach MLIR's parser, which recurses per nesting level and dies on deep text
/// instead of reporting; nothing if it may.
std::optional<std::string> prescan(llvm::StringRef text, PrescanLimits limits = {});
/// Parses and verifies; throws Error (InvalidFile) with the diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(mlir::MLIRContext& context, llvm::StringRef text,
                                              llvm::StringRef name);

}  // namespace lathe
