// SPDX-License-Identifier: Apache-2.0
// Fusions of the user's that are recorded wrongly.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

// A pattern that is right, for one mistake in it.
void rooted(DagPattern& p) {
  Tensor x = p.any();
  p.root(sqrt(x * x));
  p.replaceWith(abs(x));
}

}  // namespace

Table patterns() {
  return blamingNobody({
      {"pattern_without_root", [] { fuse([](DagPattern&) {}); }, kArgument, {kMine, "root"}},
      {"pattern_without_replacement",
       [] { fuse([](DagPattern& p) { p.root(exp(p.any())); }); },
       kArgument,
       {kMine, "replace"}},
      {"pattern_rooted_twice",
       [] {
         fuse([](DagPattern& p) {
           rooted(p);
           p.root(exp(p.any()));
         });
       },
       kArgument,
       {kMine}},
      {"pattern_rooted_at_a_placeholder",
       [] { fuse([](DagPattern& p) { p.root(p.any()); }); },
       kArgument,
       {kMine, "the root must be an op"}},
      {"pattern_rooted_at_nothing",
       [] { fuse([](DagPattern& p) { p.root(Tensor()); }); },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_rooted_at_a_made_up_id",
       [] { fuse([](DagPattern& p) { p.root(Tensor(&p, 1000)); }); },
       kArgument,
       {kMine, "1000"}},
      {"pattern_rooted_in_a_graph",
       [] {
         fuse([](DagPattern& p) {
           Model m;
           p.root(exp(m.x));
         });
       },
       kArgument,
       {kMine, "belongs to another pattern or graph"}},
      {"pattern_of_a_destroyed_graph",
       [] {
         Tensor dead;
         {
           Model m;
           dead = m.x;
         }
         fuse([=](DagPattern& p) { p.root(p.any() + dead); });
       },
       kArgument,
       {kMine, "no longer exists"}},
      {"pattern_any_after_root",
       [] {
         fuse([](DagPattern& p) {
           rooted(p);
           p.any();
         });
       },
       kArgument,
       {kMine, "any() after root()"}},
      {"pattern_constant_after_root",
       [] {
         fuse([](DagPattern& p) {
           rooted(p);
           p.constant(1);
         });
       },
       kArgument,
       {kMine, "constant() after root()"}},
      {"pattern_any_of_nothing",
       [] { fuse([](DagPattern& p) { p.anyOf({}); }); },
       kArgument,
       {kMine, "anyOf of nothing"}},
      {"pattern_any_of_empty_handles",
       [] { fuse([](DagPattern& p) { p.anyOf({Tensor()}); }); },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_optional_of_nothing",
       [] { fuse([](DagPattern& p) { p.optional(Tensor(), p.any()); }); },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_replaced_by_nothing",
       [] {
         fuse([](DagPattern& p) {
           p.root(exp(p.any()));
           p.replaceWith(Tensor());
         });
       },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_replaced_by_a_null_function",
       [] {
         fuse([](DagPattern& p) {
           p.root(exp(p.any()));
           p.replaceWith(DagPattern::Replacement());
         });
       },
       kArgument,
       {kMine, "null function"}},
      {"pattern_condition_that_is_null",
       [] { fuse([](DagPattern& p) { p.where(p.any(), "no test", nullptr); }); },
       kArgument,
       {kMine, "null function"}},
      {"pattern_requirement_that_is_null",
       [] { fuse([](DagPattern& p) { p.require("no test", nullptr); }); },
       kArgument,
       {kMine, "null function"}},
      {"pattern_constant_test_that_is_null",
       [] { fuse([](DagPattern& p) { p.constantWhere("no test", nullptr); }); },
       kArgument,
       {kMine, "null function"}},
      {"pattern_of_no_dtype",
       [] { fuse([](DagPattern& p) { p.any(DType(40)); }); },
       kArgument,
       {kMine, "40 is no dtype"}},
      {"pattern_of_nan",
       [] { fuse([](DagPattern& p) { p.constant(0.0 / 0.0); }); },
       kArgument,
       {kMine, "nan"}},
      {"pattern_of_negative_tolerance",
       [] { fuse([](DagPattern& p) { p.constant(1, -1); }); },
       kArgument,
       {kMine, "tolerance"}},
      {"pattern_of_negative_rank",
       [] { fuse([](DagPattern& p) { p.rank(p.any(), -1); }); },
       kArgument,
       {kMine, "rank -1"}},
      {"pattern_of_negative_size",
       [] { fuse([](DagPattern& p) { p.dim(p.any(), 0, -4); }); },
       kArgument,
       {kMine, "size -4"}},
      {"pattern_dtype_of_nothing",
       [] { fuse([](DagPattern& p) { p.dtype(Tensor(), DType::F32); }); },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_that_asks_for_a_dtype",
       [] { fuse([](DagPattern& p) { p.any().dtype(); }); },
       kArgument,
       {kMine, "a dtype is unknown in a pattern"}},
      {"pattern_that_asks_for_a_shape",
       [] { fuse([](DagPattern& p) { p.any().shape(); }); },
       kArgument,
       {kMine, "a rank or shape is unknown in a pattern"}},
      {"pattern_of_an_unknown_attribute",
       [] { fuse([](DagPattern& p) { p.anyAttribute(exp(p.any()), "axis"); }); },
       kArgument,
       {kMine, "axis"}},
      {"pattern_attribute_of_a_placeholder",
       [] { fuse([](DagPattern& p) { p.anyAttribute(p.any(), "axis"); }); },
       kArgument,
       {kMine, "expected an op"}},
      {"pattern_escape_of_a_placeholder",
       [] { fuse([](DagPattern& p) { p.mayEscape(p.any()); }); },
       kArgument,
       {kMine, "expected an op"}},
      {"pattern_capture_of_a_placeholder",
       [] { fuse([](DagPattern& p) { p.captured(p.any()); }); },
       kArgument,
       {kMine, "takes a constant"}},
      {"pattern_capture_of_a_made_up_id",
       [] { fuse([](DagPattern& p) { p.captured(Tensor(&p, 99)); }); },
       kArgument,
       {kMine, "99"}},
      {"pattern_shape_of_a_made_up_id",
       [] { fuse([](DagPattern& p) { p.capturedShape(Tensor(&p, 99)); }); },
       kArgument,
       {kMine, "99"}},
      {"pattern_shape_of_nothing",
       [] { fuse([](DagPattern& p) { p.capturedShape(Tensor()); }); },
       kArgument,
       {kMine, "empty handle"}},
      {"pattern_with_an_op_of_no_name",
       [] {
         fuse([](DagPattern& p) {
           p.emit("lathe.frobnicate", {p.any()}, {}, std::source_location::current());
         });
       },
       kArgument,
       {kMine, "no op 'lathe.frobnicate'"}},
      {"pattern_with_an_unknown_keyword",
       [] { fuse([](DagPattern& p) { compare(p.any(), p.any(), Compare(6)); }); },
       kArgument,
       {kMine, "predicate is one of"}},
      {"pattern_without_name",
       [] {
         fuseWith([](mlir::MLIRContext* context) {
           PatternLibrary library;
           addPattern(library, context, "", rooted);
           return library;
         });
       },
       kArgument,
       {"name"}},
      {"pattern_recorded_by_a_null_function",
       [] { fuse(nullptr); },
       kArgument,
       {kMine, "null function"}},
      {"pattern_for_no_context",
       [] {
         PatternLibrary library;
         addPattern(library, nullptr, "mine", rooted);
       },
       kArgument,
       {kMine, "context"}},
      {"pattern_that_is_null",
       [] { fuseWith([](mlir::MLIRContext*) { return PatternLibrary{nullptr}; }); },
       kArgument,
       {"null pointer"}},
  });
}

}  // namespace lathe::misuse
