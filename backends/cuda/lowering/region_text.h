// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel text under construction: nested scopes to each of which statements can still be added, so
// that a value is computed once, as far outside as its operands allow.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/lowering/region_linear.h"
#include "backends/cuda/lowering/text_names.h"

namespace lathe::cuda {

/// A value in the text.
struct Val {
  std::string text;  ///< a name, a literal or an element such as x_v[j]
  int level = 0;     ///< the scope from which on it can be used
  bool raw = false;  ///< in its element type as stored, where that differs from the computed one
  std::string whole = {};      ///< the vector whose element j it is
  std::string unrounded = {};  ///< of a raw value: the float that it was rounded from
  bool perLane = false;        ///< of a condition: known for every lane when the text is compiled
  /// The scope of the guard that it was read under, 0 for none. Its name may be used further out,
  /// in the choice between two branches, but it says nothing where the guard does not hold.
  int guard = 0;
};

class RegionText {
 public:
  explicit RegionText(int indent) : indent_(indent) { scopes_.push_back({}); }

  int top() const { return int(scopes_.size()) - 1; }
  void line(int level, const std::string& statement);
  /// `condition` makes it a guard: nothing inside may be read outside of it.
  void open(const std::string& header, const Val* condition = nullptr, bool isLaneLoop = false);
  /// Opens the scope of the threads that have work: nothing is read from memory outside of it.
  void openWork(const std::string& header);
  void close() { paste(take()); }
  /// Closes the scope and gives its text back: what follows, such as an `else`, may still put
  /// statements in front of it.
  std::string take();
  /// Adds statements that `aside` gave back.
  void paste(const std::string& statements) { scopes_.back().text += statements; }
  /// Runs `body` in a scope of its own and gives back its statements, which are not in the text.
  std::string aside(const Val& condition, const std::function<void()>& body);
  /// Runs `body` as if the scopes inside of `level` were not there.
  void at(int level, const std::function<void()>& body);

  /// The innermost guard outside of the loop over lanes (of all scopes, without one).
  int barrier() const;
  /// The innermost scope of the threads that have work; 0 without one.
  int floor() const;
  /// Conditions between the loop over lanes and here.
  std::vector<Val> laneGuards() const;
  /// The innermost of their scopes; 0: none.
  int laneGuard() const;
  /// The loop over lanes that is open; -1: none.
  int laneLoop() const;

  const Val* find(const std::string& key) const;
  /// In the outermost scope in which the value can be used and says something.
  void remember(const std::string& key, Val value);

  /// A name that is not yet taken in this kernel, nor by the language, CUDA or the headers.
  std::string unique(const std::string& hint) { return names_.unique(hint); }
  /// Declares a constant of type `type`.
  Val define(int level, const std::string& type, const std::string& hint,
             const std::string& expression, const std::string& comment = {});
  const Atom* atom(Atom atom);
  /// The text of the outermost scope.
  const std::string& str() const { return scopes_.front().text; }

 private:
  struct Scope {
    std::string header, text;
    bool guard = false, laneLoop = false, work = false;
    Val condition;
    std::map<std::string, Val> known;
  };
  std::string margin(int level) const { return std::string(size_t(2 * (level + indent_)), ' '); }

  int indent_;
  std::vector<Scope> scopes_;
  Names names_;
  std::deque<Atom> atoms_;
};

}  // namespace lathe::cuda
