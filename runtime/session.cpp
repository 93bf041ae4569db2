// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/session.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <thread>

#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/error.h"
#include "runtime/bound_weights.h"
#include "runtime/executor.h"
#include "runtime/load_weights.h"
#include "runtime/rank_agreement.h"
#include "runtime/rank_commands.h"
#include "runtime/session_states.h"
#include "runtime/stage_ranks.h"

namespace lathe {

// "a, b" of a list of things with names; "none" of an empty one.
template <class List, class NameOf>
static std::string namesOf(const List& list, NameOf nameOf) {
  std::string names;
  for (const auto& item : list) names += (names.empty() ? "" : ", ") + nameOf(item);
  return names.empty() ? "none" : names;
}

// Of these names, those that the graph did not declare.
template <class Names>
static std::vector<std::string> unknownWeights(const Program& program, const Names& names) {
  const std::set<std::string> unread = unreadWeights(program);
  std::set<std::string> read;
  for (const TensorInfo& info : program.weights) read.insert(info.source());
  std::vector<std::string> unknown;
  for (const std::string& name : names)
    if (!read.contains(name) && !unread.contains(name)) unknown.push_back(name);
  return unknown;
}

// Says what is there too much, and what the check of the others finds as well: a name that is
// spelled in another way is both.
template <class Check>
[[noreturn]] static void throwExtra(const std::string& what, Check check) {
  std::string others;
  try {
    check();
  } catch (const Error& e) {
    others = std::string("\n") + e.what();
  }
  throw Error(ErrorCode::InvalidArgument, what + others);
}

struct Session::Impl {
  std::shared_ptr<const Program> program;
  std::unique_ptr<Device> device;
  BoundWeights weights;
  bool haveWeights = false;
  std::optional<SessionStates> states;
  SymbolValues fixed;
  std::vector<std::unique_ptr<Executor>> executors;
  GrowingBuffer arena, scratch;
  std::shared_ptr<Communicator> ranks;  // of all stages; null where one runs the program alone
  std::shared_ptr<Communicator> own;    // what the program's calls talk through
  int64_t stages = 1;
  std::atomic<bool> running{false};
  std::vector<Array> ordered;  // inputs of the named form, by position

  // A session belongs to one thread at a time: a second caller is told, not raced.
  struct Turn {
    explicit Turn(std::atomic<bool>& flag) : flag(flag) {
      if (flag.exchange(true))
        throw Error(ErrorCode::InvalidArgument,
                    "the session is running in another thread; use one session per thread");
    }
    ~Turn() { flag = false; }
    std::atomic<bool>& flag;
  };

  void open(const SessionOptions& options) {
    device = openDevice(program, {options.threads, options.device, own});
    states.emplace(*program, *device);
    for (const EntryPoint& e : program->entries)
      executors.push_back(
          std::make_unique<Executor>(*program, e, *device, options.profile, own.get()));
  }

  // Whether the inputs of every entry point give the symbol's value.
  bool fromInputs(const std::string& symbol) const {
    const DimExpr dim = DimExpr::symbol(symbol);
    for (const EntryPoint& e : program->entries) {
      bool given = false;
      for (const Port& port : e.inputs)
        for (const DimExpr& d : e.slots[size_t(port.slot)].shape) given |= d == dim;
      if (!given) return false;
    }
    return !program->entries.empty();
  }
  void load(const std::function<Array(size_t weight)>& fetch = {}) {
    haveWeights = false;
    loadWeights(*program, *device, program->ranks > 1 ? own.get() : nullptr, weights, fetch);
    haveWeights = true;
  }

  ~Impl() {
    if (!ranks || ranks->rank() != 0) return;
    try {
      announce(*ranks, {.kind = RankCommand::Kind::Stop}, way());
    } catch (const Error&) {
      // The others have ended already.
    }
  }

  //===--- several ranks --------------------------------------------------------------------===//

  // Checks that the others run the same program as this one, and takes this one's stage of it.
  void join(std::shared_ptr<Communicator> others) {
    const int64_t count = others ? others->size() : 1, expected = program->allRanks();
    if (count != expected)
      throw Error(ErrorCode::InvalidArgument,
                  "the program is for " + std::to_string(expected) + " ranks, the session has " +
                      std::to_string(count) +
                      (expected > 1 ? "; give it one's end (SessionOptions::ranks, or --ranks " +
                                          std::to_string(expected) + ")"
                                    : "; compile it for them (PipelineOptions::mesh)"));
    if (count == 1) return;
    agreeOnProgram(*others, *program);
    ranks = std::move(others);
    stages = program->stages();
    own = ranks;
    if (stages > 1 && program->ranks > 1)
      own = std::make_shared<StageRanks>(ranks, int(program->ranks));
    if (const int64_t stage = ranks->rank() / program->ranks; stage > 0)
      program = program->laterStages[size_t(stage) - 1];
  }
  CommandWay way() const { return stages > 1 ? CommandWay::Messages : CommandWay::Meeting; }
  int64_t rank() const { return ranks ? ranks->rank() : 0; }
  // Among those that share the layers of its stage.
  int64_t place() const { return rank() % program->ranks; }
  // The others do what rank 0 tells them, by serve() alone.
  void expectRankZero() const {
    if (rank() != 0)
      throw Error(ErrorCode::InvalidArgument, "this is rank " + std::to_string(rank()) +
                                                  ", which does what rank 0 does: call serve()");
  }
  void tell(const RankCommand& command) {
    if (!ranks) return;
    expectRankZero();
    runTogether([&] { announce(*ranks, command, way()); });
  }
  // A run that fails on one rank leaves the others waiting: they are told.
  template <class Fn>
  void runTogether(Fn run) {
    if (!ranks) return run();
    try {
      run();
    } catch (const std::exception& e) {
      ranks->abort("rank " + std::to_string(ranks->rank()) + ": " + e.what());
      throw;
    }
  }
  void refuseWithRanks(const char* what) const {
    if (ranks)
      throw Error(ErrorCode::Unsupported,
                  std::string(what) + ": each of " + std::to_string(ranks->size()) +
                      " ranks has its own piece of a state; use a program of one rank");
  }

  void run(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs, int64_t times,
           bool wantsOutputs) {
    Executor& executor = *executors[entry];
    executor.bind(inputs, fixed, &*states);
    std::vector<Array>& seen = states->prepare(executor);
    if (ranks && ranks->rank() == 0) {
      RankCommand command{.kind = RankCommand::Kind::Run,
                          .number = int64_t(entry),
                          .times = times,
                          .wantsOutputs = wantsOutputs,
                          .inputs = {inputs.begin(), inputs.end()}};
      if (const auto row = states->selectedRow()) command.rows = {*row};
      tell(command);
    }
    runTogether([&] {
      executor.run(inputs, weights, seen, arena, scratch, outputs,
                   {.times = times, .wantsOutputs = wantsOutputs});
    });
  }
  // The same on rank 0, whose inputs are checked.
  void runFirst(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs,
                int64_t times, bool wantsOutputs);
  void setSymbol(const std::string& name, int64_t value) {
    fixed[name] = value;
    states->reset(name);
  }
  // Does what rank 0 tells.
  void follow(const RankCommand& command, std::vector<Array>& outputs) {
    switch (command.kind) {
      case RankCommand::Kind::Run:
        if (!command.rows.empty()) states->selectRow(command.rows[0]);
        return run(size_t(command.number), command.inputs, outputs, command.times,
                   command.wantsOutputs);
      case RankCommand::Kind::SetSymbol:
        return setSymbol(command.name, command.number);
      case RankCommand::Kind::ResetStates:
        return states->reset();
      case RankCommand::Kind::GatherRows:
        return states->gatherRows(command.name, command.rows);
      case RankCommand::Kind::KeepRows:
        return states->keepRows(command.name, command.number);
      case RankCommand::Kind::CopyRow:
        return states->copyRow(command.rows[0], command.rows[1], command.name, command.number);
      case RankCommand::Kind::CopyBlock:
        return states->copyBlock(command.name, command.rows[0], command.rows[1]);
      case RankCommand::Kind::Stop:
        return;
    }
  }
};

Session::Session(std::shared_ptr<const Program> program, const SessionOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (!program)
    throw Error(ErrorCode::InvalidArgument,
                "Session: expected a program, got a null pointer; compile one or open an artifact");
  impl_->program = std::move(program);
  loadBackendPlugins(options.backendPlugins);
  impl_->join(options.ranks);
  impl_->runTogether([&] { impl_->open(options); });
  if (impl_->program->weights.empty()) impl_->load();
}
Session::Session(Program program, const SessionOptions& options)
    : Session(std::make_shared<const Program>(std::move(program)), options) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::failMoved() {
  throw Error(ErrorCode::InvalidArgument,
              "the Session was moved from; use the one that it was moved to");
}

const Array& Arrays::at(std::string_view name) const {
  if (auto it = find(name); it != end()) return it->second;
  std::string known;
  for (auto& [other, array] : *this) known += (known.empty() ? "" : ", ") + other;
  throw Error(ErrorCode::InvalidArgument, "there is no Array '" + std::string(name) + "'; there " +
                                              (known.empty() ? "are none" : "are " + known));
}

void Session::bindWeights(const WeightSource& source) {
  if (!source)
    throw Error(ErrorCode::InvalidArgument,
                "bindWeights: expected a weight source, got a null function");
  Impl::Turn turn(impl().running);
  Impl& s = impl();
  s.runTogether([&] {
    s.weights.raw = fetchWeights(*s.program, source);
    for (size_t w = 0; w < s.weights.raw.size(); ++w)
      s.weights.raw[w] =
          ownPiece(s.program->weights[w], std::move(s.weights.raw[w]), s.place(), s.program->ranks);
    s.load();
  });
}
void Session::bindWeights(const Arrays& weights) {
  auto find = [&](const std::string& name) {
    auto it = weights.find(name);
    return it == weights.end() ? Array() : it->second;
  };
  const std::vector<std::string> extra = unknownWeights(*impl().program, std::views::keys(weights));
  if (!extra.empty())
    impl().runTogether([&] {
      throwExtra("the program has no weights named " + namesOf(extra, std::identity()) +
                     "; declare them in the graph, or leave them out",
                 [&] { fetchWeights(*impl().program, find); });
    });
  bindWeights(find);
}
void Session::bindWeights(const Checkpoint& checkpoint, const std::vector<std::string>& mayStay,
                          const std::function<void(const std::string&)>& reading) {
  std::vector<std::string> read;
  for (const TensorInfo& info : impl().program->weights)
    read.emplace_back(checkpoint.wholeOf(info.source()));
  std::vector<std::string> extra = unknownWeights(*impl().program, checkpoint.names());
  std::erase_if(extra, [&](const std::string& name) {
    return std::ranges::find(read, name) != read.end() ||
           std::ranges::any_of(mayStay, [&](const std::string& end) {
             return name == end || name.ends_with("." + end);
           });
  });
  Impl& s = impl();
  Impl::Turn turn(s.running);
  auto check = [&] {
    if (extra.empty()) return checkStoredWeights(*s.program, checkpoint);
    throwExtra(checkpoint.path() + " holds tensors that the program does not read: " +
                   namesOf(extra, std::identity()) +
                   "; declare them in the graph (a module may have a bias that its options leave "
                   "out), or name them in `mayStay` if they are not meant to be read",
               [&] { checkStoredWeights(*s.program, checkpoint); });
  };
  s.runTogether(check);
  s.weights.raw.assign(s.program->weights.size(), Array());
  auto fetch = [&](size_t weight) {
    const TensorInfo& info = s.program->weights[weight];
    if (reading) reading(info.source());
    return readPiece(info, checkpoint, s.place(), s.program->ranks);
  };
  s.runTogether([&] { s.load(fetch); });
}
void Session::bindRandomWeights(uint64_t seed) {
  Impl::Turn turn(impl().running);
  Impl& s = impl();
  s.weights.raw.clear();
  for (const TensorInfo& info : s.program->weights)
    s.weights.raw.push_back(randomWeight(info, seed, s.place(), s.program->ranks));
  s.runTogether([&] { s.load(); });
}

size_t Session::entryIndex(std::string_view name) const {
  return size_t(&impl().program->entry(name) - impl().program->entries.data());
}

void Session::run(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs,
                  int64_t times) {
  if (times < 1)
    throw Error(ErrorCode::InvalidArgument,
                "Session::run: expected at least 1 run, got " + std::to_string(times));
  impl().runFirst(entry, inputs, outputs, times, true);
}
void Session::runAhead(size_t entry, std::span<const Array> inputs, std::vector<Array>& outputs) {
  impl().runFirst(entry, inputs, outputs, 1, false);
}

void Session::Impl::runFirst(size_t entry, std::span<const Array> inputs,
                             std::vector<Array>& outputs, int64_t times, bool wantsOutputs) {
  Impl& s = *this;
  Turn turn(s.running);
  if (entry >= s.executors.size())
    throw Error(ErrorCode::InvalidArgument,
                "there is no entry point " + std::to_string(entry) + ": the program has " +
                    std::to_string(s.executors.size()) + ", " +
                    namesOf(s.program->entries, [](const EntryPoint& e) { return e.name; }) +
                    ", counted from 0; entryIndex() gives the number of a name");
  if (!s.haveWeights)
    throw Error(ErrorCode::InvalidArgument,
                "the program has weights; call bindWeights before the first run");
  s.expectRankZero();
  // What interprets a whole entry point in one call sends all that stands there.
  const bool interprets = s.program->backend == "reference";
  s.run(entry, inputs, outputs, times, wantsOutputs || interprets);
}

void Session::serve() {
  Impl& s = impl();
  Impl::Turn turn(s.running);
  if (!s.ranks || s.ranks->rank() == 0)
    throw Error(ErrorCode::InvalidArgument,
                "serve() is for the ranks that follow rank 0 of several; call run()");
  std::vector<Array> outputs;
  while (true) {
    const RankCommand command = awaitCommand(*s.ranks, s.way());
    if (command.kind == RankCommand::Kind::Stop) return;
    s.runTogether([&] { s.follow(command, outputs); });
  }
}

Arrays Session::run(std::string_view name, const Arrays& inputs) {
  size_t index = entryIndex(name);
  const EntryPoint& entry = impl().program->entries[index];
  std::vector<Array> ordered, outputs;
  std::string expected;
  for (const Port& port : entry.inputs) expected += (expected.empty() ? "" : ", ") + port.name;
  for (const Port& port : entry.inputs) {
    auto it = inputs.find(port.name);
    if (it == inputs.end())
      throw Error(ErrorCode::InvalidArgument, "entry point '" + entry.name + "': input '" +
                                                  port.name + "' is missing; it takes " + expected);
    ordered.push_back(it->second);
  }
  if (inputs.size() != ordered.size())
    for (auto& [given, array] : inputs) {
      bool known = false;
      for (const Port& port : entry.inputs) known |= port.name == given;
      if (!known)
        throw Error(ErrorCode::InvalidArgument, "entry point '" + entry.name + "' has no input '" +
                                                    given + "'; it takes " + expected);
    }
  run(index, ordered, outputs);
  Arrays named;
  for (size_t i = 0; i < outputs.size(); ++i) named[entry.outputs[i].name] = outputs[i];
  return named;
}

void Session::setSymbol(std::string_view name, int64_t value) {
  for (const SymbolInfo& s : impl().program->symbols) {
    if (s.name != name) continue;
    if (value < s.lo || value > s.hi || value % s.multiple)
      throw Error(ErrorCode::InvalidArgument,
                  "'" + s.name + "' = " + std::to_string(value) + " is outside its range " +
                      std::to_string(s.lo) + " to " + std::to_string(s.hi) +
                      (s.multiple > 1 ? ", multiples of " + std::to_string(s.multiple) : ""));
    if (impl().fromInputs(s.name))
      throw Error(ErrorCode::InvalidArgument,
                  "'" + s.name +
                      "' takes its value from the inputs of each run; setSymbol is for "
                      "those that only states have");
    Impl::Turn turn(impl().running);
    impl().tell({.kind = RankCommand::Kind::SetSymbol, .name = s.name, .number = value});
    impl().setSymbol(s.name, value);
    return;
  }
  throw Error(ErrorCode::InvalidArgument,
              "the program has no symbol '" + std::string(name) + "'; it has " +
                  namesOf(impl().program->symbols, [](const SymbolInfo& s) { return s.name; }));
}

void Session::resetStates() {
  Impl::Turn turn(impl().running);
  impl().tell({.kind = RankCommand::Kind::ResetStates});
  impl().states->reset();
}

Array Session::state(std::string_view name) const {
  Impl::Turn turn(impl().running);
  impl().refuseWithRanks("Session::state");
  return impl().states->copyOf(name);
}

void Session::setState(std::string_view name, const Array& value) {
  Impl::Turn turn(impl().running);
  impl().refuseWithRanks("Session::setState");
  impl().states->set(name, value);
}

void Session::gatherStateRows(std::string_view symbol, std::span<const int64_t> rows) {
  Impl& s = impl();
  Impl::Turn turn(s.running);
  s.tell({.kind = RankCommand::Kind::GatherRows,
          .name = std::string(symbol),
          .rows = {rows.begin(), rows.end()}});
  s.runTogether([&] { s.states->gatherRows(symbol, rows); });
}

void Session::copyStateBlock(std::string_view symbol, int64_t from, int64_t to) {
  Impl& s = impl();
  Impl::Turn turn(s.running);
  s.expectRankZero();
  s.states->copyBlock(symbol, from, to);  // a mistake is told before the others hear of it
  s.tell({.kind = RankCommand::Kind::CopyBlock, .name = std::string(symbol), .rows = {from, to}});
}

void Session::keepStateRows(std::string_view symbol, int64_t rows) {
  Impl& s = impl();
  Impl::Turn turn(s.running);
  s.expectRankZero();
  s.states->keepRows(symbol, rows);
  s.tell({.kind = RankCommand::Kind::KeepRows, .name = std::string(symbol), .number = rows});
}

void Session::selectStateRows(int64_t first) {
  Impl::Turn turn(impl().running);
  impl().expectRankZero();
  impl().states->selectRow(first);
}

void Session::copyStateRow(int64_t from, int64_t to, std::string_view along, int64_t count) {
  Impl& s = impl();
  Impl::Turn turn(s.running);
  s.expectRankZero();
  s.states->copyRow(from, to, along, count);
  s.tell({.kind = RankCommand::Kind::CopyRow,
          .name = std::string(along),
          .number = count,
          .rows = {from, to}});
}

Session::Memory Session::memory() const {
  Impl::Turn turn(impl().running);
  Memory m;
  m.arena = impl().arena.bytes();
  m.scratch = impl().scratch.bytes();
  m.states = impl().states->bytes();
  for (const Array& a : impl().weights.derived) m.derived += int64_t(a.bytes());
  return m;
}

void Session::throwIfEnded() const {
  if (impl().ranks) impl().ranks->throwIfEnded();
}
uint64_t Session::allocations() { return allocationCount(); }
const Program& Session::program() const { return *impl().program; }
Device& Session::device() { return *impl().device; }
std::vector<CallProfile> Session::profile(std::string_view entry) const {
  Impl::Turn turn(impl().running);
  return impl().executors[entryIndex(entry)]->profile();
}

}  // namespace lathe
