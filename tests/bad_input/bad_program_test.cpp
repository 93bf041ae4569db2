// SPDX-License-Identifier: Apache-2.0
// Programs whose hashes are right and whose numbers are not: every index and size of every kind of
// buffer, in the entry points and in `load`, is checked against the table that it points into.
#include <lathe/lathe.h>

#include "tests/bad_input/bad_input.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::TemporaryFolder;

// Sound, with a buffer of every kind in its entry point, and of every kind that there may be in
// `load`. The slots stand in the order of SlotKind.
Program everyKind() {
  Program p;
  const DimExpr rows = DimExpr::symbol("rows");
  p.backend = "none";
  p.symbols = {{"rows", 1, 8, 1}};
  p.weights = {{"w", DType::F32, {4}}};
  p.derived = {{"packed", DType::F32, {16}}};
  p.states = {{"cache", DType::F32, {rows, 4}}};
  p.constants = {Array(DType::I64, {3})};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Arena, DType::F32, {rows, 4}, 0, -1},
             {SlotKind::Argument, DType::F32, {rows, 4}, 0, -1},
             {SlotKind::Result, DType::F32, {rows * 4}, 0, -1},
             {SlotKind::Weight, DType::F32, {16}, 1, -1},
             {SlotKind::State, DType::F32, {rows, 4}, 0, -1},
             {SlotKind::Constant, DType::I64, {3}, 0, -1},
             {SlotKind::Arena, DType::F32, {rows, 4}, 0, 2}};
  e.inputs = {{"x", 1}};
  e.outputs = {{"y", 6}};
  e.statesIn = {{"cache", 4}};
  e.statesOut = {{"cache", 0}};
  e.calls = {{"copy", "", "{}", {1, 3, 4, 5}, {0}, ""}, {"copy", "", "{}", {0}, {6}, ""}};
  p.entries.push_back(e);
  EntryPoint load;
  load.name = "load";
  load.slots = {
      {SlotKind::Arena, DType::F32, {4}, 0, -1},   {SlotKind::Argument, DType::F32, {4}, 0, 0},
      {SlotKind::Result, DType::F32, {16}, 0, -1}, {SlotKind::Weight, DType::F32, {4}, 0, -1},
      {SlotKind::State, DType::F32, {4}, 0, 0},    {SlotKind::Constant, DType::I64, {3}, 0, -1}};
  // What `load` cannot have are views of its first buffer.
  for (Slot& s : load.slots)
    if (s.alias >= 0) s.kind = SlotKind::Arena;
  load.outputs = {{"packed", 2}};
  load.calls = {{"pack", "", "{}", {3, 5}, {0}, ""}, {"copy", "", "{}", {0}, {2}, ""}};
  p.load = std::make_unique<EntryPoint>(load);
  return p;
}

using Change = std::function<void(Program&)>;
BadInput row(std::string name, std::vector<std::string> words, Change change) {
  words.push_back("bad.lathe: ");
  return {std::move(name), ErrorCode::InvalidFile, std::move(words), [change = std::move(change)] {
            TemporaryFolder folder;
            Program program = everyKind();
            change(program);
            program.save(folder / "bad.lathe");
            Program::open(folder / "bad.lathe");
          }};
}

constexpr const char* kKinds[] = {"Arena", "Argument", "Result", "Weight", "State", "Constant"};

EntryPoint& place(Program& p, bool load) { return load ? *p.load : p.entries[0]; }

// SlotKind x {entries, load} x {index past its table, negative index, memory of another size}.
void addSlots(std::vector<BadInput>& rows) {
  for (bool load : {false, true}) {
    const std::string field = load ? "load.slots" : "entries[0].slots";
    for (int kind = int(SlotKind::Argument); kind <= int(SlotKind::Constant); ++kind) {
      const std::string name = std::string(load ? "load_" : "entry_") + kKinds[kind];
      const std::string slot = field + "[" + std::to_string(kind) + "]";
      auto change = [=](auto edit) {
        return [=](Program& p) {
          Slot& s = place(p, load).slots[size_t(kind)];
          s = {SlotKind(kind), s.dtype, s.shape, s.index, -1};
          edit(s);
        };
      };
      rows.push_back(row(name + "_past_its_table", {slot + ".index: refers to item 1000000 of "},
                         change([](Slot& s) { s.index = 1'000'000; })));
      rows.push_back(row(name + "_negative",
                         {load ? "load." : "entries[0].", ".index: expected an integer from 0 to"},
                         change([](Slot& s) { s.index = -1; })));
      if (kind >= int(SlotKind::Weight))
        rows.push_back(row(name + "_of_another_size", {slot, "item"},
                           change([](Slot& s) { s.shape.push_back(3); })));
    }
    auto in = [&](const std::string& name, std::vector<std::string> words, auto edit) {
      rows.push_back(row((load ? "load_" : "entry_") + name, std::move(words),
                         [=](Program& p) { edit(place(p, load)); }));
    };
    in("unknown_kind", {"kind: expected an integer from 0 to 5, got 6"},
       [](EntryPoint& e) { e.slots[0].kind = SlotKind(6); });
    in("size_of_an_undeclared_symbol", {field + "[0].shape: the size \"cols\" has the undeclared"},
       [](EntryPoint& e) { e.slots[0].shape = {DimExpr::symbol("cols")}; });
    in("operand_past_the_slots", {"calls[0].operands[0]: expected an integer from 0 to"},
       [](EntryPoint& e) { e.calls[0].operands[0] = 7; });
    in("negative_operand", {"calls[0].operands[0]: expected an integer from 0 to"},
       [](EntryPoint& e) { e.calls[0].operands[0] = -1; });
    in("result_past_the_slots", {"calls[0].results[0]: expected an integer from 0 to"},
       [](EntryPoint& e) { e.calls[0].results[0] = 1 << 30; });
    in("output_past_the_slots", {"outputs[0].slot: expected an integer from 0 to"},
       [](EntryPoint& e) { e.outputs[0].slot = 7; });
    in("output_in_another_slot", {"slots[2].index: item 0 is in another slot"},
       [](EntryPoint& e) { e.outputs[0].slot = 0; });
    in("second_result_of_one_item", {"slots[0].index: item 0 is in another slot"},
       [](EntryPoint& e) { e.slots[0].kind = SlotKind::Result; });
    in("shared_memory_of_no_slot", {"has no owner"},
       [](EntryPoint& e) { e.slots[0].alias = 1000; });
    in("shared_memory_in_a_circle", {"slot 0 has no owner"},
       [](EntryPoint& e) { e.slots[0].alias = 0; });
    in("shared_memory_of_a_table", {"expected a buffer of the arena where memory is shared"},
       [](EntryPoint& e) { e.slots[5] = {SlotKind::Constant, DType::I64, {3}, 0, 3}; });
  }
}

std::vector<BadInput> rows() {
  std::vector<BadInput> all;
  addSlots(all);
  auto add = [&](const char* name, std::vector<std::string> words, Change change) {
    all.push_back(row(name, std::move(words), std::move(change)));
  };
  add("symbol_twice", {"symbols[1].name: expected a new name, got \"rows\""},
      [](Program& p) { p.symbols.push_back(p.symbols[0]); });
  add("symbol_with_an_empty_range", {"symbols[0]: the range from 5 to 7 has no multiple of 4"},
      [](Program& p) { p.symbols[0] = {"rows", 5, 7, 4}; });
  add("symbol_of_no_multiple", {"symbols[0].multiple: expected an integer from 1"},
      [](Program& p) { p.symbols[0].multiple = 0; });
  add("negative_symbol", {"symbols[0].lo: expected an integer from 0"},
      [](Program& p) { p.symbols[0].lo = -1; });
  add("weight_twice", {"weights[1].name: a second \"w\""},
      [](Program& p) { p.weights.push_back(p.weights[0]); });
  add("weight_of_a_symbol", {"weights[0].shape: expected numbers, got \"rows\""},
      [](Program& p) { p.weights[0].shape = {DimExpr::symbol("rows")}; });
  add("state_of_an_undeclared_symbol",
      {"states[0].shape: the size \"2*cols\" has the undeclared symbol \"cols\""},
      [](Program& p) { p.states[0].shape = {DimExpr::symbol("cols") * DimExpr(2)}; });
  add("symbol_one_short_of_its_multiple",
      {"symbols[0]: the range from 5 to 7 has no multiple of 8"},
      [](Program& p) { p.symbols[0] = {"rows", 5, 7, 8}; });
  add("symbol_without_a_name", {"symbols[0].name: expected a new name, got \"\""},
      [](Program& p) { p.symbols[0].name = ""; });
  add("part_of_a_size_of_nobody",
      {"size_parts[0].of: the size \"cols\" has the undeclared symbol \"cols\""},
      [](Program& p) { p.sizeParts = {{"part", DimExpr::symbol("cols"), 2}}; });
  add("part_of_a_part", {"size_parts[1].of: the size \"part\" has the undeclared symbol \"part\""},
      [](Program& p) {
        p.sizeParts = {{"part", DimExpr::symbol("rows"), 2}, {"less", DimExpr::symbol("part"), 2}};
      });
  add("part_with_a_symbols_name", {"size_parts[0].name: expected a new name, got \"rows\""},
      [](Program& p) { p.sizeParts = {{"rows", DimExpr::symbol("rows"), 2}}; });
  add("part_twice", {"size_parts[1].name: expected a new name, got \"part\""}, [](Program& p) {
    p.sizeParts = {{"part", DimExpr::symbol("rows"), 2}, {"part", DimExpr::symbol("rows"), 4}};
  });
  add("part_without_a_name", {"size_parts[0].name: expected a new name, got \"\""},
      [](Program& p) { p.sizeParts = {{"", DimExpr::symbol("rows"), 2}}; });
  add("no_parts", {"size_parts[0].parts: expected an integer from 1"},
      [](Program& p) { p.sizeParts = {{"part", DimExpr::symbol("rows"), 0}}; });
  add("state_of_a_part", {"states[0].shape: the size \"part\" has the undeclared symbol \"part\""},
      [](Program& p) {
        p.sizeParts = {{"part", DimExpr::symbol("rows"), 2}};
        p.states[0].shape[0] = DimExpr::symbol("part");
      });
  add("entry_point_twice", {"entries[1].name: a second entry point \"forward\""},
      [](Program& p) { p.entries.push_back(p.entries[0]); });
  add("input_in_another_slot", {"entries[0].slots[1].index: item 0 is in another slot"},
      [](Program& p) { p.entries[0].inputs[0].slot = 0; });
  auto twoInputs = [](Program& p, std::vector<Port> inputs) {
    EntryPoint& e = p.entries[0];
    e.slots.push_back({SlotKind::Argument, DType::F32, e.slots[1].shape, 1, -1});
    e.inputs = std::move(inputs);
  };
  add("two_inputs_of_one_name", {"entries[0].inputs[1].name: a second \"x\""},
      [=](Program& p) { twoInputs(p, {{"x", 1}, {"x", 7}}); });
  add("input_past_the_slots", {"entries[0].inputs[0].slot: expected an integer from 0 to 6"},
      [](Program& p) { p.entries[0].inputs[0].slot = 7; });
  add("state_under_another_name", {"entries[0].states_in[0]: slot 4 does not hold the state"},
      [](Program& p) { p.entries[0].statesIn[0].name = "memory"; });
  add("state_past_the_slots", {"entries[0].states_in[0].slot: expected an integer from 0 to 6"},
      [](Program& p) { p.entries[0].statesIn[0].slot = 7; });
  add("state_that_is_not_taken", {"entries[0].slots[4]: a state that \"states_in\" does not list"},
      [](Program& p) { p.entries[0].statesIn.clear(); });
  add("state_given_back_by_nobody", {"entries[0].states_out[0]: no state \"memory\" to give back"},
      [](Program& p) { p.entries[0].statesOut[0].name = "memory"; });
  add("state_taken_twice", {"entries[0].states_in[1]: slot 4 does not hold the state \"cache\""},
      [](Program& p) { p.entries[0].statesIn.push_back(p.entries[0].statesIn[0]); });
  add("state_given_back_twice", {"entries[0].states_out[1]: no state \"cache\" to give back"},
      [](Program& p) { p.entries[0].statesOut.push_back(p.entries[0].statesOut[0]); });
  add("state_given_back_in_another_size", {"entries[0].states_out[0]: slot 2 is f32[4*rows]"},
      [](Program& p) { p.entries[0].statesOut[0].slot = 2; });
  add("state_given_back_in_another_dtype", {"entries[0].states_out[0]: slot 0 is i32[rows, 4]"},
      [](Program& p) { p.entries[0].slots[0].dtype = DType::I32; });
  add("derived_weights_from_nowhere", {"derived: weights to compute, and no \"load\""},
      [](Program& p) { p.load = nullptr; });
  add("load_with_inputs", {"load.inputs: expected none"},
      [](Program& p) { p.load->inputs = {{"x", 0}}; });
  add("load_with_states", {"load.states_in: expected no states"},
      [](Program& p) { p.load->statesIn = {{"cache", 0}}; });
  add("load_that_gives_less", {"load.outputs: 1 for 2 derived weights"},
      [](Program& p) { p.derived.push_back({"more", DType::F32, {16}}); });
  add("load_that_gives_another_size", {"load.outputs[0].slot: f32[16] for the derived weight"},
      [](Program& p) {
        p.derived[0].shape = {32};
        p.entries[0].slots[3].shape = {32};
      });
  // It runs before they are there.
  add("load_that_reads_derived_weights", {"load.slots[3].index: refers to item 1 of 1"},
      [](Program& p) { p.load->slots[3].index = 1; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Programs, BadInputs, ::testing::ValuesIn(rows()), nameOfRow);

TEST(Programs, OfEveryKindOfBufferOpen) {
  TemporaryFolder folder;
  everyKind().save(folder / "good.lathe");
  EXPECT_EQ(Program::open(folder / "good.lathe")->load->slots.size(), 6u);
}

// The last that each rule allows.
TEST(Programs, AtTheEdgesOfTheRulesOpen) {
  const std::vector<std::pair<const char*, Change>> changes{
      {"a symbol from 0", [](Program& p) { p.symbols[0] = {"rows", 0, 0, 1}; }},
      {"a symbol of one value", [](Program& p) { p.symbols[0] = {"rows", 8, 8, 8}; }},
      {"a multiple that ends the range", [](Program& p) { p.symbols[0] = {"rows", 5, 8, 8}; }},
      {"a multiple that begins it", [](Program& p) { p.symbols[0] = {"rows", 8, 15, 8}; }},
      {"a part of a size",
       [](Program& p) {
         p.sizeParts = {{"part", DimExpr::symbol("rows") + 1, 1 << 20}};
         p.entries[0].slots[6].shape[0] = DimExpr::symbol("part");
       }},
      {"a symbol that nothing has", [](Program& p) { p.symbols.push_back({"cols", 1, 2, 1}); }},
      {"memory of the last slot", [](Program& p) { p.entries[0].slots[0].alias = 6; }},
      {"memory through three slots",
       [](Program& p) {
         auto& slots = p.entries[0].slots;
         for (int owner : {6, 7})
           slots.push_back({SlotKind::Arena, DType::F32, slots[0].shape, 0, owner});
       }},
      {"a call without operands", [](Program& p) { p.entries[0].calls[0].operands.clear(); }},
      {"a call of the last slot", [](Program& p) { p.entries[0].calls[0].operands = {6}; }},
      {"no calls", [](Program& p) { p.entries[0].calls.clear(); }},
      {"an unread constant", [](Program& p) { p.constants.push_back(Array(DType::F32, {0})); }},
      {"another entry point",
       [](Program& p) {
         p.entries.push_back(p.entries[0]);
         p.entries[1].name = "again";
       }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    TemporaryFolder folder;
    Program program = everyKind();
    change(program);
    program.save(folder / "edge.lathe");
    EXPECT_NO_THROW(Program::open(folder / "edge.lathe"));
  }
}

// Sizes may have symbols, so that only a run knows them.
TEST(Programs, SharedMemoryThatIsTooSmallIsFoundBeforeItIsUsed) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 6});
  g.output("y", reshape(exp(x), {x.dim(0), 2, 3}));
  Program p = compile(g);
  int changed = 0;
  for (Slot& s : p.entries[0].slots)
    if (s.alias >= 0) changed += bool(&(s.shape = {DimExpr::symbol("rows"), 2, 300}));
  ASSERT_GT(changed, 0);
  TemporaryFolder folder;
  p.save(folder / "bad.lathe");
  Session session(Program::open(folder / "bad.lathe"));
  test::expectError(ErrorCode::InvalidFile, "shares the memory of slot",
                    [&] { session.run("forward", {{"x", Array(DType::F32, {2, 6})}}); });
}

}  // namespace
}  // namespace lathe
