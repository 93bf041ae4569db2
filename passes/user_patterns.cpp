// SPDX-License-Identifier: Apache-2.0
#include "passes/user_patterns.h"

#include "lathe/ir/dialect.h"
#include "lathe/passes/pattern_node.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/pdl/pdl_patterns.h"
#include "passes/rewrite/dag_types.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/pattern_trial.h"

namespace lathe {
namespace {

// A pattern of a file has places there, and other words for what it may ask.
void refuseWrong(const DagPattern& pattern, const Evaluator& evaluate) {
  const std::string problem = whyNeverRight(pattern, evaluate);
  if (problem.empty()) return;
  const std::string& place = pattern.nodes()[pattern.root()].place;
  const bool isFile = !place.empty();
  throw Error(
      isFile ? ErrorCode::InvalidFile : ErrorCode::InvalidArgument,
      (isFile ? place + ": " : "") + "pattern '" + pattern.name() + "': " + problem + "; " +
          (isFile ? "mend the rewrite, constrain the match, or apply `approximate` to it"
                  : "mend the replacement, ask with dtype(), rank(), dim() or require() for "
                    "what it is right for, or call approximate()") +
          " if other numbers are meant");
}

}  // namespace

PatternLibrary userPatterns(mlir::MLIRContext* context, const PatternsFor& patterns,
                            const std::vector<std::string>& files) {
  context->getOrLoadDialect<LatheDialect>();
  PatternLibrary library;
  auto refuse = [](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, "the function given as patterns threw " + text);
  };
  try {
    if (patterns) library = patterns(context);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    refuse(e.what());
  } catch (...) {
    refuse("something that is no std::exception");
  }
  for (auto& pattern : library) {
    if (!pattern)
      throw Error(ErrorCode::InvalidArgument, "the list of patterns holds a null pointer");
    pattern->checkComplete();
    if (std::string problem = whyNeverOfItsType(*pattern); !problem.empty())
      throw Error(ErrorCode::InvalidArgument, "pattern '" + pattern->name() + "': " + problem +
                                                  "; insert a cast or match another op");
    if (pattern->context() != context)
      throw Error(ErrorCode::InvalidArgument,
                  "pattern '" + pattern->name() +
                      "' was recorded for another context; record it in the function that is given "
                      "as patterns, with that function's argument");
  }
  for (const std::string& file : files)
    for (auto& pattern : loadPatternFile(context, file)) library.push_back(pattern);
  const NumericsPolicy* policy = context->getLoadedDialect<LatheDialect>()->numerics;
  if (policy && policy->evaluate)
    for (auto& pattern : library) refuseWrong(*pattern, policy->evaluate);
  return library;
}

}  // namespace lathe
