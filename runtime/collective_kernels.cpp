// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective_kernels.h"

#include <algorithm>
#include <cstring>

#include "lathe/runtime/call_config.h"
#include "lathe/runtime/error.h"
#include "runtime/cut_axis.h"

namespace lathe {
namespace {

// Where the operands are, and who joins them there.
struct Place {
  Communicator& ranks;
  DeviceMemory* memory;  // null: the host's

  // `rows` pieces of `bytes` bytes.
  void copy(void* to, size_t toStride, const void* from, size_t fromStride, size_t bytes,
            size_t rows) const {
    if (memory) return memory->copyRows(to, toStride, from, fromStride, bytes, rows);
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * toStride,
                  static_cast<const std::byte*>(from) + row * fromStride, bytes);
  }
  void zero(void* to, size_t bytes) const {
    if (memory) return memory->zero(to, bytes);
    std::memset(to, 0, bytes);
  }
};

class AllReduce final : public Kernel {
 public:
  AllReduce(const Place& place, DType dtype, const CollectiveConfig& config)
      : place_(place), dtype_(dtype), combine_(config.combine) {}
  size_t bind(const KernelShapes& shapes) override {
    count_ = size_t(elementCount(shapes.shapes[0]));
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    if (!count_) return;  // on every rank
    const size_t bytes = bytesOf(dtype_, int64_t(count_));
    if (pointers[0] != pointers[1]) place_.copy(pointers[1], bytes, pointers[0], bytes, bytes, 1);
    place_.ranks.allReduce(pointers[1], count_, dtype_, combine_);
  }

 private:
  Place place_;
  DType dtype_;
  Combine combine_;
  size_t count_ = 0;
};

// The runs of a piece, in bytes.
struct Blocks {
  size_t outer = 1, inner = 0;
  Blocks() = default;
  Blocks(DType dtype, const Shape& piece, int64_t axis) {
    const CutAxis cut(piece, axis);
    outer = size_t(cut.runs);
    inner = bytesOf(dtype, cut.run);
  }
};

// How the parts of an axis lie in a whole: runs of `blocks.inner` bytes, of which those of the last
// parts may be shorter there, or not be at all, and have padding behind them.
struct Parts {
  Blocks blocks;
  size_t stride = 0;  // bytes from one run of the whole to the next
  Parts() = default;
  Parts(DType dtype, const Shape& piece, const Shape& whole, int64_t axis)
      : blocks(dtype, piece, axis), stride(Blocks(dtype, whole, axis).inner) {}
  size_t begin(size_t part) const { return std::min(part * blocks.inner, stride); }
  size_t kept(size_t part) const { return std::min(blocks.inner, stride - begin(part)); }
  bool isPadded(size_t parts) const { return kept(parts - 1) < blocks.inner; }

  // One part with its padding, from where it lies in the whole, and back to there without it.
  void take(const Place& place, void* to, const void* whole, size_t part) const {
    if (kept(part) < blocks.inner) place.zero(to, blocks.outer * blocks.inner);
    if (kept(part))
      place.copy(to, blocks.inner, static_cast<const std::byte*>(whole) + begin(part), stride,
                 kept(part), blocks.outer);
  }
  void put(const Place& place, void* whole, const void* from, size_t part) const {
    if (kept(part))
      place.copy(static_cast<std::byte*>(whole) + begin(part), stride, from, blocks.inner,
                 kept(part), blocks.outer);
  }
};

class ReduceScatter final : public Kernel {
 public:
  ReduceScatter(const Place& place, DType dtype, const CollectiveConfig& config)
      : place_(place), dtype_(dtype), config_(config) {}
  size_t bind(const KernelShapes& shapes) override {
    count_ = size_t(elementCount(shapes.shapes[1]));
    parts_ = Parts(dtype_, shapes.shapes[1], shapes.shapes[0], config_.axis);
    const auto& [outer, inner] = parts_.blocks;
    isInOrder_ = outer == 1 && !parts_.isPadded(size_t(config_.ranks));
    return isInOrder_ ? 0 : outer * inner * size_t(config_.ranks);
  }
  void run(void* const* pointers, std::byte* scratch) override {
    if (!count_) return;  // on every rank
    const void* all = pointers[0];
    if (!isInOrder_) {
      // The pieces one behind the other, in the order of the ranks that they are for.
      const size_t bytes = parts_.blocks.outer * parts_.blocks.inner;
      for (size_t rank = 0; rank < size_t(config_.ranks); ++rank)
        parts_.take(place_, scratch + rank * bytes, pointers[0], rank);
      all = scratch;
    }
    place_.ranks.reduceScatter(all, pointers[1], count_, dtype_, config_.combine);
  }

 private:
  Place place_;
  DType dtype_;
  CollectiveConfig config_;
  Parts parts_;
  bool isInOrder_ = true;
  size_t count_ = 0;
};

class AllGather final : public Kernel {
 public:
  AllGather(const Place& place, DType dtype, const CollectiveConfig& config)
      : place_(place), dtype_(dtype), config_(config) {}
  size_t bind(const KernelShapes& shapes) override {
    parts_ = Parts(dtype_, shapes.shapes[0], shapes.shapes[1], config_.axis);
    const auto& [outer, inner] = parts_.blocks;
    // The pieces of the ranks one behind the other are the result.
    isInOrder_ =
        outer == 1 && config_.parts == config_.ranks && !parts_.isPadded(size_t(config_.parts));
    return isInOrder_ ? 0 : outer * inner * size_t(config_.ranks);
  }
  void run(void* const* pointers, std::byte* scratch) override {
    const size_t bytes = parts_.blocks.outer * parts_.blocks.inner;
    if (!bytes) return;  // on every rank
    if (isInOrder_) return place_.ranks.allGather(pointers[0], pointers[1], bytes);
    place_.ranks.allGather(pointers[0], scratch, bytes);
    for (int64_t part = 0; part < config_.parts; ++part) {
      const size_t rank = size_t(part * config_.ranks / config_.parts);  // the first that has it
      parts_.put(place_, pointers[1], scratch + rank * bytes, size_t(part));
    }
  }

 private:
  Place place_;
  DType dtype_;
  CollectiveConfig config_;
  Parts parts_;
  bool isInOrder_ = true;
};

// `split`, the axis of the config, is cut; the parts of all ranks are joined along `concat`.
class AllToAll final : public Kernel {
 public:
  AllToAll(const Place& place, DType dtype, const CollectiveConfig& config)
      : place_(place), dtype_(dtype), config_(config) {}
  size_t bind(const KernelShapes& shapes) override {
    Shape part = shapes.shapes[0];
    part[size_t(config_.axis)] /= config_.ranks;
    sent_ = Blocks(dtype_, part, config_.axis);
    received_ = Blocks(dtype_, part, *config_.concat);
    bytes_ = sent_.outer * sent_.inner;
    // Parts that do not lie one behind the other are brought there, on both ends.
    all_ = (bytes_ * size_t(config_.ranks) + 63) / 64 * 64;
    return (sent_.outer > 1 ? all_ : 0) + (received_.outer > 1 ? all_ : 0);
  }
  void run(void* const* pointers, std::byte* scratch) override {
    if (!bytes_) return;
    const auto ranks = size_t(config_.ranks);
    const void* mine = pointers[0];
    if (sent_.outer > 1) {
      const auto [outer, inner] = sent_;
      for (size_t rank = 0; rank < ranks; ++rank)
        place_.copy(scratch + rank * bytes_, inner,
                    static_cast<const std::byte*>(pointers[0]) + rank * inner, ranks * inner, inner,
                    outer);
      mine = scratch;
      scratch += all_;
    }
    if (received_.outer == 1) return place_.ranks.allToAll(mine, pointers[1], bytes_);
    place_.ranks.allToAll(mine, scratch, bytes_);
    const auto [outer, inner] = received_;
    for (size_t rank = 0; rank < ranks; ++rank)
      place_.copy(static_cast<std::byte*>(pointers[1]) + rank * inner, ranks * inner,
                  scratch + rank * bytes_, inner, inner, outer);
  }

 private:
  Place place_;
  DType dtype_;
  CollectiveConfig config_;
  Blocks sent_, received_;
  size_t bytes_ = 0, all_ = 0;  // of a part, and of all with what aligns what follows
};

class AllSlice final : public Kernel {
 public:
  AllSlice(const Place& place, DType dtype, const CollectiveConfig& config)
      : place_(place),
        dtype_(dtype),
        config_(config),
        part_(WeightPiece{{}, config.axis, config.parts}.partOf(place.ranks.rank(), config.ranks)) {
  }
  size_t bind(const KernelShapes& shapes) override {
    parts_ = Parts(dtype_, shapes.shapes[1], shapes.shapes[0], config_.axis);
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    if (parts_.blocks.inner) parts_.take(place_, pointers[1], pointers[0], size_t(part_));
  }

 private:
  Place place_;
  DType dtype_;
  CollectiveConfig config_;
  int64_t part_;
  Parts parts_;
};

// To, or from, another stage of a pipeline.
class Message final : public Kernel {
 public:
  Message(const Place& place, DType dtype, int stage, bool sends)
      : place_(place), dtype_(dtype), stage_(stage), sends_(sends) {}
  size_t bind(const KernelShapes& shapes) override {
    bytes_ = bytesOf(dtype_, elementCount(shapes.shapes[0]));
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    if (!bytes_) return;  // on both ends
    if (sends_)
      place_.ranks.send(stage_, pointers[0], bytes_);
    else
      place_.ranks.receive(stage_, pointers[0], bytes_);
  }

 private:
  Place place_;
  DType dtype_;
  int stage_;
  bool sends_;
  size_t bytes_ = 0;
};

// Whether an axis of `whole` elements has `piece` in each of its parts.
bool isPartOf(const Program& program, const DimExpr& piece, const DimExpr& whole, int64_t parts) {
  if (piece * DimExpr(parts) == whole) return true;
  if (const std::optional<int64_t> size = whole.asConstant())
    return *size >= 0 && piece == DimExpr(sizeOfPart(*size, parts));
  return std::ranges::any_of(program.sizeParts, [&](const SizePart& s) {
    return s.of == whole && s.parts == parts && DimExpr::symbol(s.name) == piece;
  });
}

bool isMessage(const Call& call) { return call.kind == "send" || call.kind == "receive"; }
MessageConfig messageOf(const Call& call) {
  return readConfig<MessageConfig>(JsonValue::parse(call.config, "call config"));
}

std::unique_ptr<Kernel> makeMessage(const EntryPoint& entry, const Call& call, Communicator* ranks,
                                    DeviceMemory* memory) {
  const MessageConfig config = messageOf(call);
  const bool sends = call.kind == "send";
  if (call.operands.size() != size_t(sends) || call.results.size() != size_t(!sends))
    throw Error(ErrorCode::InvalidFile, sends ? "it takes one operand and has no result"
                                              : "it takes no operand and has one result");
  if (config.stage < 0 || config.stage >= config.stages || !ranks)
    throw Error(ErrorCode::InvalidFile, "there is no stage " + std::to_string(config.stage) +
                                            " of " + std::to_string(ranks ? config.stages : 1));
  const Slot& x = entry.slots[size_t(sends ? call.operands[0] : call.results[0])];
  return std::make_unique<Message>(Place{*ranks, memory}, x.dtype, int(config.stage), sends);
}

}  // namespace

bool isMessageOfOutputs(const Call& call) { return isMessage(call) && messageOf(call).result; }

std::unique_ptr<Kernel> makeCollective(const Program& program, const EntryPoint& entry,
                                       const Call& call, Communicator* ranks,
                                       DeviceMemory* memory) {
  if (isMessage(call)) return makeMessage(entry, call, ranks, memory);
  const bool reduces = call.kind == "all_reduce", gathers = call.kind == "all_gather",
             scatters = call.kind == "reduce_scatter", exchanges = call.kind == "all_to_all";
  if (!reduces && !gathers && !scatters && !exchanges && call.kind != "all_slice") return nullptr;
  auto fail = [&](const std::string& why) -> Error { return {ErrorCode::InvalidFile, why}; };
  const auto config = readConfig<CollectiveConfig>(JsonValue::parse(call.config, "call config"));
  if (call.operands.size() != 1 || call.results.size() != 1)
    throw fail("it takes one operand and one result");
  if (!ranks || config.ranks != program.ranks)
    throw fail("it is for " + std::to_string(config.ranks) + " ranks, the program for " +
               std::to_string(program.ranks));
  const Place place{*ranks, memory};
  const Slot &x = entry.slots[size_t(call.operands[0])], &y = entry.slots[size_t(call.results[0])];
  if (x.dtype != y.dtype) throw fail("its operand and its result have two dtypes");
  if (reduces) {
    if (x.shape != y.shape) throw fail("its operand and its result have two shapes");
    return std::make_unique<AllReduce>(place, x.dtype, config);
  }
  if ((scatters || exchanges) && config.parts != config.ranks)
    throw fail(std::to_string(config.parts) + " parts on " + std::to_string(config.ranks) +
               " ranks, of which each gets one");
  if (config.parts < 1 || config.ranks % config.parts || config.axis < 0 ||
      config.axis >= int64_t(x.shape.size()))
    throw fail("axis " + std::to_string(config.axis) + " in " + std::to_string(config.parts) +
               " parts on " + std::to_string(config.ranks) + " ranks");
  if (exchanges) {
    if (!config.concat || *config.concat < 0 || *config.concat >= int64_t(x.shape.size()))
      throw fail("axis " + (config.concat ? std::to_string(*config.concat) : "?") +
                 " of the parts that are joined");
    const DimExpr parts(config.ranks);
    SymbolicShape cut = x.shape, expected = y.shape;
    cut[size_t(*config.concat)] = cut[size_t(*config.concat)] * parts;
    if (config.axis < int64_t(expected.size()))
      expected[size_t(config.axis)] = expected[size_t(config.axis)] * parts;
    if (cut != expected) throw fail("its operand and its result do not differ by its parts");
    return std::make_unique<AllToAll>(place, x.dtype, config);
  }
  const SymbolicShape &whole = gathers ? y.shape : x.shape, &piece = gathers ? x.shape : y.shape;
  const auto axis = size_t(config.axis);
  SymbolicShape expected = piece;
  const bool differs = axis < piece.size() && axis < whole.size() &&
                       isPartOf(program, piece[axis], whole[axis], config.parts);
  if (differs) expected[axis] = whole[axis];
  if (!differs || expected != whole)
    throw fail("its operand and its result do not differ by its parts");
  if (isPacked(x.dtype) && piece[axis] * DimExpr(config.parts) != whole[axis])
    throw fail("values of half a byte have no padding");
  if (scatters) return std::make_unique<ReduceScatter>(place, x.dtype, config);
  if (gathers) return std::make_unique<AllGather>(place, x.dtype, config);
  return std::make_unique<AllSlice>(place, x.dtype, config);
}

}  // namespace lathe
