// SPDX-License-Identifier: Apache-2.0
// Fusions that throw, never end or have another type.
#include <stdexcept>

#include <lathe/match.h>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

// Compiles a model of many ops with one fusion named "mine".
void fuseWith(PatternsFor patterns) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4, 8});
  g.output("y", sqrt(x * x) + exp(x));
  g.output("z", compare(x, x + 1.0, Compare::lt));
  compile(g, {.backend = "reference", .pipeline = {.patterns = std::move(patterns)}});
}
void fuse(const std::function<void(DagPattern&)>& record) {
  fuseWith([=](mlir::MLIRContext* context) {
    PatternLibrary library;
    addPattern(library, context, "mine", record);
    return library;
  });
}

Table throwingPatterns() {
  return blamingNobody({
      {"recorder_throws_an_exception",
       [] { fuse([](DagPattern&) { throw std::runtime_error("out of ideas"); }); },
       kArgument,
       {kMine, "out of ideas"}},
      {"recorder_throws_a_number",
       [] { fuse([](DagPattern&) { throw 42; }); },
       kArgument,
       {kMine, "no std::exception"}},
      {"recorder_throws_an_error",
       [] { fuse([](DagPattern&) { throw Error(ErrorCode::Unsupported, "not on a Sunday"); }); },
       kUnsupported,
       {kMine, "not on a Sunday"}},
      {"recorder_runs_out_of_memory",
       [] { fuse([](DagPattern&) { throw std::bad_alloc(); }); },
       kArgument,
       {kMine, "bad_alloc"}},
      {"list_of_patterns_throws",
       [] {
         fuseWith([](mlir::MLIRContext*) -> PatternLibrary { throw std::logic_error("no list"); });
       },
       kArgument,
       {"the function given as patterns", "no list"}},
      {"list_of_patterns_throws_a_number",
       [] { fuseWith([](mlir::MLIRContext*) -> PatternLibrary { throw 1; }); },
       kArgument,
       {"the function given as patterns", "no std::exception"}},
      {"condition_throws_a_number",
       [] {
         fuse([](DagPattern& p) {
           p.root(exp(p.where(p.any(), "thrown", [](mlir::Value) -> bool { throw 1; })));
           p.replaceWith(abs(p.emit("lathe.exp", {}, {}, std::source_location::current())));
         });
       },
       kArgument,
       {kMine}},
      {"constant_test_throws",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(x + p.constantWhere("thrown", [](double) -> bool {
             throw std::runtime_error("cannot tell");
           }));
           p.replaceWith(neg(x));
         });
       },
       kArgument,
       {kMine, "cannot tell"}},
      {"requirement_throws",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.require("thrown", [](const Match&) -> bool { throw std::runtime_error("no way"); });
           p.replaceWith(neg(x));
         });
       },
       kArgument,
       {kMine, "no way"}},
      {"replacement_throws",
       [] {
         fuse([](DagPattern& p) {
           p.root(exp(p.any()));
           p.replaceWith([](Match&) -> mlir::Value { throw std::runtime_error("no kernel"); });
         });
       },
       kArgument,
       {kMine, "no kernel"}},
      {"replacement_throws_a_number",
       [] {
         fuse([](DagPattern& p) {
           p.root(exp(p.any()));
           p.replaceWith([](Match&) -> mlir::Value { throw 3; });
         });
       },
       kArgument,
       {kMine, "no std::exception"}},
  });
}

Table replacements() {
  return blamingNobody({
      {"replacement_that_is_the_root",
       [] {
         fuse([](DagPattern& p) {
           Tensor y = exp(p.any());
           p.root(y);
           p.replaceWith(y);
         });
       },
       kArgument,
       {kMine}},
      {"replacement_that_contains_its_root",
       [] {
         fuse([](DagPattern& p) {
           Tensor y = exp(p.any());
           p.root(y);
           p.replaceWith(neg(neg(y)));
         });
       },
       kArgument,
       {kMine}},
      {"replacement_that_makes_its_root_again",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(exp(x));
         });
       },
       kArgument,
       {kMine, "does it match its own replacement?"}},
      {"replacement_that_grows",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(neg(exp(x)));
           p.approximate();
         });
       },
       kArgument,
       {kMine, "does it match its own replacement?"}},
      {"replacement_that_doubles",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(exp(x * 2.0) + exp(x * 3.0));
           p.approximate();
         });
       },
       kArgument,
       {kMine, "does it match its own replacement?"}},
      {"replacement_of_a_hundred_ops_each",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           Tensor y = x;
           for (int i = 0; i < 100; ++i) y = exp(y + double(i));
           p.replaceWith(y);
           p.approximate();
         });
       },
       kArgument,
       {kMine, "does it match its own replacement?"}},
      {"two_patterns_that_undo_each_other",
       [] {
         fuseWith([](mlir::MLIRContext* context) {
           PatternLibrary library;
           for (bool there : {true, false})
             addPattern(library, context, there ? "mine" : "yours", [=](DagPattern& p) {
               Tensor x = p.any();
               p.root(there ? exp(x) : tanh(x));
               p.replaceWith(there ? tanh(x) : exp(x));
               p.approximate();
             });
           return library;
         });
       },
       kArgument,
       {"does it match its own replacement?"}},
      {"floats_for_bools",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(compare(x, x + p.constant(1), Compare::lt));
           p.replaceWith(exp(x));
         });
       },
       kArgument,
       {kMine, "bool", "f32"}},
      {"bools_for_floats",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(compare(x, x, Compare::eq));
         });
       },
       kArgument,
       {kMine, "bool"}},
      {"integers_for_floats",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(cast(x, DType::I64));
         });
       },
       kArgument,
       {kMine, "i64"}},
      {"another_float_dtype",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any(DType::F32);
           p.root(exp(x));
           p.replaceWith(cast(x, DType::BF16));
         });
       },
       kArgument,
       {kMine, "f32", "bf16"}},
      {"replacement_with_a_reserved_shape",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceWith(x + nn::softmax(x));
         });
       },
       kArgument,
       {kMine, "unknown in a pattern"}},
      {"matched_value_replaced_from_outside",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.root(exp(x));
           p.replaceToo(Tensor(), x);
         });
       },
       kArgument,
       {kMine, "empty handle"}},
      {"replacement_after_its_place",
       [] {
         fuse([](DagPattern& p) {
           Tensor x = p.any();
           p.replaceWith(x);
         });
       },
       kArgument,
       {kMine, "root"}},
  });
}

}  // namespace lathe::misuse
