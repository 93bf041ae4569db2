// SPDX-License-Identifier: Apache-2.0
// The header of a program behind right hashes: any JSON gives a program that keeps what an executor
// trusts, or an error that names the file.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "lathe/runtime/cost.h"
#include "lathe/runtime/program.h"
#include "runtime/container.h"
#include "runtime/memory_plan.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace lathe;

// Where nothing waits for a disk.
std::string scratchPath() {
  const std::string memory = "/dev/shm";
  const bool usable = access(memory.c_str(), W_OK) == 0;
  return (usable ? memory : std::filesystem::temp_directory_path().string()) + "/lathe-fuzz-" +
         std::to_string(getpid()) + ".lathe";
}

Program sound() {
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
  e.slots = {{SlotKind::Argument, DType::F32, {rows, 4}, 0, -1},
             {SlotKind::Weight, DType::F32, {16}, 1, -1},
             {SlotKind::State, DType::F32, {rows, 4}, 0, -1},
             {SlotKind::Constant, DType::I64, {3}, 0, -1},
             {SlotKind::Arena, DType::F32, {rows, 4}, 0, 2},
             {SlotKind::Result, DType::F32, {rows * 4 + 1}, 0, -1}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 5}};
  e.statesIn = {{"cache", 2}};
  e.statesOut = {{"cache", 4}};
  e.calls = {{"update", "f", "{}", {0, 1, 2, 3}, {4}, "a.cpp:1"}, {"copy", "", "{}", {4}, {5}, ""}};
  p.entries.push_back(e);
  EntryPoint load;
  load.name = "load";
  load.slots = {{SlotKind::Weight, DType::F32, {4}, 0, -1},
                {SlotKind::Result, DType::F32, {16}, 0, -1}};
  load.outputs = {{"packed", 1}};
  load.calls = {{"pack", "", "{}", {0}, {1}, ""}};
  p.load = std::make_unique<EntryPoint>(load);
  return p;
}

void checkEntry(const Program& p, const EntryPoint& e, size_t weights) {
  using fuzz::check;
  for (size_t i = 0; i < e.slots.size(); ++i) {
    const Slot& s = e.slots[i];
    check(size_t(ownerOf(e, int(i))) < e.slots.size(), "a slot has an owner");
    const size_t limits[] = {size_t(-1), e.inputs.size(), e.outputs.size(),
                             weights,    p.states.size(), p.constants.size()};
    if (s.alias < 0) check(size_t(s.index) < limits[size_t(s.kind)], "an index is in its table");
  }
  for (const Call& c : e.calls)
    for (auto* slots : {&c.operands, &c.results})
      for (int s : *slots) check(size_t(s) < e.slots.size(), "an operand is a slot");
  lifetimesOf(e);
}

}  // namespace

std::vector<std::string> lathe::fuzz::seeds() {
  const std::string path = scratchPath();
  sound().save(path);
  const std::string header = Container::open(path).header();
  std::filesystem::remove(path);
  return {header};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = scratchPath();
  const std::vector<std::byte> constant(24);
  try {
    ContainerWriter writer;
    try {
      writer.setHeader({reinterpret_cast<const char*>(data), size});
    } catch (const Error&) {
      return 0;  // no JSON: nobody writes such a file
    }
    writer.addSection("constant.0", constant);
    writer.save(path);
    const auto p = Program::open(path);
    for (const EntryPoint& e : p->entries) checkEntry(*p, e, p->weights.size() + p->derived.size());
    if (p->load) checkEntry(*p, *p->load, p->weights.size());
  } catch (const Error& e) {
    if (e.code() == ErrorCode::InvalidFile) fuzz::checkNamed(e, path);
  }
  std::filesystem::remove(path);
  return 0;
}
