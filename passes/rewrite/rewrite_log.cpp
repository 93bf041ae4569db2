// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/rewrite_log.h"

#include "lathe/ir/dialect.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Rewrite/PatternApplicator.h"

using namespace mlir;

namespace lathe {

// A value that many layers share would otherwise name a line of each of them.
static constexpr size_t kMostMergedOrigins = 8;

RewriteLog* rewriteLogOf(MLIRContext* context) {
  auto* dialect = context->getLoadedDialect<LatheDialect>();
  return dialect ? dialect->rewriteLog : nullptr;
}

RewriteLog::RewriteLog(MLIRContext* context) : context_(context), root_(UnknownLoc::get(context)) {}

RewriteLog::RewriteLog(MLIRContext* context, LatheDialect* dialect, Options options)
    : context_(context), dialect_(dialect), options_(options), root_(UnknownLoc::get(context)) {
  context->disableMultithreading();
  dialect->rewriteLog = this;
  context->registerActionHandler(
      [this](llvm::function_ref<void()> run, const tracing::Action& a) { handle(run, a); });
}

RewriteLog::~RewriteLog() {
  if (!dialect_) return;
  dialect_->rewriteLog = nullptr;
  context_->registerActionHandler(nullptr);
}

// An ApplyPatternAction is an attempt, not an application: not calling run() refuses the attempt.
void RewriteLog::handle(llvm::function_ref<void()> run, const tracing::Action& action) {
  if (paused_) return run();
  if (auto* pass = dyn_cast<PassExecutionAction>(&action)) return handlePass(run, *pass);
  // A detached log is one whose dialect lends itself to a trial (exactness.cpp): no rewrite of the
  // user's module.
  if (!isa<ApplyPatternAction>(action) || dialect_->rewriteLog != this) return run();
  if (!open()) return;
  uint64_t attempt = attempts_++;
  auto* op = dyn_cast<Operation*>(action.getContextIRUnits()[0]);
  willTry(op);
  if (options_.skipAttempt == ~uint64_t(0)) return run();
  std::string name;  // the action hides its pattern; only its text names it
  llvm::raw_string_ostream os(name);
  action.print(os);
  if (attempt == options_.skipAttempt) banned_ = {name, op};
  // The driver tries again later, so the same pattern is refused at the same op from here on.
  if (banned_.second == op && banned_.first == name) return;
  run();
}

// CSE and upstream passes are one rewrite each.
void RewriteLog::handlePass(llvm::function_ref<void()> run, const PassExecutionAction& action) {
  asOne(("pass " + action.getPass().getArgument()).str(), action.getOp(), run);
}

void RewriteLog::unnumbered(llvm::function_ref<void()> run) {
  llvm::SaveAndRestore pause(paused_, true);
  run();
}

// What numbered its rewrites one by one gets no number of its own.
void RewriteLog::asOne(StringRef what, Operation* root, llvm::function_ref<void()> run) {
  if (!open()) return;
  OperationFingerPrint before(root);
  size_t had = entries_.size();
  willTry(root);
  run();
  if (entries_.size() != had || before == OperationFingerPrint(root)) return;
  root_ = root->getLoc();
  rootOp_ = nullptr;
  settle(what, /*keepLocations=*/true, root);
}

void RewriteLog::noteDeclined(Operation* op, std::string reason, std::string by) {
  declined_.push_back(
      {op->getName().getStringRef().str(), op->getLoc(), std::move(reason), std::move(by)});
}

void RewriteLog::willTry(Operation* at) {
  if (options_.observer)
    options_.observer->willTry(entries_.size() + 1, attempts_ ? attempts_ - 1 : 0, at);
}

// The origins of an op that a rewrite replaces and of what it leaves without users: those ops are
// erased only later, by the driver.
void RewriteLog::collect(Operation* op) {
  if (!taken_.insert(op)) return;
  addOrigins(origins_, op->getLoc());
  for (Value v : op->getOperands()) {
    Operation* def = v.getDefiningOp();
    bool dies = def && !def->hasTrait<OpTrait::ConstantLike>() &&
                def->getBlock() == op->getBlock() && !created_.contains(def) &&
                llvm::all_of(def->getUsers(), [&](Operation* user) { return user == op; });
    if (dies) collect(def);
  }
}

void RewriteLog::settle(StringRef what, bool keepLocations, Operation* whole) {
  if (!keepLocations && !created_.empty() && !origins_.empty()) {
    Location merged = fuseOrigins(context_, origins_, what);
    for (Operation* op : created_) op->setLoc(merged);
  }
  if (paused_) {
    created_.clear();
    taken_.clear();
    origins_.clear();
    weakened_.clear();
    return;
  }
  uint64_t attempt = attempts_ ? attempts_ - 1 : 0;
  entries_.push_back({entries_.size() + 1, attempt, what.str(), root_, std::move(weakened_)});
  if (options_.print) {
    llvm::errs() << "rewrite #" << entries_.size() << " attempt " << attempt << " " << what;
    for (Contract c : entries_.back().weakened) llvm::errs() << " weakens " << rowOf(c).name;
    llvm::errs() << "\n";
  }
  if (options_.observer) {
    if (rootOp_ && created_.empty() && taken_.empty()) {
      created_.insert(rootOp_);
      taken_.insert(rootOp_);
    }
    options_.observer->didApply(
        {entries_.back(), created_.getArrayRef(), taken_.getArrayRef(), whole});
  }
  created_.clear();
  taken_.clear();
  origins_.clear();
  weakened_.clear();
}

void RewriteLog::weaken(Contract contract) {
  if (!llvm::is_contained(weakened_, contract)) weakened_.push_back(contract);
}

void RewriteLog::notifyPatternBegin(const Pattern& pattern, Operation* op) {
  current_ = &pattern;
  root_ = op->getLoc();
  rootOp_ = op;
  created_.clear();
  taken_.clear();
  origins_.clear();
  weakened_.clear();
}

void RewriteLog::notifyPatternEnd(const Pattern& pattern, LogicalResult status) {
  if (succeeded(status)) {
    addOrigins(origins_, root_);
    lastApplied_ = pattern.getDebugName().str();
    bool exact = llvm::is_contained(pattern.getDebugLabels(), kExactLocations);
    settle(pattern.getDebugName().empty() ? "pattern" : pattern.getDebugName(), exact);
  }
  current_ = nullptr;
}

void RewriteLog::notifyOperationInserted(Operation* op, OpBuilder::InsertPoint) {
  if (current_) created_.insert(op);
}

void RewriteLog::notifyOperationReplaced(Operation* op, ValueRange values) {
  if (current_) return collect(op);
  // CSE: the survivor takes the origin along.
  for (Value v : values) {
    Operation* kept = v.getDefiningOp();
    if (!kept || kept->getLoc() == op->getLoc()) continue;
    Origins merged, more;
    addOrigins(merged, kept->getLoc());
    addOrigins(more, op->getLoc());
    for (Location l : more)
      if (merged.size() < kMostMergedOrigins) merged.insert(l);
    kept->setLoc(fuseOrigins(context_, merged));
  }
}

void RewriteLog::notifyOperationErased(Operation* op) {
  // What the pattern made and took back was never there.
  if (!created_.remove(op) && current_) taken_.insert(op);
  if (rootOp_ == op) rootOp_ = nullptr;
  if (banned_.second == op) banned_ = {};
}

}  // namespace lathe
