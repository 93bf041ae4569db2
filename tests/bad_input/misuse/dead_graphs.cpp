// SPDX-License-Identifier: Apache-2.0
// Moved-from graphs, and modules that outlive theirs.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

nn::Linear linearOfDestroyedGraph() {
  Graph g;
  return nn::Linear(g, "fc", 4, 3);
}
Graph movedFrom() {
  Graph g;
  g.input("x", DType::F32, {4});
  Graph other = std::move(g);
  return g;  // empty by now
}
const std::vector<std::string> kDead = {"no longer exists"};
const std::vector<std::string> kMoved = {"was moved from"};

}  // namespace

Table movedGraphs() {
  return {
      {"input_of_moved",
       [] {
         Graph g = movedFrom();
         g.input("y", DType::F32, {4});
       },
       kArgument, kMoved},
      {"dim_of_moved", [] { movedFrom().dim("n", 1, 2); }, kArgument, kMoved},
      {"entry_of_moved", [] { movedFrom().entry("e"); }, kArgument, kMoved},
      {"output_of_moved",
       [] {
         Model m;
         movedFrom().output("y", m.x);
       },
       kArgument, kMoved},
      {"observe_of_moved",
       [] {
         Model m;
         movedFrom().observe("y", m.x);
       },
       kArgument, kMoved},
      {"weight_of_moved", [] { movedFrom().weight("w", DType::F32, {4}); }, kArgument, kMoved},
      {"state_of_moved", [] { movedFrom().state("s", DType::F32, {4}); }, kArgument, kMoved},
      {"read_state_of_moved", [] { movedFrom().readState("s"); }, kArgument, kMoved},
      {"write_state_of_moved",
       [] {
         Model m;
         movedFrom().writeState("s", m.x);
       },
       kArgument, kMoved},
      {"constant_of_moved", [] { movedFrom().constant(1.0); }, kArgument, kMoved},
      {"array_constant_of_moved", [] { movedFrom().constant(Array(DType::F32, {2})); }, kArgument,
       kMoved},
      {"text_of_moved", [] { movedFrom().text(); }, kArgument, kMoved, Blames::Nobody},
      {"graphviz_of_moved", [] { movedFrom().graphviz(); }, kArgument, kMoved, Blames::Nobody},
      {"recorder_of_moved", [] { movedFrom().recorder(); }, kArgument, kMoved, Blames::Nobody},
      {"impl_of_moved", [] { movedFrom().impl(); }, kArgument, kMoved, Blames::Nobody},
      {"compile_of_moved", [] { compile(movedFrom()); }, kArgument, kMoved, Blames::Nobody},
      {"ir_of_moved", [] { irAt(movedFrom(), "recorded"); }, kArgument, kMoved, Blames::Nobody},
      {"module_in_moved",
       [] {
         Graph g = movedFrom();
         nn::Linear fc(g, "fc", 4, 3);
       },
       kArgument, kMoved},
      {"model_in_moved",
       [] {
         Graph g = movedFrom();
         nn::RMSNorm norm(g, "norm", 4);
       },
       kArgument, kMoved},
  };
}

Table deadModules() {
  return {
      {"module_of_destroyed_graph",
       [] {
         Model m;
         linearOfDestroyedGraph()(m.x);
       },
       kArgument,
       {"'fc'", "no longer exists"}},
      {"module_of_overwritten_graph",
       [] {
         Model m;
         nn::Linear fc(m.g, "fc", 4, 3);
         m.g = Graph();
         fc(m.g.input("x", DType::F32, {1, 4}));
       },
       kArgument,
       {"'fc'", "no longer exists"}},
      {"graph_of_a_module_without_one", [] { linearOfDestroyedGraph().graph(); }, kArgument, kDead,
       Blames::Nobody},
      {"module_with_input_of_another_graph",
       [] {
         Model m, other;
         nn::Linear fc(m.g, "fc", 4, 3);
         fc(other.x);
       },
       kArgument,
       {"'fc'", "belongs to another graph"}},
      {"norm_with_input_of_another_graph",
       [] {
         Model m, other;
         nn::RMSNorm norm(m.g, "norm", 4);
         norm(other.x);
       },
       kArgument,
       {"'norm'", "belongs to another graph"}},
      {"norm_with_destroyed_input",
       [] {
         Model m;
         nn::LayerNorm norm(m.g, "norm", 4);
         norm(ofDestroyedGraph());
       },
       kArgument, kDead},
      {"embedding_of_another_graph",
       [] {
         Model m, other;
         nn::Embedding embed(m.g, "embed", 10, 4);
         embed(other.ids);
       },
       kArgument,
       {"'embed'", "belongs to another graph"}},
      {"lm_of_destroyed_graph",
       [] {
         Model m;
         auto lm = [] {
           Graph g;
           return nn::TransformerLM(
               g, "", {.vocabSize = 8, .dModel = 4, .dHidden = 8, .layers = 1, .heads = 1});
         }();
         lm.forward(m.ids);
       },
       kArgument, kDead},
      {"cache_of_destroyed_graph",
       [] {
         auto lm = [] {
           Graph g;
           return nn::TransformerLM(
               g, "", {.vocabSize = 8, .dModel = 4, .dHidden = 8, .layers = 1, .heads = 1});
         }();
         lm.declareCache(1, 8);
       },
       kArgument, kDead},
      {"module_in_an_earlier_entry",
       [] {
         Model m;
         nn::Linear fc(m.g, "fc", 4, 3);
         m.g.output("y", fc(m.x));
         m.g.entry("second");
         fc(m.x);
       },
       kArgument,
       {"belongs to an earlier entry point"}},
  };
}

}  // namespace lathe::misuse
