// SPDX-License-Identifier: Apache-2.0
// Einstein summation as transposes, reshapes, products and sums.
#include <algorithm>
#include <map>
#include <string>

#include "ir/composing.h"
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

constexpr char kEllipsis = '.';
constexpr unsigned char kFirstUnderEllipsis = 128;

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
    spellEllipses(operands);
    for (const Tensor& x : operands)
      if (x.dtype(at_) != operands[0].dtype(at_))
        fail("has operands " + typeTextOf(operands[0]) + " and " + typeTextOf(x) +
             ", expected one dtype; cast one of them");
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
    std::map<char, int> count;
    bool anyEllipsis = false;
    for (std::string& letters : e_.inputs) {
      anyEllipsis |= markEllipsis(letters);
      for (char c : letters) count[c] += c != kEllipsis;
    }
    if (arrow == text.npos) {
      if (anyEllipsis) e_.output += kEllipsis;
      for (auto [c, times] : count)
        if (times == 1) e_.output += c;
      return;
    }
    e_.output = text.substr(arrow + 2);
    markEllipsis(e_.output);
    for (size_t i = 0; i < e_.output.size(); ++i) {
      const char c = e_.output[i];
      if (!count.count(c))
        fail("has " + (c == kEllipsis ? "an ellipsis" : "an axis '" + std::string(1, c) + "'") +
             " that no operand has");
      if (has(e_.output.substr(i + 1), c))
        fail("names the axis '" + std::string(1, c) + "' twice in the result");
    }
  }

  // "..." becomes one character; everything else is a letter. Returns whether there was one.
  bool markEllipsis(std::string& letters) const {
    const size_t dots = letters.find("...");
    if (dots != letters.npos) letters.replace(dots, 3, 1, kEllipsis);
    for (size_t i = 0; i < letters.size(); ++i) {
      const char c = letters[i];
      if (i != dots && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
        fail("has '" + std::string(1, c) +
             "' where a letter or one \"...\" is expected: \"...ij,...jk->...ik\"");
    }
    return dots != letters.npos;
  }

  // The axes below an ellipsis are named by characters that are no letters, the last axis by the
  // first of them, so that the shorter of two ellipses lies along the last axes of the longer one.
  void spellEllipses(const std::vector<Tensor>& operands) {
    size_t longest = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      expectTensor("einsum", operands[i], at_);
      std::string& letters = e_.inputs[i];
      const size_t rank = size_t(operands[i].rank(at_)), dots = letters.find(kEllipsis);
      if (dots == letters.npos) continue;
      if (rank + 1 < letters.size())
        fail("names at least " + std::to_string(letters.size() - 1) + " axes of " +
             typeTextOf(operands[i]));
      const size_t under = rank + 1 - letters.size();
      letters.replace(dots, 1, underEllipsis(under));
      longest = std::max(longest, under);
      for (size_t axis = 0; axis < under; ++axis) {
        const Dim size = operands[i].dim(int64_t(dots + axis));
        auto [known, isNew] = broadcast_.emplace(letters[dots + axis], size);
        if (!isNew && known->second == Dim(1)) known->second = size;
      }
    }
    if (size_t dots = e_.output.find(kEllipsis); dots != e_.output.npos)
      e_.output.replace(dots, 1, underEllipsis(longest));
    else if (longest)
      fail("has an ellipsis in front of the arrow and none behind it");
  }

  static std::string underEllipsis(size_t axes) {
    std::string names;
    for (size_t i = axes; i-- > 0;) names += char(kFirstUnderEllipsis + i);
    return names;
  }

  // Along an axis below an ellipsis a tensor of size 1 is that of any size: it has no such axis.
  void dropBroadcastAxes(Tensor& x, std::string& axes) const {
    Dims kept;
    std::string names;
    for (size_t i = 0; i < axes.size(); ++i) {
      auto under = broadcast_.find(axes[i]);
      if (under != broadcast_.end() && x.dim(int64_t(i)) == Dim(1) && !(under->second == Dim(1)))
        continue;
      kept.push_back(x.dim(int64_t(i)));
      names += axes[i];
    }
    x = shaped(x, kept);
    axes = names;
  }

  // x[.., t, .., t, ..] without its axis `second`.
  Tensor diagonal(const Tensor& x, int64_t first, int64_t second, char axis) const {
    if (!(x.dim(first) == x.dim(second)))
      fail("has two sizes of " + nameOf(axis) + ": " + x.dim(first).text() + " and " +
           x.dim(second).text() + " in " + typeTextOf(x));
    Dims dims = x.shape(at_);
    dims[size_t(second)] = Dim(1);
    Tensor y = takeAlongAxis(x, iota(x, dims, first, DType::I64, at_), second, at_);
    dims.erase(dims.begin() + second);
    return reshape(y, dims, at_);
  }

  static std::string nameOf(char axis) {
    const auto code = static_cast<unsigned char>(axis);
    if (code < kFirstUnderEllipsis) return "axis '" + std::string(1, axis) + "'";
    return "axis " + std::to_string(kFirstUnderEllipsis - 1 - code) + " below the ellipsis";
  }

  void name(Tensor x, std::string axes) {
    if (x.rank(at_) != int64_t(axes.size()))
      fail("names " + std::to_string(axes.size()) + " axes of " + typeTextOf(x));
    dropBroadcastAxes(x, axes);
    for (size_t i = 0; i < axes.size(); ++i)
      for (size_t j = axes.find(axes[i], i + 1); j != axes.npos; j = axes.find(axes[i], i + 1)) {
        x = diagonal(x, int64_t(i), int64_t(j), axes[i]);
        axes.erase(j, 1);
      }
    for (size_t i = 0; i < axes.size(); ++i) {
      auto [known, isNew] = sizes_.emplace(axes[i], x.dim(int64_t(i)));
      if (!isNew && !(known->second == x.dim(int64_t(i))))
        fail("has two sizes of " + nameOf(axes[i]) + ": " + known->second.text() + " and " +
             x.dim(int64_t(i)).text() + " in " + typeTextOf(x));
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
  std::map<char, Dim> broadcast_;  // the sizes below ellipses
};

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              std::source_location at) {
  const Composing composing("einsum");
  return Einsum(equation, operands, at).result();
}

}  // namespace lathe
