// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/content_hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe {

static Hash128 hashOf(llvm::ArrayRef<uint8_t> bytes) {
  const auto hash = llvm::xxh3_128bits(bytes);
  return {hash.high64, hash.low64};
}

// Things are told apart by the order in which they appear.
template <class Thing>
static uint64_t numberOf(llvm::DenseMap<Thing, uint64_t>& numbers, Thing thing) {
  return numbers.try_emplace(thing, numbers.size()).first->second;
}

template <class Printed>
void ContentHash::addText(Printed printed) {
  auto [known, isNew] = texts_.try_emplace(printed.getAsOpaquePointer());
  if (isNew) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printed.print(os);
    known->second = hashOf(llvm::arrayRefFromStringRef(text));
  }
  words_.append({known->second.first, known->second.second});
}
void ContentHash::add(Attribute attribute) { addText(attribute); }
void ContentHash::add(Type type) { addText(type); }

// A value may be read before it is defined, from another block.
void ContentHash::add(Value defined) {
  add(numberOf(values_, defined));
  add(defined.getType());
}

// Each list is led by its length: no two ops give the same words.
void ContentHash::add(Operation* op) {
  add(Attribute(op->getName().getIdentifier()));
  add(Attribute(op->getAttrDictionary()));
  add(op->getNumOperands());
  for (Value v : op->getOperands()) add(numberOf(values_, v));
  add(op->getNumResults());
  for (Value v : op->getResults()) add(v);
  add(op->getNumSuccessors());
  for (Block* block : op->getSuccessors()) add(numberOf(blocks_, block));
  add(op->getNumRegions());
  for (Region& region : op->getRegions()) {
    add(region.getBlocks().size());
    for (Block& block : region) add(block);
  }
}

void ContentHash::add(Block& block) {
  add(numberOf(blocks_, &block));
  add(block.getNumArguments());
  for (BlockArgument argument : block.getArguments()) add(argument);
  add(block.getOperations().size());
  for (Operation& op : block) add(&op);
}

Hash128 ContentHash::value() const {
  return hashOf({reinterpret_cast<const uint8_t*>(words_.data()), words_.size_in_bytes()});
}

}  // namespace lathe
