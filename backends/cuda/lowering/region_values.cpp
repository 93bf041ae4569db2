// SPDX-License-Identifier: Apache-2.0
// Constants, arithmetic, comparison, selection and conversion.
#include <cmath>
#include <cstring>

#include "backends/cuda/lowering/region_code.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

std::string decimalLiteral(double value, Type element) {
  const bool wide = element.isF64();
  const std::string type = wide ? "double" : "float";
  if (std::isinf(value)) return (value < 0 ? "lowest_of<" : "highest_of<") + type + ">()";
  char text[64];
  if (std::isnan(value)) {
    uint64_t bits = 0;
    if (wide) {
      std::memcpy(&bits, &value, 8);
    } else {
      float narrow = float(value);
      std::memcpy(&bits, &narrow, 4);
    }
    std::snprintf(text, sizeof text, "bit_cast<%s>(0x%llx%s)", type.c_str(),
                  static_cast<unsigned long long>(bits), wide ? "ull" : "u");
    return text;
  }
  // The shortest decimal that reads back.
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (wide ? std::strtod(text, nullptr) == value : std::strtof(text, nullptr) == float(value))
      break;
  }
  std::string literal = text;
  if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
  literal += wide ? "" : "f";
  return value < 0 ? "(" + literal + ")" : literal;
}

std::string integerLiteral(const APInt& word, Type element) {
  if (element.isInteger(1)) return word.isZero() ? "false" : "true";
  if (element.isUnsignedInteger()) return "(u8)" + std::to_string(word.getZExtValue());
  const int64_t value = word.getSExtValue();
  if (element.isInteger(64))
    return value == INT64_MIN ? "lowest_of<i64>()" : "(i64)" + std::to_string(value);
  if (element.isInteger(32)) return value == INT32_MIN ? "lowest_of<i32>()" : std::to_string(value);
  return "(" + storedName(element) + ")" + std::to_string(value);
}

std::string predicateText(Compare p) {
  switch (p) {
    case Compare::eq:
      return " == ";
    case Compare::ne:
      return " != ";
    case Compare::lt:
      return " < ";
    case Compare::le:
      return " <= ";
    case Compare::gt:
      return " > ";
    case Compare::ge:
      return " >= ";
  }
  llvm_unreachable("a predicate");
}

std::string call(const std::string& function, const std::string& x) {
  return function + "(" + x + ")";
}
std::string call(const std::string& function, const std::string& x, const std::string& y) {
  return function + "(" + x + ", " + y + ")";
}

// Looks through what a softmax does for fully masked rows.
Value behindSelect(Value v) {
  while (auto select = v.getDefiningOp<SelectOp>()) v = select.getB();
  return v;
}

}  // namespace

Val RegionCode::constant(ConstantOp op, const Index& index) {
  auto value = mlir::cast<DenseElementsAttr>(op.getValue());
  Type element = tensorType(op.getResult()).getElementType();
  if (value.isSplat()) {
    if (isReal(element))
      return {decimalLiteral(value.getSplatValue<APFloat>().convertToDouble(), element)};
    return {integerLiteral(value.getSplatValue<APInt>(), element)};
  }
  const std::string key = "constant " + keyOf(op.getResult(), {});
  const Val* known = k.find(key);
  if (!known) {
    // In memory as computed: small tables, whose loads the cache serves.
    std::string name = k.unique("table"), items;
    auto append = [&](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
    if (isReal(element)) {
      for (APFloat v : value.getValues<APFloat>()) {
        APInt bits = v.bitcastToAPInt();
        char text[40];
        std::snprintf(text, sizeof text, "0x%llx%s",
                      static_cast<unsigned long long>(bits.getZExtValue()),
                      element.isF64() ? "ull" : "u");
        append(text);
      }
    } else {
      for (APInt v : value.getValues<APInt>())
        append(element.isInteger(64) && v.getSExtValue() == INT64_MIN
                   ? "-9223372036854775807ll - 1"
                   : std::to_string(element.isInteger(1) || element.isUnsignedInteger()
                                        ? int64_t(v.getZExtValue())
                                        : v.getSExtValue()));
    }
    const unsigned bits = element.getIntOrFloatBitWidth();
    std::string type = isReal(element) ? "u" + std::to_string(bits) : storedName(element);
    globals.push_back("static __device__ const " + type + " " + name + "[" +
                      std::to_string(value.getNumElements()) + "] = {" + items + "};");
    k.remember(key, {name, 0});
    known = k.find(key);
  }
  Linear at = linear(dims(op.getResult()), index);
  std::string item = known->text + "[" + at.text() + "]";
  if (element.isInteger(1))
    item += " != 0";
  else if (isReal(element))
    item = call("bit_cast<" + storedName(element) + ">", item);
  Val v = k.define(loadLevel(at.level()),
                   isSmallFloat(element) ? storedName(element) : computedName(element), "constant",
                   item);
  v.raw = isSmallFloat(element);
  return v;
}

// exp(x - max) / sum of exp(x - max): the sum is at least 1 (or NaN), and the same for a whole row.
bool RegionCode::isSoftmaxQuotient(Operation* op) const {
  if (!isa<DivOp>(op)) return false;
  auto sum = behindSelect(op->getOperand(1)).getDefiningOp<ReduceSumOp>();
  if (!sum) return false;
  auto power = behindSelect(sum.getX()).getDefiningOp<ExpOp>();
  auto shifted = power ? power.getX().getDefiningOp<SubOp>() : SubOp();
  return shifted && behindSelect(shifted.getB()).getDefiningOp<ReduceMaxOp>();
}

std::string RegionCode::unary(Operation* op, const std::string& x, Type element) {
  const bool real = isReal(element);
  const std::string one = element.isF64() ? "1.0" : "1.0f";
  return TypeSwitch<Operation*, std::string>(op)
      .Case([&](NegOp) { return real ? "-" + x : call("int_neg", x); })
      .Case([&](AbsOp) {
        if (real) return call("math_abs", x);
        return element.isUnsignedInteger() ? x : call("int_abs", x);
      })
      .Case([&](SignOp) {
        const std::string type = computedName(element), zero = "(" + type + ")0";
        if (element.isUnsignedInteger()) return "(u8)(" + x + " != 0)";
        return x + " > " + zero + " ? (" + type + ")1 : " + x + " < " + zero + " ? (" + type +
               ")-1 : " + x;
      })
      .Case([&](ExpOp) { return call(roundsMuch_ ? "fast_exp" : "math_exp", x); })
      .Case([&](LogOp) { return call("math_log", x); })
      .Case([&](SqrtOp) { return call("math_sqrt", x); })
      .Case([&](RsqrtOp) { return call("math_rsqrt", x); })
      .Case([&](ReciprocalOp) { return one + " / " + x; })
      .Case([&](SinOp) { return call("math_sin", x); })
      .Case([&](CosOp) { return call("math_cos", x); })
      .Case([&](TanhOp) { return call("math_tanh", x); })
      .Case([&](ErfOp) { return call("math_erf", x); })
      // The divisor is at least 1, and what the exponential loses is below the sum's rounding.
      .Case([&](SigmoidOp) { return "fast_div(1.0f, 1.0f + fast_exp(-" + x + "))"; })
      .Case([&](FloorOp) { return call("math_floor", x); })
      .Case([&](CeilOp) { return call("math_ceil", x); })
      .Case([&](RoundOp) { return call("math_rint", x); })
      .Case([&](LogicalNotOp) { return "!" + x; })
      .Case([&](IsNanOp) { return x + " != " + x; });
}

std::string RegionCode::binary(Operation* op, const std::string& x, const std::string& y,
                               Type element) {
  const bool real = isReal(element);
  auto plain = [&](const char* sign, const char* function) {
    return real ? x + sign + y : call(function, x, y);
  };
  auto best = [&](const char* function, const char* sign) {
    return real ? call(function, x, y) : x + sign + y + " ? " + x + " : " + y;
  };
  auto narrow = [&](const std::string& text) {
    return element.getIntOrFloatBitWidth() < 32 ? "(" + storedName(element) + ")(" + text + ")"
                                                : text;
  };
  return TypeSwitch<Operation*, std::string>(op)
      .Case([&](AddOp) { return plain(" + ", "int_add"); })
      .Case([&](SubOp) { return plain(" - ", "int_sub"); })
      .Case([&](MulOp) { return plain(" * ", "int_mul"); })
      .Case([&](DivOp) { return plain(" / ", "int_div"); })
      .Case([&](ModOp) { return call(real ? "math_mod" : "int_mod", x, y); })
      .Case([&](PowOp) { return call("math_pow", x, y); })
      .Case([&](MaxOp) { return best("max_nan", " > "); })
      .Case([&](MinOp) { return best("min_nan", " < "); })
      .Case([&](LogicalAndOp) { return x + " && " + y; })
      .Case([&](LogicalOrOp) { return x + " || " + y; })
      .Case([&](BitwiseAndOp) { return narrow(x + " & " + y); })
      .Case([&](BitwiseOrOp) { return narrow(x + " | " + y); })
      .Case([&](BitwiseXorOp) { return narrow(x + " ^ " + y); })
      .Case([&](ShiftLeftOp) { return call("shift_left", x, y); })
      .Case([&](ShiftRightOp) { return call("shift_right", x, y); });
}

Val RegionCode::cast(CastOp op, const Val& x) {
  Type from = tensorType(op.getX()).getElementType(), to = op.getDtype();
  if (from == to) return x;
  const bool both = isReal(from) && isReal(to);
  // Wider floats are what is computed with already.
  if (both && computedName(from) == computedName(to) && !isSmallFloat(to)) return x;
  if (isSmallFloat(to)) {
    // A float holds narrower integers.
    const bool wide = from.isF64() || from.isInteger(32) || from.isInteger(64);
    std::string value =
        computedName(from) == "float" ? x.text : (wide ? "odd_f32(" : "(float)(") + x.text + ")";
    Val rounded{"to_" + storedName(to) + "(" + value + ")", x.level, true};
    rounded.unrounded = value;
    return rounded;
  }
  if (to.isInteger(1)) return define(op, "bool", x.text + " != 0", {x});
  const std::string type = computedName(to);
  if (isReal(from) && !isReal(to)) {
    // Narrow integers by way of i32: a negative number for ui8 then wraps.
    const bool narrow = to.getIntOrFloatBitWidth() < 32;
    std::string whole = "convert<" + (narrow ? "i32" : type) + ">(" + x.text + ")";
    return define(op, type, narrow ? "(" + type + ")" + whole : whole, {x});
  }
  return define(op, type, "(" + type + ")" + x.text, {x});
}

Val RegionCode::bitcast(BitcastOp op, const Val& x) {
  Type from = tensorType(op.getX()).getElementType(), to = op.getDtype();
  if (from == to) return x;
  return define(op, storedName(to), "bit_cast<" + storedName(to) + ">(" + stored(from, x) + ")",
                {x}, true);
}

Val RegionCode::elementwise(Operation* op, const Index& index) {
  Type element = tensorType(op->getOperand(0)).getElementType();
  if (auto bits = dyn_cast<BitcastOp>(op))
    return bitcast(bits, eval(bits.getX(), broadcastIndex(bits.getX(), index)));
  Val x = operand(op, 0, index);
  Type result = tensorType(op->getResult(0)).getElementType();
  const std::string type = computedName(result);
  if (auto c = dyn_cast<CastOp>(op)) return cast(c, x);
  if (isa<SelectOp>(op)) {
    Val a = operand(op, 1, index), b = operand(op, 2, index);
    return define(op, type, x.text + " ? " + a.text + " : " + b.text, {x, a, b});
  }
  if (isa<SigmoidOp>(op) && !roundsMuch_) {
    // The exponential of a negative number: it cannot overflow.
    Val e = define(op, type, "math_exp(-math_abs(" + x.text + "))", {x});
    const std::string one = type == "double" ? "1.0" : "1.0f", zero = "0" + one.substr(1);
    return define(op, type,
                  "(" + x.text + " >= " + zero + " ? " + one + " : " + e.text + ") / (" + one +
                      " + " + e.text + ")",
                  {e});
  }
  if (op->getNumOperands() == 1) return define(op, type, unary(op, x.text, element), {x});
  Val y = operand(op, 1, index);
  if (auto compare = dyn_cast<CompareOp>(op))
    return define(op, type, x.text + predicateText(compare.getPredicate()) + y.text, {x, y});
  if (isSoftmaxQuotient(op) && type == "float" && y.level <= team.rowLevel &&
      x.level > team.rowLevel) {
    const std::string key = "inverse " + y.text;
    const Val* inverse = k.find(key);
    if (!inverse) {
      k.remember(key, k.define(y.level, type, "inverse", "1.0f / " + y.text));
      inverse = k.find(key);
    }
    return define(op, type, x.text + " * " + inverse->text, {x, *inverse});
  }
  return define(op, type, binary(op, x.text, y.text, element), {x, y});
}

}  // namespace lathe::cuda
