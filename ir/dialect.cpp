// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/dialect.h"

#include "lathe/ir/types.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "ir/dialect.cpp.inc"

#include "ir/interfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/attrs.cpp.inc"

namespace lathe {

void LatheDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/elementwise.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/reduce.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/shape.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/contraction.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/index.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/state.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/quantized.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/fused.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/collective.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/kernel.cpp.inc"
      >();
}

Operation* LatheDialect::materializeConstant(OpBuilder& b, Attribute value, Type type,
                                             Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type) return nullptr;
  return ConstantOp::create(b, loc, type, elements);
}

// #lathe.dims<batch, cache+seq, 64>: the parser reads any sum of products and keeps the canonical
// text.
Attribute DimsAttr::parse(AsmParser& p, Type) {
  SmallVector<StringAttr> dims;
  auto factor = [&](DimExpr& e) -> ParseResult {
    int64_t value;
    StringRef name;
    // parseOptionalInteger also takes a sign, which belongs to the sum: signs are read before.
    OptionalParseResult integer = p.parseOptionalInteger(value);
    if (integer.has_value()) {
      e = DimExpr(value);
      return *integer;
    }
    if (p.parseKeyword(&name)) return failure();
    e = DimExpr::symbol(std::string_view(name.data(), name.size()));
    return success();
  };
  auto furtherFactors = [&](DimExpr& product) -> ParseResult {
    while (succeeded(p.parseOptionalStar())) {
      DimExpr e;
      if (factor(e)) return failure();
      product = product * e;
    }
    return success();
  };
  auto term = [&](DimExpr& product) -> ParseResult {
    return failure(factor(product) || furtherFactors(product));
  };
  // `seq-1` is the symbol and a number with its sign. A sign before a symbol cannot be read.
  auto signedTerm = [&](DimExpr& product) -> OptionalParseResult {
    int64_t value = 0;
    SMLoc at = p.getCurrentLocation();
    OptionalParseResult integer = p.parseOptionalInteger(value);
    if (!integer.has_value()) return std::nullopt;
    if (failed(*integer) || value >= 0)
      return ParseResult(p.emitError(at,
                                     "terms of a dim are joined by '+' or, for a difference, by "
                                     "the word 'minus': <n minus m>"));
    product = DimExpr(value);
    return furtherFactors(product);
  };
  auto one = [&]() -> ParseResult {
    DimExpr sum, e;
    if (term(e)) return failure();
    sum = e;
    while (true) {
      if (succeeded(p.parseOptionalPlus())) {
        if (term(e)) return failure();
        sum = sum + e;
      } else if (succeeded(p.parseOptionalKeyword("minus"))) {
        if (term(e)) return failure();
        sum = sum - e;
      } else if (OptionalParseResult negative = signedTerm(e); negative.has_value()) {
        if (*negative) return failure();
        sum = sum + e;
      } else {
        break;
      }
    }
    dims.push_back(dimAttr(p.getContext(), sum));
    return success();
  };
  if (p.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, one)) return {};
  return DimsAttr::get(p.getContext(), dims);
}

// MLIR's parsers of attributes read a sign only before a number: differences, which may be of two
// symbols, are written with the word.
void DimsAttr::print(AsmPrinter& p) const {
  p << "<";
  llvm::interleaveComma(getDims(), p, [&](StringAttr d) {
    StringRef rest = d.getValue();
    if (rest.starts_with("-")) p << "0";
    size_t minus;
    while ((minus = rest.find('-')) != StringRef::npos) {
      p << rest.take_front(minus) << " minus ";
      rest = rest.drop_front(minus + 1);
    }
    p << rest;
  });
  p << ">";
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  if (getDims().size() != shape.size())
    return emitError() << "[C1] #lathe.dims has " << getDims().size() << " dims, the tensor "
                       << shape.size();
  for (auto [i, d] : llvm::enumerate(getDims())) {
    int64_t value = 0;
    bool number = !d.getValue().getAsInteger(10, value);
    if (number == ShapedType::isDynamic(shape[i]) || (number && value != shape[i]))
      return emitError() << "[C2] #lathe.dims says '" << d.getValue() << "' for dim " << i
                         << ", the shape says otherwise";
  }
  return success();
}

}  // namespace lathe
