// SPDX-License-Identifier: Apache-2.0
#include "runtime/session_states.h"

#include <algorithm>
#include <cstring>

#include "lathe/runtime/error.h"
#include "runtime/executor.h"

namespace lathe {
namespace {

constexpr uintptr_t kAlignment = 16;

std::byte* rowOf(const Array& state, int64_t row) {
  return static_cast<std::byte*>(const_cast<void*>(state.data())) +
         state.bytes() / size_t(state.shape()[0]) * size_t(row);
}

// On the device, or without one in the host's memory.
void copyBytes(DeviceMemory* memory, void* to, const void* from, size_t bytes) {
  if (memory)
    memory->copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace

SessionStates::SessionStates(const Program& program, Device& device)
    : program_(program), device_(device), states_(program.states.size()) {
  for (const TensorInfo& info : program.states) {
    std::vector<int>& symbols = symbols_.emplace_back();
    for (const DimExpr& d : info.shape) {
      auto isIt = [&](const SymbolInfo& s) { return d == DimExpr::symbol(s.name); };
      const auto found = std::ranges::find_if(program.symbols, isIt);
      symbols.push_back(found == program.symbols.end() ? -1 : int(found - program.symbols.begin()));
    }
  }
}

size_t SessionStates::indexOf(std::string_view name) const {
  std::string known;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (program_.states[i].name == name) return i;
    known += (known.empty() ? "" : ", ") + program_.states[i].name;
  }
  throw Error(ErrorCode::InvalidArgument, "the program has no state '" + std::string(name) +
                                              "'; it has " + (known.empty() ? "none" : known));
}

bool SessionStates::keeps(const TensorInfo& info) const {
  return keptRows_ > 0 && !info.shape.empty() && info.shape[0] == DimExpr::symbol(rowsSymbol_);
}

Array SessionStates::copyOf(std::string_view name) const {
  const Array& state = states_[indexOf(name)];
  return state.defined() ? copyToHost(device_.memory(), state) : Array();
}

void SessionStates::set(std::string_view name, const Array& value) {
  const size_t index = indexOf(name);
  const TensorInfo& info = program_.states[index];
  if (!value.defined() || value.dtype() != info.dtype || value.shape().size() != info.shape.size())
    throw Error(ErrorCode::InvalidArgument,
                "state '" + info.name + "': expected " + std::string(nameOf(info.dtype)) +
                    " of rank " + std::to_string(info.shape.size()) + ", got " +
                    (value.defined() ? describe(value.dtype(), value.shape()) : "nothing"));
  DeviceMemory* memory = device_.memory();
  Array& state = states_[index];
  if (!state.defined() || state.shape() != value.shape()) {
    state = arrayOn(memory, info.dtype, value.shape(), info.name);
    noteAllocation();
  }
  if (memory)
    memory->upload(state.data(), value.data(), value.bytes());
  else
    std::memcpy(state.data(), value.data(), value.bytes());
}

void SessionStates::reset() {
  for (Array& a : states_) a = Array();
}
void SessionStates::reset(const std::string& symbol) {
  for (size_t i = 0; i < states_.size(); ++i)
    for (const DimExpr& d : program_.states[i].shape)
      for (const std::string& used : d.symbols())
        if (used == symbol) states_[i] = Array();
}

void SessionStates::gatherRows(std::string_view symbol, std::span<const int64_t> rows) {
  DeviceMemory* memory = device_.memory();
  const DimExpr first = DimExpr::symbol(std::string(symbol));
  for (size_t i = 0; i < states_.size(); ++i) {
    Array& state = states_[i];
    const TensorInfo& info = program_.states[i];
    if (!state.defined() || info.shape.empty() || info.shape[0] != first) continue;
    const int64_t count = state.shape()[0];
    const bool inside =
        std::ranges::all_of(rows, [&](int64_t row) { return row >= 0 && row < count; });
    if (int64_t(rows.size()) != count || !inside)
      throw Error(ErrorCode::InvalidArgument, "gatherStateRows: expected " + std::to_string(count) +
                                                  " rows from 0 to " + std::to_string(count - 1) +
                                                  " for the state '" + info.name + "'");
    // Back into the same memory, whose address recorded launches hold.
    const size_t bytes = state.bytes() / size_t(count);
    const Array old = arrayOn(memory, info.dtype, state.shape(), info.name);
    auto* to = static_cast<std::byte*>(const_cast<void*>(state.data()));
    auto* from = static_cast<std::byte*>(const_cast<void*>(old.data()));
    copyBytes(memory, from, to, state.bytes());
    for (size_t row = 0; row < rows.size(); ++row)
      if (rows[row] != int64_t(row))
        copyBytes(memory, to + row * bytes, from + size_t(rows[row]) * bytes, bytes);
    if (memory) memory->synchronize();
  }
}

void SessionStates::copyBlock(std::string_view symbol, int64_t from, int64_t to) {
  DeviceMemory* memory = device_.memory();
  const DimExpr first = DimExpr::symbol(std::string(symbol));
  for (size_t i = 0; i < states_.size(); ++i) {
    const Array& state = states_[i];
    const TensorInfo& info = program_.states[i];
    if (!state.defined() || info.shape.empty() || info.shape[0] != first) continue;
    for (int64_t row : {from, to})
      if (row < 0 || row >= state.shape()[0])
        throw Error(ErrorCode::InvalidArgument,
                    "copyStateBlock: expected one of " + std::to_string(state.shape()[0]) +
                        " rows of the state '" + info.name + "', got " + std::to_string(row));
    if (from == to) continue;
    copyBytes(memory, rowOf(state, to), rowOf(state, from),
              state.bytes() / size_t(state.shape()[0]));
  }
  if (memory) memory->synchronize();
}

void SessionStates::keepRows(std::string_view symbol, int64_t rows) {
  for (const SymbolInfo& info : program_.symbols) {
    if (info.name != symbol) continue;
    if (rows < info.lo || rows > info.hi)
      throw Error(ErrorCode::InvalidArgument,
                  "keepStateRows: expected from " + std::to_string(info.lo) + " to " +
                      std::to_string(info.hi) + " rows, got " + std::to_string(rows));
    rowsSymbol_ = info.name;
    keptRows_ = rows;
    firstRow_ = 0;
    reset();
    return;
  }
  throw Error(ErrorCode::InvalidArgument,
              "keepStateRows: the program has no symbol '" + std::string(symbol) + "'");
}

void SessionStates::selectRow(int64_t first) {
  if (first < 0 || first >= keptRows_)
    throw Error(ErrorCode::InvalidArgument,
                "selectStateRows: expected one of " + std::to_string(keptRows_) +
                    " rows that keepStateRows() keeps, got " + std::to_string(first));
  firstRow_ = first;
}

std::optional<int64_t> SessionStates::selectedRow() const {
  return keptRows_ > 0 ? std::optional(firstRow_) : std::nullopt;
}

void SessionStates::copyRow(int64_t from, int64_t to, std::string_view along, int64_t count) {
  for (int64_t row : {from, to})
    if (row < 0 || row >= keptRows_)
      throw Error(ErrorCode::InvalidArgument,
                  "copyStateRow: expected one of " + std::to_string(keptRows_) +
                      " rows that keepStateRows() keeps, got " + std::to_string(row));
  DeviceMemory* memory = device_.memory();
  const DimExpr axis = DimExpr::symbol(std::string(along));
  for (size_t i = 0; i < states_.size(); ++i) {
    const Array& state = states_[i];
    const TensorInfo& info = program_.states[i];
    if (from == to || !state.defined() || !keeps(info)) continue;
    const size_t place = size_t(std::ranges::find(info.shape, axis) - info.shape.begin());
    size_t pieces = 1, pieceBytes = state.bytes() / size_t(keptRows_), copied = pieceBytes;
    if (place < info.shape.size()) {
      const int64_t size = state.shape()[place];
      if (count < 0 || count > size)
        throw Error(ErrorCode::InvalidArgument,
                    "copyStateRow: expected from 0 to " + std::to_string(size) + " of '" +
                        std::string(along) + "', got " + std::to_string(count));
      for (size_t axis = 1; axis < place; ++axis) pieces *= size_t(state.shape()[axis]);
      pieceBytes /= pieces;
      copied = pieceBytes / size_t(size) * size_t(count);
    }
    for (size_t piece = 0; piece < pieces && copied > 0; ++piece)
      copyBytes(memory, rowOf(state, to) + piece * pieceBytes,
                rowOf(state, from) + piece * pieceBytes, copied);
  }
  if (memory) memory->synchronize();
}

std::vector<Array>& SessionStates::prepare(const Executor& executor) {
  windows_.resize(states_.size());
  for (const Port& port : executor.entry().statesIn) {
    for (size_t i = 0; i < states_.size(); ++i) {
      const TensorInfo& info = program_.states[i];
      if (info.name != port.name) continue;
      Shape shape;
      for (const DimExpr& d : info.shape) shape.push_back(d.evaluate(executor.symbols()).value());
      const Shape run = shape;
      if (keeps(info)) {
        if (firstRow_ + shape[0] > keptRows_)
          throw Error(ErrorCode::InvalidArgument,
                      "state '" + info.name + "' keeps " + std::to_string(keptRows_) +
                          " rows, this run needs " + std::to_string(shape[0]) + " from row " +
                          std::to_string(firstRow_) + " on");
        shape[0] = keptRows_;
      }
      if (states_[i].defined() && states_[i].shape() != shape)
        throw Error(ErrorCode::InvalidArgument,
                    "state '" + info.name + "' holds " + describe(info.dtype, states_[i].shape()) +
                        ", this run needs " + describe(info.dtype, shape) +
                        "; call resetStates() before a run with other sizes");
      if (!states_[i].defined()) {
        states_[i] = arrayOn(device_.memory(), info.dtype, shape, info.name);
        noteAllocation();
      }
      // Kernels of a device read a tensor by 16 bytes from its beginning.
      if (keeps(info) && device_.memory() &&
          reinterpret_cast<uintptr_t>(rowOf(states_[i], firstRow_)) % kAlignment)
        throw Error(ErrorCode::Unsupported,
                    "state '" + info.name + "': row " + std::to_string(firstRow_) + " of " +
                        describe(info.dtype, states_[i].shape()) +
                        " does not begin at a multiple of 16 bytes; make rows multiples of them, "
                        "or select row 0");
      windows_[i] =
          keeps(info) ? Array(info.dtype, run, rowOf(states_[i], firstRow_), nullptr) : states_[i];
    }
  }
  return windows_;
}

std::optional<int64_t> SessionStates::sizeOf(size_t symbol) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].defined()) continue;
    // Of kept rows a run sees some, and says how many.
    for (size_t axis = keeps(program_.states[i]) ? 1 : 0; axis < symbols_[i].size(); ++axis)
      if (symbols_[i][axis] == int(symbol)) return states_[i].shape()[axis];
  }
  return std::nullopt;
}

int64_t SessionStates::bytes() const {
  int64_t bytes = 0;
  for (const Array& a : states_)
    if (a.defined()) bytes += int64_t(a.bytes());
  return bytes;
}

}  // namespace lathe
