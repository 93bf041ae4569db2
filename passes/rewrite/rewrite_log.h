// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers every applied rewrite, merges locations into what rewrites create, and can stop after one
// rewrite or leave one out.
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/passes/numerics.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/Action.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/rewrite/locations.h"

namespace mlir {
class PassExecutionAction;
}

namespace lathe {

class LatheDialect;

/// A pattern with this debug label sets the locations of what it creates itself, exactly; for every
/// other pattern the log gives created ops the origins of the ops that the rewrite removed.
inline constexpr llvm::StringLiteral kExactLocations = "lathe.exact-locations";

class RewriteObserver;

class RewriteLog : public mlir::RewriterBase::Listener {
 public:
  struct Options {
    uint64_t stopAfter = ~uint64_t(0);    ///< apply this many rewrites and no more
    uint64_t skipAttempt = ~uint64_t(0);  ///< never apply the rewrite that this attempt would make
    bool print = false;                   ///< one line per rewrite on stderr
    RewriteObserver* observer = nullptr;  ///< looks on; outlives the log
  };
  struct Entry {
    uint64_t number;   ///< from 1
    uint64_t attempt;  ///< from 0; what `skipAttempt` takes
    std::string what;  ///< the pattern's name, or "pass lathe-cse"
    mlir::Location at;
    std::vector<Contract> weakened = {};
  };
  /// An op that does not run as it is meant to.
  struct Declined {
    std::string op;  ///< "lathe.softmax"
    mlir::Location at;
    std::string reason;
    /// "backend": a fused op that it expanded because it cannot run it; "mesh": an op that every
    /// rank computes whole.
    std::string by;
  };

  /// Merges locations only.
  explicit RewriteLog(mlir::MLIRContext* context);
  /// Becomes the log of the context's lathe dialect and its action handler, until destroyed. Turns
  /// the context's threading off: numbers are stable only then.
  RewriteLog(mlir::MLIRContext* context, LatheDialect* dialect, Options options);
  ~RewriteLog() override;
  RewriteLog(const RewriteLog&) = delete;
  RewriteLog& operator=(const RewriteLog&) = delete;

  /// Runs what cannot be refused piece by piece as one rewrite, if it changes `root`; refuses it
  /// once `stopAfter` is reached.
  void asOne(llvm::StringRef what, mlir::Operation* root, llvm::function_ref<void()> run);
  /// Notes a contract for the entry of the rewrite that is being applied, if it comes to one.
  void weaken(Contract contract);

  /// Runs what nothing works without: it gets no number and is never refused.
  void unnumbered(llvm::function_ref<void()> run);

  void noteDeclined(mlir::Operation* op, std::string reason, std::string by = "backend");

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Declined>& declined() const { return declined_; }
  uint64_t attempts() const { return attempts_; }
  /// Name of the pattern that was applied last.
  const std::string& lastApplied() const { return lastApplied_; }

  void notifyPatternBegin(const mlir::Pattern& pattern, mlir::Operation* op) override;
  void notifyPatternEnd(const mlir::Pattern& pattern, llvm::LogicalResult status) override;
  void notifyOperationInserted(mlir::Operation* op, mlir::OpBuilder::InsertPoint from) override;
  void notifyOperationReplaced(mlir::Operation* op, mlir::ValueRange values) override;
  void notifyOperationErased(mlir::Operation* op) override;

 private:
  void handle(llvm::function_ref<void()> run, const mlir::tracing::Action& action);
  void handlePass(llvm::function_ref<void()> run, const mlir::PassExecutionAction& action);
  bool open() const { return entries_.size() < options_.stopAfter; }
  void collect(mlir::Operation* op);
  void willTry(mlir::Operation* at);
  void settle(llvm::StringRef what, bool keepLocations, mlir::Operation* whole = nullptr);

  mlir::MLIRContext* context_;
  LatheDialect* dialect_ = nullptr;  // null: merges only
  Options options_;
  std::vector<Entry> entries_;
  std::vector<Declined> declined_;
  uint64_t attempts_ = 0;
  bool paused_ = false;
  std::string lastApplied_;

  // Of the pattern that is being applied.
  const mlir::Pattern* current_ = nullptr;
  mlir::Operation* rootOp_ = nullptr;  // null once the pattern has erased it
  llvm::SetVector<mlir::Operation*> created_, taken_;
  Origins origins_;
  std::vector<Contract> weakened_;
  mlir::Location root_;
  std::pair<std::string, mlir::Operation*> banned_;
};

/// The log that is attached to the context's lathe dialect; null without one.
RewriteLog* rewriteLogOf(mlir::MLIRContext* context);

/// Sees every rewrite of a log before and after it happens: for tools that show or reduce them, and
/// for tests that plant mistakes.
class RewriteObserver {
 public:
  virtual ~RewriteObserver() = default;
  /// The next rewrite may happen at `at` and would then have this number and attempt; nothing has
  /// changed yet. For what is one rewrite as a whole, `at` is the module. Most patterns decline.
  virtual void willTry(uint64_t number, uint64_t attempt, mlir::Operation* at) {}
  struct Applied {
    const RewriteLog::Entry& entry;
    /// What the rewrite created, or the one op that it changed in place; none for a whole pass, or
    /// where a value that was there already took the place of another.
    llvm::ArrayRef<mlir::Operation*> made;
    /// What it replaced, erased or left without users: erased by now or soon, good as keys only.
    llvm::ArrayRef<mlir::Operation*> taken;
    /// The module, for what is one rewrite as a whole; else null.
    mlir::Operation* whole = nullptr;
  };
  /// May change attributes and operands of what was made, which is what a planted mistake does.
  virtual void didApply(const Applied& applied) {}
};

}  // namespace lathe
