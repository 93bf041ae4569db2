// SPDX-License-Identifier: Apache-2.0
// NCCL on host memory for tests: ranks are threads or processes of this machine, which meet in a
// file that all of them map. As with the library, calls on a stream return at once, and are done in
// the stream's turn; on the null stream of host execution they are in progress until
// ncclCommGetAsyncError, which does the work, says that they are done. Waits have no end. The
// environment says what it is and where it fails:
//   LATHE_MOCK_NCCL_VERSION=22809
//   LATHE_MOCK_NCCL_FAIL=ncclAllReduce:5   every call of it gives 5
//   LATHE_MOCK_NCCL_LOST=1                 ncclCommGetAsyncError: another rank is gone
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/device/nccl_api.h"
#include "lathe/runtime/dtype.h"

namespace {

using namespace lathe::cuda::nccl;

constexpr Result kInternalError = 3, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr int kMostRanks = 16;
constexpr size_t kRoom = size_t(256) << 20;  // of a rank's values; the file has no blocks for it

struct Member {
  std::atomic<uint64_t> written, read;  // calls whose values are there, and that it has read
  char what[64];
};
// From one rank to another.
struct Mail {
  std::atomic<uint64_t> written, read;
  size_t bytes;
};
struct Meeting {
  std::atomic<int> here, leaving;
  Member members[kMostRanks];
  Mail mail[kMostRanks][kMostRanks];  // by sender and receiver
};

constexpr size_t kMailRoom = size_t(1) << 20;  // of a message
constexpr size_t kHead = 1 << 16;              // of the file, in front of the rooms
static_assert(sizeof(Meeting) <= kHead);

struct Call {
  std::string what;
  const void* from;
  void* to;
  size_t fromBytes;
  std::function<void()> join;
  int peer = -1;  // of a message, which is sent where there is something to send
};
// A send or a receive of a group, in the order of the ranks.
struct Exchange {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
};
struct Connection {
  int rank = 0, size = 0;
  std::vector<Exchange> group;  // of the calls since ncclGroupStart, by peer
  Stream groupStream = nullptr;
  Meeting* meeting = nullptr;
  std::string path;
  uint64_t calls = 0;
  bool isUnderWay = false, isAborted = false, isLeaving = false;
  std::optional<Call> call;  // on the null stream
  Result state = kSuccess;

  size_t bytes() const {
    return kHead + kRoom * size_t(size) + kMailRoom * size_t(size) * size_t(size);
  }
  char* room(int of) const { return reinterpret_cast<char*>(meeting) + kHead + kRoom * size_t(of); }

  char* mailRoom(int from, int to) const {
    return room(size) + kMailRoom * size_t(from * size + to);
  }

  // Who sends waits until the other has it.
  bool advanceMessage(const Call& c) {
    if (c.from) {
      Mail& mail = meeting->mail[rank][c.peer];
      if (!isUnderWay) {
        std::memcpy(mailRoom(rank, c.peer), c.from, mail.bytes = c.fromBytes);
        ++mail.written;
      }
      isUnderWay = mail.read < mail.written;
      return !isUnderWay;
    }
    Mail& mail = meeting->mail[c.peer][rank];
    if (mail.read == mail.written) return false;
    if (mail.bytes != c.fromBytes) state = kInvalidUsage;
    std::memcpy(c.to, mailRoom(c.peer, rank), std::min(mail.bytes, c.fromBytes));
    ++mail.read;
    return true;
  }

  // Goes on with a call; true: it is done, or never will be.
  bool advance(const Call& c) {
    if (isAborted || state != kSuccess) return true;
    if (c.peer >= 0) return advanceMessage(c);
    Member& own = meeting->members[rank];
    if (!isUnderWay) {
      if (c.fromBytes > kRoom) {
        state = kInternalError;
        return true;
      }
      std::memcpy(room(rank), c.from, c.fromBytes);
      std::strncpy(own.what, c.what.c_str(), sizeof own.what - 1);
      own.written = ++calls;
      isUnderWay = true;
    }
    for (int r = 0; r < size; ++r)
      if (meeting->members[r].written < calls) return false;
    if (own.read < calls) {
      for (int r = 0; r < size; ++r)
        if (c.what != meeting->members[r].what) state = kInvalidUsage;
      c.join();
      own.read = calls;
    }
    for (int r = 0; r < size; ++r)
      if (meeting->members[r].read < calls) return false;
    isUnderWay = false;
    return true;
  }
};

std::mutex& mutex() {
  static std::mutex one;
  return one;
}
std::string& log() {
  static std::string text;
  return text;
}
Result enter(const std::string& name, const std::string& details = {}) {
  const std::lock_guard lock(mutex());
  log() += name + (details.empty() ? "" : " " + details) + "\n";
  const char* fail = std::getenv("LATHE_MOCK_NCCL_FAIL");
  if (!fail || !std::string(fail).starts_with(name + ":")) return kSuccess;
  return std::atoi(fail + name.size() + 1);
}
#define ENTER(...) \
  if (Result failed = enter(__VA_ARGS__)) return failed

Connection& from(Handle handle) { return *reinterpret_cast<Connection*>(handle); }

size_t sizeOf(DataType type) {
  switch (type) {
    case kInt8:
    case kUint8:
      return 1;
    case kFloat16:
    case kBfloat16:
      return 2;
    case kInt32:
    case kFloat32:
      return 4;
    default:
      return 8;
  }
}

// Values of all ranks from element `begin` on, one after the other in the order of the ranks and
// rounded after each.
template <class Stored, class Read, class Write>
void joinAs(const Connection& c, void* to, size_t begin, size_t count, Reduction how, Read read,
            Write write) {
  auto* out = static_cast<Stored*>(to);
  for (size_t i = 0; i < count; ++i) {
    auto at = [&](int r) { return reinterpret_cast<const Stored*>(c.room(r))[begin + i]; };
    Stored value = at(0);
    for (int r = 1; r < c.size; ++r)
      value = write(how == kSum ? read(value) + read(at(r)) : std::max(read(value), read(at(r))));
    out[i] = value;
  }
}
template <class T>
void joinPlain(const Connection& c, void* to, size_t begin, size_t count, Reduction how) {
  joinAs<T>(c, to, begin, count, how, [](T x) { return x; }, [](auto x) { return T(x); });
}
void join(const Connection& c, void* to, size_t begin, size_t count, DataType type, Reduction how) {
  switch (type) {
    case kInt8:
      return joinPlain<int8_t>(c, to, begin, count, how);
    case kUint8:
      return joinPlain<uint8_t>(c, to, begin, count, how);
    case kInt32:
      return joinPlain<int32_t>(c, to, begin, count, how);
    case kInt64:
      return joinPlain<int64_t>(c, to, begin, count, how);
    case kFloat16:
      return joinAs<uint16_t>(c, to, begin, count, how, lathe::f16ToFloat, lathe::floatToF16);
    case kFloat32:
      return joinPlain<float>(c, to, begin, count, how);
    case kFloat64:
      return joinPlain<double>(c, to, begin, count, how);
    case kBfloat16:
      return joinAs<uint16_t>(c, to, begin, count, how, lathe::bf16ToFloat, lathe::floatToBf16);
  }
}

// What the stream of mock_cuda calls, once or many times.
struct StreamCall {
  Connection& connection;
  Call call;
};
// Graphs and late works of a stream keep them: they go with the process.
struct Kept {
  std::deque<Connection> connections;
  std::deque<StreamCall> calls;
};
Kept& kept() {
  static Kept all;
  return all;
}
bool stepOnStream(void* of) {
  auto& on = *static_cast<StreamCall*>(of);
  return on.connection.advance(on.call);
}

Result run(Connection& c, Call call, Stream stream) {
  if (c.state != kSuccess || c.call) return kInvalidUsage;
  if (!stream) {
    if (c.advance(call)) return c.state;
    c.call = std::move(call);
    return kInProgress;
  }
  void* cuda = dlopen(std::getenv("LATHE_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  using Put = Result(bool (*)(void*), void*);
  auto* put = cuda ? reinterpret_cast<Put*>(dlsym(cuda, "mockPut")) : nullptr;
  if (!put) return kInternalError;
  const std::lock_guard lock(mutex());
  return put(stepOnStream, &kept().calls.emplace_back(StreamCall{c, std::move(call)}));
}

// The group that this thread has begun.
bool& isGrouped() {
  thread_local bool is = false;
  return is;
}
Connection*& groupOf() {
  thread_local Connection* connection = nullptr;
  return connection;
}
Exchange& exchangeWith(Connection& c, int peer, Stream stream) {
  groupOf() = &c;
  c.groupStream = stream;
  c.group.resize(size_t(c.size));
  return c.group[size_t(peer)];
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  ENTER("ncclGetVersion");
  const char* text = std::getenv("LATHE_MOCK_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return kSuccess;
}
const char* ncclGetErrorString(Result result) {
  return result == kRemoteError    ? "mock: remote process exited or there was a network error"
         : result == kInvalidUsage ? "mock: invalid usage"
                                   : "mock: failed";
}
const char* ncclGetLastError(Handle) { return "mock: the last error"; }

// The name of the file in which they meet.
Result ncclGetUniqueId(UniqueId* id) {
  ENTER("ncclGetUniqueId");
  char path[] = "/tmp/lathe_mock_nccl_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return kInternalError;
  close(file);
  std::memset(id, 0, sizeof *id);
  std::strncpy(id->bytes, path, sizeof id->bytes - 1);
  return kSuccess;
}
Result ncclCommInitRankConfig(Handle* handle, int size, UniqueId id, int rank, Config* config) {
  ENTER("ncclCommInitRankConfig", std::to_string(rank) + " of " + std::to_string(size));
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size || config->blocking != 0 ||
      config->magic != kConfigMagic || config->size != sizeof(Config))
    return kInvalidArgument;
  Connection* made = nullptr;
  {
    const std::lock_guard lock(mutex());
    made = &kept().connections.emplace_back();
  }
  made->rank = rank;
  made->size = size;
  made->path = id.bytes;
  const int file = open(id.bytes, O_RDWR);
  if (file < 0 || ftruncate(file, off_t(made->bytes())) != 0) return kInternalError;
  void* mapped = mmap(nullptr, made->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return kInternalError;
  made->meeting = static_cast<Meeting*>(mapped);
  if (++made->meeting->here == size) unlink(id.bytes);  // nobody opens it any more
  *handle = reinterpret_cast<Handle>(made);
  return kInProgress;
}
Result ncclCommGetAsyncError(Handle handle, Result* state) {
  Connection& c = from(handle);
  if (std::getenv("LATHE_MOCK_NCCL_LOST")) c.state = kRemoteError;
  if (c.call && c.advance(*c.call)) c.call.reset();
  const bool waits =
      c.meeting->here < c.size || c.call || (c.isLeaving && c.meeting->leaving < c.size);
  *state = c.state != kSuccess ? c.state : waits ? kInProgress : kSuccess;
  return kSuccess;
}
Result ncclCommFinalize(Handle handle) {
  ENTER("ncclCommFinalize");
  from(handle).isLeaving = true;
  ++from(handle).meeting->leaving;
  return kInProgress;
}
Result ncclCommDestroy(Handle handle) {
  ENTER("ncclCommDestroy");
  munmap(from(handle).meeting, from(handle).bytes());
  from(handle).isAborted = true;  // works of a stream may name it still
  return kSuccess;
}
Result ncclCommAbort(Handle handle) {
  ENTER("ncclCommAbort");
  from(handle).isAborted = true;
  unlink(from(handle).path.c_str());
  return kSuccess;
}
Result ncclAllReduce(const void* in, void* out, size_t count, DataType type, Reduction how,
                     Handle handle, Stream stream) {
  ENTER("ncclAllReduce", std::string(stream ? "on a stream, " : "") + std::to_string(count));
  Connection& c = from(handle);
  return run(c,
             {"all_reduce " + std::to_string(count) + " " + std::to_string(type), in, out,
              count * sizeOf(type), [=, &c] { join(c, out, 0, count, type, how); }},
             stream);
}
Result ncclReduceScatter(const void* in, void* out, size_t count, DataType type, Reduction how,
                         Handle handle, Stream stream) {
  ENTER("ncclReduceScatter", std::string(stream ? "on a stream, " : "") + std::to_string(count));
  Connection& c = from(handle);
  return run(c,
             {"reduce_scatter " + std::to_string(count) + " " + std::to_string(type), in, out,
              count * size_t(c.size) * sizeOf(type),
              [=, &c] { join(c, out, count * size_t(c.rank), count, type, how); }},
             stream);
}
Result ncclAllGather(const void* in, void* out, size_t count, DataType type, Handle handle,
                     Stream stream) {
  ENTER("ncclAllGather", std::string(stream ? "on a stream, " : "") + std::to_string(count));
  Connection& c = from(handle);
  const size_t bytes = count * sizeOf(type);
  return run(c,
             {"all_gather " + std::to_string(bytes), in, out, bytes,
              [=, &c] {
                for (int r = 0; r < c.size; ++r)
                  std::memcpy(static_cast<char*>(out) + size_t(r) * bytes, c.room(r), bytes);
              }},
             stream);
}

static Result message(Connection& c, Call call, Stream stream) {
  if (call.peer < 0 || call.peer >= c.size || call.fromBytes > kMailRoom) return kInvalidUsage;
  return run(c, std::move(call), stream);
}

// Groups are exchanges of pieces of one size that lie one behind the other, each with every rank.
Result ncclGroupStart() {
  ENTER("ncclGroupStart");
  if (std::exchange(isGrouped(), true)) return kInvalidUsage;
  return kSuccess;
}
Result ncclSend(const void* in, size_t count, DataType type, int peer, Handle handle,
                Stream stream) {
  ENTER("ncclSend", std::to_string(count) + " to " + std::to_string(peer));
  if (!isGrouped())
    return message(from(handle), {"send", in, nullptr, count * sizeOf(type), {}, peer}, stream);
  if (peer < 0 || peer >= from(handle).size) return kInvalidUsage;
  Exchange& with = exchangeWith(from(handle), peer, stream);
  with.from = in;
  with.bytes = count * sizeOf(type);
  return kSuccess;
}
Result ncclRecv(void* out, size_t count, DataType type, int peer, Handle handle, Stream stream) {
  ENTER("ncclRecv", std::to_string(count) + " from " + std::to_string(peer));
  if (!isGrouped())
    return message(from(handle), {"receive", nullptr, out, count * sizeOf(type), {}, peer}, stream);
  if (peer < 0 || peer >= from(handle).size) return kInvalidUsage;
  Exchange& with = exchangeWith(from(handle), peer, stream);
  with.to = out;
  return with.bytes == count * sizeOf(type) ? kSuccess : kInvalidUsage;
}
Result ncclGroupEnd() {
  ENTER("ncclGroupEnd");
  isGrouped() = false;
  Connection* c = std::exchange(groupOf(), nullptr);
  if (!c) return kInvalidUsage;
  const std::vector<Exchange> group = std::exchange(c->group, {});
  const size_t bytes = group.at(0).bytes;
  for (size_t r = 0; r < group.size(); ++r)
    if (!group[r].to || group[r].bytes != bytes ||
        group[r].from != static_cast<const char*>(group[0].from) + r * bytes)
      return kInvalidUsage;
  return run(*c,
             {"exchange of " + std::to_string(bytes), group[0].from, nullptr, bytes * group.size(),
              [=] {
                for (size_t r = 0; r < group.size(); ++r)
                  std::memcpy(group[r].to, c->room(int(r)) + size_t(c->rank) * bytes, bytes);
              }},
             c->groupStream);
}

/// A copy, as several threads log.
void mockNcclLog(std::string* text) {
  const std::lock_guard lock(mutex());
  *text = log();
}
void mockNcclReset() {
  const std::lock_guard lock(mutex());
  log().clear();
}
}
