// SPDX-License-Identifier: Apache-2.0
// Constants, arithmetic, comparison, selection and conversion of the loop form as expressions.
#include <cmath>
#include <cstring>
#include <map>

#include "backends/cuda/lowering/text/loop_printer.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

Type elementOf(Type type) { return getElementTypeOrSelf(type); }

unsigned widthOf(Type type) {
  Type element = elementOf(type);
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

bool isInteger(Type type) { return elementOf(type).isIntOrIndex(); }

std::string decimal(const APFloat& number, Type element) {
  const double value = number.convertToDouble();
  const bool wide = element.isF64();
  const std::string type = wide ? "double" : "float";
  if (std::isinf(value)) return (value < 0 ? "lowest_of<" : "highest_of<") + type + ">()";
  char text[64];
  if (std::isnan(value)) {
    std::snprintf(text, sizeof text, "bit_cast<%s>(0x%llx%s)", type.c_str(),
                  static_cast<unsigned long long>(number.bitcastToAPInt().getZExtValue()),
                  wide ? "ull" : "u");
    return text;
  }
  // The shortest decimal that reads back.
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (wide ? std::strtod(text, nullptr) == value : std::strtof(text, nullptr) == float(value))
      break;
  }
  std::string written = text;
  if (written.find_first_of(".e") == std::string::npos) written += ".0";
  return written + (wide ? "" : "f");
}

bool hasFlag(Operation* op, arith::FastMathFlags flag) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  return fast && arith::bitEnumContainsAll(fast.getFastMathFlagsAttr().getValue(), flag);
}

// Index arithmetic, which does not wrap.
bool isIndex(Operation* op) {
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  return flags && (flags.hasNoSignedWrap() || elementOf(op->getResult(0).getType()).isIndex());
}

const char* functionOf(Operation* op) {
  static const std::map<llvm::StringRef, const char*> functions{
      {"math.log", "math_log"},      {"math.sqrt", "math_sqrt"},
      {"math.rsqrt", "math_rsqrt"},  {"math.sin", "math_sin"},
      {"math.cos", "math_cos"},      {"math.tanh", "math_tanh"},
      {"math.erf", "math_erf"},      {"math.floor", "math_floor"},
      {"math.ceil", "math_ceil"},    {"math.roundeven", "math_rint"},
      {"math.absf", "math_abs"},     {"math.powf", "math_pow"},
      {"math.fma", "math_fma"},      {"math.copysign", "math_copysign"},
      {"math.exp", "math_exp"},      {"math.exp2", "math_exp2"},
      {"arith.remf", "math_fmod"},   {"arith.maximumf", "max_nan"},
      {"arith.minimumf", "min_nan"}, {"vector.fma", "math_fma"},
      {"math.absi", "int_abs"}};
  auto it = functions.find(op->getName().getStringRef());
  return it == functions.end() ? nullptr : it->second;
}

}  // namespace

std::string typeName(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.getRank() != 1) return {};
    const std::string element = typeName(vector.getElementType());
    return element.empty() ? element
                           : "vec<" + (element == "int" ? "i32" : element) + ", " +
                                 std::to_string(vector.getDimSize(0)) + ">";
  }
  if (type.isF32()) return "float";
  if (type.isF64()) return "double";
  if (type.isBF16()) return "bf16";
  if (type.isF16()) return "f16";
  if (type.isIndex() || type.isInteger(64)) return "i64";
  if (type.isInteger(1)) return "bool";
  if (type.isInteger(32)) return "int";
  if (type.isInteger(8) || type.isInteger(16)) return "i" + std::to_string(widthOf(type));
  return {};
}

Expr LoopPrinter::wrapped(const Expr& e, int level) {
  if (e.level >= level) return e;
  Expr r = e;
  r.text = "(" + e.text + ")";
  r.level = kPrimary;
  return r;
}

Expr LoopPrinter::cast(const std::string& type, const Expr& e) {
  return {"(" + type + ")" + wrapped(e, kUnary).text, kUnary, Expr::Type::Exact, e.reads};
}

Expr LoopPrinter::exact(const Expr& e, Type type) {
  return e.type == Expr::Type::Exact ? e : cast(typeName(elementOf(type)), e);
}
Expr LoopPrinter::valued(const Expr& e, Type type) {
  return e.type == Expr::Type::Foreign ? exact(e, type) : e;
}
Expr LoopPrinter::unsignedOf(const Expr& e, Type type) {
  return cast("u" + std::to_string(widthOf(type)), valued(e, type));
}

Expr LoopPrinter::call(const std::string& function, ArrayRef<Expr> arguments) {
  Expr r{function + "("};
  for (const Expr& e : arguments) {
    r.text += (r.text.back() == '(' ? "" : ", ") + e.text;
    r.reads |= e.reads;
  }
  r.text += ")";
  return r;
}

Expr LoopPrinter::binary(const Expr& a, const char* sign, const Expr& b, int level,
                         bool associates) {
  Expr left = wrapped(a, level), right = wrapped(b, associates ? level : level + 1);
  std::string op = sign;
  // "a - 1" for a + -1.
  if (level == kSum && right.text.size() > 1 && right.text[0] == '-' &&
      std::isdigit(static_cast<unsigned char>(right.text[1])) && right.level == kUnary) {
    op = op == " + " ? " - " : " + ";
    right.text.erase(0, 1);
  }
  return {left.text + op + right.text, level, Expr::Type::Exact, a.reads || b.reads};
}

Expr LoopPrinter::chosen(const Expr& condition, const Expr& a, const Expr& b) {
  Expr r{wrapped(condition, kOr).text + " ? " + wrapped(a, kOr).text + " : " +
             wrapped(b, kChoice).text,
         kChoice, Expr::Type::Exact, condition.reads || a.reads || b.reads};
  if (a.type != Expr::Type::Exact && b.type != Expr::Type::Exact) r.type = Expr::Type::Narrow;
  return r;
}

Expr LoopPrinter::literal(Attribute value, Type type) {
  if (auto real = dyn_cast<FloatAttr>(value)) {
    const APFloat number = real.getValue();
    if (type.isF32() || type.isF64()) {
      std::string text = decimal(number, type);
      return {text, text[0] == '-' ? kUnary : kPrimary};
    }
    const uint64_t bits = number.bitcastToAPInt().getZExtValue();
    char text[16] = "";
    if (bits) std::snprintf(text, sizeof text, "0x%04x", unsigned(bits));
    return {typeName(type) + "{" + text + "}"};
  }
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer) {
    fail("a constant of an unknown kind cannot be written");
    return {"0"};
  }
  const APInt word = integer.getValue();
  if (type.isInteger(1)) return {word.isZero() ? "false" : "true"};
  const int64_t number = word.getSExtValue();
  if (number == INT64_MIN) return {"lowest_of<i64>()"};
  if (number == INT32_MIN)
    return {"lowest_of<i32>()", kPrimary,
            widthOf(type) == 32 ? Expr::Type::Exact : Expr::Type::Narrow};
  Expr r{std::to_string(number), number < 0 ? kUnary : kPrimary};
  if (number != int32_t(number))
    r.text += "ll";
  else if (widthOf(type) != 32)
    r.type = Expr::Type::Narrow;
  return r;
}

Expr LoopPrinter::compare(Operation* op, const Lane* lane) {
  Type type = op->getOperand(0).getType();
  Expr a = valued(read(op->getOperand(0), lane), type),
       b = valued(read(op->getOperand(1), lane), type);
  if (auto c = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    const P p = c.getPredicate();
    if (p >= P::ult && !elementOf(type).isInteger(1))
      a = unsignedOf(a, type), b = unsignedOf(b, type);
    // True is 1 without a sign, and -1 with one.
    if (elementOf(type).isInteger(1) && p >= P::slt && p <= P::sge) std::swap(a, b);
    static constexpr const char* signs[] = {" == ", " != ", " < ",  " <= ", " > ",
                                            " >= ", " < ",  " <= ", " > ",  " >= "};
    return binary(a, signs[int(p)], b, p <= P::ne ? kEqual : kLess);
  }
  using P = arith::CmpFPredicate;
  const P p = llvm::cast<arith::CmpFOp>(op).getPredicate();
  struct Sign {
    const char* text;
    bool negated = false;  // what compares with a NaN holds
  };
  static const std::map<P, Sign> signs{{P::OEQ, {" == "}},       {P::UNE, {" != "}},
                                       {P::OLT, {" < "}},        {P::OLE, {" <= "}},
                                       {P::OGT, {" > "}},        {P::OGE, {" >= "}},
                                       {P::ULT, {" >= ", true}}, {P::ULE, {" > ", true}},
                                       {P::UGT, {" <= ", true}}, {P::UGE, {" < ", true}}};
  auto negated = [](const Expr& e) {
    return Expr{"!(" + e.text + ")", kUnary, Expr::Type::Exact, e.reads};
  };
  if (auto it = signs.find(p); it != signs.end()) {
    const Expr e = binary(a, it->second.text, b, p == P::OEQ || p == P::UNE ? kEqual : kLess);
    return it->second.negated ? negated(e) : e;
  }
  if (p == P::ONE || p == P::UEQ) {
    const Expr e = binary(binary(a, " < ", b, kLess), " || ", binary(a, " > ", b, kLess), kOr);
    return p == P::UEQ ? negated(e) : e;
  }
  if (p != P::ORD && p != P::UNO) {
    fail(op, "that is always true or false");
    return {"0"};
  }
  const bool ordered = p == P::ORD;
  auto itself = [&](const Expr& e) { return binary(e, ordered ? " == " : " != ", e, kEqual); };
  if (a.text == b.text || matchPattern(op->getOperand(1), m_AnyZeroFloat())) return itself(a);
  return binary(itself(a), ordered ? " && " : " || ", itself(b), ordered ? kAnd : kOr);
}

Expr LoopPrinter::convert(Operation* op, const Lane* lane) {
  Type from = elementOf(op->getOperand(0).getType()), to = elementOf(op->getResult(0).getType());
  Expr x = valued(read(op->getOperand(0), lane), from);
  const std::string type = typeName(to);
  const bool truth = from.isInteger(1), smallFrom = from.isBF16() || from.isF16(),
             smallTo = to.isBF16() || to.isF16();
  auto narrow = [](Expr e) {
    e.type = Expr::Type::Narrow;
    return e;
  };
  auto refuse = [&]() -> Expr {
    fail(op, "from " + typeName(from) + " to " + type);
    return {"0"};
  };
  return llvm::TypeSwitch<Operation*, Expr>(op)
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) -> Expr {
        if (truth) return {"-" + cast(type, x).text, kUnary, Expr::Type::Narrow, x.reads};
        if (widthOf(to) < widthOf(from)) return cast(type, x);
        if (widthOf(to) == widthOf(from)) return x;
        // C++ widens what is narrower.
        return narrow(x);
      })
      .Case([&](arith::ExtUIOp) -> Expr {
        if (truth) return cast(type, x);
        if (widthOf(to) < widthOf(from)) return cast(type, x);
        if (widthOf(to) == widthOf(from)) return x;
        if (widthOf(from) < 32) return narrow(unsignedOf(x, from));
        return cast(type, unsignedOf(x, from));
      })
      .Case([&](arith::TruncIOp) -> Expr {
        if (to.isInteger(1))
          return binary(Expr{"(" + binary(x, " & ", {"1"}, kBits).text + ")", kPrimary,
                             Expr::Type::Exact, x.reads},
                        " != ", {"0"}, kEqual);
        return cast(type, x);
      })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto) -> Expr {
        const bool isSigned = isa<arith::SIToFPOp>(op);
        if (smallTo && widthOf(from) > 16) return refuse();
        const std::string real = smallTo ? "float" : type;
        if (truth && isSigned)
          x = {"-(int)" + wrapped(x, kUnary).text, kUnary, Expr::Type::Narrow, x.reads};
        else if (!truth && !isSigned)
          x = unsignedOf(x, from);
        x = cast(real, x);
        return smallTo ? call("to_" + type, x) : x;
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto) -> Expr {
        if (smallFrom) x = call("to_f32", x);
        if (to.isInteger(1)) return binary(cast("int", x), " != ", {"0"}, kEqual);
        // Narrow integers by way of i32, of which they have the lowest bits.
        if (widthOf(to) < 32) return cast(type, cast("int", x));
        if (isa<arith::FPToSIOp>(op)) return cast(type, x);
        return cast(type, cast("u" + std::to_string(widthOf(to)), x));
      })
      .Case([&](arith::BitcastOp) -> Expr {
        if (typeName(from) == type) return x;
        if (truth || to.isInteger(1)) return refuse();
        return call("bit_cast<" + type + ">", exact(x, from));
      })
      .Case([&](arith::ExtFOp) -> Expr {
        if (!smallFrom) return cast(type, x);
        x = call("to_f32", x);
        return to.isF64() ? cast(type, x) : x;
      })
      .Case([&](arith::TruncFOp) -> Expr {
        if (!smallTo) return cast(type, x);
        if (smallFrom) return refuse();
        // One rounding.
        if (from.isF64()) x = call("odd_f32", x);
        return call("to_" + type, x);
      })
      .Default([&](Operation*) { return refuse(); });
}

Expr LoopPrinter::arithmetic(Operation* op, const Lane* lane) {
  Type type = op->getResult(0).getType();
  const bool integer = isInteger(type), truth = elementOf(type).isInteger(1);
  if ((elementOf(type).isBF16() || elementOf(type).isF16()) && !isa<arith::SelectOp>(op)) {
    fail(op, "on " + typeName(elementOf(type)));
    return {"0"};
  }
  SmallVector<Expr> x;
  for (Value v : op->getOperands()) x.push_back(valued(read(v, lane), v.getType()));
  auto exactly = [&](const char* function) {
    for (auto [e, v] : llvm::zip(x, op->getOperands())) e = exact(e, v.getType());
    return call(function, x);
  };
  // On integers as C++ computes them: in i64 where one operand is, and in int below 32 bits.
  auto plain = [&](const char* sign, int level, bool associates = false) {
    if (integer && widthOf(type) == 64 && x[0].type != Expr::Type::Exact &&
        x[1].type != Expr::Type::Exact)
      x[0] = exact(x[0], type);
    Expr r = binary(x[0], sign, x[1], level, associates);
    if (integer && !truth && widthOf(type) < 32) r.type = Expr::Type::Foreign;
    return r;
  };
  auto onUnsigned = [&](const char* sign, int level) {
    x[0] = unsignedOf(x[0], type), x[1] = unsignedOf(x[1], type);
    Expr r = binary(x[0], sign, x[1], level);
    r.type = Expr::Type::Foreign;
    return r;
  };
  auto best = [&](const char* sign, bool isUnsigned) {
    Expr a = isUnsigned ? unsignedOf(x[0], type) : x[0],
         b = isUnsigned ? unsignedOf(x[1], type) : x[1];
    return chosen(binary(a, sign, b, kLess), x[0], x[1]);
  };
  auto whole = [&](const char* sign, int level, const char* function, const char* logical) {
    if (truth) return binary(x[0], logical, x[1], logical[1] == '&' ? kAnd : kEqual);
    return isIndex(op) ? plain(sign, level, level == kSum && *function != 's') : exactly(function);
  };
  auto fixedShift = [&]() -> bool {
    APInt count;
    return matchPattern(op->getOperand(1), m_ConstantInt(&count)) && count.ult(widthOf(type));
  };
  if (const char* function = functionOf(op)) {
    const bool fast = options_.fastExp && elementOf(type).isF32() && isa<math::ExpOp>(op) &&
                      hasFlag(op, arith::FastMathFlags::afn);
    return exactly(fast ? "fast_exp" : function);
  }
  return llvm::TypeSwitch<Operation*, Expr>(op)
      .Case([&](arith::AddFOp) { return plain(" + ", kSum); })
      .Case([&](arith::SubFOp) { return plain(" - ", kSum); })
      .Case([&](arith::MulFOp) { return plain(" * ", kTimes); })
      .Case([&](arith::DivFOp) {
        const bool fast =
            options_.fastExp && elementOf(type).isF32() && hasFlag(op, arith::FastMathFlags::arcp);
        return fast ? call("fast_div", x) : plain(" / ", kTimes);
      })
      .Case([&](arith::NegFOp) -> Expr {
        Expr e = wrapped(x[0], kUnary);
        if (e.text[0] == '-') e.text = "(" + e.text + ")";
        return {"-" + e.text, kUnary, Expr::Type::Exact, e.reads};
      })
      .Case([&](arith::AddIOp) { return whole(" + ", kSum, "int_add", " != "); })
      .Case([&](arith::SubIOp) {
        if (truth) return binary(x[0], " != ", x[1], kEqual);
        return isIndex(op) ? plain(" - ", kSum) : exactly("int_sub");
      })
      .Case([&](arith::MulIOp) { return whole(" * ", kTimes, "int_mul", " && "); })
      .Case([&](arith::DivSIOp) { return plain(" / ", kTimes); })
      .Case([&](arith::RemSIOp) { return plain(" % ", kTimes); })
      .Case([&](arith::DivUIOp) { return onUnsigned(" / ", kTimes); })
      .Case([&](arith::RemUIOp) { return onUnsigned(" % ", kTimes); })
      .Case([&](arith::MaxSIOp) { return best(" > ", false); })
      .Case([&](arith::MinSIOp) { return best(" < ", false); })
      .Case([&](arith::MaxUIOp) { return best(" > ", true); })
      .Case([&](arith::MinUIOp) { return best(" < ", true); })
      .Case([&](arith::SelectOp) { return chosen(x[0], x[1], x[2]); })
      .Case([&](arith::AndIOp) {
        return truth ? binary(x[0], " && ", x[1], kAnd, true) : plain(" & ", kBits);
      })
      .Case([&](arith::OrIOp) {
        return truth ? binary(x[0], " || ", x[1], kOr, true) : plain(" | ", kBits);
      })
      .Case([&](arith::XOrIOp) -> Expr {
        if (!truth) return plain(" ^ ", kBits);
        if (x[1].text == "true")
          return {"!" + wrapped(x[0], kUnary).text, kUnary, Expr::Type::Exact, x[0].reads};
        return binary(x[0], " != ", x[1], kEqual);
      })
      .Case([&](arith::ShLIOp) {
        if (!fixedShift()) return exactly("shift_left");
        Expr r = binary(unsignedOf(x[0], type), " << ", x[1], kShift);
        r.type = Expr::Type::Foreign;
        return r;
      })
      .Case([&](arith::ShRUIOp) {
        if (!fixedShift()) return exactly("shift_right");
        Expr r = binary(unsignedOf(x[0], type), " >> ", x[1], kShift);
        r.type = Expr::Type::Foreign;
        return r;
      })
      .Case([&](arith::ShRSIOp) {
        // The value beyond the width is nobody's, but C++ must have one.
        if (!fixedShift())
          x[1] = {"(" + binary(x[1], " & ", {std::to_string(widthOf(type) - 1)}, kBits).text + ")"};
        x[0] = exact(x[0], type);
        Expr r = binary(x[0], " >> ", x[1], kShift);
        if (widthOf(type) < 32) r.type = Expr::Type::Narrow;
        return r;
      })
      .Default([&](Operation*) -> Expr {
        fail(op);
        return {"0"};
      });
}

Expr LoopPrinter::build(Operation* op, const Lane* lane) {
  return llvm::TypeSwitch<Operation*, Expr>(op)
      .Case<arith::CmpIOp, arith::CmpFOp>([&](auto) { return compare(op, lane); })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp, arith::TruncIOp, arith::SIToFPOp,
            arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp, arith::ExtFOp,
            arith::TruncFOp>([&](auto) { return convert(op, lane); })
      .Case([&](vector::BroadcastOp broadcast) {
        Value source = broadcast.getSource();
        return read(source, isa<VectorType>(source.getType()) ? lane : nullptr);
      })
      .Case([&](vector::ExtractOp extract) -> Expr {
        if (extract.getNumIndices() != 1) {
          fail(op, "of more than one dimension");
          return {"0"};
        }
        Value vector = extract.getSource();
        if (extract.hasDynamicPosition()) {
          Value position = extract.getDynamicPosition()[0];
          const Lane at = laneAt(valued(read(position), position.getType()));
          return read(vector, &at);
        }
        const Lane at = laneAt(extract.getStaticPosition()[0]);
        return read(vector, &at);
      })
      .Case([&](LLVM::LoadOp load) -> Expr { return loaded(load.getAddr(), load.getType(), lane); })
      .Default([&](Operation*) -> Expr {
        if (lane && isa<vector::ShuffleOp, LLVM::masked_gather>(op)) return element(op, *lane);
        if (op->getNumResults() == 1 &&
            isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(op->getDialect()))
          return arithmetic(op, lane);
        fail(op);
        return {"0"};
      });
}

Expr LoopPrinter::read(Value value, const Lane* lane) {
  if (!failure.empty()) return {"0"};
  if (auto it = bound_.find(value); it != bound_.end()) {
    const Bound& b = it->second;
    if (b.form == Bound::Form::Scalar) return b.expr;
    if (b.form == Bound::Form::Array)
      return lane ? Expr{b.expr.text + "[" + lane->text + "]"} : b.expr;
    if (lane && lane->text == b.variable) return b.expr;
  }
  Operation* op = value.getDefiningOp();
  if (!op) {
    fail("an argument of a block has no text");
    return {"0"};
  }
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant))) {
    if (auto dense = dyn_cast<DenseElementsAttr>(constant)) {
      if (dense.isSplat()) return literal(dense.getSplatValue<Attribute>(), dense.getElementType());
      if (lane) return tabled(dense, *lane);
    } else {
      return literal(constant, value.getType());
    }
  }
  if (vectorOf(value.getType()) && !lane) {
    fail(op, "as a whole vector");
    return {"0"};
  }
  return build(op, lane);
}

}  // namespace lathe::cuda
