// SPDX-License-Identifier: Apache-2.0
// Names of what was never declared.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table unknownNames() {
  return {
      {"undeclared_state",
       [] { Graph().readState("s"); },
       kArgument,
       {"state 's' is not declared; call Graph::state"}},
      {"undeclared_state_written",
       [] {
         Model m;
         m.g.writeState("s", m.x);
       },
       kArgument,
       {"state 's'", "not declared"}},
      {"state_written_before_read",
       [] {
         Model m;
         m.g.state("s", DType::F32, {m.batch, 4});
         m.g.writeState("s", m.x);
       },
       kArgument,
       {"state 's' is written before it was read"}},
      {"state_of_another_shape",
       [] {
         Model m;
         m.g.state("s", DType::F32, {4});
         m.g.readState("s");
         m.g.writeState("s", m.x);
       },
       kArgument,
       {"state 's' is f32[4]", "the new value is f32[batch, 4]"}},
      {"state_written_twice",
       [] {
         Model m;
         m.g.state("s", DType::F32, {m.batch, 4});
         m.g.readState("s");
         m.g.writeState("s", m.x);
         m.g.writeState("s", exp(m.x));
       },
       kArgument,
       {"state 's' is written twice"}},
      {"undeclared_symbol",
       [] {
         Model m;
         m.g.input("z", DType::F32, {Dim::symbol("seq")});
       },
       kArgument,
       {"symbol 'seq' is not declared in this graph; call Graph::dim"}},
      {"undeclared_symbol_of_a_state",
       [] { Graph().state("s", DType::F32, {Dim::symbol("seq")}); },
       kArgument,
       {"symbol 'seq' is not declared"}},
      {"undeclared_symbol_of_an_op",
       [] {
         Model m;
         iota(m.x, {Dim::symbol("seq")}, 0);
       },
       kArgument,
       {"symbol 'seq' is not declared"}},
      {"undeclared_symbol_of_a_broadcast",
       [] {
         Model m;
         broadcast(m.x, {Dim::symbol("seq"), m.batch, 4});
       },
       kArgument,
       {"symbol 'seq' is not declared"}},
      {"symbol_of_another_graph",
       [] {
         Model m;
         Graph other;
         m.g.input("z", DType::F32, {other.dim("t", 1, 4)});
       },
       kArgument,
       {"symbol 't' is not declared"}},
      {"cache_that_was_not_declared",
       [] {
         Model m;
         nn::TransformerLM lm(m.g, "",
                              {.vocabSize = 8, .dModel = 4, .dHidden = 8, .layers = 1, .heads = 1});
         lm.step(m.ids, m.g.input("at", DType::I64, {m.batch}));
       },
       kArgument,
       {"state 'k_cache.0' is not declared"}},
      {"op_of_no_name",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.frobnicate", {m.x}, {}, std::source_location::current());
       },
       kArgument,
       {"no op 'lathe.frobnicate' in the dialect"}},
      {"op_of_another_dialect",
       [] {
         Model m;
         m.g.recorder()->emit("func.return", {m.x}, {}, std::source_location::current());
       },
       kArgument,
       {"no op 'func.return' in the dialect"}},
      {"op_with_too_few_operands",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.add", {m.x}, {}, std::source_location::current());
       },
       kArgument,
       {"lathe.add"}},
      {"op_with_too_many_operands",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.exp", {m.x, m.x}, {}, std::source_location::current());
       },
       kArgument,
       {"lathe.exp"}},
      {"op_without_its_attribute",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.transpose", {m.x}, {}, std::source_location::current());
       },
       kArgument,
       {"lathe.transpose", "permutation"}},
      {"op_with_an_attribute_of_another_kind",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.argmax", {m.x}, {{"axis", std::string("last")}},
                              std::source_location::current());
       },
       kArgument,
       {"lathe.argmax", "axis"}},
      {"keyword_of_no_enumeration",
       [] {
         Model m;
         m.g.recorder()->emit("lathe.compare", {m.x, m.x},
                              {{"predicate", Keyword{"colour", "red"}}},
                              std::source_location::current());
       },
       kArgument,
       {"no enumeration 'colour'"}},
  };
}

}  // namespace lathe::misuse
