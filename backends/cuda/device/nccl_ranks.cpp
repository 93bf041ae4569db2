// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/nccl_ranks.h"

#include <sched.h>

#include <utility>
#include <vector>

#include "backends/cuda/device/driver_api_library.h"
#include "lathe/runtime/error.h"
#include "runtime/stage_ranks.h"

namespace lathe::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::string versionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

nccl::DataType typeOf(const std::string& what, DType dtype, Combine combine) {
  if (combine == Combine::max && isFloat(dtype))
    throw Error(ErrorCode::Unsupported,
                what + ": NCCL's largest of floats drops NaN; gather the values and take it");
  switch (dtype) {
    case DType::F64:
      return nccl::kFloat64;
    case DType::F32:
      return nccl::kFloat32;
    case DType::F16:
      return nccl::kFloat16;
    case DType::BF16:
      return nccl::kBfloat16;
    case DType::I64:
      return nccl::kInt64;
    case DType::I32:
      return nccl::kInt32;
    case DType::I8:
      return nccl::kInt8;
    case DType::U8:
      return nccl::kUint8;
    default:
      throw Error(ErrorCode::Unsupported,
                  what + ": NCCL has no such dtype; cast the values to i32 first");
  }
}

nccl::Reduction reductionOf(Combine combine) {
  return combine == Combine::sum ? nccl::kSum : nccl::kMax;
}

std::string describeCall(const char* name, size_t count, DType dtype, Combine combine) {
  return std::string(name) + " " + std::string(nameOf(combine)) + " of " + std::to_string(count) +
         " " + std::string(nameOf(dtype));
}

}  // namespace

std::unique_ptr<NcclRanks> NcclRanks::open(std::shared_ptr<Communicator> ranks, NcclStream stream) {
  if (dynamic_cast<StageRanks*>(ranks.get()))
    throw Error(ErrorCode::Unsupported,
                "on GPUs a stage of a pipeline has one rank; take as many stages as ranks, or one");
  const std::string file = "libnccl.so.2";
  std::vector<std::string> places{file};
  for (const std::string& place : inCudaToolkits(file)) places.push_back(place);
  const FoundLibrary found("LATHE_NCCL", places);
  const char* remedy =
      "install NVIDIA's package libnccl2, or the wheel nvidia-nccl-cu13 and name its libnccl.so.2 "
      "in LATHE_NCCL";
  if (!found)
    throw Error(ErrorCode::Unsupported,
                "ranks on GPUs need NCCL, which was not found:\n" + found.tried() + remedy);
  nccl::Api api;
  auto get = [&](auto& function, const char* symbol) {
    if (!found.get(function, symbol))
      throw Error(ErrorCode::Unsupported, found.path() + " has no " + symbol +
                                              ", as NCCL has it since version " +
                                              versionText(nccl::kLowestVersion) + "; " + remedy);
  };
#define LATHE_NCCL_FIND(member, name, parameters) get(api.member, #name);
  LATHE_NCCL_FUNCTIONS(LATHE_NCCL_FIND)
#undef LATHE_NCCL_FIND
  get(api.errorString, "ncclGetErrorString");
  get(api.lastError, "ncclGetLastError");
  int version = 0;
  if (api.getVersion(&version) != nccl::kSuccess || version < nccl::kLowestVersion)
    throw Error(ErrorCode::Unsupported, found.path() + " is NCCL " + versionText(version) +
                                            ", expected " + versionText(nccl::kLowestVersion) +
                                            " or later; " + remedy);
  std::unique_ptr<NcclRanks> opened(new NcclRanks(api, std::move(ranks), std::move(stream)));
  opened->name_ = "NCCL " + versionText(version) + ", " + found.path();
  opened->connect();
  return opened;
}

NcclRanks::NcclRanks(const nccl::Api& api, std::shared_ptr<Communicator> ranks, NcclStream stream)
    : api_(api), ranks_(std::move(ranks)), stream_(std::move(stream)) {}

void NcclRanks::connect() {
  // Rank 0 makes the name by which the others find it.
  nccl::UniqueId id{};
  if (rank() == 0)
    if (const nccl::Result result = api_.getUniqueId(&id); result != nccl::kSuccess)
      fail("ncclGetUniqueId: " + describe(result));
  ranks_->broadcast(&id, sizeof id);
  stream_.enter();
  nccl::Config config;
  call("the connection of NCCL",
       [&] { return api_.initRank(&handle_, size(), id, rank(), &config); });
}

NcclRanks::~NcclRanks() {
  if (!handle_) return;
  try {
    // The others end their connections, too, unless the job has failed.
    ranks_->throwIfEnded();
    call("the end of NCCL's connection", [&] { return api_.finalize(handle_); });
    api_.destroy(handle_);
  } catch (const Error&) {
    if (handle_) api_.abort(handle_);
  }
}

void NcclRanks::allReduce(void* data, size_t count, DType dtype, Combine combine) {
  const std::string what = describeCall("all_reduce", count, dtype, combine);
  const nccl::DataType type = typeOf(what, dtype, combine);
  call(what, [&] {
    return api_.allReduce(data, data, count, type, reductionOf(combine), handle_, stream_.stream);
  });
}

void NcclRanks::reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                              Combine combine) {
  const std::string what = describeCall("reduce_scatter", count, dtype, combine);
  const nccl::DataType type = typeOf(what, dtype, combine);
  call(what, [&] {
    return api_.reduceScatter(all, mine, count, type, reductionOf(combine), handle_,
                              stream_.stream);
  });
}

void NcclRanks::allGather(const void* mine, void* all, size_t bytes) {
  call("all_gather of " + std::to_string(bytes) + " bytes",
       [&] { return api_.allGather(mine, all, bytes, nccl::kUint8, handle_, stream_.stream); });
}

// Sends and receives of one group are one collective.
void NcclRanks::allToAll(const void* mine, void* all, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(mine);
  auto* to = static_cast<std::byte*>(all);
  call("all_to_all of " + std::to_string(bytes) + " bytes", [&] {
    nccl::Result first = api_.groupStart();
    auto put = [&](nccl::Result result) {
      if (first == nccl::kSuccess || first == nccl::kInProgress) first = result;
    };
    for (int peer = 0; peer < size(); ++peer) {
      const size_t at = size_t(peer) * bytes;
      put(api_.send(from + at, bytes, nccl::kUint8, peer, handle_, stream_.stream));
      put(api_.receive(to + at, bytes, nccl::kUint8, peer, handle_, stream_.stream));
    }
    put(api_.groupEnd());
    return first;
  });
}

void NcclRanks::send(int to, const void* data, size_t bytes) {
  call("send of " + std::to_string(bytes) + " bytes to rank " + std::to_string(to),
       [&] { return api_.send(data, bytes, nccl::kUint8, to, handle_, stream_.stream); });
}

void NcclRanks::receive(int from, void* data, size_t bytes, bool) {
  call("receive of " + std::to_string(bytes) + " bytes from rank " + std::to_string(from),
       [&] { return api_.receive(data, bytes, nccl::kUint8, from, handle_, stream_.stream); });
}

void NcclRanks::call(const std::string& what, const std::function<nccl::Result()>& put) {
  if (!failure_.empty())
    throw Error(ErrorCode::Io, what + ": the ranks' connection has ended: " + failure_);
  stream_.enter();
  const nccl::Result result = put();
  if (result == nccl::kInProgress) return await(what, [&] { return isSettled(); });
  if (result != nccl::kSuccess)
    fail(what + " of rank " + std::to_string(rank()) + ": " + describe(result));
}

bool NcclRanks::isSettled() const {
  nccl::Result state = nccl::kSuccess;
  return api_.asyncError(handle_, &state) == nccl::kSuccess && state == nccl::kSuccess;
}

void NcclRanks::await(const std::string& what, const std::function<bool()>& isDone) {
  const auto start = Clock::now();
  for (int tries = 0; !isDone(); ++tries) {
    if (tries < 64) continue;
    sched_yield();
    if (tries % 64) continue;
    const std::string who =
        what + " of rank " + std::to_string(rank()) + " of " + std::to_string(size());
    try {
      ranks_->advance();  // what others wait for on the host, such as the next command
      ranks_->throwIfEnded();
    } catch (const Error& e) {
      fail(e.what());
    }
    nccl::Result state = nccl::kSuccess;
    if (handle_) api_.asyncError(handle_, &state);
    if (state != nccl::kSuccess && state != nccl::kInProgress) fail(who + ": " + describe(state));
    if (Clock::now() - start > deadline())
      fail(who + ": another rank has not come within " + std::to_string(deadline().count()) +
           " ms (LATHE_RANKS_TIMEOUT, in seconds)");
  }
}

std::string NcclRanks::describe(nccl::Result result) const {
  const char *kind = api_.errorString(result), *last = api_.lastError(handle_);
  std::string text = kind ? kind : "NCCL error " + std::to_string(result);
  if (last && *last) text += ": " + std::string(last);
  const char* hint = "NCCL_DEBUG=INFO";  // of which some of its words tell already
  return text.find(hint) == text.npos ? text + "; " + hint + " in the environment says more" : text;
}

void NcclRanks::fail(const std::string& why) {
  failure_ = why;
  // Kernels on the stream that wait for another rank end, and with them whoever waits for it.
  if (handle_) api_.abort(std::exchange(handle_, nullptr));
  throw Error(ErrorCode::Io, why);
}

}  // namespace lathe::cuda
