// SPDX-License-Identifier: Apache-2.0
#include "runtime/load_weights.h"

#include "runtime/executor.h"
#include "runtime/mapped_file.h"
#include "runtime/rank_agreement.h"

namespace lathe {
namespace {

bool isRaw(const Program& program, const Slot& s) {
  return s.kind == SlotKind::Weight && size_t(s.index) < program.weights.size();
}

// The checkpoint's weights by the call of `load` that reads them first, or last.
std::vector<std::vector<size_t>> readsOfLoad(const Program& program, bool last) {
  const EntryPoint& load = *program.load;
  std::vector<int> at(program.weights.size(), -1);
  for (size_t c = 0; c < load.calls.size(); ++c)
    for (int operand : load.calls[c].operands) {
      const Slot& s = load.slots[size_t(ownerOf(load, operand))];
      if (isRaw(program, s) && (last || at[size_t(s.index)] < 0)) at[size_t(s.index)] = int(c);
    }
  std::vector<std::vector<size_t>> byCall(load.calls.size());
  for (size_t w = 0; w < at.size(); ++w)
    if (at[w] >= 0) byCall[size_t(at[w])].push_back(w);
  return byCall;
}

std::vector<bool> readByEntries(const Program& program) {
  std::vector<bool> read(program.weights.size());
  for (const EntryPoint& e : program.entries)
    for (const Slot& s : e.slots)
      if (isRaw(program, s)) read[size_t(s.index)] = true;
  return read;
}

// What `load` returns as it is.
std::vector<bool> returnedByLoad(const Program& program) {
  std::vector<bool> returned(program.weights.size());
  for (const Port& port : program.load->outputs) {
    const Slot& s = program.load->slots[size_t(ownerOf(*program.load, port.slot))];
    if (isRaw(program, s)) returned[size_t(s.index)] = true;
  }
  return returned;
}

}  // namespace

void loadWeights(const Program& program, Device& device, Communicator* ranks, BoundWeights& weights,
                 const std::function<Array(size_t weight)>& fetch) {
  weights.derived.clear();
  DeviceMemory* memory = device.memory();
  WholeWeights same(program);
  auto note = [&](size_t w) {
    if (ranks) same.note(w, weights.raw[w]);
  };
  auto need = [&](size_t w) {
    if (!fetch || weights.raw[w].defined()) return;
    weights.raw[w] = fetch(w);
    note(w);
  };
  for (size_t w = 0; w < weights.raw.size(); ++w) note(w);
  const std::vector<bool> kept = readByEntries(program);
  for (size_t w = 0; w < weights.raw.size(); ++w) {
    if (kept[w] || memory || !program.load) need(w);
    if (!memory) continue;
    const Array host = weights.raw[w];
    weights.raw[w] = copyTo(memory, host, program.weights[w].name);
    releaseFilePages(host.data(), host.bytes());
  }
  if (program.load) {
    Executor load(program, *program.load, device, false, ranks);
    load.bind({}, {});
    const auto firstReads = readsOfLoad(program, false), lastReads = readsOfLoad(program, true);
    const std::vector<bool> returned = returnedByLoad(program);
    for (size_t w = 0; w < returned.size(); ++w)
      if (returned[w]) need(w);
    if (fetch)
      load.beforeEachCall([&](size_t call) {
        for (size_t w : firstReads[call]) need(w);
        return !firstReads[call].empty();
      });
    // What was packed or merged is not needed twice: its memory goes back at once. Of a table that
    // is read by rows as well, those come back when they are asked for.
    load.afterEachCall([&](size_t call) {
      for (size_t w : lastReads[call]) {
        if (!memory) releaseFilePages(weights.raw[w].data(), weights.raw[w].bytes());
        if (!kept[w]) weights.raw[w] = Array();
      }
    });
    // Of its own: what loading needs goes back at its end.
    GrowingBuffer arena, scratch;
    std::vector<Array> noStates;
    load.run({}, weights, noStates, arena, scratch, weights.derived, {.keepOnDevice = true});
  }
  if (ranks) same.agree(*ranks);
}

}  // namespace lathe
