// SPDX-License-Identifier: Apache-2.0
// Sessions made of nothing, and bound to other weights than the program reads.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

std::shared_ptr<const Program> linearProgram(const std::string& backend) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8);
  Tensor x = g.input("x", DType::F32, {batch, 4}), more = g.input("more", DType::I64, {batch});
  g.state("kept", DType::F32, {batch, g.dim("room", 2, 16, 2)});
  g.output("y", nn::Linear(g, "fc", 4, 3, {.bias = false})(x));
  g.output("sum", more + more);
  g.readState("kept");
  return std::make_shared<const Program>(compile(g, {.backend = backend}));
}
Arrays linearWeights() { return {{"fc.weight", Array(DType::F32, {3, 4})}}; }
Arrays linearInputs() {
  return {{"x", Array(DType::F32, {2, 4})}, {"more", Array(DType::I64, {2})}};
}

Table madeSessions() {
  return blamingNobody({
      {"session_of_null",
       [] { Session s{std::shared_ptr<const Program>()}; },
       kArgument,
       {"expected a program, got a null pointer"}},
      {"session_of_a_default_program", [] { Session s{Program()}; }, kUnsupported, {"backend ''"}},
      {"session_of_a_moved_program",
       [] {
         Graph g;
         g.output("y", exp(g.input("x", DType::F32, {4})));
         Program p = compile(g, {.backend = "reference"});
         Program q = std::move(p);
         Session s{std::move(p)};
         s.run("forward", {});
       },
       kUnsupported,
       {"backend ''"}},
      {"session_of_an_unknown_backend",
       [] {
         Program p;
         p.backend = "tpu";
         Session s{std::move(p)};
       },
       kUnsupported,
       {"'tpu'"}},
      {"session_of_negative_threads",
       [] { Session s(linearProgram("cpu"), {.threads = -1}); },
       kArgument,
       {"threads", "-1"}},
      {"session_on_no_device",
       [] { Session s(linearProgram("cuda"), {.device = "npu"}); },
       kArgument,
       {"'npu'"}},
  });
}

Table boundSessions() {
  return blamingNobody({
      {"null_weight_source",
       [] { Session(linearProgram()).bindWeights(WeightSource()); },
       kArgument,
       {"weight source", "null"}},
      {"weight_source_of_nothing",
       [] { Session(linearProgram()).bindWeights([](const std::string&) { return Array(); }); },
       kArgument,
       {"missing: fc.weight f32[3, 4]"}},
      {"missing_weight",
       [] { Session(linearProgram()).bindWeights(Arrays{}); },
       kArgument,
       {"missing: fc.weight f32[3, 4]"}},
      {"extra_weight",
       [] {
         Arrays w = linearWeights();
         w["fc.bias"] = Array(DType::F32, {3});
         Session(linearProgram()).bindWeights(w);
       },
       kArgument,
       {"no weights named fc.bias"}},
      {"undefined_weight",
       [] { Session(linearProgram()).bindWeights(Arrays{{"fc.weight", Array()}}); },
       kArgument,
       {"missing: fc.weight"}},
      {"weight_of_another_shape",
       [] {
         Session(linearProgram()).bindWeights(Arrays{{"fc.weight", Array(DType::F32, {4, 3})}});
       },
       kArgument,
       {"wrong shape: fc.weight is f32[4, 3], expected f32[3, 4]"}},
      {"weight_of_another_dtype",
       [] {
         Session(linearProgram()).bindWeights(Arrays{{"fc.weight", Array(DType::BF16, {3, 4})}});
       },
       kArgument,
       {"wrong dtype: fc.weight is bf16[3, 4], expected f32[3, 4]"}},
      {"run_without_weights",
       [] { Session(linearProgram()).run("forward", linearInputs()); },
       kArgument,
       {"bindWeights"}},
      {"run_after_weights_that_did_not_fit",
       [] {
         Session s(linearProgram());
         try {
           s.bindWeights(Arrays{});
         } catch (const Error&) {
         }
         s.run("forward", linearInputs());
       },
       kArgument,
       {"bindWeights"}},
  });
}

}  // namespace lathe::misuse
