// SPDX-License-Identifier: Apache-2.0
// Constants and weights, and what all families need to make and check values.
#include "backends/reference/interpreter_ops.h"
#include "backends/reference/sum_rounding.h"
#include "lathe/runtime/error.h"

using namespace mlir;

namespace lathe::reference {
namespace {

Dense constant(ConstantOp op) {
  auto type = tensorType(op.getResult());
  DType dtype = *dtypeOf(type.getElementType());
  Shape shape(type.getShape().begin(), type.getShape().end());
  if (isFloat(dtype)) {
    if (auto values = op.getValue().tryGetValues<APFloat>()) {
      std::vector<double> y;
      for (APFloat v : *values) y.push_back(v.convertToDouble());
      return makeReals(dtype, std::move(shape), std::move(y));
    }
  } else if (auto values = op.getValue().tryGetValues<APInt>()) {
    bool isUnsigned = dtype == DType::U8 || dtype == DType::Bool;
    std::vector<int64_t> y;
    for (const APInt& v : *values)
      y.push_back(isUnsigned ? int64_t(v.getZExtValue()) : v.getSExtValue());
    return makeIntegers(dtype, std::move(shape), std::move(y));
  }
  fail(op, ErrorCode::Unsupported,
       "expected a dense or sparse literal, got another elements attribute");
}

Dense weight(const Context& cx, WeightOp op) {
  std::string name = op.getName().str();
  Array array = cx.weights ? cx.weights(name) : Array();
  auto type = tensorType(op.getResult());
  if (!array.defined())
    fail(op, ErrorCode::InvalidArgument,
         "expected a weight '" + name + "' of " + shortType(type) +
             ", got none; bind it or check the name");
  const std::string what = "weight '" + name + "'";
  checkArray(what, array, type, cx.precision);
  return fromStored(array, *dtypeOf(type.getElementType()));
}

}  // namespace

Dense Context::reals(DType dtype, Shape shape, std::vector<double> values) const {
  if (precision == Precision::OwnDtype && dtype != DType::F64)
    for (double& v : values) v = roundTo(dtype, v);
  return makeReals(dtype, std::move(shape), std::move(values));
}

Dense Context::sums(DType dtype, Shape shape, std::vector<double> values, int64_t terms,
                    llvm::function_ref<std::vector<double>()> squares) const {
  if (precision == Precision::RoughSums) addRoundingOfSums(dtype, values, squares(), terms);
  return reals(dtype, std::move(shape), std::move(values));
}

Dense Context::integers(DType dtype, Shape shape, std::vector<int64_t> values) const {
  if (dtype != DType::I64)
    for (int64_t& v : values) v = wrapTo(dtype, v);
  return makeIntegers(dtype, std::move(shape), std::move(values));
}

Shape Context::sizes(Operation* op, DimsAttr dims) const {
  Shape shape;
  for (StringAttr d : dims.getDims()) {
    auto value = exprOf(d).evaluate(symbols);
    if (!value)
      fail(op, ErrorCode::InvalidArgument,
           "expected a value for every symbol of dim '" + d.str() +
               "', got none or an overflow; pass the symbols that no argument binds");
    if (*value < 0)
      fail(op, ErrorCode::InvalidArgument,
           "expected a dim of at least 0, got '" + d.str() + "' = " + std::to_string(*value));
    shape.push_back(*value);
  }
  return shape;
}

std::string sourceOf(Location loc) {
  std::string line;
  loc->walk([&](Location l) {
    auto file = dyn_cast<FileLineColLoc>(l);
    if (!file) return WalkResult::advance();
    line = file.getFilename().str() + ":" + std::to_string(file.getLine());
    return WalkResult::interrupt();
  });
  return line.empty() ? "unknown location" : line;
}

void fail(Operation* op, ErrorCode code, const std::string& message) {
  throw Error(code,
              sourceOf(op->getLoc()) + ": '" + op->getName().getStringRef().str() + "' " + message);
}

void checkArray(const std::string& what, const Array& array, RankedTensorType type,
                Precision precision) {
  DType dtype = *dtypeOf(type.getElementType());
  bool fits = array.defined() && int64_t(array.shape().size()) == type.getRank();
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = type.isDynamicDim(i) || type.getDimSize(i) == array.shape()[size_t(i)];
  bool anyFloat = precision != Precision::OwnDtype && isFloat(dtype);
  if (!fits || (anyFloat ? !isFloat(array.dtype()) : array.dtype() != dtype))
    throw Error(ErrorCode::InvalidArgument,
                what + ": expected " + shortType(type) + ", got " +
                    (array.defined() ? describe(array.dtype(), array.shape()) : "no array"));
}

Dense checkedArray(const std::string& what, const Array& array, RankedTensorType type,
                   Precision precision) {
  checkArray(what, array, type, precision);
  return fromArray(array, *dtypeOf(type.getElementType()));
}

std::optional<Dense> evalState(const Context& cx, Operation* op, Operands) {
  if (auto c = dyn_cast<ConstantOp>(op)) return constant(c);
  if (auto w = dyn_cast<WeightOp>(op)) return weight(cx, w);
  return std::nullopt;
}

}  // namespace lathe::reference
