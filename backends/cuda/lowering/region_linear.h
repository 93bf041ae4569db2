// SPDX-License-Identifier: Apache-2.0
#pragma once
// Indices in kernel text: integer sums of named variables. Ranges, alignment and what each lane of
// a vector adds are known, so that most divisions disappear and vector accesses can be proved.
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace lathe::cuda {

/// An integer variable (or product of variables) of the kernel.
struct Atom {
  static constexpr int64_t kUnbounded = int64_t(1) << 62;

  int id = 0;
  std::string text;   ///< "row", "j / 2", "row * n"
  int level = 0;      ///< the scope in which it is declared
  int64_t align = 1;  ///< it is a multiple of this
  int64_t lo = 0, hi = kUnbounded;
  bool wide = true;    ///< i64, else int
  bool simple = true;  ///< needs no parentheses as a factor
  /// Its value in every lane of a vector; empty: the same in all of them, or not known.
  std::vector<int64_t> lanes;
  /// Some lanes have no value of their own and share another's: the text holds for the others, so
  /// it may stand only where a guard keeps those lanes out.
  bool partial = false;
};

/// A sum of multiples of atoms, in the order in which those were made, and a constant.
class Linear {
 public:
  Linear() = default;
  Linear(int64_t constant) : constant_(constant) {}
  Linear(int constant) : constant_(constant) {}
  Linear(const Atom* atom) : terms_{{atom, 1}} {}

  Linear operator+(const Linear& other) const;
  Linear operator-(const Linear& other) const { return *this + other * -1; }
  Linear operator*(int64_t factor) const;
  bool operator==(const Linear& other) const = default;

  using Term = std::pair<const Atom*, int64_t>;
  const std::vector<Term>& terms() const { return terms_; }
  int64_t constant() const { return constant_; }
  bool isConstant() const { return terms_.empty(); }
  /// Identity, for keys.
  std::string key() const;
  /// "row * 4096 + c + j"; computed in i64 where int might overflow.
  std::string text() const;
  /// The same in parentheses unless it is one word.
  std::string factor() const;

  int level() const;
  int64_t align() const;
  int64_t lo() const;
  int64_t hi() const;
  bool wide() const;
  /// Not all lanes have a value (see Atom).
  bool partial() const;
  /// Without the atoms that differ by lane, and only those.
  Linear uniformPart() const;
  Linear lanePart() const;
  /// The lane part's values; empty if nothing differs by lane.
  std::vector<int64_t> lanes() const;

 private:
  std::vector<Term> terms_;
  int64_t constant_ = 0;
};

}  // namespace lathe::cuda
