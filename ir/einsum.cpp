// SPDX-License-Identifier: Apache-2.0
// Einstein summation as transposes, reshapes, products and sums.
#include <algorithm>
#include <map>
#include <string>

#include "ir/operand_checks.h"
#include "lathe/ir/ops.h"

namespace lathe {
namespace {

// A tensor whose axes have names.
struct Named {
  Tensor x;
  std::string axes;
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool has(const std::string& letters, char c) { return letters.find(c) != letters.npos; }

std::string only(const std::string& letters, const auto& keep) {
  std::string kept;
  for (char c : letters)
    if (keep(c)) kept += c;
  return kept;
}

class Einsum {
 public:
  Einsum(std::string_view equation, const std::vector<Tensor>& operands, std::source_location at)
      : text_(equation), at_(at) {
    parse();
    if (e_.inputs.size() != operands.size())
      fail("names " + std::to_string(e_.inputs.size()) + " operands, got " +
           std::to_string(operands.size()));
    for (size_t i = 0; i < operands.size(); ++i) name(operands[i], e_.inputs[i]);
  }

  Tensor result() {
    Named sum = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) {
      std::string later = e_.output;
      for (size_t j = i + 1; j < operands_.size(); ++j) later += operands_[j].axes;
      sum = contracted(sum, operands_[i], later);
    }
    return permuted(summed(sum, e_.output), e_.output).x;
  }

 private:
  [[noreturn]] void fail(const std::string& problem,
                         ErrorCode code = ErrorCode::InvalidArgument) const {
    failIn("einsum", "\"" + text_ + "\" " + problem, at_, code);
  }

  void parse() {
    std::string text = only(text_, [](char c) { return c != ' '; });
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    for (size_t from = 0; from <= left.size();) {
      const size_t comma = std::min(left.find(',', from), left.size());
      e_.inputs.push_back(left.substr(from, comma - from));
      from = comma + 1;
    }
    if (text.find("...") != text.npos)
      fail("has an ellipsis, which is not taken; name every axis with a letter",
           ErrorCode::Unsupported);
    std::map<char, int> count;
    for (const std::string& letters : e_.inputs) {
      expectLetters(letters);
      for (char c : letters) ++count[c];
    }
    if (arrow == text.npos) {
      for (auto [c, times] : count)
        if (times == 1) e_.output += c;
      return;
    }
    e_.output = text.substr(arrow + 2);
    expectLetters(e_.output);
    for (char c : e_.output)
      if (!count.count(c)) fail("has an axis '" + std::string(1, c) + "' that no operand has");
  }

  void expectLetters(const std::string& letters) const {
    for (size_t i = 0; i < letters.size(); ++i) {
      const char c = letters[i];
      if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
        fail("has '" + std::string(1, c) + "' where a letter is expected: \"bij,bjk->bik\"");
      if (letters.find(c, i + 1) != letters.npos)
        fail("names the axis '" + std::string(1, c) +
                 "' twice in one tensor, which is not taken; take the diagonal with takeAlongAxis",
             ErrorCode::Unsupported);
    }
  }

  void name(const Tensor& x, const std::string& axes) {
    expectTensor("einsum", x, at_);
    if (x.rank(at_) != int64_t(axes.size()))
      fail("names " + std::to_string(axes.size()) + " axes of " + typeTextOf(x));
    for (size_t i = 0; i < axes.size(); ++i) {
      auto [known, isNew] = sizes_.emplace(axes[i], x.dim(int64_t(i)));
      if (!isNew && !(known->second == x.dim(int64_t(i))))
        fail("has two sizes of axis '" + std::string(1, axes[i]) + "': " + known->second.text() +
             " and " + x.dim(int64_t(i)).text() + " in " + typeTextOf(x));
    }
    operands_.push_back({x, axes});
  }

  Named summed(const Named& n, const std::string& keep) const {
    Axes gone;
    for (size_t i = 0; i < n.axes.size(); ++i)
      if (!has(keep, n.axes[i])) gone.push_back(int64_t(i));
    if (gone.empty()) return n;
    return {reduceSum(n.x, gone, false, at_), only(n.axes, [&](char c) { return has(keep, c); })};
  }

  Named permuted(const Named& n, const std::string& axes) const {
    if (n.axes == axes) return n;
    Axes order;
    for (char c : axes) order.push_back(int64_t(n.axes.find(c)));
    return {transpose(n.x, order, at_), axes};
  }

  Dims sizesOf(const std::string& axes) const {
    Dims dims;
    for (char c : axes) dims.push_back(sizes_.at(c));
    return dims;
  }
  Dim product(const std::string& axes) const {
    Dim all(1);
    for (char c : axes) all = all * sizes_.at(c);
    return all;
  }

  // Of both; `later` are the axes that are needed afterwards.
  Named contracted(Named a, Named b, const std::string& later) const {
    a = summed(a, b.axes + later);
    b = summed(b, a.axes + later);
    const std::string batch = only(a.axes, [&](char c) { return has(b.axes, c) && has(later, c); });
    const std::string inner =
        only(a.axes, [&](char c) { return has(b.axes, c) && !has(later, c); });
    const std::string rows = only(a.axes, [&](char c) { return !has(b.axes, c); });
    const std::string columns = only(b.axes, [&](char c) { return !has(a.axes, c); });
    const std::string axes = batch + rows + columns;
    a = permuted(a, batch + rows + inner);
    b = permuted(b, batch + inner + columns);
    if (inner.empty()) {
      // Nothing is summed: a product that broadcasts.
      Dims left = sizesOf(batch + rows), right = sizesOf(batch);
      left.insert(left.end(), columns.size(), Dim(1));
      right.insert(right.end(), rows.size(), Dim(1));
      for (const Dim& d : sizesOf(columns)) right.push_back(d);
      return {mul(shaped(a.x, left), shaped(b.x, right), at_), axes};
    }
    Dims left = sizesOf(batch), right = left;
    left.insert(left.end(), {product(rows), product(inner)});
    right.insert(right.end(), {product(inner), product(columns)});
    return {shaped(matmul(shaped(a.x, left), shaped(b.x, right), at_), sizesOf(axes)), axes};
  }

  Tensor shaped(const Tensor& x, const Dims& dims) const {
    return x.shape(at_) == dims ? x : reshape(x, dims, at_);
  }

  std::string text_;
  std::source_location at_;
  Equation e_;
  std::vector<Named> operands_;
  std::map<char, Dim> sizes_;
};

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              std::source_location at) {
  return Einsum(equation, operands, at).result();
}

}  // namespace lathe
