// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/dim_expr.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace lathe {

DimExpr::DimExpr(int64_t value) {
  if (value != 0) terms_.emplace_back(Monomial(), value);
}

DimExpr DimExpr::symbol(std::string_view name) {
  DimExpr e;
  e.add({std::string(name)}, 1);
  return e;
}

void DimExpr::add(Monomial monomial, int64_t coefficient) {
  if (coefficient == 0) return;
  auto at = std::lower_bound(terms_.begin(), terms_.end(), monomial,
                             [](const auto& term, const Monomial& m) { return term.first < m; });
  if (at == terms_.end() || at->first != monomial) {
    terms_.emplace(at, std::move(monomial), coefficient);
    return;
  }
  int64_t& c = at->second;
  // Sizes beyond 2^63 are refused where shapes are checked; saturating keeps this total.
  if (__builtin_add_overflow(c, coefficient, &c)) c = coefficient > 0 ? INT64_MAX : INT64_MIN;
  if (c == 0) terms_.erase(at);
}

DimExpr DimExpr::operator+(const DimExpr& other) const {
  DimExpr e = *this;
  for (auto& [m, c] : other.terms_) e.add(m, c);
  return e;
}

DimExpr DimExpr::operator-(const DimExpr& other) const {
  DimExpr e = *this;
  for (auto& [m, c] : other.terms_) e.add(m, c == INT64_MIN ? INT64_MAX : -c);
  return e;
}

// Saturates as sums do.
static int64_t productOf(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return product;
}

DimExpr DimExpr::operator*(const DimExpr& other) const {
  DimExpr e;
  // Most sizes are numbers, whose product keeps the other's terms in their order.
  if (const auto number = asConstant()) {
    if (*number == 0) return e;
    e = other;
    for (auto& term : e.terms_) term.second = productOf(term.second, *number);
    return e;
  }
  if (other.asConstant()) return other * *this;
  for (auto& [m, c] : terms_)
    for (auto& [n, d] : other.terms_) {
      Monomial k = m;
      k.insert(k.end(), n.begin(), n.end());
      std::sort(k.begin(), k.end());
      e.add(std::move(k), productOf(c, d));
    }
  return e;
}

std::string DimExpr::text() const {
  if (terms_.empty()) return "0";
  std::string s;
  auto append = [&](const Monomial& m, int64_t c) {
    if (c < 0)
      s += "-";
    else if (!s.empty())
      s += "+";
    uint64_t magnitude = c < 0 ? uint64_t(0) - uint64_t(c) : uint64_t(c);
    bool wantsFactor = m.empty() || magnitude != 1;
    if (wantsFactor) s += std::to_string(magnitude);
    for (size_t i = 0; i < m.size(); ++i) s += (i || wantsFactor ? "*" : "") + m[i];
  };
  // The constant term sorts first and is written last. A leading minus is avoided where
  // a positive term exists.
  for (bool positive : {true, false})
    for (auto& [m, c] : terms_)
      if (!m.empty() && (c > 0) == positive) append(m, c);
  if (terms_.front().first.empty()) append({}, terms_.front().second);
  return s;
}

std::optional<int64_t> DimExpr::asConstant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

bool DimExpr::provablyNonNegative(const std::map<std::string, int64_t>& least) const {
  // Substitute s = least + s' with s' >= 0: non-negative if every coefficient then is.
  DimExpr shifted;
  for (auto& [m, c] : terms_) {
    DimExpr product(c);
    for (auto& name : m) {
      auto it = least.find(name);
      product = product * (symbol(name) + DimExpr(it == least.end() ? 1 : it->second));
    }
    shifted = shifted + product;
  }
  return std::all_of(shifted.terms_.begin(), shifted.terms_.end(),
                     [](auto& term) { return term.second >= 0; });
}

std::vector<std::string> DimExpr::symbols() const {
  std::vector<std::string> names;
  for (auto& [m, c] : terms_) names.insert(names.end(), m.begin(), m.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<int64_t> DimExpr::evaluate(
    const std::map<std::string, int64_t, std::less<>>& values) const {
  int64_t sum = 0;
  for (auto& [m, c] : terms_) {
    int64_t product = c;
    for (auto& name : m) {
      auto it = values.find(name);
      if (it == values.end() || __builtin_mul_overflow(product, it->second, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<DimExpr> DimExpr::dividedBy(const DimExpr& divisor) const {
  if (divisor.terms_.size() != 1) {
    if (*this == divisor && !terms_.empty()) return DimExpr(1);
    return std::nullopt;
  }
  auto& [dm, dc] = *divisor.terms_.begin();
  DimExpr quotient;
  for (auto& [m, c] : terms_) {
    if (dc == -1 && c == INT64_MIN) return std::nullopt;  // its negative is out of range
    if (c % dc != 0 || !std::includes(m.begin(), m.end(), dm.begin(), dm.end()))
      return std::nullopt;
    Monomial rest;
    std::set_difference(m.begin(), m.end(), dm.begin(), dm.end(), std::back_inserter(rest));
    quotient.add(std::move(rest), c / dc);
  }
  return quotient;
}

// No tensor has more dims, so no size has more factors; a product of very many would be copied as
// often.
constexpr size_t kMaxFactors = 64;

std::optional<DimExpr> DimExpr::parse(std::string_view text) {
  DimExpr sum;
  size_t i = 0;
  auto skip = [&] {
    while (i < text.size() && text[i] == ' ') ++i;
  };
  bool first = true;
  for (skip(); i < text.size() || first; skip()) {
    int64_t sign = 1;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
      if (first && text[i] == '+') return std::nullopt;
      sign = text[i++] == '-' ? -1 : 1;
    } else if (!first) {
      return std::nullopt;
    }
    first = false;
    // Read once for every mention of a dim in a graph: the term is gathered, not multiplied.
    int64_t coefficient = sign;
    Monomial monomial;
    for (size_t factors = 1;; ++factors) {
      if (factors > kMaxFactors) return std::nullopt;
      skip();
      size_t start = i;
      while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) ||
                                 text[i] == '_' || text[i] == '$' || text[i] == '.'))
        ++i;
      std::string_view word = text.substr(start, i - start);
      if (word.empty()) return std::nullopt;
      if (std::isdigit(static_cast<unsigned char>(word[0]))) {
        int64_t value;
        auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (status != std::errc() || end != word.data() + word.size()) return std::nullopt;
        coefficient = productOf(coefficient, value);
      } else {
        monomial.emplace_back(word);
      }
      skip();
      if (i >= text.size() || text[i] != '*') break;
      ++i;
    }
    std::sort(monomial.begin(), monomial.end());
    sum.add(std::move(monomial), coefficient);
  }
  return sum;
}

}  // namespace lathe
