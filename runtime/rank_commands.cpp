// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_commands.h"

#include <cassert>
#include <cstring>

namespace lathe {
namespace {

// The ranks run one program on machines of one byte order: values travel as they lie in memory.
class Writer {
 public:
  void add(const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  void add(int64_t value) { add(&value, sizeof value); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void take(void* to, size_t bytes) {
    assert(at_ + bytes <= bytes_.size() && "rank 0 wrote less than it said");
    if (bytes) std::memcpy(to, bytes_.data() + at_, bytes);
    at_ += bytes;
  }
  int64_t take() {
    int64_t value;
    take(&value, sizeof value);
    return value;
  }

 private:
  const std::vector<std::byte>& bytes_;
  size_t at_ = 0;
};

}  // namespace

void announce(Communicator& ranks, const RankCommand& command, CommandWay way) {
  Writer w;
  w.add(int64_t(command.kind));
  w.add(int64_t(command.name.size()));
  w.add(command.name.data(), command.name.size());
  w.add(command.number);
  w.add(command.times);
  w.add(int64_t(command.wantsOutputs));
  w.add(int64_t(command.rows.size()));
  w.add(command.rows.data(), command.rows.size() * sizeof(int64_t));
  w.add(int64_t(command.inputs.size()));
  for (const Array& a : command.inputs) {
    w.add(int64_t(a.dtype()));
    w.add(int64_t(a.shape().size()));
    for (int64_t d : a.shape()) w.add(d);
    w.add(a.data(), a.bytes());
  }
  int64_t size = int64_t(w.bytes().size());
  if (way == CommandWay::Meeting) {
    ranks.broadcast(&size, sizeof size);
    ranks.broadcast(w.bytes().data(), w.bytes().size());
    return;
  }
  for (int other = 1; other < ranks.size(); ++other) {
    ranks.send(other, &size, sizeof size);
    ranks.send(other, w.bytes().data(), w.bytes().size());
  }
}

RankCommand awaitCommand(Communicator& ranks, CommandWay way) {
  const bool meets = way == CommandWay::Meeting;
  auto get = [&](void* data, size_t bytes) {
    meets ? ranks.broadcast(data, bytes) : ranks.receive(0, data, bytes, true);
  };
  int64_t size = 0;
  get(&size, sizeof size);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  get(bytes.data(), bytes.size());
  Reader r(bytes);
  RankCommand command;
  command.kind = RankCommand::Kind(r.take());
  command.name.resize(size_t(r.take()));
  r.take(command.name.data(), command.name.size());
  command.number = r.take();
  command.times = r.take();
  command.wantsOutputs = r.take() != 0;
  command.rows.resize(size_t(r.take()));
  r.take(command.rows.data(), command.rows.size() * sizeof(int64_t));
  command.inputs.resize(size_t(r.take()));
  for (Array& a : command.inputs) {
    const auto dtype = DType(r.take());
    Shape shape(size_t(r.take()));
    for (int64_t& d : shape) d = r.take();
    a = Array(dtype, shape);
    r.take(a.data(), a.bytes());
  }
  return command;
}

}  // namespace lathe
