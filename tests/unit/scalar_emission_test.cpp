// SPDX-License-Identifier: Apache-2.0
// What ops say of one element (ScalarOp) and of many (ReductionOp), folded by MLIR on awkward
// values, against the interpreter: no backend has a part in it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/scalar_builder.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace lathe {
namespace {

using mlir::Value;

const DType kAll[] = {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                      DType::I32, DType::I16, DType::I8,   DType::U8,  DType::Bool};

uint64_t bitsAt(const Array& a, int64_t i) {
  uint64_t bits = 0;
  const size_t size = sizeOf(a.dtype());
  std::memcpy(&bits, static_cast<const char*>(a.data()) + size_t(i) * size, size);
  return bits;
}
void setBits(Array& a, int64_t i, uint64_t bits) {
  const size_t size = sizeOf(a.dtype());
  std::memcpy(static_cast<char*>(a.data()) + size_t(i) * size, &bits, size);
}

// The ends of the type, both zeros, infinities, NaN, counts of shifts at the widths, and a number
// that f32 rounds to a tie of bf16.
Array samplesOf(DType dtype) {
  std::vector<double> reals{NAN, INFINITY, -INFINITY, 0.0,  -0.0, 1.0,  -1.0,   0.5,  -2.5,
                            3.0, 7.25,     -40.0,     60.0, 1e-3, 1e38, -1e-40, 200.0};
  std::vector<int64_t> integers{0, 1, -1, 2, -3, 7, 8, 16, 32, 63, 64, 100, -128, 16842753};
  const unsigned width = 8 * unsigned(sizeOf(dtype));
  for (uint64_t top : {uint64_t(1) << (width - 1), (uint64_t(1) << (width - 1)) - 1, ~uint64_t(0)})
    integers.push_back(int64_t(top));
  if (dtype == DType::Bool) integers = {0, 1};
  Array a(dtype, {int64_t(isFloat(dtype) ? reals.size() : integers.size())});
  for (int64_t i = 0; i < a.size(); ++i) {
    if (isFloat(dtype))
      a.set(i, reals[size_t(i)]);
    else
      setBits(a, i, uint64_t(integers[size_t(i)]));
  }
  return a;
}

Array listOf(DType dtype, const std::vector<double>& values) {
  Array a(dtype, {int64_t(values.size())});
  for (int64_t i = 0; i < a.size(); ++i) {
    if (isFloat(dtype))
      a.set(i, values[size_t(i)]);
    else
      setBits(a, i,
              uint64_t(int64_t(values[size_t(i)])) & (dtype == DType::Bool ? 1 : ~uint64_t(0)));
  }
  return a;
}

// Operands whose elements are all combinations of the samples of their dtypes.
std::vector<Array> combinations(const std::vector<DType>& dtypes) {
  std::vector<Array> samples, operands;
  int64_t count = 1;
  for (DType d : dtypes) count *= samples.emplace_back(samplesOf(d)).size();
  int64_t stride = 1;
  for (const Array& s : samples) {
    Array& all = operands.emplace_back(s.dtype(), Shape{count});
    for (int64_t i = 0; i < count; ++i) setBits(all, i, bitsAt(s, i / stride % s.size()));
    stride *= s.size();
  }
  return operands;
}

double spacing(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}
double leastOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return std::numeric_limits<double>::denorm_min();
    case DType::F16:
      return 0x1p-24;
    case DType::F32:
      return 0x1p-149;
    default:
      return 0x1p-133;
  }
}
bool agree(const Array& got, const Array& expected, int64_t i, double ulps = 4) {
  const DType dtype = expected.dtype();
  if (!isFloat(dtype)) return bitsAt(got, i) == bitsAt(expected, i);
  const double g = got.at(i), e = expected.at(i);
  if (std::isnan(e)) return std::isnan(g);
  if (e == 0 || std::isinf(e)) return g == e && std::signbit(g) == std::signbit(e);
  return g == e ||
         (ulps > 0 && std::abs(g - e) <= ulps * spacing(dtype) * std::abs(e) + leastOf(dtype));
}

// To nearest even: MLIR folds only what a narrower float holds.
llvm::LogicalResult foldRounding(mlir::arith::TruncFOp op, mlir::PatternRewriter& rewriter) {
  mlir::FloatAttr wide;
  if (!mlir::matchPattern(op.getIn(), mlir::m_Constant(&wide))) return mlir::failure();
  auto type = llvm::cast<mlir::FloatType>(op.getType());
  llvm::APFloat value = wide.getValue();
  bool inexact;
  value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  rewriter.replaceOpWithNewOp<mlir::arith::ConstantOp>(op, mlir::FloatAttr::get(type, value));
  return mlir::success();
}

class Emission : public ::testing::Test {
 protected:
  Emission() : context(createContext()), silent(context.get(), [](mlir::Diagnostic&) {}) {
    context->loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect,
                         mlir::func::FuncDialect>();
  }

  std::vector<std::string> opsWith(mlir::TypeID fact) {
    std::vector<std::string> names;
    for (mlir::RegisteredOperationName op : context->getRegisteredOperations())
      if (op.hasTrait(fact)) names.push_back(op.getStringRef().str());
    return names;
  }

  std::string tensorText(DType dtype, int64_t size) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "tensor<" << size << "x" << elementTypeOf(context.get(), dtype) << ">";
    return text;
  }

  /// A function that gives the result of one op; null if the op does not take such operands.
  mlir::OwningOpRef<mlir::ModuleOp> functionOf(const std::string& op, const std::string& words,
                                               const std::vector<Array>& operands) {
    std::string parameters, names, types;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::string name = std::string(i ? ", " : "") + "%" + char('a' + i);
      const std::string type = tensorText(operands[i].dtype(), operands[i].size());
      parameters += name + ": " + type;
      names += name;
      types += (i ? ", " : "") + type;
    }
    const bool inFront = words.starts_with("$");
    const std::string text = "func.func @f(" + parameters + ") {\n %r = " + op + " " +
                             (inFront ? words.substr(1) + " " : "") + names +
                             (inFront ? "" : " " + words) + " : " + types + "\n return }";
    mlir::OwningOpRef<mlir::ModuleOp> module;
    try {
      module = parseModule(*context, text, "emission");
    } catch (const std::exception&) {
      return {};
    }
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    mlir::Operation* end = function.getBody().front().getTerminator();
    Value result = end->getPrevNode()->getResult(0);
    end->setOperands(result);
    function.setType(
        mlir::FunctionType::get(context.get(), function.getArgumentTypes(), result.getType()));
    return module;
  }
  mlir::Operation* opOf(mlir::ModuleOp module) {
    auto function = *module.getOps<mlir::func::FuncOp>().begin();
    return &function.getBody().front().front();
  }
  Array interpreted(mlir::ModuleOp module, const std::vector<Array>& operands) {
    return interpret(*module.getOps<mlir::func::FuncOp>().begin(), operands, {},
                     Precision::OwnDtype)[0];
  }

  Value constant(ScalarBuilder& k, const Array& a, int64_t i) {
    mlir::Type element = elementTypeOf(context.get(), a.dtype()), type = storedType(element);
    llvm::APInt bits(unsigned(8 * sizeOf(a.dtype())), bitsAt(a, i));
    mlir::TypedAttr attribute =
        k.b.getIntegerAttr(mlir::IntegerType::get(context.get(), bits.getBitWidth()), bits);
    if (auto real = llvm::dyn_cast<mlir::FloatType>(type))
      attribute = mlir::FloatAttr::get(real, llvm::APFloat(real.getFloatSemantics(), bits));
    return k.fromStored(k.make<mlir::arith::ConstantOp>(attribute), element);
  }

  /// What `emit` makes for each element of the result, folded: bits, or nothing where MLIR folds
  /// no such operand.
  std::vector<std::optional<uint64_t>> folded(
      mlir::Type element, int64_t count, llvm::function_ref<Value(ScalarBuilder&, int64_t)> emit) {
    auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    mlir::OwningOpRef<mlir::ModuleOp> owner(module);
    mlir::OpBuilder b(module.getBodyRegion());
    auto function = mlir::func::FuncOp::create(b, module.getLoc(), "g", b.getFunctionType({}, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    ScalarBuilder k(b, module.getLoc());
    llvm::SmallVector<Value> results;
    for (int64_t i = 0; i < count; ++i) results.push_back(k.toStored(emit(k, i), element));
    k.make<mlir::func::ReturnOp>(results);
    function.setType(b.getFunctionType({}, mlir::ValueRange(results).getTypes()));
    mlir::RewritePatternSet patterns(context.get());
    patterns.add(foldRounding);
    EXPECT_TRUE(succeeded(mlir::applyPatternsGreedily(function, std::move(patterns))));
    std::vector<std::optional<uint64_t>> bits;
    for (Value v : function.getBody().front().getTerminator()->getOperands()) {
      mlir::Attribute a;
      bits.emplace_back();
      if (!mlir::matchPattern(v, mlir::m_Constant(&a))) continue;
      if (auto real = llvm::dyn_cast<mlir::FloatAttr>(a))
        bits.back() = real.getValue().bitcastToAPInt().getZExtValue();
      else
        bits.back() = llvm::cast<mlir::IntegerAttr>(a).getValue().getZExtValue();
    }
    return bits;
  }

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::ScopedDiagnosticHandler silent;
};

// Attributes in the op's text; `$` in front of those that come before the operands.
std::vector<std::string> wordsOf(const std::string& op) {
  std::vector<std::string> words;
  if (op == "lathe.compare")
    for (Compare p : valuesOf<Compare>()) words.push_back("$" + std::string(nameOf(p)));
  if (op == "lathe.cast" || op == "lathe.bitcast")
    for (const char* t : {"f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "ui8", "i1"})
      words.push_back(std::string("to ") + t);
  return words.empty() ? std::vector<std::string>{""} : words;
}

// A conversion to integers is undefined outside of their range.
bool isDefined(mlir::Operation* op, const Array& x, int64_t i) {
  auto cast = llvm::dyn_cast<CastOp>(op);
  if (!cast || !isFloat(x.dtype()) || llvm::isa<mlir::FloatType>(cast.getDtype()) ||
      cast.getDtype().isInteger(1))
    return true;
  const DType to = *dtypeOf(cast.getDtype());
  const double v = std::trunc(x.at(i)), bits = 8.0 * double(sizeOf(to));
  return to == DType::U8 ? v >= 0 && v < 256 : std::abs(v) < std::exp2(bits - 1);
}
// MLIR folds no roots and logarithms of negative numbers, and no inverse roots.
bool mayStay(mlir::Operation* op, const Array& x, int64_t i) {
  return llvm::isa<RsqrtOp>(op) || (llvm::isa<LogOp, SqrtOp>(op) && std::signbit(x.at(i)));
}

TEST_F(Emission, OfEveryElementwiseOpIsWhatTheInterpreterComputes) {
  auto ops = opsWith(mlir::TypeID::get<fact::IsElementwise>());
  EXPECT_GT(ops.size(), 30u);
  for (const std::string& name : ops) {
    int tried = 0;
    for (DType dtype : kAll)
      for (const std::string& words : wordsOf(name))
        for (const std::vector<DType>& dtypes :
             {std::vector{dtype}, {dtype, dtype}, {DType::Bool, dtype, dtype}}) {
          const std::vector<Array> operands = combinations(dtypes);
          auto module = functionOf(name, words, operands);
          if (!module) continue;
          ++tried;
          mlir::Operation* op = opOf(*module);
          const Array expected = interpreted(*module, operands);
          auto bits = folded(tensorType(op->getResult(0)).getElementType(), expected.size(),
                             [&](ScalarBuilder& k, int64_t i) {
                               llvm::SmallVector<Value> values;
                               for (const Array& a : operands) values.push_back(constant(k, a, i));
                               return llvm::cast<ScalarOp>(op).emit(k, values);
                             });
          Array got(expected.dtype(), expected.shape());
          for (int64_t i = 0; i < got.size(); ++i) {
            if (!isDefined(op, operands[0], i)) continue;
            if (!bits[size_t(i)] && mayStay(op, operands[0], i)) continue;
            ASSERT_TRUE(bits[size_t(i)]) << name << " " << words << " of " << operands[0].at(i);
            setBits(got, i, *bits[size_t(i)]);
            // A comparison or conversion is exact.
            ASSERT_TRUE(agree(got, expected, i, op->hasTrait<fact::HasNoArithmetic>() ? 0 : 4))
                << name << " " << words << " of " << nameOf(dtype) << " " << operands[0].at(i)
                << ", " << operands.back().at(i) << ": " << got.at(i) << ", expected "
                << expected.at(i);
          }
        }
    EXPECT_GT(tried, 0) << name;
  }
}

TEST_F(Emission, OfEveryReductionIsWhatTheInterpreterComputes) {
  auto ops = opsWith(mlir::TypeID::get<fact::IsReduction>());
  EXPECT_GT(ops.size(), 8u);
  const std::vector<std::vector<double>> lists{
      {1, 2.5, -3, 0.25, 100}, {3, 7, 7, 3},        {5, 2, 2, 9},  {-0.0, 0.0, -0.0},
      {NAN, 4, NAN},           {4, NAN, 9, NAN},    {INFINITY, 1}, {-INFINITY, -INFINITY},
      {INFINITY, INFINITY},    {127, 1, 127, -128}, {0, 0, 1},     {1, 1}};
  for (const std::string& name : ops) {
    int tried = 0;
    for (DType dtype : kAll)
      for (const std::vector<double>& list : lists) {
        const bool whole = llvm::all_of(list, [](double v) { return std::isfinite(v); });
        if (!isFloat(dtype) && !whole) continue;
        const Array x = listOf(dtype, list);
        auto module =
            functionOf(name, name.find("arg") == std::string::npos ? "axes [0]" : "axis 0", {x});
        if (!module) continue;
        ++tried;
        auto op = llvm::cast<ReductionOp>(opOf(*module));
        EXPECT_FALSE(op.combiner().empty());
        const Array expected = interpreted(*module, {x});
        auto bits = folded(tensorType(op->getResult(0)).getElementType(), 1,
                           [&](ScalarBuilder& k, int64_t) {
                             mlir::Type type = computedType(elementTypeOf(context.get(), dtype));
                             // The last elements first, from a start of their own.
                             ScalarBuilder::Values parts[] = {op.start(k, type), op.start(k, type)};
                             for (int64_t i = x.size(); i-- > 0;) {
                               auto& part = parts[i < x.size() / 2];
                               Value position = k.integer(k.b.getI64Type(), i);
                               part = op.combine(k, part, op.lift(k, constant(k, x, i), position));
                             }
                             return op.finish(k, op.combine(k, parts[0], parts[1]),
                                              k.integer(k.b.getI64Type(), x.size()));
                           });
        ASSERT_TRUE(bits[0]) << name;
        Array got(expected.dtype(), expected.shape());
        setBits(got, 0, *bits[0]);
        EXPECT_TRUE(agree(got, expected, 0))
            << name << " of " << nameOf(dtype) << " " << list[0] << ", " << list[1]
            << "...: " << got.at(0) << ", expected " << expected.at(0);
      }
    EXPECT_GT(tried, 0) << name;
  }
}

TEST_F(Emission, OfAStoredValueGivesItsBitsBack) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    mlir::Type element = elementTypeOf(context.get(), dtype);
    auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    mlir::OwningOpRef<mlir::ModuleOp> owner(module);
    mlir::OpBuilder b(module.getBodyRegion());
    ScalarBuilder k(b, module.getLoc());
    Value stored = k.number(mlir::VectorType::get({8}, element), 1);
    EXPECT_EQ(k.toStored(k.fromStored(stored, element), element), stored);
    EXPECT_NE(k.toStored(k.number(b.getF32Type(), 1), element), stored);
  }
}

}  // namespace
}  // namespace lathe
