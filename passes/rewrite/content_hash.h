// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hash of what ops say, far cheaper than their text.
#include <cstdint>
#include <utility>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"

namespace lathe {

using Hash128 = std::pair<uint64_t, uint64_t>;

/// The texts of attributes and types that were hashed already: a model has few, and mentions each
/// often. To be used in one context, and no longer than it.
using HashedTexts = llvm::DenseMap<const void*, Hash128>;

/// Equal for ops that print alike, in whatever context: names, attributes, types, regions, and
/// which operand is which result or argument. Locations do not count.
class ContentHash {
 public:
  explicit ContentHash(HashedTexts& texts) : texts_(texts) {}

  void add(mlir::Operation* op);
  void add(mlir::Attribute attribute);
  void add(mlir::Type type);
  void add(uint64_t number) { words_.push_back(number); }
  Hash128 value() const;

 private:
  template <class Printed>
  void addText(Printed printed);
  void add(mlir::Block& block);
  void add(mlir::Value defined);

  HashedTexts& texts_;
  llvm::SmallVector<uint64_t, 256> words_;
  llvm::DenseMap<mlir::Value, uint64_t> values_;   // in order of appearance
  llvm::DenseMap<mlir::Block*, uint64_t> blocks_;  // the same
};

}  // namespace lathe
