// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/ptx_gates.h"

#include <algorithm>
#include <map>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr PtxCountName kCounts[] = {
    {"vector_loads", &PtxCounts::vectorLoads},
    {"read_only_loads", &PtxCounts::readOnlyLoads},
    {"scalar_loads", &PtxCounts::scalarLoads},
    {"vector_stores", &PtxCounts::vectorStores},
    {"scalar_stores", &PtxCounts::scalarStores},
    {"mma", &PtxCounts::mma},
    {"wgmma", &PtxCounts::wgmma},
    {"ldmatrix", &PtxCounts::ldmatrix},
    {"async_copies", &PtxCounts::asyncCopies},
    {"bulk_copies", &PtxCounts::bulkCopies},
    {"local_accesses", &PtxCounts::localAccesses},
    {"divisions_in_loops", &PtxCounts::divisionsInLoops},
    {"fma", &PtxCounts::fma},
    {"grid_waits", &PtxCounts::gridWaits},
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r{}";
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// visit(statement) without comments, braces, labels' colons kept; inline assembly puts several
// statements on a line.
template <class Visit>
void eachStatement(std::string_view ptx, Visit visit) {
  while (!ptx.empty()) {
    size_t end = ptx.find('\n');
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end == ptx.npos ? ptx.size() : end + 1);
    line = line.substr(0, line.find("//"));
    while (!line.empty()) {
      size_t stop = line.find(';');
      if (std::string_view statement = trimmed(line.substr(0, stop)); !statement.empty())
        visit(statement);
      line.remove_prefix(stop == line.npos ? line.size() : stop + 1);
    }
  }
}

struct Instruction {
  std::string_view opcode;    // "ld.global.nc.v4.u32"
  std::string_view operands;  // what follows it
  bool is(std::string_view prefix) const {
    return opcode.starts_with(prefix) &&
           (opcode.size() == prefix.size() || opcode[prefix.size()] == '.');
  }
  bool has(std::string_view part) const { return opcode.find(part) != opcode.npos; }
};

Instruction parse(std::string_view statement) {
  if (statement.starts_with("@")) {  // a predicate
    size_t end = statement.find_first_of(" \t");
    statement = end == statement.npos ? std::string_view() : trimmed(statement.substr(end));
  }
  size_t end = statement.find_first_of(" \t");
  if (end == statement.npos) return {statement, {}};
  return {statement.substr(0, end), trimmed(statement.substr(end))};
}

void count(const Instruction& i, PtxCounts& counts) {
  const bool four = i.has(".v4"), one = !four && !i.has(".v2");
  if (i.is("ld.global")) {
    counts.vectorLoads += four;
    counts.scalarLoads += one;
    counts.readOnlyLoads += i.has(".nc");
  }
  if (i.is("st.global")) {
    counts.vectorStores += four;
    counts.scalarStores += one;
  }
  counts.mma += i.is("mma.sync");
  counts.wgmma += i.is("wgmma.mma_async");
  counts.ldmatrix += i.is("ldmatrix");
  counts.asyncCopies += i.is("cp.async.ca") || i.is("cp.async.cg");
  counts.bulkCopies += i.is("cp.async.bulk") && !i.has("group");
  counts.localAccesses += i.is("ld.local") || i.is("st.local");
  counts.fma += i.is("fma.rn");
  counts.gridWaits += i.is("griddepcontrol.wait");
}

}  // namespace

std::span<const PtxCountName> ptxCountNames() { return kCounts; }

PtxCounts countPtx(std::string_view ptx) {
  PtxCounts counts;
  std::map<std::string_view, size_t> labels;
  std::vector<size_t> divisions;
  std::vector<std::pair<size_t, size_t>> loops;  // from a label to a branch back to it
  size_t index = 0;
  eachStatement(ptx, [&](std::string_view statement) {
    ++index;
    if (statement.ends_with(':')) {
      labels[statement.substr(0, statement.size() - 1)] = index;
      return;
    }
    const Instruction i = parse(statement);
    count(i, counts);
    if (i.is("div.rn")) divisions.push_back(index);
    if (i.is("bra"))
      if (auto label = labels.find(i.operands); label != labels.end())
        loops.push_back({label->second, index});
  });
  for (size_t at : divisions)
    counts.divisionsInLoops += std::any_of(loops.begin(), loops.end(), [&](auto& loop) {
      return loop.first < at && at < loop.second;
    });
  return counts;
}

bool isPortable(std::string_view ptx) {
  bool portable = true;
  eachStatement(ptx, [&](std::string_view statement) {
    const Instruction i = parse(statement);
    portable &= !i.is("wgmma") && !i.is("setmaxnreg") && !i.is("tensormap.replace");
  });
  return portable;
}

std::vector<std::string> gateViolations(std::string_view name, const KernelReport& kernel,
                                        const GateSpec& spec) {
  std::vector<std::string> violations;
  auto violation = [&](const std::string& text) {
    violations.push_back("kernel '" + std::string(name) + "' " + text);
  };
  auto number = [](int64_t n) { return std::to_string(n); };
  const KernelResources& r = kernel.resources;
  if (r.maxThreads == 0) violation("has no __launch_bounds__");
  if (spec.threads > r.maxThreads && r.maxThreads)
    violation("is launched with " + number(spec.threads) + " threads, its __launch_bounds__ are " +
              number(r.maxThreads));
  if (r.spillStores || r.spillLoads)
    violation("spills registers: " + number(r.spillStores) + " bytes stored, " +
              number(r.spillLoads) + " loaded");
  if (r.stackBytes || kernel.ptx.localAccesses)
    violation("uses local memory: " + number(r.stackBytes) + " bytes of stack, " +
              number(kernel.ptx.localAccesses) + " accesses");
  if (r.registers > spec.registers)
    violation("takes " + number(r.registers) + " registers, at most " + number(spec.registers) +
              " expected");
  if (r.sharedBytes > Hopper::staticShared)
    violation("has " + number(r.sharedBytes) + " bytes of static shared memory, at most " +
              number(Hopper::staticShared) + " can be launched; use LATHE_DYN_SHARED");
  if (r.sharedBytes + spec.dynamicShared > Hopper::blockShared)
    violation("takes " + number(r.sharedBytes + spec.dynamicShared) +
              " bytes of shared memory, a block has " + number(Hopper::blockShared));
  if (const int threads = spec.threads ? spec.threads : r.maxThreads; threads > 0) {
    const Occupancy o = occupancy(r, threads, spec.dynamicShared);
    if (o.blocks < spec.blocks)
      violation("runs " + number(o.blocks) + " blocks of " + number(threads) +
                " threads per multiprocessor (limit: " + o.limit + "), at least " +
                number(spec.blocks) + " expected");
  }
  for (const GateSpec::Bound& bound : spec.counts) {
    auto named = std::find_if(std::begin(kCounts), std::end(kCounts),
                              [&](const PtxCountName& c) { return bound.count == c.name; });
    if (named == std::end(kCounts))
      throw Error(ErrorCode::InvalidArgument, "no PTX count is called '" + bound.count + "'");
    const int value = kernel.ptx.*named->count;
    if (value >= bound.low && value <= bound.high) continue;
    std::string expected = bound.low == bound.high ? number(bound.low)
                           : bound.high == INT_MAX
                               ? "at least " + number(bound.low)
                               : number(bound.low) + " to " + number(bound.high);
    violation("has " + number(value) + " " + bound.count + ", expected " + expected);
  }
  return violations;
}

}  // namespace lathe::cuda
