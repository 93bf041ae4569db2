// SPDX-License-Identifier: Apache-2.0
// Tensors of graphs that are gone, ids that name nothing, entry points that are closed.
#include "lathe/inspect/why_not.h"
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

const std::vector<std::string> kDead = {"no longer exists"};

}  // namespace

Tensor ofDestroyedGraph() {
  Graph g;
  return g.input("x", DType::F32, {4});
}

Table deadTensors() {
  return {
      {"exp_of_destroyed", [] { exp(ofDestroyedGraph()); }, kArgument, kDead},
      {"add_to_destroyed",
       [] {
         Model m;
         m.x + ofDestroyedGraph();
       },
       kArgument, kDead},
      {"destroyed_plus_live",
       [] {
         Model m;
         ofDestroyedGraph() + m.x;
       },
       kArgument, kDead},
      {"destroyed_times_number", [] { ofDestroyedGraph() * 2.0; }, kArgument, kDead},
      {"concat_with_destroyed",
       [] {
         Model m;
         concat({m.x, ofDestroyedGraph()}, 0);
       },
       kArgument, kDead},
      {"reduce_of_destroyed", [] { reduceSum(ofDestroyedGraph(), {-1}); }, kArgument, kDead},
      {"slice_of_destroyed", [] { sliceAxis(ofDestroyedGraph(), 0, 0, 1); }, kArgument, kDead},
      {"swap_of_destroyed", [] { swapAxes(ofDestroyedGraph(), 0, 0); }, kArgument, kDead},
      {"iota_like_destroyed", [] { iota(ofDestroyedGraph(), {4}, 0); }, kArgument, kDead},
      {"optional_operand_destroyed",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.mask = ofDestroyedGraph()});
       },
       kArgument, kDead},
      {"dtype_of_destroyed", [] { ofDestroyedGraph().dtype(); }, kArgument, kDead},
      {"shape_of_destroyed", [] { ofDestroyedGraph().shape(); }, kArgument, kDead},
      {"dim_of_destroyed", [] { ofDestroyedGraph().dim(0); }, kArgument, kDead},
      {"output_of_destroyed",
       [] {
         Model m;
         m.g.output("y", ofDestroyedGraph());
       },
       kArgument, kDead},
      {"observed_of_destroyed",
       [] {
         Model m;
         m.g.observe("y", ofDestroyedGraph());
       },
       kArgument, kDead},
      {"tensor_of_overwritten",
       [] {
         Model m;
         m.g = Graph();
         exp(m.x);
       },
       kArgument, kDead},
      {"tensor_of_graph_overwritten_by_another",
       [] {
         Model m, other;
         m.g = std::move(other.g);
         m.x + other.x;
       },
       kArgument, kDead},
      {"tensor_of_an_earlier_life",
       [] {
         Model m;
         m.g = Graph();
         Tensor x = m.g.input("x", DType::F32, {m.g.dim("batch", 1, 8), 4});
         x + m.x;
       },
       kArgument, kDead},
      {"nn_function_of_destroyed", [] { nn::gelu(ofDestroyedGraph()); }, kArgument, kDead},
      {"softmax_of_destroyed", [] { nn::softmax(ofDestroyedGraph()); }, kArgument, kDead},
      {"made_up_id",
       [] {
         Model m;
         exp(Tensor(m.g.recorder(), 1000));
       },
       kArgument,
       {"names no value of its graph", "1000"}},
      {"made_up_operand",
       [] {
         Model m;
         m.x + Tensor(m.g.recorder(), size_t(-1));
       },
       kArgument,
       {"names no value of its graph"}},
      {"made_up_output",
       [] {
         Model m;
         m.g.output("y", Tensor(m.g.recorder(), 77));
       },
       kArgument,
       {"names no value of its graph", "77"}},
      {"dtype_of_made_up",
       [] {
         Model m;
         Tensor(m.g.recorder(), 77).dtype();
       },
       kArgument,
       {"names no value of its graph"}},
      {"shape_of_made_up",
       [] {
         Model m;
         Tensor(m.g.recorder(), 77).shape();
       },
       kArgument,
       {"names no value of its graph"}},
      {"scalar_like_made_up",
       [] {
         Model m;
         Tensor(m.g.recorder(), 77) * 2.0;
       },
       kArgument,
       {"names no value of its graph"}},
      {"axis_of_made_up",
       [] {
         Model m;
         argmax(Tensor(m.g.recorder(), 77), -1);
       },
       kArgument,
       {"names no value of its graph"}},
      {"tensor_of_another_graph",
       [] {
         Model m, other;
         m.x + other.x;
       },
       kArgument,
       {"belongs to another graph"}},
      {"output_of_another_graph",
       [] {
         Model m, other;
         m.g.output("y", other.x);
       },
       kArgument,
       {"belongs to another graph"}},
      {"tensor_of_an_earlier_entry",
       [] {
         Model m;
         m.g.output("y", m.x);
         m.g.entry("second");
         exp(m.x);
       },
       kArgument,
       {"belongs to an earlier entry point"}},
      {"input_of_a_parsed_graph",
       [] {
         Finished m;
         Graph::parse(m.g.text()).input("z", DType::F32, {4});
       },
       kArgument,
       {"no entry point is open: 'forward' was read from a text", "Graph::entry"}},
      {"weight_after_a_question",
       [] {
         Finished m;
         whyNot(m.g, {});
         m.g.weight("w", DType::F32, {4});
       },
       kArgument,
       {"closed when a question was asked of the graph", "Graph::entry"}},
  };
}

}  // namespace lathe::misuse
