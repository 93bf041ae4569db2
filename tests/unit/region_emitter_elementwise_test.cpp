// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionElementwise : public RegionTest {};

TEST_P(RegionElementwise, AddsElementsWithARowAndAColumnAndAScalar) {
  auto k = compile(
      R"(func.func @f(%a: f32[m, n], %row: f32[n], %column: f32[m, 1], %s: f32[]) -> f32[m, n] {
    %0 = lathe.add %a, %row : f32[m, n], f32[n]
    %1 = lathe.mul %0, %column : f32[m, n], f32[m, 1]
    %2 = lathe.sub %1, %s : f32[m, n], f32[]
    return %2 : f32[m, n]
  })");
  for (int64_t n : kColumns) {
    Array a = floats({5, n}), row = floats({n}), column = floats({5, 1}), s = floats({});
    auto y = k.run({a, row, column, s}, {{"m", 5}, {"n", n}});
    expectNear(
        y[0],
        [&](int64_t i) {
          float sum = float(a.at(i)) + float(row.at(i % n));
          return (sum * float(column.at(i / n))) - float(s.at(0));
        },
        0);
  }
}

// One element may stand for all of a row; two are a row of their own.
TEST_P(RegionElementwise, AddsARowOfTwoToEveryRow) {
  auto k = compile(R"(func.func @f(%x: f32[m, 2], %r: f32[2]) -> f32[m, 2] {
    %0 = lathe.add %x, %r : f32[m, 2], f32[2]
    return %0 : f32[m, 2]
  })");
  for (int64_t m : {1, 5, 33}) {
    const Array x = floats({m, 2}), r = floats({2});
    expectNear(
        k.run({x, r}, {{"m", m}})[0], [&](int64_t i) { return x.at(i) + r.at(i % 2); }, kF32, kF32);
  }
}

TEST_P(RegionElementwise, RunsAPureElementwiseRegionOverAnyRangeOfElements) {
  auto k =
      compile(R"(func.func @f(%a: f32[m, n], %b: f32[m, n], %s: f32[1]) -> (f32[m, n], i1[m, n]) {
    %0 = lathe.max %a, %b : f32[m, n], f32[m, n]
    %1 = lathe.div %0, %s : f32[m, n], f32[1]
    %2 = lathe.compare lt %a, %b : f32[m, n], f32[m, n]
    return %1, %2 : f32[m, n], i1[m, n]
  })");
  if (GetParam().tier) {
    EXPECT_EQ(k.kernel().rows, "m*n");
    EXPECT_EQ(k.kernel().costPerRow, "1");
  }
  for (int64_t n : kColumns) {
    Array a = floats({3, n}), b = floats({3, n}), s = floats({1});
    if (n > 5) a.set(4, NAN), b.set(5, NAN);
    for (bool inPlace : {false, true}) {
      auto y = k.run({a, b, s}, {{"m", 3}, {"n", n}}, inPlace);
      expectNear(
          y[0],
          [&](int64_t i) {
            float p = float(a.at(i)), q = float(b.at(i));
            float top = std::isnan(p) ? p : std::isnan(q) ? q : std::max(p, q);
            return top / float(s.at(0));
          },
          0);
      expectNear(y[1], [&](int64_t i) { return a.at(i) < b.at(i); }, 0);
    }
  }
}

TEST_P(RegionElementwise, RoundsBf16AndF16OnlyAtCastsAndStores) {
  for (auto [name, dtype] : {std::pair{"bf16", DType::BF16}, {"f16", DType::F16}}) {
    std::string t = name, x = t + "[m, n]";
    auto k = compile("func.func @f(%a: " + x + ", %b: " + x + ", %c: f32[n]) -> (" + x +
                     ", f32[m, n], " + x + ") {" + "%0 = lathe.mul %a, %b : " + x + ", " + x +
                     "\n" + "%1 = lathe.add %0, %a : " + x + ", " + x + "\n" +
                     "%2 = lathe.cast %1 to f32 : " + x + "\n" +
                     "%3 = lathe.add %2, %c : f32[m, n], f32[n]\n" + "%4 = lathe.cast %3 to " + t +
                     " : f32[m, n]\n" + "%5 = lathe.cast %4 to f32 : " + x + "\n" +
                     "return %1, %5, %4 : " + x + ", f32[m, n], " + x + "}");
    for (int64_t n : kColumns) {
      Array a = floats({4, n}, dtype), b = floats({4, n}, dtype), c = floats({n});
      auto y = k.run({a, b, c}, {{"m", 4}, {"n", n}});
      auto exact = [&](int64_t i) { return float(a.at(i)) * float(b.at(i)) + float(a.at(i)); };
      auto rounded = [&](int64_t i) {
        return roundTo(dtype, float(exact(i)) + float(c.at(i % n)));
      };
      expectNear(y[0], [&](int64_t i) { return roundTo(dtype, exact(i)); }, 0);
      expectNear(y[1], rounded, 0);
      expectNear(y[2], rounded, 0);
    }
  }
}

TEST_P(RegionElementwise, StoresEveryKindOfBf16AndF16Value) {
  for (auto [name, dtype] : {std::pair{"bf16", DType::BF16}, {"f16", DType::F16}}) {
    std::string t = name;
    auto k = compile("func.func @f(%a: f32[n]) -> " + t + "[n] { %0 = lathe.cast %a to " + t +
                     " : f32[n]\n return %0 : " + t + "[n] }");
    std::vector<float> v{0.f,         -0.f,         1.f,       65504.f, 65520.f,
                         3.4e38f,     INFINITY,     -INFINITY, NAN,     1.00390625f,
                         1.01171875f, -1.00390625f, 6.1e-5f,   5.9e-8f, 1e-3f};
    for (int i = 0; i < 40; ++i) v.push_back(float(i) * 1.37e-2f - 0.3f);
    Array a = Array::fromFloats(v, {int64_t(v.size())});
    auto y = k.run({a}, {{"n", a.size()}});
    expectNear(y[0], [&](int64_t i) { return roundTo(dtype, v[i]); }, 0);
  }
}

// Also those whose set bits all lie in what bf16 cuts off.
TEST_P(RegionElementwise, StoresEveryNanAsANan) {
  for (std::string t : {"bf16", "f16"}) {
    auto k = compile("func.func @f(%a: f32[n], %b: f32[n]) -> " + t +
                     "[n] { %0 = lathe.mul %a, %b : f32[n], f32[n]\n%1 = lathe.cast %0 to " + t +
                     " : f32[n]\n return %1 : " + t + "[n] }");
    for (int64_t n : {1, 3, 7, 15, 40}) {
      const uint32_t payloads[] = {0x400000, 0x400001, 0x407fff, 0x408000, 0x7f7fff, 0x7fffff};
      Array a(DType::F32, {n}), ones(DType::F32, {n});
      for (int64_t i = 0; i < n; ++i) {
        const uint32_t bits = (i % 2 ? 0xff800000u : 0x7f800000u) | payloads[i / 2 % 6];
        a.as<float>()[size_t(i)] = std::bit_cast<float>(bits);
        ones.set(i, 1);
      }
      auto y = k.run({a, ones}, {{"n", n}});
      expectNear(y[0], [](int64_t) { return NAN; }, 0);
    }
  }
}

TEST_P(RegionElementwise, ComputesFloatFunctions) {
  struct Case {
    const char* op;
    double (*f)(double);
    double scale, rtol;
  };
  auto sign = [](double x) { return x > 0 ? 1. : x < 0 ? -1. : x; };
  for (const Case& c :
       std::vector<Case>{{"exp", std::exp, 110, 2.5e-7},
                         {"log", std::log, 50, kF32},
                         {"sqrt", std::sqrt, 50, kF32},
                         {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 50, kF32},
                         {"reciprocal", [](double x) { return 1 / x; }, 50, kF32},
                         {"sin", std::sin, 1e6, kF32},
                         {"cos", std::cos, 1e6, kF32},
                         {"tanh", std::tanh, 4, kF32},
                         {"erf", std::erf, 4, 6e-7},
                         {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 100, 5e-7},
                         {"floor", std::floor, 9, 0},
                         {"ceil", std::ceil, 9, 0},
                         {"round", std::nearbyint, 9, 0},
                         {"abs", std::fabs, 9, 0},
                         {"sign", sign, 9, 0},
                         {"neg", [](double x) { return -x; }, 9, 0}}) {
    for (std::string t : {"f32", "f64"}) {
      SCOPED_TRACE(c.op + (" " + t));
      DType dtype = *parseDType(t);
      auto k = compile("func.func @f(%a: " + t + "[n]) -> " + t + "[n] { %0 = lathe." + c.op +
                       " %a : " + t + "[n]\n return %0 : " + t + "[n] }");
      Array a = floats({123}, dtype, c.scale);
      double special[] = {0,   -0.,  kInf, -kInf, NAN,    1e-40, -1e-40, 0.5, 1.5,
                          2.5, -2.5, 1e-5, 88.8,  -103.5, -90,   89,     -88};
      for (size_t i = 0; i < std::size(special); ++i) a.set(int64_t(i) * 7, special[i]);
      auto y = k.run({a}, {{"n", 123}});
      bool wide = dtype == DType::F64;
      expectNear(
          y[0],
          [&](int64_t i) {
            double v = c.f(a.at(i));
            return wide ? v : double(float(v));
          },
          wide ? 1e-15 : c.rtol, wide ? 0 : 1.5e-45);
    }
  }
}

TEST_P(RegionElementwise, ComputesPowAndFlooredModAsTheCLibrary) {
  auto k = compile(R"(func.func @f(%a: f32[n], %b: f32[n]) -> (f32[n], f32[n]) {
    %0 = lathe.pow %a, %b : f32[n], f32[n]
    %1 = lathe.mod %a, %b : f32[n], f32[n]
    return %0, %1 : f32[n], f32[n]
  })");
  Array a = floats({41}), b = floats({41});
  double specials[] = {0, -0., 1, -1, kInf, -kInf, NAN, 2, -2};
  for (int i = 0; i < 9; ++i) a.set(i, specials[i]), b.set(i, specials[8 - i]);
  auto y = k.run({a, b}, {{"n", 41}});
  expectNear(y[0], [&](int64_t i) { return std::pow(float(a.at(i)), float(b.at(i))); }, kF32);
  expectNear(
      y[1],
      [&](int64_t i) {
        float r = std::fmod(float(a.at(i)), float(b.at(i)));
        return r != 0 && (r < 0) != (b.at(i) < 0) ? r + float(b.at(i)) : r;
      },
      0);
}

TEST_P(RegionElementwise, ComputesIntegersOfEveryWidth) {
  for (std::string t : {"i64", "i32", "i16", "i8", "ui8"}) {
    SCOPED_TRACE(t);
    std::string x = t + "[n]", xx = x + ", " + x;
    DType dtype = *parseDType(t == "ui8" ? "u8" : t);
    std::string text = "func.func @f(%a: " + x + ", %b: " + x + ") -> (";
    std::vector<std::string> ops{"add",        "sub",         "mul",        "div",
                                 "mod",        "max",         "min",        "bitwise_and",
                                 "bitwise_or", "bitwise_xor", "shift_left", "shift_right"};
    std::string types, values, code;
    for (size_t i = 0; i < ops.size(); ++i) {
      std::string n = std::to_string(i), comma = i ? ", " : "";
      types += comma + x;
      values += comma + "%" + n;
      code += "%" + n + " = lathe." + ops[i] + " %a, %b : " + xx + "\n";
    }
    auto k = compile(text + types + ") {" + code + "return " + values + " : " + types + "}");
    bool isUnsigned = t == "ui8";
    int bits = int(sizeOf(dtype)) * 8;
    int64_t least = isUnsigned ? 0 : bits == 64 ? -(int64_t(1) << 40) : -(int64_t(1) << (bits - 1));
    int64_t most = isUnsigned ? 255 : -(least + 1);
    Array a = integers({70}, dtype, least, most),
          b = integers({70}, dtype, isUnsigned ? 0 : -9, 12);
    a.set(0, double(least)), b.set(0, isUnsigned ? 1 : -1);
    b.set(1, 0), b.set(2, double(bits)), b.set(3, double(bits - 1));
    auto y = k.run({a, b}, {{"n", 70}});
    auto wrap = [&](__int128 v) {
      Array one(dtype, {1});
      if (bits == 64) return double(int64_t(v));
      uint64_t low = uint64_t(v) & ((uint64_t(1) << bits) - 1);
      if (!isUnsigned && (low >> (bits - 1))) return double(int64_t(low) - (int64_t(1) << bits));
      return double(low);
    };
    auto unsignedOf = [&](int64_t v) {
      return bits == 64 ? uint64_t(v) : uint64_t(v) & ((uint64_t(1) << bits) - 1);
    };
    for (size_t op = 0; op < ops.size(); ++op) {
      SCOPED_TRACE(ops[op]);
      expectNear(
          y[op],
          [&](int64_t i) -> double {
            int64_t p = int64_t(a.at(i)), q = int64_t(b.at(i));
            switch (op) {
              case 0:
                return wrap(__int128(p) + q);
              case 1:
                return wrap(__int128(p) - q);
              case 2:
                return wrap(__int128(p) * q);
              case 3:
                return q == 0 ? 0 : wrap(__int128(p) / q);
              case 4:
                return q == 0 ? 0 : wrap(((__int128(p) % q) + q) % q);
              case 5:
                return double(std::max(p, q));
              case 6:
                return double(std::min(p, q));
              case 7:
                return wrap(p & q);
              case 8:
                return wrap(p | q);
              case 9:
                return wrap(p ^ q);
              case 10:
                return unsignedOf(q) >= uint64_t(bits) ? 0 : wrap(__int128(uint64_t(p) << q));
              default:
                return unsignedOf(q) >= uint64_t(bits) ? 0 : wrap(__int128(unsignedOf(p) >> q));
            }
          },
          0);
    }
  }
}

TEST_P(RegionElementwise, CastsBetweenAllKinds) {
  std::vector<std::string> types{"f64", "f32", "bf16", "f16", "i64",
                                 "i32", "i16", "i8",   "ui8", "i1"};
  for (const std::string& from : types) {
    std::string results, values, code;
    for (size_t i = 0; i < types.size(); ++i) {
      std::string n = std::to_string(i), comma = i ? ", " : "";
      results += comma + types[i] + "[3, n]";
      values += comma + "%" + n;
      code += "%" + n + " = lathe.cast %a to " + types[i] + " : " + from + "[3, n]\n";
    }
    auto k = compile("func.func @f(%a: " + from + "[3, n]) -> (" + results + ") {" + code +
                     "return " + values + " : " + results + "}");
    auto dtype = [](const std::string& t) {
      return *parseDType(t == "ui8" ? "u8" : t == "i1" ? "bool" : t);
    };
    Array a = floats({3, 37}, DType::F32, 100);
    for (int64_t i = 0; i < a.size(); ++i)
      a.set(i, from == "ui8" || i % 2 ? std::abs(a.at(i)) : -std::abs(a.at(i)));
    a.set(0, 0);
    if (from == "i1")
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 3 == 0));
    a = a.to(dtype(from));
    auto y = k.run({a}, {{"n", 37}});
    for (size_t i = 0; i < types.size(); ++i) {
      SCOPED_TRACE(from + " to " + types[i]);
      DType to = dtype(types[i]);
      expectNear(
          y[i],
          [&](int64_t j) -> double {
            double v = a.at(j);
            if (to == DType::Bool) return v != 0;
            // Integers wrap, floats end at what the integer can hold.
            if (to == DType::U8 && isFloat(a.dtype())) return std::clamp(std::trunc(v), 0.0, 255.0);
            if (to == DType::U8) return double(uint8_t(int64_t(v)));
            if (isFloat(to)) return roundTo(to, v);
            return double(int64_t(v));
          },
          0);
    }
  }
}

// Numbers next to the ties of 16 bits that f32 rounds to the ties themselves.
TEST_P(RegionElementwise, RoundsWideNumbersTo16BitsOnce) {
  struct To {
    const char* name;
    int digits, lowest;  // significant bits; the least power of two that is a unit
    double highest;      // from here on it is infinity
  };
  for (const To& to : {To{"bf16", 8, -133, INFINITY}, {"f16", 11, -24, 65520}})
    for (auto [from, dtype] :
         {std::pair{"f64", DType::F64}, {"i32", DType::I32}, {"i64", DType::I64}}) {
      SCOPED_TRACE(std::string(from) + " to " + to.name);
      const std::string a = std::string(from) + "[n]", y = std::string(to.name) + "[n]";
      auto k = compile("func.func @f(%a: " + a + ") -> " + y + " {%0 = lathe.cast %a to " +
                       to.name + " : " + a + "\nreturn %0 : " + y + "}");
      const int top = dtype == DType::I32 ? 31 : dtype == DType::I64 ? 63 : 20;
      Array x(dtype, {515});
      for (int64_t i = 0; i < x.size(); ++i) {
        const int high = int(random_() % uint64_t(top - 9)) + 9;
        const double unit = std::ldexp(1, high - to.digits + 1);
        double middle =
            unit * (double(random_() % (1u << (to.digits - 1)) + (1u << (to.digits - 1))) + 0.5);
        const double off = dtype == DType::F64 ? middle * 0x1p-40 : 1;
        middle += off * double(int64_t(random_() % 3) - 1);
        if (random_() % 2) middle = -middle;
        if (dtype == DType::I64)
          x.as<int64_t>()[size_t(i)] =
              int64_t(middle) + (high > 54 ? int64_t(random_() % 3) - 1 : 0);
        else
          x.set(i, std::trunc(middle) == middle || dtype == DType::F64 ? middle : 0);
      }
      x.set(0, 0);
      // The number in units of the result's last place, cut off, and whether something is left.
      auto rounded = [&](int64_t i) -> double {
        const bool whole = dtype == DType::I64;
        const int64_t n = whole ? x.as<int64_t>()[size_t(i)] : 0;
        const long double v = whole ? (long double)n : (long double)x.at(i);
        if (v == 0) return 0;
        const int unit = std::max(std::ilogb(v) - to.digits + 1, to.lowest);
        const double nearest = double(std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit));
        return std::abs(nearest) >= to.highest ? std::copysign(INFINITY, nearest) : nearest;
      };
      expectNear(k.run({x}, {{"n", x.size()}})[0], rounded, 0);
    }
}

TEST_P(RegionElementwise, ReadsBitsAsAnotherType) {
  auto k = compile(R"(func.func @f(%a: f32[n], %h: bf16[n]) -> (i32[n], f32[n], i16[n]) {
    %0 = lathe.bitcast %a to i32 : f32[n]
    %one = lathe.constant dense<1> : tensor<i32>
    %1 = lathe.add %0, %one : i32[n], i32[]
    %2 = lathe.bitcast %1 to f32 : i32[n]
    %3 = lathe.bitcast %h to i16 : bf16[n]
    return %0, %2, %3 : i32[n], f32[n], i16[n]
  })");
  Array a = floats({33}), h = floats({33}, DType::BF16);
  auto y = k.run({a, h}, {{"n", 33}});
  for (int i = 0; i < 33; ++i) {
    EXPECT_EQ(y[0].as<int32_t>()[i], std::bit_cast<int32_t>(a.as<float>()[i]));
    EXPECT_EQ(y[1].as<float>()[i],
              std::bit_cast<float>(std::bit_cast<int32_t>(a.as<float>()[i]) + 1));
    EXPECT_EQ(y[2].as<int16_t>()[i], std::bit_cast<int16_t>(h.as<uint16_t>()[i]));
  }
}

TEST_P(RegionElementwise, SelectsByACausalMaskFromIotas) {
  auto k = compile(R"(func.func @f(%x: f32[m, n], %m: i1[m, n]) -> (f32[m, n], i1[m, n]) {
    %i = lathe.iota <m, 1> axis 0 dtype i64
    %j = lathe.iota <1, n> axis 1 dtype i64
    %le = lathe.compare le %j, %i : i64[1, n], i64[m, 1]
    %both = lathe.logical_and %le, %m : i1[m, n], i1[m, n]
    %not = lathe.logical_not %both : i1[m, n]
    %low = lathe.constant dense<0xFF800000> : tensor<f32>
    %y = lathe.select %both, %x, %low : i1[m, n], f32[m, n], f32[]
    return %y, %not : f32[m, n], i1[m, n]
  })");
  for (int64_t n : kColumns) {
    Array x = floats({6, n}), mask = integers({6, n}, DType::Bool, 0, 1);
    auto y = k.run({x, mask}, {{"m", 6}, {"n", n}});
    auto visible = [&](int64_t i) { return i % n <= i / n && mask.at(i) != 0; };
    expectNear(y[0], [&](int64_t i) { return visible(i) ? x.at(i) : -kInf; }, 0);
    expectNear(y[1], [&](int64_t i) { return !visible(i); }, 0);
  }
}

TEST_P(RegionElementwise, CountsInEveryNumberType) {
  for (std::string t : {"f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "ui8"}) {
    auto k = compile("func.func @f(%a: " + t + "[2, n]) -> " + t +
                     "[2, n] { %0 = lathe.iota <2, n> axis 1 dtype " + t +
                     "\n%1 = lathe.add %0, %a : " + t + "[2, n], " + t +
                     "[2, n]\n return %1 : " + t + "[2, n] }");
    Array a(*parseDType(t == "ui8" ? "u8" : t), {2, 77});
    auto y = k.run({a}, {{"n", 77}});
    expectNear(y[0], [&](int64_t i) { return double(i % 77); }, 0);
  }
}

TEST_P(RegionElementwise, ReadsTablesOfConstants) {
  auto k = compile(R"(func.func @f(%x: bf16[m, 5]) -> (bf16[m, 5], i1[m, 5]) {
    %t = lathe.constant dense<[1.0, 2.0, -3.0, 4.5, 0.0]> : tensor<5xbf16>
    %b = lathe.constant dense<[true, false, false, true, true]> : tensor<5xi1>
    %0 = lathe.mul %x, %t : bf16[m, 5], bf16[5]
    %z = lathe.constant dense<0.0> : tensor<bf16>
    %p = lathe.compare gt %x, %z : bf16[m, 5], bf16[]
    %1 = lathe.logical_or %p, %b : i1[m, 5], i1[5]
    return %0, %1 : bf16[m, 5], i1[m, 5]
  })");
  // True is 1 in a table, too: compilers refuse -1 as a byte without a sign.
  if (!GetParam().tier) {
    EXPECT_NE(k.printed().kernels[0].source.find("= {1, 0, 0, 1, 1}"), std::string::npos);
  }
  double table[] = {1, 2, -3, 4.5, 0};
  bool truth[] = {true, false, false, true, true};
  Array x = floats({7, 5}, DType::BF16);
  auto y = k.run({x}, {{"m", 7}});
  expectNear(y[0], [&](int64_t i) { return roundTo(DType::BF16, x.at(i) * table[i % 5]); }, 0);
  expectNear(y[1], [&](int64_t i) { return x.at(i) > 0 || truth[i % 5]; }, 0);
}

// The least number of 64 bits has no literal of its own in C++.
TEST_P(RegionElementwise, ReadsTablesOfTheLeastAndTheGreatestNumber) {
  auto k = compile(R"(func.func @f(%x: i64[m, 3]) -> i64[m, 3] {
    %t = lathe.constant dense<[-9223372036854775808, 9223372036854775807, -1]> : tensor<3xi64>
    %0 = lathe.bitwise_xor %x, %t : i64[m, 3], i64[3]
    return %0 : i64[m, 3]
  })");
  if (!GetParam().tier) {
    EXPECT_EQ(k.printed().kernels[0].source.find("-9223372036854775808"), std::string::npos);
  }
  const std::vector<int64_t> table{INT64_MIN, INT64_MAX, -1};
  Array x(DType::I64, {2, 3});
  auto y = k.run({x}, {{"m", 2}});
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(static_cast<const int64_t*>(y[0].data())[i], table[size_t(i % 3)]) << i;
}

// What its terms have in common is what vectors divide, in whichever order they stand.
TEST_P(RegionElementwise, EndsWhereASumOfSizesDoes) {
  for (const char* length : {"8*n+2", "2*m+8*n", "8*m+2*n", "4*m*n+n"}) {
    SCOPED_TRACE(length);
    const std::string type = "f32[" + std::string(length) + "]";
    auto k = compile("func.func @f(%x: " + type + ") -> " + type +
                     " { %0 = lathe.neg %x : " + type + "\n return %0 : " + type + " }");
    const DimExpr size = *DimExpr::parse(length);
    const int64_t count = size.evaluate({{"m", 3}, {"n", 5}}).value();
    Symbols symbols;
    for (const std::string& name : size.symbols()) symbols[name] = name == "m" ? 3 : 5;
    Array x = floats({count});
    expectNear(k.run({x}, symbols)[0], [&](int64_t i) { return -x.at(i); }, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionElementwise, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
