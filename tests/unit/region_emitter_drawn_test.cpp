// SPDX-License-Identifier: Apache-2.0
// Drawn regions over rows of three axes: operands of every dtype that stretch along the first, the
// middle, the last axis or several, one read more than once, reductions of rows that are read
// again. All values are small whole numbers, which every dtype holds, so results are equal.
#include <array>

#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

using Dims = std::vector<std::string>;

const std::vector<Dims> kLayouts{{"b", "m", "n"},
                                 {"b", "1", "n"},
                                 {"1", "m", "n"},
                                 {"b", "m", "1"},
                                 {"1", "m", "1"},
                                 {"b", "1", "1"},
                                 {"m", "n"},
                                 {"m", "1"},
                                 {"n"},
                                 {"1"},
                                 {}};

std::string typed(const std::string& element, const Dims& dims) {
  std::string text;
  for (const std::string& d : dims) text += (text.empty() ? "" : ", ") + d;
  return element + "[" + text + "]";
}

enum class Kind { Operand, Add, Sub, Mul, Max, Min, Neg, Abs, Halve, Less, Sum, Largest, Least };

struct Step {
  Kind kind;
  Dims dims;
  std::array<size_t, 2> of{};
};

// One region as text, and what it computes, written down without it.
class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed) {
    operand({"b", "m", "n"});
    for (int64_t more = number(1, 3); more > 0; --more)
      operand(kLayouts[size_t(number(0, int64_t(kLayouts.size()) - 1))]);
    for (int64_t more = number(3, 9); more > 0; --more) step();
    binary(Kind::Add, 0, steps_.size() - 1);
    const std::string result = randomElement();
    body_ += "%y = lathe.cast " + name(steps_.size() - 1) + " to " + result + " : " +
             typed("f32", steps_.back().dims) + "\n";
    const std::string type = typed(result, {"b", "m", "n"});
    text_ = "func.func @f(" + arguments_ + ") -> " + type + " {\n" + body_ + "return %y : " + type +
            " }";
  }
  const std::string& text() const { return text_; }
  std::vector<Array> operands(const Symbols& sizes) {
    std::vector<Array> all;
    for (auto& [dtype, dims] : operands_) {
      Shape shape;
      for (const std::string& d : dims) shape.push_back(d == "1" ? 1 : sizes.find(d)->second);
      Array a(dtype, shape);
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(number(-3, 3)));
      all.push_back(std::move(a));
    }
    return all;
  }
  // The result in order; every value is kept at all places.
  std::vector<double> expected(const std::vector<Array>& operands, const Symbols& sizes) const {
    const int64_t b = sizes.at("b"), m = sizes.at("m"), n = sizes.at("n"), count = b * m * n;
    std::vector<std::vector<double>> values;
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      std::vector<double> made(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        double v = 0;
        auto x = [&](size_t k, int64_t at) { return values[step.of[k]][size_t(at)]; };
        if (step.kind == Kind::Operand)
          v = operands[s].at(place(step.dims, {i / (m * n), i / n % m, i % n}, sizes));
        else if (step.kind >= Kind::Sum) {
          const bool one = steps_[step.of[0]].dims.back() == "1";
          v = x(0, i / n * n);
          for (int64_t j = 1; j < (one ? 1 : n); ++j) {
            const double next = x(0, i / n * n + j);
            v = step.kind == Kind::Sum       ? v + next
                : step.kind == Kind::Largest ? std::max(v, next)
                                             : std::min(v, next);
          }
        } else {
          v = computed(step.kind, x(0, i), x(1, i));
        }
        made[size_t(i)] = step.kind == Kind::Operand ? v : std::clamp(v, -8.0, 8.0);
      }
      values.push_back(std::move(made));
    }
    return values.back();
  }

 private:
  int64_t number(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
  std::string randomElement() {
    const char* const all[] = {"f32", "bf16", "f16", "i32", "i8", "f32"};
    return all[number(0, 5)];
  }
  static std::string name(size_t step) { return "%v" + std::to_string(step); }
  static int64_t place(const Dims& dims, const std::array<int64_t, 3>& at, const Symbols& sizes) {
    int64_t index = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t size = dims[i] == "1" ? 1 : sizes.find(dims[i])->second;
      index = index * size + (size == 1 ? 0 : at[3 - dims.size() + i]);
    }
    return index;
  }
  static double computed(Kind kind, double a, double b) {
    switch (kind) {
      case Kind::Add:
        return a + b;
      case Kind::Sub:
        return a - b;
      case Kind::Mul:
        return a * b;
      case Kind::Max:
        return std::max(a, b);
      case Kind::Min:
        return std::min(a, b);
      case Kind::Neg:
        return -a;
      case Kind::Abs:
        return std::abs(a);
      case Kind::Halve:
        return std::floor(a * 0.5);
      default:
        return a < b ? a : b - a;
    }
  }
  static Dims stretched(const Dims& a, const Dims& b) {
    Dims all = a.size() > b.size() ? a : b;
    const Dims& other = a.size() > b.size() ? b : a;
    for (size_t i = 0; i < other.size(); ++i) {
      std::string& d = all[all.size() - other.size() + i];
      if (d == "1") d = other[i];
    }
    return all;
  }

  void operand(const Dims& dims) {
    const std::string element = randomElement(), argument = "%a" + std::to_string(steps_.size());
    operands_.push_back({*parseDType(element), dims});
    arguments_ += (arguments_.empty() ? "" : ", ") + argument + ": " + typed(element, dims);
    body_ += name(steps_.size()) + " = lathe.cast " + argument +
             " to f32 : " + typed(element, dims) + "\n";
    steps_.push_back({Kind::Operand, dims});
  }
  // Kept small by two more ops.
  void push(Kind kind, const Dims& dims, size_t a, size_t b, const std::string& op) {
    const std::string n = std::to_string(steps_.size()), type = typed("f32", dims);
    body_ += "%r" + n + " = " + op + "\n%lo" + n + " = lathe.constant dense<-8.0> : tensor<f32>\n" +
             "%hi" + n + " = lathe.constant dense<8.0> : tensor<f32>\n" + "%c" + n +
             " = lathe.max %r" + n + ", %lo" + n + " : " + type + ", f32[]\n" +
             name(steps_.size()) + " = lathe.min %c" + n + ", %hi" + n + " : " + type + ", f32[]\n";
    steps_.push_back({kind, dims, {a, b}});
  }
  void binary(Kind kind, size_t a, size_t b) {
    const Dims& x = steps_[a].dims;
    const Dims& y = steps_[b].dims;
    const Dims both = stretched(x, y);
    const std::string operands = name(a) + ", " + name(b) + " : ",
                      types = typed("f32", x) + ", " + typed("f32", y);
    if (kind == Kind::Less) {
      const std::string n = std::to_string(steps_.size());
      body_ += "%p" + n + " = lathe.compare lt " + operands + types + "\n%d" + n + " = lathe.sub " +
               name(b) + ", " + name(a) + " : " + typed("f32", y) + ", " + typed("f32", x) + "\n";
      return push(kind, both, a, b,
                  "lathe.select %p" + n + ", " + name(a) + ", %d" + n + " : " + typed("i1", both) +
                      ", " + typed("f32", x) + ", " + typed("f32", both));
    }
    const char* const names[] = {"add", "sub", "mul", "max", "min"};
    push(kind, both, a, b,
         "lathe." + std::string(names[int(kind) - int(Kind::Add)]) + " " + operands + types);
  }
  void step() {
    const size_t a = size_t(number(0, int64_t(steps_.size()) - 1)),
                 b = size_t(number(0, int64_t(steps_.size()) - 1));
    const Dims dims = steps_[a].dims;
    const std::string x = " " + name(a) + " : " + typed("f32", dims);
    const Kind kind = Kind(number(int(Kind::Add), int(Kind::Least)));
    if (kind == Kind::Neg || kind == Kind::Abs)
      return push(kind, dims, a, a, (kind == Kind::Neg ? "lathe.neg" : "lathe.abs") + x);
    if (kind == Kind::Halve) {
      const std::string n = std::to_string(steps_.size());
      body_ += "%half" + n + " = lathe.constant dense<0.5> : tensor<f32>\n%h" + n +
               " = lathe.mul " + name(a) + ", %half" + n + " : " + typed("f32", dims) + ", f32[]\n";
      return push(kind, dims, a, a, "lathe.floor %h" + n + " : " + typed("f32", dims));
    }
    if (kind < Kind::Sum) return binary(kind, a, b);
    if (dims.empty()) return binary(Kind::Sub, a, b);
    Dims kept = dims;
    kept.back() = "1";
    const char* const names[] = {"sum", "max", "min"};
    push(kind, kept, a, a,
         "lathe.reduce_" + std::string(names[int(kind) - int(Kind::Sum)]) + " " + name(a) +
             " axes [" + std::to_string(dims.size() - 1) +
             "] keep_dims true : " + typed("f32", dims));
  }

  std::mt19937_64 random_;
  std::vector<Step> steps_;
  struct Operand {
    DType dtype;
    Dims dims;
  };
  std::vector<Operand> operands_;
  std::string arguments_, body_, text_;
};

class RegionDrawn : public RegionTest {};

TEST_P(RegionDrawn, ComputesWhatItsOpsSay) {
  const uint64_t count =
      GetParam().tier ? 24 : 2;  // kernels of the host take a compiler's run each
  for (uint64_t seed = 1; seed <= count; ++seed) {
    Drawn drawn(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + drawn.text());
    auto k = compile(drawn.text());
    for (auto [b, m, n] : {std::array<int64_t, 3>{1, 1, 1},
                           {2, 3, 7},
                           {3, 1, 16},
                           {1, 4, 33},
                           {2, 2, 64},
                           {2, 1, 65}})
      for (bool inPlace : {false, true}) {
        const Symbols sizes{{"b", b}, {"m", m}, {"n", n}};
        const std::vector<Array> operands = drawn.operands(sizes);
        const std::vector<double> want = drawn.expected(operands, sizes);
        SCOPED_TRACE("n = " + std::to_string(n) + (inPlace ? ", in place" : ""));
        const auto got = k.run(operands, sizes, inPlace);
        ASSERT_EQ(got[0].size(), int64_t(want.size()));
        expectNear(got[0], [&](int64_t i) { return want[size_t(i)]; }, 0);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionDrawn, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
