// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_linear.h"

#include <algorithm>
#include <numeric>

namespace lathe::cuda {
namespace {

constexpr int64_t kIntLimit = int64_t(1) << 31;

int64_t saturate(__int128 v) {
  return int64_t(std::clamp<__int128>(v, -Atom::kUnbounded, Atom::kUnbounded));
}

}  // namespace

Linear Linear::operator+(const Linear& other) const {
  Linear sum;
  sum.constant_ = constant_ + other.constant_;
  size_t i = 0, k = 0;
  while (i < terms_.size() || k < other.terms_.size()) {
    if (k == other.terms_.size() ||
        (i < terms_.size() && terms_[i].first->id < other.terms_[k].first->id)) {
      sum.terms_.push_back(terms_[i++]);
    } else if (i == terms_.size() || other.terms_[k].first->id < terms_[i].first->id) {
      sum.terms_.push_back(other.terms_[k++]);
    } else {
      int64_t factor = terms_[i].second + other.terms_[k].second;
      if (factor != 0) sum.terms_.push_back({terms_[i].first, factor});
      ++i;
      ++k;
    }
  }
  return sum;
}

Linear Linear::operator*(int64_t factor) const {
  Linear product;
  if (factor == 0) return product;
  product = *this;
  product.constant_ *= factor;
  for (Term& t : product.terms_) t.second *= factor;
  return product;
}

std::string Linear::key() const {
  std::string key = std::to_string(constant_);
  for (auto [atom, factor] : terms_)
    key += "+" + std::to_string(factor) + "#" + std::to_string(atom->id);
  return key;
}

bool Linear::wide() const {
  __int128 most = constant_ < 0 ? -__int128(constant_) : constant_;
  for (auto [atom, factor] : terms_) {
    if (atom->wide) return true;
    __int128 size = std::max(std::abs(atom->lo), std::abs(atom->hi));
    most += size * (factor < 0 ? -__int128(factor) : factor);
  }
  return most >= kIntLimit;
}

std::string Linear::text() const {
  if (terms_.empty()) return std::to_string(constant_);
  // Outer variables first.
  std::vector<Term> terms = terms_;
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    return std::pair(a.first->level, a.first->id) < std::pair(b.first->level, b.first->id);
  });
  std::string text;
  bool isWide = false;  // the sum so far
  __int128 most = 0;
  for (auto [atom, factor] : terms) {
    const int64_t size = std::abs(factor);
    __int128 bound = __int128(size) * std::max(std::abs(atom->lo), std::abs(atom->hi));
    most += bound;
    const bool cast = !atom->wide && (bound >= kIntLimit || (!isWide && most >= kIntLimit));
    isWide |= atom->wide || cast;
    if (text.empty())
      text = factor < 0 ? "-" : "";
    else
      text += factor < 0 ? " - " : " + ";
    const bool plain = atom->simple || (size == 1 && !cast && factor > 0);
    text += (cast ? "(i64)" : "") + (plain ? atom->text : "(" + atom->text + ")");
    if (size != 1) text += " * " + std::to_string(size);
  }
  if (constant_ != 0) text += (constant_ < 0 ? " - " : " + ") + std::to_string(std::abs(constant_));
  return text;
}

std::string Linear::factor() const {
  std::string t = text();
  return t.find(' ') == std::string::npos && t[0] != '-' ? t : "(" + t + ")";
}

int Linear::level() const {
  int level = 0;
  for (auto& [atom, factor] : terms_) level = std::max(level, atom->level);
  return level;
}

int64_t Linear::align() const {
  int64_t align = std::abs(constant_);
  for (auto [atom, factor] : terms_)
    align = std::gcd(align, saturate(__int128(atom->align) * std::abs(factor)));
  return align;
}

int64_t Linear::lo() const {
  __int128 lo = constant_;
  for (auto [atom, factor] : terms_) lo += __int128(factor) * (factor < 0 ? atom->hi : atom->lo);
  return saturate(lo);
}

int64_t Linear::hi() const {
  __int128 hi = constant_;
  for (auto [atom, factor] : terms_) hi += __int128(factor) * (factor < 0 ? atom->lo : atom->hi);
  return saturate(hi);
}

bool Linear::partial() const {
  return std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.first->partial; });
}

Linear Linear::uniformPart() const {
  Linear part(constant_);
  for (const Term& t : terms_)
    if (t.first->lanes.empty()) part.terms_.push_back(t);
  return part;
}

Linear Linear::lanePart() const {
  Linear part;
  for (const Term& t : terms_)
    if (!t.first->lanes.empty()) part.terms_.push_back(t);
  return part;
}

std::vector<int64_t> Linear::lanes() const {
  std::vector<int64_t> values;
  for (auto& [atom, factor] : terms_) {
    if (atom->lanes.empty()) continue;
    values.resize(atom->lanes.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] += factor * atom->lanes[i];
  }
  return values;
}

}  // namespace lathe::cuda
