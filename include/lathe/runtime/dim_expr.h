// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes as polynomials with integer coefficients in named symbols, in one canonical text. Two sizes
// are equal for every value of the symbols exactly if their canonical texts are.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

class DimExpr {
 public:
  /// Sorted symbols of one term; empty for the constant term.
  using Monomial = std::vector<std::string>;

  DimExpr() = default;  // 0
  DimExpr(int64_t value);
  static DimExpr symbol(std::string_view name);
  /// Reads sums of products: "2*seq+cache-1". Nothing if the text is not of that form.
  static std::optional<DimExpr> parse(std::string_view text);

  DimExpr operator+(const DimExpr& other) const;
  DimExpr operator-(const DimExpr& other) const;
  DimExpr operator*(const DimExpr& other) const;
  bool operator==(const DimExpr& other) const { return terms_ == other.terms_; }

  /// Canonical text: symbols before numbers, terms in lexical order.
  std::string text() const;
  std::optional<int64_t> asConstant() const;
  /// True if no value of the symbols at or above `least` (their ranges' lower ends, default 1)
  /// makes it negative. May be false for an expression that is non-negative in a subtler way.
  bool provablyNonNegative(const std::map<std::string, int64_t>& least = {}) const;
  std::vector<std::string> symbols() const;
  /// The value under an assignment; nothing on overflow or if a symbol is missing.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t, std::less<>>& values) const;
  /// This expression divided by a constant or a product of symbols, if that is exact.
  std::optional<DimExpr> dividedBy(const DimExpr& divisor) const;

  /// Products of symbols with their coefficients, none of which is 0; a constant term comes first.
  using Terms = std::vector<std::pair<Monomial, int64_t>>;
  const Terms& terms() const { return terms_; }

 private:
  void add(Monomial monomial, int64_t coefficient);
  Terms terms_;  // sorted by monomial
};

}  // namespace lathe
