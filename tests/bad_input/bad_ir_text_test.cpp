// SPDX-License-Identifier: Apache-2.0
// IR text that is no module, and modules that break the dialect's constraints.
#include <lathe/lathe.h>

#include "tests/bad_input/bad_input.h"

namespace lathe {
namespace {

// One function of the given arguments and body.
std::string function(const std::string& arguments, const std::string& body) {
  return "module {\n  func.func @forward(" + arguments + ") {\n    " + body +
         "\n    return\n  }\n}\n";
}

BadInput text(std::string name, std::vector<std::string> words, std::string source) {
  return {std::move(name), ErrorCode::InvalidFile, std::move(words),
          [source = std::move(source)] { Graph::parse(source, "bad.mlir"); }};
}
// A broken constraint of an op: its number, and what the message shows of the operands.
BadInput op(std::string name, std::vector<std::string> words, const std::string& arguments,
            const std::string& body) {
  return text(std::move(name), std::move(words), function(arguments, body));
}
// Sound MLIR that is no graph of an entry point: refused when it is compiled, on every backend.
void compiled(std::vector<BadInput>& rows, const std::string& name, std::vector<std::string> words,
              const std::string& source, ErrorCode code = ErrorCode::InvalidFile) {
  for (const char* backend : {"cpu", "reference"})
    rows.push_back({name + "_" + backend, code, words,
                    [=] { compile(Graph::parse(source, "bad.mlir"), {.backend = backend}); }});
}

std::vector<BadInput> rows() {
  const std::string x = "%x: tensor<2x3xf32>", y = "%x: tensor<2x3xf32>, %y: ";
  std::vector<BadInput> all = {
      text("nested_parentheses", {"bad.mlir", "line 1", "nesting deeper than 256"},
           std::string(100000, '(')),
      text("nested_regions", {"nesting deeper than 256"},
           [] {
             std::string s;
             for (int i = 0; i < 5000; ++i) s += "module {\n";
             return s;
           }()),
      text("bytecode", {"MLIR bytecode where text is expected"}, std::string("ML\xefR\x01\x02", 6)),
      // Three spellings that end MLIR's parser.
      text("array_of_indices", {"bad.mlir: line 1: expected array<...> of i1, i8"},
           "module attributes {a = array<index: 1>} {}\n"),
      text("array_of_indices_after_a_comment", {"bad.mlir: line 1: expected array<...> of i1, i8"},
           "module attributes {a = array // of\n < // them\n index: 1>} {}\n"),
      text("array_of_an_alias", {"bad.mlir: line 2: expected array<...> of i1, i8"},
           "!t = index\nmodule attributes {a = array<!t: 1>} {}\n"),
      text("too_large", {"the limit is 67108864"}, std::string((64u << 20) + 1, ' ')),
      text("random_bytes", {"bad.mlir:1:1"}, "\x80\xfe\x01 what"),
      text("nul_bytes", {"bad.mlir:1"}, std::string("module {\0}\0 x", 13)),
      text("prose", {"'once' is unknown"}, "once upon a time"),
      text("unterminated_region", {"bad.mlir:1", "expected"}, "module {\n"),
      text("unterminated_string", {"expected '\"' in string literal"},
           "module attributes {a = \"never closed}\n"),
      text("undeclared_value", {"use of undeclared SSA value name"},
           function("", "%y = lathe.exp %x : tensor<2xf32>")),
      text("redefined_symbol", {"redefinition of symbol named 'a'"},
           "lathe.dim @a 1 to 2\nlathe.dim @a 1 to 2\n"),
      text("unknown_op", {"'lathe.teleport' is unknown"}, function("", "lathe.teleport")),
      text("unknown_generic_op", {"unregistered operation 'lathe.teleport'"},
           function("", "\"lathe.teleport\"() : () -> ()")),
      text("unknown_dialect", {"bad.mlir:3", "unregistered dialect"},
           function("", "\"nope.op\"() : () -> ()")),
      text("huge_dim", {"bad.mlir:2", "dimension"},
           function("%x: tensor<99999999999999999999999xf32>", "")),
      text("unknown_element_type", {"bad.mlir:2"}, function("%x: tensor<2xf31>", "")),
      text("elements_unlike_their_type", {"does not match type"},
           function("", "%c = lathe.constant dense<[1.0, 2.0]> : tensor<3xf32>")),
      text("dims_fewer_than_axes", {"[C1] #lathe.dims has 1 dims, the tensor 2"},
           function("%x: tensor<?x?xf32, #lathe.dims<batch>>", "")),
      text("dims_unlike_the_shape", {"[C2] #lathe.dims says '4' for dim 1"},
           function("%x: tensor<?x3xf32, #lathe.dims<batch, 4>>", "")),
      text("dims_no_polynomial", {"bad.mlir:2"},
           function("%x: tensor<?xf32, #lathe.dims<batch / 2>>", "")),
      text("attribute_that_an_op_does_not_have",
           {"'lathe.softmax' has no attribute 'scales'; it has axis", ":2:"},
           "func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
           "  %y = lathe.softmax %x axis 0 {scales = 2.0 : f64} : tensor<4xf32>\n"
           "  return %y : tensor<4xf32>\n}\n"),
      text("dim_with_an_empty_range", {"[C1] empty range 8 to 2"}, "lathe.dim @batch 8 to 2\n"),
      text("weight_with_a_symbol", {"[C1] a weight's shape is static"},
           function("", "%w = lathe.weight \"w\" : tensor<?x2xf32, #lathe.dims<seq, 2>>")),
      op("exp_of_integers", {"'lathe.exp'", "operand #0 must be"}, "%x: tensor<2xi64>",
         "%z = lathe.exp %x : tensor<2xi64>"),
      op("add_of_two_dtypes", {"'lathe.add' [C1] element types differ", "f32[2, 3]", "bf16[2, 3]"},
         y + "tensor<2x3xbf16>", "%z = lathe.add %x, %y : tensor<2x3xf32>, tensor<2x3xbf16>"),
      op("add_of_two_shapes", {"'lathe.add' [C2] dim 1", "3 in f32[2, 3]", "4 in f32[2, 4]"},
         y + "tensor<2x4xf32>", "%z = lathe.add %x, %y : tensor<2x3xf32>, tensor<2x4xf32>"),
      op("add_of_two_symbols", {"[C2] dim 0 cannot be proved equal: batch", "seq"},
         "%x: tensor<?xf32, #lathe.dims<batch>>, %y: tensor<?xf32, #lathe.dims<seq>>",
         "%z = lathe.add %x, %y : tensor<?xf32, #lathe.dims<batch>>, tensor<?xf32, "
         "#lathe.dims<seq>>"),
      op("unknown_predicate", {"to be one of: eq, ne, lt, le, gt, ge"}, x,
         "%z = lathe.compare near %x, %x : tensor<2x3xf32>, tensor<2x3xf32>"),
      op("bitcast_to_another_width", {"'lathe.bitcast' [C1] widths differ"}, x,
         "%z = lathe.bitcast %x to i64 : tensor<2x3xf32>"),
      op("reduce_outside_the_rank", {"'lathe.reduce_sum' [C1] axis 2 is outside rank 2"}, x,
         "%z = lathe.reduce_sum %x axes [2] : tensor<2x3xf32>"),
      op("reduce_twice_over_an_axis", {"'lathe.reduce_max' [C2] the axes do not ascend"}, x,
         "%z = lathe.reduce_max %x axes [1, 1] : tensor<2x3xf32>"),
      op("top_k_of_too_many", {"'lathe.top_k' [C2] k = 4"}, x,
         "%z:2 = lathe.top_k %x k 4 : tensor<2x3xf32>"),
      op("transpose_by_no_permutation", {"'lathe.transpose' [C1] not a permutation"}, x,
         "%z = lathe.transpose %x [0, 0] : tensor<2x3xf32>"),
      op("reshape_to_another_count", {"'lathe.reshape' [C1]", "f32[2, 3] has 6", "f32[7] has 7"}, x,
         "%z = lathe.reshape %x to <7> : tensor<2x3xf32>"),
      op("slice_past_the_end", {"'lathe.slice' [C3] start 2, size 2, stride 1"}, x,
         "%z = lathe.slice %x starts <0, 2> sizes <2, 2> strides [1, 1] : tensor<2x3xf32>"),
      op("concat_of_other_dims", {"'lathe.concat' [C3] dim 1"}, y + "tensor<2x4xf32>",
         "%z = lathe.concat %x, %y axis 0 : tensor<2x3xf32>, tensor<2x4xf32>"),
      op("matmul_of_other_inner_dims", {"'lathe.matmul' [C2]", "transpose the right operand?"},
         y + "tensor<4x3xf32>", "%z = lathe.matmul %x, %y : tensor<2x3xf32>, tensor<4x3xf32>"),
      op("gather_outside_the_rank", {"'lathe.gather' [C1] axis 7"}, y + "tensor<5xi64>",
         "%z = lathe.gather %x, %y axis 7 : tensor<2x3xf32>, tensor<5xi64>"),
      op("softmax_outside_the_rank", {"'lathe.softmax' [C1] axis -1"}, x,
         "%z = lathe.softmax %x axis -1 : tensor<2x3xf32>"),
      op("rms_norm_of_another_gain", {"'lathe.rms_norm' [C1] gain f32[4]"}, y + "tensor<4xf32>",
         "%z = lathe.rms_norm %x, %y epsilon 1.0e-5 : tensor<2x3xf32>, tensor<4xf32>"),
      op("rope_of_an_odd_head", {"'lathe.rope' [C1] the last dim must be an even number"},
         y + "tensor<1xf32>",
         "%z = lathe.rope half %x, %y, %y : tensor<2x3xf32>, tensor<1xf32>, tensor<1xf32>"),
      op("linear_of_other_inner_dims", {"'lathe.linear' [C2] inner dims differ", "(out, in)"},
         y + "tensor<5x4xf32>", "%z = lathe.linear %x, %y : tensor<2x3xf32>, tensor<5x4xf32>"),
      op("attention_without_its_positions", {"'lathe.attention' [C5]"}, "%x: tensor<2x3x4xf32>",
         "%z = lathe.attention %x, %x, %x scale 1.0 causal positions : tensor<2x3x4xf32>, "
         "tensor<2x3x4xf32>, tensor<2x3x4xf32>"),
      {"empty_module",
       ErrorCode::InvalidArgument,
       {"the graph is empty"},
       [] { compile(Graph::parse("", "bad.mlir")); }},
  };
  compiled(all, "argument_that_is_no_tensor", {"bad.mlir:1", "function 'forward'", "got i32"},
           "func.func @forward(%x: i32 {lathe.name = \"x\"}) -> i32 { return %x : i32 }");
  compiled(
      all, "op_of_another_dialect",
      {"bad.mlir:2", "function 'forward'", "expected ops of the lathe dialect, got arith.constant"},
      "func.func @forward() -> tensor<2xf32> {\n"
      "  %y = arith.constant dense<1.0> : tensor<2xf32>\n  return %y : tensor<2xf32>\n}");
  compiled(all, "dim_without_a_name", {"function 'forward'", "dim 0 of f32[?] has no name"},
           "func.func @forward(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
           "  %y = lathe.exp %x : tensor<?xf32>\n  return %y : tensor<?xf32>\n}");
  compiled(all, "undeclared_symbol", {"symbol 'seq' of f32[seq] is not declared"},
           "func.func @forward(%x: tensor<?xf32, #lathe.dims<seq>> {lathe.name = \"x\"}) -> "
           "(tensor<?xf32, #lathe.dims<seq>> {lathe.name = \"y\"}) {\n"
           "  %y = lathe.exp %x : tensor<?xf32, #lathe.dims<seq>>\n"
           "  return %y : tensor<?xf32, #lathe.dims<seq>>\n}");
  compiled(all, "undeclared_state", {"lathe.state names no state of the module"},
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}) -> (tensor<2xf32> "
           "{lathe.name = \"y\"}) {\n  %y = lathe.exp %x : tensor<2xf32>\n"
           "  return %y : tensor<2xf32>\n}");
  compiled(all, "state_of_another_type", {"state 'cache' is f32[3], got f32[2]"},
           "lathe.state @cache : tensor<3xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}) -> (tensor<2xf32> "
           "{lathe.state = @cache}) {\n  return %x : tensor<2xf32>\n}");
  compiled(all, "state_not_given_back", {"state 'cache' is taken and not given back"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}) -> tensor<2xf32> {\n"
           "  return %x : tensor<2xf32>\n}");
  compiled(all, "state_of_a_part",
           {"state 'cache' has the size 'part', which every run sets anew; give it sizes of "
            "lathe.dim alone"},
           "lathe.dim @rows 1 to 8\nlathe.dim_part @part of <rows> parts 2\n"
           "lathe.state @cache : tensor<?xf32, #lathe.dims<part>>\n"
           "func.func @forward(%x: tensor<?xf32, #lathe.dims<part>> {lathe.state = @cache}) -> "
           "(tensor<?xf32, #lathe.dims<part>> {lathe.state = @cache}) {\n"
           "  return %x : tensor<?xf32, #lathe.dims<part>>\n}");
  compiled(all, "state_that_is_no_symbol", {"lathe.state names no state of the module"},
           "func.func @forward(%x: tensor<2xf32> {lathe.state = \"cache\"}) -> tensor<2xf32> {\n"
           "  return %x : tensor<2xf32>\n}");
  compiled(all, "state_taken_twice", {"state 'cache' is taken twice"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}, %y: tensor<2xf32> "
           "{lathe.state = @cache}) -> (tensor<2xf32> {lathe.state = @cache}) {\n"
           "  return %x : tensor<2xf32>\n}");
  const std::string back = "a state is given back that was not taken, or as ";
  compiled(all, "state_given_back_as_another_type", {back + "f32[3]"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}, %y: tensor<3xf32>) -> "
           "(tensor<3xf32> {lathe.state = @cache}) {\n  return %y : tensor<3xf32>\n}");
  compiled(all, "state_given_back_as_another_dtype", {back + "bf16[2]"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}) -> "
           "(tensor<2xbf16> {lathe.state = @cache}) {\n"
           "  %y = lathe.cast %x to bf16 : tensor<2xf32>\n  return %y : tensor<2xbf16>\n}");
  compiled(all, "state_given_back_twice", {back + "f32[2]"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32> {lathe.state = @cache}) -> (tensor<2xf32> "
           "{lathe.state = @cache}, tensor<2xf32> {lathe.state = @cache}) {\n"
           "  return %x, %x : tensor<2xf32>, tensor<2xf32>\n}");
  compiled(all, "state_given_back_and_not_taken", {back + "f32[2]"},
           "lathe.state @cache : tensor<2xf32>\n"
           "func.func @forward(%x: tensor<2xf32>) -> (tensor<2xf32> {lathe.state = @cache}) {\n"
           "  return %x : tensor<2xf32>\n}");
  compiled(all, "output_named_twice", {"output 'y' is declared twice"},
           "func.func @forward(%x: tensor<2xf32>) -> (tensor<2xf32> {lathe.name = \"y\"}, "
           "tensor<2xf32> {lathe.name = \"y\"}) {\n"
           "  return %x, %x : tensor<2xf32>, tensor<2xf32>\n}");
  compiled(all, "input_named_by_a_number", {"lathe.name is a string"},
           "func.func @forward(%x: tensor<2xf32> {lathe.name = 3}) -> tensor<2xf32> {\n"
           "  return %x : tensor<2xf32>\n}");
  compiled(all, "input_named_twice", {"input 'x' is declared twice"},
           "func.func @forward(%x: tensor<2xf32> {lathe.name = \"x\"}, %y: tensor<2xf32> "
           "{lathe.name = \"x\"}) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}");
  compiled(all, "weight_of_two_types", {"bad.mlir:3", "weight 'w' is f32[2] elsewhere", "f32[200]"},
           "func.func @forward() -> tensor<200xf32> {\n  %v = lathe.weight \"w\" : tensor<2xf32>\n"
           "  %w = lathe.weight \"w\" : tensor<200xf32>\n  return %w : tensor<200xf32>\n}");
  compiled(all, "packed_weight_that_nobody_packed", {"as recorded", "laid-out weights"},
           "func.func @forward(%x: tensor<2x4xf32> {lathe.name = \"x\"}) -> (tensor<2x3xf32> "
           "{lathe.name = \"y\"}) {\n  %w = lathe.weight \"w\" : tensor<3x4xf32>\n"
           "  %y = lathe.linear %x, %w layout packed : tensor<2x4xf32>, tensor<3x4xf32>\n"
           "  return %y : tensor<2x3xf32>\n}",
           ErrorCode::InvalidArgument);
  compiled(all, "weights_that_a_load_function_makes", {"as recorded", "laid-out weights"},
           "func.func @forward(%x: tensor<2x4xf32> {lathe.name = \"x\"}) -> (tensor<2x3xf32> "
           "{lathe.name = \"y\"}) {\n  %w = lathe.weight \"w:transpose\" : tensor<4x3xf32>\n"
           "  %y = lathe.matmul %x, %w : tensor<2x4xf32>, tensor<4x3xf32>\n"
           "  return %y : tensor<2x3xf32>\n}\n"
           "func.func @load() -> tensor<4x3xf32> attributes {lathe.derived = [\"w:transpose\"]} {\n"
           "  %w = lathe.weight \"w\" : tensor<3x4xf32>\n"
           "  %t = lathe.transpose %w [1, 0] : tensor<3x4xf32>\n  return %t : tensor<4x3xf32>\n}",
           ErrorCode::InvalidArgument);
  compiled(all, "packed_experts_that_nobody_packed", {"as recorded", "laid-out weights"},
           "func.func @forward(%x: tensor<2x4xf32> {lathe.name = \"x\"}, %i: tensor<2xi64> "
           "{lathe.name = \"i\"}) -> (tensor<2x3xf32> {lathe.name = \"y\"}) {\n"
           "  %w = lathe.weight \"w\" : tensor<5x3x4xf32>\n"
           "  %y = lathe.grouped_linear %x, %w by %i layout packed : tensor<2x4xf32>, "
           "tensor<5x3x4xf32>, tensor<2xi64>\n"
           "  return %y : tensor<2x3xf32>\n}",
           ErrorCode::InvalidArgument);
  compiled(all, "function_without_a_body", {"function 'forward'", "expected a body of one block"},
           "func.func private @forward()");
  return all;
}

INSTANTIATE_TEST_SUITE_P(IrText, BadInputs, ::testing::ValuesIn(rows()), nameOfRow);

}  // namespace
}  // namespace lathe
