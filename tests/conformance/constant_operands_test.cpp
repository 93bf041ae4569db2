// SPDX-License-Identifier: Apache-2.0
// Rewrites that know an operand for a constant: the results are those of the recorded ops, for the
// constants that a rewrite looks for and for their neighbours, in every dtype's whole range.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/lathe.h"
#include "tests/closeness.h"
#include "tests/conformance/tolerance.h"

namespace lathe {
namespace {

// As compiled for the reference, and as the reference computes each recorded op.
void expectAsRecorded(const Graph& g, const Arrays& inputs) {
  const Arrays got = Session(compile(g, {.backend = "reference"})).run("forward", inputs);
  const Arrays want =
      Session(compile(g, {.backend = "reference", .stopAfterRewrite = 0})).run("forward", inputs);
  ASSERT_FALSE(want.empty());
  for (const auto& [name, value] : want) {
    ASSERT_EQ(got.at(name).size(), value.size());
    for (int64_t i = 0; i < value.size(); ++i)
      EXPECT_EQ(errorOf(got.at(name).at(i), value.at(i)), 0)
          << name << " element " << i << ": " << got.at(name).at(i) << ", want " << value.at(i);
  }
}

class Recorder {
 public:
  explicit Recorder(DType dtype) : dtype_(dtype) {}
  Tensor number(double value) {
    Array one(dtype_, {});
    one.set(0, value);
    return graph.constant(one);
  }
  void output(const std::string& name, const Tensor& y) {
    graph.output(name, y.dtype() == DType::Bool ? cast(y, DType::I32) : y);
  }
  // Every op of two operands with the constant on either side.
  void operations(const Tensor& x, double c) {
    const std::string text = std::to_string(c);
    auto both = [&](const std::string& op, const std::function<Tensor(Tensor, Tensor)>& make) {
      output("x " + op + " " + text, make(x, number(c)));
      output(text + " " + op + " x", make(number(c), x));
    };
    both("+", [](const Tensor& a, const Tensor& b) { return a + b; });
    both("-", [](const Tensor& a, const Tensor& b) { return a - b; });
    both("*", [](const Tensor& a, const Tensor& b) { return a * b; });
    both("max", [](const Tensor& a, const Tensor& b) { return max(a, b); });
    both("min", [](const Tensor& a, const Tensor& b) { return min(a, b); });
    if (!isFloat(dtype_)) both("/", [](const Tensor& a, const Tensor& b) { return div(a, b); });
    for (Compare p : valuesOf<Compare>())
      both(std::string(nameOf(p)),
           [&](const Tensor& a, const Tensor& b) { return compare(a, b, p); });
    for (DType to : {DType::F32, DType::I64, DType::I32})
      if (to != dtype_)
        output("cast " + text + " to " + std::string(nameOf(to)),
               cast(x, to) + cast(number(c), to));
  }
  Graph graph;

 private:
  DType dtype_;
};

TEST(ConstantOperands, OfEveryIntegerDType) {
  for (DType dtype : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
    SCOPED_TRACE(std::string(nameOf(dtype)));
    std::vector<double> numbers;
    for (double c : {0.0, 1.0, -1.0, 2.0, 127.0, 128.0, -128.0, 200.0, 255.0, 32767.0, -32768.0,
                     2147483647.0, -2147483648.0})
      if (holds(dtype, c)) numbers.push_back(c);
    Recorder r(dtype);
    const int64_t count = int64_t(numbers.size());
    const Tensor x = r.graph.input("x", dtype, {count});
    Array values(dtype, {count});
    for (int64_t i = 0; i < count; ++i) values.set(i, numbers[size_t(i)]);
    for (double c : numbers) r.operations(x, c);
    expectAsRecorded(r.graph, {{"x", values}});
  }
}

// Ops on numbers alone, which are folded: the number is what the op makes of it in its own dtype.
TEST(ConstantOperands, OfNothingElse) {
  using Unary = Tensor (*)(const Tensor&);
  const std::vector<std::pair<std::string, Unary>> ofAll{
      {"neg", [](const Tensor& x) { return neg(x); }},
      {"abs", [](const Tensor& x) { return abs(x); }}};
  const std::vector<std::pair<std::string, Unary>> ofFloats{
      {"sqrt", [](const Tensor& x) { return sqrt(x); }},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }},
      {"reciprocal", [](const Tensor& x) { return reciprocal(x); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }}};
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                      DType::I8, DType::U8}) {
    SCOPED_TRACE(std::string(nameOf(dtype)));
    Recorder r(dtype);
    std::vector<double> numbers;
    for (double c :
         {0.0, 1.0, -1.0, 2.0, 3.0, 7.0, -0.0, 0.5, 0.1, -2.5, 127.0, -128.0, 200.0, 2147483647.0})
      if (isFloat(dtype) || (c == std::floor(c) && holds(dtype, c))) numbers.push_back(c);
    for (double c : numbers) {
      const std::string text = std::to_string(c);
      for (const auto& [name, make] : ofAll) r.output(name + " " + text, make(r.number(c)));
      if (isFloat(dtype))
        for (const auto& [name, make] : ofFloats) r.output(name + " " + text, make(r.number(c)));
      for (double d : numbers) {
        const std::string both = text + " " + std::to_string(d);
        r.output("+ " + both, r.number(c) + r.number(d));
        r.output("- " + both, r.number(c) - r.number(d));
        r.output("* " + both, r.number(c) * r.number(d));
        if (isFloat(dtype) || d != 0) r.output("/ " + both, div(r.number(c), r.number(d)));
        if (isFloat(dtype)) r.output("^ " + both, pow(r.number(c), r.number(d)));
      }
      for (DType to : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32})
        if (to != dtype) r.output("cast " + text + std::string(nameOf(to)), cast(r.number(c), to));
    }
    expectAsRecorded(r.graph, {});
  }
}

// LLVM turns powers of a known number into calls of other functions: 2^x, 10^x, 2^n, and x^0.5 and
// n^0.5, where a whole number is never -inf.
TEST(ConstantOperands, OfPowersInGeneratedCode) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
    SCOPED_TRACE(std::string(nameOf(dtype)));
    Recorder r(dtype);
    const std::vector<double> numbers{0.0, 1.0, -1.0, 2.0,  -2.0, 0.5, 3.0,
                                      4.0, 8.0, 10.0, 0.25, -0.5, 1.5, 2.718281828};
    const int64_t count = int64_t(numbers.size());
    const Tensor x = r.graph.input("x", dtype, {count}),
                 n = r.graph.input("n", DType::I32, {count}),
                 b = r.graph.input("b", DType::U8, {count}),
                 m = r.graph.input("m", DType::I64, {count});
    Array values(dtype, {count}), integers(DType::I32, {count}), bytes(DType::U8, {count}),
        wide(DType::I64, {count});
    for (int64_t i = 0; i < count; ++i) {
      values.set(i, numbers[size_t(i)]);
      integers.set(i, double(i) - 5);
      wide.set(i, double(i) - 2);
      bytes.set(i, double(i));
    }
    for (double c : numbers) {
      const std::string text = std::to_string(c);
      r.output("x ^ " + text, pow(x, r.number(c)));
      r.output(text + " ^ x", pow(r.number(c), x));
      r.output(text + " ^ n", pow(r.number(c), cast(n, dtype)));
      r.output("n ^ " + text, pow(cast(n, dtype), r.number(c)));
      r.output("m ^ " + text, pow(cast(m, dtype), r.number(c)));
      r.output("b ^ " + text, pow(cast(b, dtype), r.number(c)));
    }
    const Arrays inputs{{"x", values}, {"n", integers}, {"m", wide}, {"b", bytes}};
    const Arrays got = Session(compile(r.graph, {.backend = "cpu"})).run("forward", inputs);
    const Arrays want = Session(compile(r.graph, {.backend = "reference"})).run("forward", inputs);
    const auto allowed = conformance::toleranceOf("pow", dtype, false);
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < count; ++i) {
        const double a = got.at(name).at(i), wanted = value.at(i);
        EXPECT_TRUE(isNear(a, wanted, conformance::boundOf(wanted, allowed)))
            << name << " element " << i << ": " << a << ", want " << wanted;
      }
  }
}

// What masks are made of: a condition as a number, beside 0 and 1 and beside others.
TEST(ConstantOperands, OfConditionsAsNumbers) {
  for (DType dtype : {DType::F32, DType::I32, DType::U8}) {
    SCOPED_TRACE(std::string(nameOf(dtype)));
    Recorder r(dtype);
    const Tensor condition = r.graph.input("c", DType::Bool, {2});
    for (double c : {0.0, 1.0, 2.0, -1.0, 0.5})
      if (isFloat(dtype) || holds(dtype, c)) r.operations(cast(condition, dtype), c);
    Array values(DType::Bool, {2});
    values.set(1, 1);
    expectAsRecorded(r.graph, {{"c", values}});
  }
}

// Differences of positions, as causal and windowed masks compare them.
TEST(ConstantOperands, OfPositions) {
  Recorder r(DType::I64);
  const Tensor like = r.graph.input("x", DType::I64, {1});
  const Tensor i = iota(like, {7, 1}, 0), j = iota(like, {1, 6}, 1);
  for (double c : {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0})
    for (Compare p : valuesOf<Compare>()) {
      const std::string name = std::string(nameOf(p)) + " " + std::to_string(c);
      const Tensor number = r.number(c);
      r.output("i - j " + name, compare(i - j, number, p));
      r.output(name + " i - j", compare(number, i - j, p));
      r.output("i + c " + name, compare(i + number, j, p));
      r.output("j + c " + name, compare(i, j + number, p));
      r.output("i - c " + name, compare(i - number, j, p));
    }
  r.output("x", like + 0);
  expectAsRecorded(r.graph, {{"x", Array(DType::I64, {1})}});
}

}  // namespace
}  // namespace lathe
