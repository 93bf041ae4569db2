// SPDX-License-Identifier: Apache-2.0
#include "ir/op_complaints.h"

#include <algorithm>
#include <vector>

#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {
namespace {

struct Spelling {
  StringRef words;  // of MLIR
  DType dtype;
};
constexpr Spelling kSpellings[] = {
    {"64-bit float", DType::F64},
    {"32-bit float", DType::F32},
    {"bfloat16 type", DType::BF16},
    {"16-bit float", DType::F16},
    {"64-bit signless integer", DType::I64},
    {"32-bit signless integer", DType::I32},
    {"16-bit signless integer", DType::I16},
    {"8-bit signless integer", DType::I8},
    {"8-bit unsigned integer", DType::U8},
    {"1-bit signless integer", DType::Bool},
    {"4-bit signless integer", DType::I4},
    {"4-bit unsigned integer", DType::U4},
};
constexpr DType kNumbers[] = {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                              DType::I32, DType::I16, DType::I8,   DType::U8};

// "64-bit float or 32-bit float" as dtypes; nothing if a word is not known.
std::vector<DType> dtypesIn(StringRef words) {
  std::vector<DType> dtypes;
  SmallVector<StringRef> parts;
  words.split(parts, " or ");
  for (StringRef part : parts) {
    auto known = llvm::find_if(kSpellings, [&](const Spelling& s) { return s.words == part; });
    if (known == std::end(kSpellings)) return {};
    dtypes.push_back(known->dtype);
  }
  return dtypes;
}

std::string wordFor(const std::vector<DType>& dtypes) {
  auto areAll = [&](ArrayRef<DType> wanted) {
    return dtypes.size() == wanted.size() &&
           llvm::all_of(wanted, [&](DType d) { return llvm::is_contained(dtypes, d); });
  };
  const ArrayRef<DType> numbers(kNumbers);
  if (areAll(DType::Bool)) return "bool";
  if (areAll(numbers.take_front(4))) return "floats";
  if (areAll(numbers.drop_front(4))) return "integers";
  if (areAll(numbers)) return "numbers";
  std::string list;
  for (size_t i = 0; i < dtypes.size(); ++i)
    list += (i == 0 ? "" : i + 1 < dtypes.size() ? ", " : " or ") + std::string(nameOf(dtypes[i]));
  return list;
}

// An operand of a dtype that the op does not take; empty if that is not the complaint.
std::string ofDType(StringRef complaint, ValueRange operands) {
  unsigned index = 0;
  if (!complaint.consume_front("operand #") || complaint.consumeInteger(10, index) ||
      index >= operands.size())
    return "";
  const StringRef wanted = complaint.split("tensor of ").second.split(" values").first;
  const std::vector<DType> dtypes = dtypesIn(wanted);
  const auto type = dyn_cast<RankedTensorType>(operands[index].getType());
  const auto dtype = type ? dtypeOf(type.getElementType()) : std::nullopt;
  if (dtypes.empty() || !dtype || llvm::is_contained(dtypes, *dtype)) return "";
  return "expected " + wordFor(dtypes) + " as operand " + std::to_string(index) + ", got " +
         shortType(type) +
         (dtypes[0] == DType::Bool ? "; `x != 0` makes bools of numbers" : "; cast it first");
}

}  // namespace

std::string inPlainWords(StringRef op, const std::string& complaint, ValueRange operands) {
  StringRef text = complaint;
  const std::string quoted = "'" + op.str() + "' ";
  if (text.consume_front(quoted)) text.consume_front("op ");
  std::string plain = ofDType(text, operands);
  if (plain.empty()) plain = text.str();
  return StringRef(plain).contains(op) ? plain : op.str() + ": " + plain;
}

std::string whyNoAttribute(OperationName name, StringRef attribute) {
  const auto isIt = [&](StringAttr own) { return own.getValue() == attribute; };
  if (attribute.contains('.') || llvm::any_of(name.getAttributeNames(), isIt)) return "";
  std::string others;
  for (StringAttr own : name.getAttributeNames())
    if (own.getValue() != "operandSegmentSizes")  // how the text form is stored
      others += (others.empty() ? "" : ", ") + own.getValue().str();
  return "'" + name.getStringRef().str() + "' has no attribute '" + attribute.str() + "'; it has " +
         (others.empty() ? "none" : others);
}

}  // namespace lathe
