// SPDX-License-Identifier: Apache-2.0
// The functions of tests/lit/passes/canonical_*.mlir, which hold every canonical rewrite, in other
// types than those they are written in: floats of other widths, integers of every width that wrap
// and that are beyond what doubles hold, booleans, and in other sizes: none, one, odd and even
// ones. A rewrite that applies there as well must be right there as well: bit by bit in strict
// mode, in exact arithmetic in relaxed mode, where a constant of 16 bits stands for what it rounds
// to.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "ir/op_builder.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "passes/canonical/canonical.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/retype.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

using namespace mlir;
namespace fs = std::filesystem;

enum class Values { Common, Special, Small };

double realOf(uint64_t r) {
  using Limits = std::numeric_limits<float>;
  static const double values[] = {0.0,  -0.0,  1.0, -1.0,  Limits::quiet_NaN(), Limits::infinity(),
                                  0.3,  -2.5,  7.0, 1e-3,  -Limits::infinity(), Limits::max(),
                                  88.0, -88.0, 1.5, -1e-4, Limits::lowest()};
  return values[r % std::size(values)];
}

Array valuesOf(RankedTensorType type, Values values, const Symbols& sizes, uint64_t seed) {
  Array array(*dtypeOf(type.getElementType()), shapeOf(type, sizes));
  for (int64_t i = 0; i < array.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t r = seed >> 33;
    if (array.dtype() == DType::Bool)
      array.set(i, double(r % 2));
    else if (isFloat(array.dtype()))
      array.set(i, values == Values::Special ? realOf(r) : double(r % 2001) / 500 - 2);
    else if (values == Values::Small)
      array.set(i, double(r % 2));
    else if (array.dtype() == DType::I64 && r % 3)
      array.as<int64_t>()[size_t(i)] = int64_t(seed) >> (r % 40);
    else if (array.dtype() == DType::I32 && r % 3)
      array.set(i, double(int32_t(seed >> 32) >> (r % 20)));
    else
      array.set(i, double(int64_t(r % 101) - (array.dtype() == DType::U8 ? 0 : 50)));
  }
  return array;
}

using Apply = std::function<void(ModuleOp)>;

// One file in one other type.
struct Variant {
  std::string name;
  Retyping change;
  Symbols sizes{{"batch", 2}, {"seq", 3}, {"past", 2}};
};

std::vector<Variant> variants(MLIRContext* context) {
  Builder b(context);
  std::vector<Variant> all;
  auto floats = [](Type to) {
    return [to](Type from) { return isa<FloatType>(from) ? to : from; };
  };
  for (DType dtype : {DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::I16,
                      DType::I8, DType::U8, DType::Bool})
    all.push_back(
        {std::string(lathe::nameOf(dtype)), {.element = floats(elementTypeOf(context, dtype))}});
  all.push_back({"i32 for i64", {.element = [i32 = b.getI32Type()](Type from) -> Type {
                   return from.isInteger(64) ? Type(i32) : from;
                 }}});
  for (const char* size : {"2", "3", "4", "6", "8"})
    for (const char* other : {"0", "1", "5", "16"})
      all.push_back({std::string(size) + " becomes " + other, {.dim = [=](StringAttr dim) {
                       return dim.getValue() == size ? StringAttr::get(dim.getContext(), other)
                                                     : dim;
                     }}});
  for (int64_t size : {0, 1, 4})
    all.push_back({"symbols of " + std::to_string(size),
                   {},
                   {{"batch", size}, {"seq", size}, {"past", size}}});
  return all;
}

class Retyped {
 public:
  Retyped(MLIRContext* context, ModuleOp from, const Variant& variant)
      : sizes_(variant.sizes), plain_(from.clone()) {
    OpBuilder b(context);
    for (auto function : llvm::make_early_inc_range(plain_->getOps<func::FuncOp>())) {
      b.setInsertionPoint(function);
      retyped(b, function, variant.change);
      function.erase();
    }
  }
  int count() { return int(llvm::range_size(plain_->getOps<func::FuncOp>())); }

  // Where `apply` changes what a function computes; "" if nowhere.
  std::string difference(const Apply& apply, bool exactly) {
    Module rewritten(plain_->clone());
    apply(*rewritten);
    for (auto function : plain_->getOps<func::FuncOp>()) {
      auto other = rewritten->lookupSymbol<func::FuncOp>(function.getName());
      for (Values values : {exactly ? Values::Special : Values::Common, Values::Small})
        for (uint64_t seed : {1, 2, 3}) {
          const Precision precision = exactly ? Precision::OwnDtype : Precision::Float64;
          std::vector<Array> was;
          try {
            was = run(function, values, precision, seed);
          } catch (const Error&) {
            continue;  // such as an index outside of its table
          }
          const std::vector<Array> is = run(other, values, precision, seed);
          const std::string found = exactly ? firstOtherBits(was, is) : compared(was, is, [&] {
            return movesOf(function, was, [&] { return run(function, values, precision, seed); });
          });
          if (!found.empty()) return function.getName().str() + ": " + found;
        }
    }
    return "";
  }

 private:
  using Moves = std::vector<std::vector<double>>;
  // How far results move if constants of 16 bits are other numbers that round to the same.
  template <class Run>
  static Moves movesOf(func::FuncOp function, const std::vector<Array>& was, Run again) {
    Moves moves;
    for (const Array& a : was) moves.emplace_back(size_t(a.size()));
    function.walk([&](ConstantOp op) {
      auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
      if (!splat || !(splat.getElementType().isBF16() || splat.getElementType().isF16())) return;
      APFloat next = splat.getSplatValue<APFloat>();
      next.next(/*nextDown=*/false);
      op.setValueAttr(DenseElementsAttr::get(cast<ShapedType>(splat.getType()), next));
      const std::vector<Array> moved = again();
      op.setValueAttr(splat);
      for (size_t i = 0; i < was.size(); ++i)
        for (int64_t k = 0; k < was[i].size(); ++k) {
          const double by = std::abs(moved[i].at(k) - was[i].at(k));
          if (std::isfinite(by)) moves[i][size_t(k)] += 0.6 * by;
        }
    });
    return moves;
  }
  template <class FindMoves>
  static std::string compared(const std::vector<Array>& a, const std::vector<Array>& b,
                              FindMoves findMoves) {
    auto difference = [&](const Moves& moves) -> std::string {
      for (size_t i = 0; i < a.size(); ++i) {
        if (!isFloat(a[i].dtype()) || a[i].shape() != b[i].shape()) {
          if (std::string found = firstOtherBits({a[i]}, {b[i]}); !found.empty()) return found;
          continue;
        }
        for (int64_t k = 0; k < a[i].size(); ++k) {
          const double was = a[i].at(k), is = b[i].at(k);
          if (was == is || (std::isnan(was) && std::isnan(is))) continue;
          const double more = moves.empty() ? 0 : moves[i][size_t(k)];
          if (!(std::abs(was - is) <= 1e-6 + 1e-6 * std::abs(was) + more))
            return "element " + std::to_string(k) + " is " + std::to_string(was) + " and becomes " +
                   std::to_string(is);
        }
      }
      return "";
    };
    std::string found = difference({});
    return found.empty() ? found : difference(findMoves());
  }
  std::vector<Array> run(func::FuncOp function, Values values, Precision precision, uint64_t seed) {
    std::vector<Array> arguments;
    for (Type t : function.getArgumentTypes())
      arguments.push_back(valuesOf(cast<RankedTensorType>(t), values, sizes_, seed += 17));
    auto weight = [&](const std::string&) {
      Array w;
      function.walk(
          [&](WeightOp op) { w = valuesOf(tensorType(op.getResult()), Values::Small, sizes_, 7); });
      return w;
    };
    return interpret(function, arguments, weight, precision, {}, sizes_);
  }

  Symbols sizes_;
  Module plain_;
};

// Where `apply` is wrong in any file and type; `count` becomes that of the functions.
std::string firstDifferenceOf(const Apply& apply, bool exactly, int* count = nullptr) {
  for (auto& entry : fs::directory_iterator(LATHE_TEST_DATA "/lit/passes")) {
    const std::string name = entry.path().stem();
    if (!name.starts_with("canonical_")) continue;
    auto context = createContext();
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    auto module = parseModule(*context, text.str(), name);
    for (const Variant& variant : variants(context.get())) {
      Retyped all(context.get(), *module, variant);
      if (count) *count += all.count();
      std::string found = all.difference(apply, exactly);
      if (!found.empty()) return name + ", " + variant.name + ": " + found;
    }
  }
  return "";
}

TEST(CanonicalTypes, KeepEveryBitInStrictMode) {
  int functions = 0;
  EXPECT_EQ(firstDifferenceOf(
                [](ModuleOp module) {
                  NumericsScope strict(module.getContext(), {.mode = NumericsMode::Strict});
                  canonicalize(module);
                },
                true, &functions),
            "");
  EXPECT_GE(functions, 500);
}

TEST(CanonicalTypes, AreEqualInExactArithmeticOtherwise) {
  EXPECT_EQ(firstDifferenceOf([](ModuleOp module) { canonicalize(module); }, false), "");
}

// A wrong rule beside the others: the samples of some type must tell it.
template <class Op, class Fn>
std::string differenceWith(bool exactly, Fn fn) {
  return firstDifferenceOf(
      [&](ModuleOp module) {
        NumericsScope scope(module.getContext(),
                            {.mode = exactly ? NumericsMode::Strict : NumericsMode::Relaxed});
        RewritePatternSet patterns(module.getContext());
        addRewrite<Op>(patterns, "planted", fn);
        ASSERT_TRUE(succeeded(applyPatterns(module, std::move(patterns))));
        canonicalize(module);
      },
      exactly);
}

TEST(CanonicalTypes, ShowARuleThatIsWrongInOneTypeAlone) {
  auto element = [](Value v) { return tensorType(v).getElementType(); };
  for (bool exactly : {false, true}) {
    // Of 64-bit integers beyond 2^53.
    auto throughDouble = [&](AddOp op, OpMaker& m) -> Value {
      if (!element(op.getResult()).isInteger(64)) return {};
      Type f64 = Float64Type::get(op.getContext());
      Value a = m.cast(op->getOperand(0), f64), b = m.cast(op->getOperand(1), f64);
      return m.cast(m.make<AddOp>(a, b), element(op.getResult()));
    };
    EXPECT_NE(differenceWith<AddOp>(exactly, throughDouble), "");
    // Of 32-bit integers, which wrap.
    auto wide = [&](MulOp op, OpMaker& m) -> Value {
      if (!element(op.getResult()).isInteger(32)) return {};
      Type f32 = Float32Type::get(op.getContext());
      Value a = m.cast(op->getOperand(0), f32), b = m.cast(op->getOperand(1), f32);
      return m.cast(m.make<MulOp>(a, b), element(op.getResult()));
    };
    EXPECT_NE(differenceWith<MulOp>(exactly, wide), "");
    // Of booleans.
    auto either = [&](SelectOp op, OpMaker& m) -> Value {
      if (!element(op.getResult()).isInteger(1)) return {};
      return m.make<LogicalOrOp>(op->getOperand(1), op->getOperand(2));
    };
    EXPECT_NE(differenceWith<SelectOp>(exactly, either), "");
    // Of a single column.
    auto added = [&](MulOp op, OpMaker& m) -> Value {
      auto type = tensorType(op->getOperand(0));
      if (type.getRank() == 0 || type.getShape().back() != 1) return {};
      return m.make<AddOp>(op->getOperand(0), op->getOperand(1));
    };
    EXPECT_NE(differenceWith<MulOp>(exactly, added), "");
  }
  // Of 16 bits, whose roundings strict mode keeps.
  auto moved = [&](AddOp op, OpMaker& m) -> Value {
    Type type = element(op.getResult());
    if (!type.isBF16()) return {};
    Value by = m.scalar(type, 3), a = m.make<SubOp>(op->getOperand(0), by);
    return m.make<SubOp>(a, m.make<SubOp>(m.make<NegOp>(op->getOperand(1)), by));
  };
  EXPECT_NE(differenceWith<AddOp>(true, moved), "");
}

}  // namespace
}  // namespace lathe::conformance
