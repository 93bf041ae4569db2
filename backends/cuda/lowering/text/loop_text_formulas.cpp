// SPDX-License-Identifier: Apache-2.0
// Numbers that differ by lane, as expressions of the lane.
#include "backends/cuda/lowering/text/loop_printer.h"

namespace lathe::cuda {
namespace {

using Function = llvm::function_ref<int64_t(int64_t)>;

bool fits(llvm::ArrayRef<int64_t> values, Function f) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != kAnyElement && values[i] != f(int64_t(i))) return false;
  return true;
}

// term * factor, as one more summand.
void add(Expr& sum, const std::string& term, int level, int64_t factor) {
  if (factor == 0) return;
  const int64_t size = std::abs(factor);
  std::string text = level < kTimes && size != 1 ? "(" + term + ")" : term;
  if (size != 1) text += " * " + std::to_string(size);
  const int own = size != 1 ? int(kTimes) : level;
  if (sum.text.empty())
    sum =
        factor < 0 ? Expr{"-" + (own < kUnary ? "(" + text + ")" : text), kUnary} : Expr{text, own};
  else
    sum = {sum.text + (factor < 0 ? " - " : " + ") + text, kSum};
}

Expr sumOf(Expr sum, int64_t constant) {
  if (sum.text.empty()) return {std::to_string(constant), constant < 0 ? kUnary : kPrimary};
  // "7 - j" for -j + 7.
  if (sum.text[0] == '-' && constant > 0)
    return {std::to_string(constant) + " - " + sum.text.substr(1), kSum};
  if (constant == 0) return sum;
  return {sum.text + (constant < 0 ? " - " : " + ") + std::to_string(std::abs(constant)), kSum};
}

std::optional<Expr> linear(llvm::ArrayRef<int64_t> values, const std::string& j) {
  int64_t first = -1, second = -1;
  for (int64_t i = 0; i < int64_t(values.size()); ++i) {
    if (values[size_t(i)] == kAnyElement) continue;
    (first < 0 ? first : second) = i;
    if (second >= 0) break;
  }
  int64_t factor = 1, at = first < 0 ? 0 : values[size_t(first)] - first;
  if (first < 0) factor = at = 0;
  if (second >= 0) {
    const int64_t rise = values[size_t(second)] - values[size_t(first)], run = second - first;
    if (rise % run != 0) return {};
    factor = rise / run;
    at = values[size_t(first)] - factor * first;
  }
  if (!fits(values, [&](int64_t i) { return factor * i + at; })) return {};
  Expr sum{""};
  add(sum, j, kPrimary, factor);
  return sumOf(sum, at);
}

// j / size * high + j % size * low + c
std::optional<Expr> twoDigits(llvm::ArrayRef<int64_t> values, const std::string& j) {
  constexpr int64_t kMostLow = 8, kMostHigh = 32;
  const int64_t n = int64_t(values.size());
  int64_t first = 0;
  while (values[size_t(first)] == kAnyElement) ++first;
  auto next = [](int64_t& x) { x = x > 0 ? -x : 1 - x; };  // 0, 1, -1, 2, ...
  for (int64_t size = 2; size < n; size *= 2)
    for (int64_t low = 0; low <= kMostLow; next(low))
      for (int64_t high = 0; high <= kMostHigh; next(high)) {
        auto digits = [&](int64_t i) { return i / size * high + i % size * low; };
        const int64_t at = values[size_t(first)] - digits(first);
        if (!fits(values, [&](int64_t i) { return digits(i) + at; })) continue;
        const std::string number = std::to_string(size);
        Expr sum{""};
        add(sum, j + " / " + number, kTimes, high);
        add(sum, j + " % " + number, kTimes, low);
        return sumOf(sum, at);
      }
  return {};
}

}  // namespace

std::optional<Expr> formulaOf(llvm::ArrayRef<int64_t> values, llvm::StringRef variable) {
  const std::string j = variable.str();
  const int64_t n = int64_t(values.size());
  for (int64_t value : values)  // wherever one is asked for, it is this one
    if (value != kAnyElement && fits(values, [&](int64_t) { return value; }))
      return Expr{std::to_string(value), value < 0 ? kUnary : kPrimary};
  // Far numbers are no business of lanes.
  for (int64_t value : values)
    if (value != kAnyElement && std::abs(value) > (int64_t(1) << 30)) return {};
  if (auto e = linear(values, j)) return e;
  const auto given = std::find_if(values.begin(), values.end(),
                                  [](int64_t value) { return value != kAnyElement; });
  const int64_t first = given - values.begin();
  for (int64_t bits = 1; bits < n; ++bits) {
    const int64_t at = *given - (first ^ bits);
    if (fits(values, [&](int64_t i) { return (i ^ bits) + at; }))
      return at == 0 ? Expr{j + " ^ " + std::to_string(bits), kBits}
                     : sumOf({"(" + j + " ^ " + std::to_string(bits) + ")"}, at);
  }
  for (int64_t shift = 1; shift < n; ++shift) {
    const int64_t at = *given - (first + shift) % n;
    if (fits(values, [&](int64_t i) { return (i + shift) % n + at; }))
      return sumOf({"(" + j + " + " + std::to_string(shift) + ") % " + std::to_string(n), kTimes},
                   at);
  }
  return twoDigits(values, j);
}

Expr conditionOf(llvm::ArrayRef<int64_t> values, llvm::StringRef variable) {
  const std::string j = variable.str();
  const int64_t n = int64_t(values.size());
  auto holds = [&](llvm::function_ref<bool(int64_t)> f) {
    return fits(values, [&](int64_t i) { return int64_t(f(i)); });
  };
  for (bool all : {false, true})
    if (holds([&](int64_t) { return all; })) return {all ? "true" : "false"};
  for (int64_t c = 1; c < n; ++c) {
    const std::string number = std::to_string(c);
    if (holds([&](int64_t i) { return i < c; })) return {j + " < " + number, kLess};
    if (holds([&](int64_t i) { return i >= c; })) return {j + " >= " + number, kLess};
  }
  for (int64_t c = 0; c < n; ++c) {
    const std::string number = std::to_string(c);
    if (holds([&](int64_t i) { return i == c; })) return {j + " == " + number, kEqual};
    if (holds([&](int64_t i) { return i != c; })) return {j + " != " + number, kEqual};
  }
  for (int64_t size = 2; size < n; size *= 2) {
    const std::string digit = j + " % " + std::to_string(size);
    for (int64_t c = 1; c < size; ++c) {
      const bool odd = size == 2;
      if (holds([&](int64_t i) { return i % size < c; }))
        return odd ? Expr{digit + " == 0", kEqual} : Expr{digit + " < " + std::to_string(c), kLess};
      if (holds([&](int64_t i) { return i % size >= c; }))
        return odd ? Expr{digit + " != 0", kEqual}
                   : Expr{digit + " >= " + std::to_string(c), kLess};
    }
  }
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) bits |= uint64_t(values[size_t(i)] == 1) << i;
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx%s", static_cast<unsigned long long>(bits),
                n > 31 ? "ull" : "");
  return {"(" + std::string(text) + " >> " + j + " & 1) != 0", kEqual};
}

}  // namespace lathe::cuda
