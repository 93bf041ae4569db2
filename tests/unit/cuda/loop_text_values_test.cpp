// SPDX-License-Identifier: Apache-2.0
// Every op of the loop form, on awkward numbers, alone and lane by lane.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "tests/unit/cuda/loop_text_run.h"

namespace lathe::cuda {
namespace {

std::string replaced(std::string text, const std::map<std::string, std::string>& words) {
  for (auto& [word, by] : words)
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
      text.replace(at, word.size(), by);
  return text;
}

template <class T>
struct Numbers;
template <>
struct Numbers<float> {
  static constexpr const char* mlir = "f32";
  static constexpr const char* cuda = "float";
  static constexpr DType dtype = DType::F32;
  static std::vector<float> awkward() {
    const float inf = INFINITY;
    return {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -2.5f, 3.5f, 100.25f, 1e-40f, -1e30f, inf, -inf, NAN};
  }
};
template <>
struct Numbers<double> : Numbers<float> {
  static constexpr const char* mlir = "f64";
  static constexpr const char* cuda = "double";
  static constexpr DType dtype = DType::F64;
  static std::vector<double> awkward() {
    return {0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-310, -1e300, INFINITY, -INFINITY, NAN};
  }
};
template <class T>
struct Integers {
  static std::vector<T> awkward() {
    const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    return {0, 1, -1, 2, -3, 7, 31, 100, -100, most, T(most - 1), least, T(least + 1)};
  }
};
template <>
struct Numbers<int64_t> : Integers<int64_t> {
  static constexpr const char* mlir = "i64";
  static constexpr const char* cuda = "i64";
  static constexpr DType dtype = DType::I64;
};
template <>
struct Numbers<int32_t> : Integers<int32_t> {
  static constexpr const char* mlir = "i32";
  static constexpr const char* cuda = "i32";
  static constexpr DType dtype = DType::I32;
};
template <>
struct Numbers<int16_t> : Integers<int16_t> {
  static constexpr const char* mlir = "i16";
  static constexpr const char* cuda = "i16";
  static constexpr DType dtype = DType::I16;
};
template <>
struct Numbers<int8_t> : Integers<int8_t> {
  static constexpr const char* mlir = "i8";
  static constexpr const char* cuda = "u8";  // a buffer may be one of unsigned numbers
  static constexpr DType dtype = DType::I8;
};

template <class T>
bool same(T a, T b) {
  if (a != a || b != b) return a != a && b != b;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class In, class Out>
struct Case {
  std::string name;
  std::string text;  ///< gives %r of %a and %b; T, U, B: types of operands, result and conditions
  std::function<Out(In, In)> want;
  std::function<bool(In, In)> defined = [](In, In) { return true; };
};

class Values : public LoopText {
 protected:
  // All pairs of awkward numbers through every case; the results are exact.
  template <class In, class Out>
  void check(const std::vector<Case<In, Out>>& cases) {
    using A = Numbers<In>;
    using R = Numbers<Out>;
    std::vector<In> numbers = A::awkward(), left, right;
    for (In x : numbers)
      for (In y : numbers) left.push_back(x), right.push_back(y);
    while (left.size() % 8) left.push_back(In(1)), right.push_back(In(1));
    const int64_t n = int64_t(left.size());
    for (int64_t width : {1, 8}) {
      // Where a case has no result, it gets other operands.
      std::vector<Array> arrays;
      std::string body, parameters, declared;
      std::vector<std::string> names;
      for (size_t i = 0; i < cases.size(); ++i) {
        Array a(A::dtype, {n}), b(A::dtype, {n}), r(R::dtype, {n});
        for (int64_t at = 0; at < n; ++at) {
          const bool ok = cases[i].defined(left[size_t(at)], right[size_t(at)]);
          a.as<In>()[size_t(at)] = ok ? left[size_t(at)] : In(1);
          b.as<In>()[size_t(at)] = ok ? right[size_t(at)] : In(1);
        }
        for (const Array& array : {a, b, r}) arrays.push_back(array);
        const std::string id = std::to_string(i);
        parameters += "%x" + id + ": !llvm.ptr, %y" + id + ": !llvm.ptr, %o" + id + ": !llvm.ptr, ";
        for (const char* name : {"x", "y", "o"}) names.push_back(name + id);
        declared += std::string(i ? ", " : "") + "const " + A::cuda + "* x" + id + ", const " +
                    A::cuda + "* y" + id + ", " + R::cuda + "* o" + id;
        auto typed = [&](const std::string& element) {
          return width == 1 ? element : "vector<8x" + element + ">";
        };
        body += replaced(
            "  %px@ = llvm.getelementptr %x@[%at] : (!llvm.ptr, i64) -> !llvm.ptr, EA\n"
            "  %a@ = llvm.load %px@ : !llvm.ptr -> T\n"
            "  %py@ = llvm.getelementptr %y@[%at] : (!llvm.ptr, i64) -> !llvm.ptr, EA\n"
            "  %b@ = llvm.load %py@ : !llvm.ptr -> T\n" +
                cases[i].text +
                "\n  %po@ = llvm.getelementptr %o@[%at] : (!llvm.ptr, i64) -> !llvm.ptr, ER\n"
                "  llvm.store %r@, %po@ : U, !llvm.ptr\n",
            {{"@", id},
             {"EA", A::mlir},
             {"ER", R::mlir},
             {"T", typed(A::mlir)},
             {"U", typed(R::mlir)},
             {"B", typed("i1")}});
      }
      const std::string number = std::to_string(width);
      const std::string text =
          print(parameters + "%t: i32",
                "  %zero = arith.constant 0 : i32\n  %end = arith.constant " + std::to_string(n) +
                    " : i32\n  %step = arith.constant " + number +
                    " : i32\n  scf.for %i = %zero to %end step %step : i32 {\n"
                    "  %at = arith.extsi %i : i32 to i64\n" +
                    body + "  }",
                [&] {
                  auto all = names;
                  all.push_back("threadIdx.x");
                  return all;
                }());
      std::vector<Array*> buffers;
      for (Array& array : arrays) buffers.push_back(&array);
      run(text, declared, buffers, 1);
      for (size_t i = 0; i < cases.size(); ++i)
        for (int64_t at = 0; at < n; ++at) {
          const In x = arrays[3 * i].as<In>()[size_t(at)],
                   y = arrays[3 * i + 1].as<In>()[size_t(at)];
          const Out got = arrays[3 * i + 2].as<Out>()[size_t(at)];
          EXPECT_TRUE(same(got, cases[i].want(x, y)))
              << cases[i].name << " of " << +x << " and " << +y << " is " << +cases[i].want(x, y)
              << ", not " << +got << ", " << width << " lanes\n"
              << text;
        }
    }
  }

  template <class T>
  static Case<T, T> op(
      const std::string& name, std::function<T(T, T)> want,
      std::function<bool(T, T)> defined = [](T, T) { return true; }) {
    return {name, "  %r@ = " + name + " %a@, %b@ : T", want, defined};
  }
  template <class T>
  static Case<T, T> unary(const std::string& name, std::function<T(T)> want) {
    return {name, "  %r@ = " + name + " %a@ : T", [want](T x, T) { return want(x); }};
  }

  template <class T>
  void reals() {
    auto larger = [](T x, T y) {
      if (x != x || y != y) return T(NAN);
      return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
    };
    auto smaller = [](T x, T y) {
      if (x != x || y != y) return T(NAN);
      return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
    };
    check<T, T>(
        {op<T>("arith.addf", [](T x, T y) { return x + y; }),
         op<T>("arith.subf", [](T x, T y) { return x - y; }),
         op<T>("arith.mulf", [](T x, T y) { return x * y; }),
         op<T>("arith.divf", [](T x, T y) { return x / y; }),
         op<T>("arith.remf", [](T x, T y) { return std::fmod(x, y); }),
         op<T>("arith.maximumf", larger),
         op<T>("arith.minimumf", smaller),
         op<T>("math.powf", [](T x, T y) { return std::pow(x, y); }),
         op<T>("math.copysign", [](T x, T y) { return std::copysign(x, y); }),
         unary<T>("arith.negf", [](T x) { return -x; }),
         unary<T>("math.absf", [](T x) { return std::abs(x); }),
         unary<T>("math.exp", [](T x) { return std::exp(x); }),
         unary<T>("math.log", [](T x) { return std::log(x); }),
         unary<T>("math.sqrt", [](T x) { return std::sqrt(x); }),
         unary<T>("math.rsqrt", [](T x) { return T(1) / std::sqrt(x); }),
         unary<T>("math.sin", [](T x) { return std::sin(x); }),
         unary<T>("math.cos", [](T x) { return std::cos(x); }),
         unary<T>("math.tanh", [](T x) { return std::tanh(x); }),
         unary<T>("math.erf", [](T x) { return std::erf(x); }),
         unary<T>("math.floor", [](T x) { return std::floor(x); }),
         unary<T>("math.ceil", [](T x) { return std::ceil(x); }),
         unary<T>("math.roundeven", [](T x) { return std::nearbyint(x); }),
         {"fma", "  %r@ = math.fma %a@, %b@, %b@ : T", [](T x, T y) { return std::fma(x, y, y); }},
         {"a - (b - a)", "  %d@ = arith.subf %b@, %a@ : T\n  %r@ = arith.subf %a@, %d@ : T",
          [](T x, T y) { return x - (y - x); }},
         {"a / (b * a)", "  %d@ = arith.mulf %b@, %a@ : T\n  %r@ = arith.divf %a@, %d@ : T",
          [](T x, T y) { return x / (y * x); }},
         {"-(-a)", "  %d@ = arith.negf %a@ : T\n  %r@ = arith.negf %d@ : T",
          [](T x, T) { return x; }},
         {"a < b ? b : a",
          "  %c@ = arith.cmpf olt, %a@, %b@ : T\n  %r@ = arith.select %c@, %b@, %a@ : B, T",
          [](T x, T y) { return x < y ? y : x; }}});
  }

  template <class T>
  void predicatesOfReals() {
    std::vector<Case<T, int8_t>> cases;
    using P = std::function<bool(T, T)>;
    const std::vector<std::pair<std::string, P>> ordered{
        {"eq", [](T x, T y) { return x == y; }}, {"gt", [](T x, T y) { return x > y; }},
        {"ge", [](T x, T y) { return x >= y; }}, {"lt", [](T x, T y) { return x < y; }},
        {"le", [](T x, T y) { return x <= y; }}, {"ne", [](T x, T y) { return x < y || x > y; }}};
    auto text = [](const std::string& name) {
      return "  %c@ = arith.cmpf " + name + ", %a@, %b@ : T\n  %r@ = arith.extui %c@ : B to U";
    };
    for (auto& [name, holds] : ordered) {
      const P f = holds;
      cases.push_back({"o" + name, text("o" + name), [f](T x, T y) { return int8_t(f(x, y)); }});
      cases.push_back({"u" + name, text("u" + name),
                       [f](T x, T y) { return int8_t(x != x || y != y || f(x, y)); }});
    }
    cases.push_back({"ord", text("ord"), [](T x, T y) { return int8_t(x == x && y == y); }});
    cases.push_back({"uno", text("uno"), [](T x, T y) { return int8_t(x != x || y != y); }});
    cases.push_back({"isnan",
                     "  %c@ = arith.cmpf uno, %a@, %a@ : T\n  %r@ = arith.extui %c@ : B to U",
                     [](T x, T) { return int8_t(x != x); }});
    check(cases);
  }

  template <class T>
  void integers() {
    using U = std::make_unsigned_t<T>;
    using W = std::conditional_t<(sizeof(T) < 4), uint32_t, U>;
    constexpr int bits = 8 * sizeof(T);
    auto wide = [](T x) { return W(U(x)); };
    auto quotient = [](T x, T y) {
      return y != 0 && !(y == -1 && x == std::numeric_limits<T>::min());
    };
    auto divisor = [](T, T y) { return y != 0; };
    auto shift = [](T, T y) { return y >= 0 && y < bits; };
    check<T, T>({op<T>("arith.addi", [=](T x, T y) { return T(wide(x) + wide(y)); }),
                 op<T>("arith.subi", [=](T x, T y) { return T(wide(x) - wide(y)); }),
                 op<T>("arith.muli", [=](T x, T y) { return T(wide(x) * wide(y)); }),
                 op<T>(
                     "arith.divsi", [](T x, T y) { return T(x / y); }, quotient),
                 op<T>(
                     "arith.remsi", [](T x, T y) { return T(x % y); }, quotient),
                 op<T>(
                     "arith.divui", [](T x, T y) { return T(U(x) / U(y)); }, divisor),
                 op<T>(
                     "arith.remui", [](T x, T y) { return T(U(x) % U(y)); }, divisor),
                 op<T>("arith.maxsi", [](T x, T y) { return std::max(x, y); }),
                 op<T>("arith.minsi", [](T x, T y) { return std::min(x, y); }),
                 op<T>("arith.maxui", [](T x, T y) { return U(x) > U(y) ? x : y; }),
                 op<T>("arith.minui", [](T x, T y) { return U(x) < U(y) ? x : y; }),
                 op<T>("arith.andi", [](T x, T y) { return T(x & y); }),
                 op<T>("arith.ori", [](T x, T y) { return T(x | y); }),
                 op<T>("arith.xori", [](T x, T y) { return T(x ^ y); }),
                 op<T>(
                     "arith.shli", [](T x, T y) { return T(U(x) << y); }, shift),
                 op<T>(
                     "arith.shrui", [](T x, T y) { return T(U(x) >> y); }, shift),
                 op<T>(
                     "arith.shrsi", [](T x, T y) { return T(x >> y); }, shift),
                 unary<T>("math.absi", [=](T x) { return x < 0 ? T(W(0) - wide(x)) : x; }),
                 {"(a - b) / 2 compared unsigned with a",
                  "  %d@ = arith.subi %a@, %b@ : T\n  %c@ = arith.cmpi ult, %d@, %a@ : T\n"
                  "  %r@ = arith.select %c@, %d@, %a@ : B, T",
                  [=](T x, T y) {
                    const T d = T(wide(x) - wide(y));
                    return U(d) < U(x) ? d : x;
                  }}});
    std::vector<Case<T, int8_t>> cases;
    using P = std::function<bool(T, T)>;
    const std::vector<std::pair<std::string, P>> predicates{{"eq", [](T x, T y) { return x == y; }},
                                                            {"ne", [](T x, T y) { return x != y; }},
                                                            {"slt", [](T x, T y) { return x < y; }},
                                                            {"sle", [](T x, T y) { return x <= y; }},
                                                            {"sgt", [](T x, T y) { return x > y; }},
                                                            {"sge", [](T x, T y) { return x >= y; }},
                                                            {"ult", [](T x, T y) { return U(x) < U(y); }},
                                                            {"ule", [](T x, T y) { return U(x) <= U(y); }},
                                                            {"ugt", [](T x, T y) { return U(x) > U(y); }},
                                                            {"uge", [](T x, T y) { return U(x) >= U(y); }}};
    for (auto& [name, holds] : predicates) {
      const P f = holds;
      cases.push_back(
          {name, "  %c@ = arith.cmpi " + name + ", %a@, %b@ : T\n  %r@ = arith.extui %c@ : B to U",
           [f](T x, T y) { return int8_t(f(x, y)); }});
      // Of what is computed on the way, the bits beyond the width are cut off first.
      cases.push_back({name + " of a sum",
                       "  %s@ = arith.addi %a@, %b@ : T\n  %c@ = arith.cmpi " + name +
                           ", %s@, %a@ : T\n  %r@ = arith.extui %c@ : B to U",
                       [f, wide](T x, T y) { return int8_t(f(T(wide(x) + wide(y)), x)); }});
    }
    check(cases);
  }

  template <class From, class To>
  Case<From, To> cast(
      const std::string& name, std::function<To(From)> want,
      std::function<bool(From)> defined = [](From) { return true; }) {
    return {name, "  %r@ = " + name + " %a@ : T to U", [want](From x, From) { return want(x); },
            [defined](From x, From) { return defined(x); }};
  }
};

TEST_F(Values, ArithmeticOnFloats) { reals<float>(); }
TEST_F(Values, ArithmeticOnDoubles) { reals<double>(); }
TEST_F(Values, ComparisonsOfFloats) { predicatesOfReals<float>(); }
TEST_F(Values, ComparisonsOfDoubles) { predicatesOfReals<double>(); }
TEST_F(Values, Bytes) { integers<int8_t>(); }
TEST_F(Values, ShortIntegers) { integers<int16_t>(); }
TEST_F(Values, Integers) { integers<int32_t>(); }
TEST_F(Values, LongIntegers) { integers<int64_t>(); }

TEST_F(Values, ConversionsOfIntegers) {
  check<int8_t, int32_t>(
      {cast<int8_t, int32_t>("arith.extsi", [](int8_t x) { return x; }),
       cast<int8_t, int32_t>("arith.extui", [](int8_t x) { return uint8_t(x); })});
  check<int32_t, int64_t>(
      {cast<int32_t, int64_t>("arith.extsi", [](int32_t x) { return x; }),
       cast<int32_t, int64_t>("arith.extui", [](int32_t x) { return uint32_t(x); }),
       {"a * b in 64 bits",
        "  %l@ = arith.extsi %a@ : T to U\n  %m@ = arith.extsi %b@ : T to U\n"
        "  %r@ = arith.muli %l@, %m@ overflow<nsw> : U",
        [](int32_t x, int32_t y) { return int64_t(x) * y; }},
       {"a + 1 in 64 bits",
        "  %l@ = arith.extsi %a@ : T to U\n  %m@ = arith.extsi %b@ : T to U\n"
        "  %p@ = arith.addi %l@, %m@ overflow<nsw> : U\n  %r@ = arith.subi %p@, %m@ : U",
        [](int32_t x, int32_t) { return int64_t(x); }}});
  check<int64_t, int8_t>(
      {cast<int64_t, int8_t>("arith.trunci", [](int64_t x) { return int8_t(x); }),
       {"odd", "  %c@ = arith.trunci %a@ : T to B\n  %r@ = arith.extui %c@ : B to U",
        [](int64_t x, int64_t) { return int8_t(x & 1); }},
       {"signed truth", "  %c@ = arith.trunci %a@ : T to B\n  %r@ = arith.extsi %c@ : B to U",
        [](int64_t x, int64_t) { return int8_t(x & 1 ? -1 : 0); }}});
}

TEST_F(Values, ConversionsOfReals) {
  check<int32_t, float>(
      {cast<int32_t, float>("arith.sitofp", [](int32_t x) { return float(x); }),
       cast<int32_t, float>("arith.uitofp", [](int32_t x) { return float(uint32_t(x)); }),
       cast<int32_t, float>("arith.bitcast", [](int32_t x) {
         float f;
         std::memcpy(&f, &x, 4);
         return f;
       })});
  check<int8_t, float>(
      {cast<int8_t, float>("arith.sitofp", [](int8_t x) { return float(x); }),
       cast<int8_t, float>("arith.uitofp", [](int8_t x) { return float(uint8_t(x)); })});
  auto within = [](double least, double most) {
    return [=](float x) { return x > least && x < most; };
  };
  check<float, int32_t>({cast<float, int32_t>(
      "arith.fptosi", [](float x) { return int32_t(x); }, within(-2147483648.0, 2147483647.0))});
  check<float, int64_t>({cast<float, int64_t>(
      "arith.fptoui", [](float x) { return int64_t(uint64_t(x)); }, within(-1, 1e15))});
  check<float, int8_t>(
      {cast<float, int8_t>(
           "arith.fptosi", [](float x) { return int8_t(x); }, within(-128, 127)),
       cast<float, int8_t>(
           "arith.fptoui", [](float x) { return int8_t(uint8_t(x)); }, within(-1, 255))});
  check<float, double>({cast<float, double>("arith.extf", [](float x) { return double(x); })});
  check<double, float>({cast<double, float>("arith.truncf", [](double x) { return float(x); })});
}

TEST_F(Values, RoundsToSixteenBits) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    const std::string small = dtype == DType::BF16 ? "bf16" : "f16";
    for (int width : {1, 8}) {
      const std::string s = width == 1 ? small : "vector<8x" + small + ">",
                        f = width == 1 ? "f32" : "vector<8xf32>";
      Array x(DType::F32, {64}), y(dtype, {64}), z(DType::F32, {64});
      for (int64_t i = 0; i < 64; ++i)
        x.set(i, std::sin(double(i)) * std::pow(2.0, double(i % 40) - 20));
      x.set(3, INFINITY);
      x.set(4, NAN);
      x.set(5, 1e9);
      const std::string text = print(
          "%x: !llvm.ptr, %y: !llvm.ptr, %z: !llvm.ptr, %t: i32",
          replaced("  %w = arith.constant W : i32\n  %at = arith.muli %t, %w overflow<nsw> : i32\n"
                   "  %px = llvm.getelementptr %x[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
                   "  %v = llvm.load %px : !llvm.ptr -> F\n"
                   "  %s = arith.truncf %v : F to S\n"
                   "  %py = llvm.getelementptr %y[%at] : (!llvm.ptr, i32) -> !llvm.ptr, E\n"
                   "  llvm.store %s, %py : S, !llvm.ptr\n"
                   "  %l = llvm.load %py : !llvm.ptr -> S\n  %b = arith.extf %l : S to F\n"
                   "  %pz = llvm.getelementptr %z[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
                   "  llvm.store %b, %pz : F, !llvm.ptr\n",
                   {{"W", std::to_string(width)}, {"E", small}, {" S", " " + s}, {" F", " " + f}}),
          {"x", "y", "z", "threadIdx.x"});
      run(text, "const float* x, " + small + "* y, float* z", {&x, &y, &z}, 64 / width);
      if (width > 1) EXPECT_NE(text.find("store_f32(y + "), std::string::npos) << text;
      for (int64_t i = 0; i < 64; ++i) {
        Array want(dtype, {1});
        want.set(0, x.at(i));
        EXPECT_TRUE(same(want.at(0), y.at(i))) << i << " " << x.at(i) << "\n" << text;
        EXPECT_TRUE(same(want.at(0), z.at(i))) << i << " " << x.at(i) << "\n" << text;
      }
    }
  }
}

}  // namespace
}  // namespace lathe::cuda
