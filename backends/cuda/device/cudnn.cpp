// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/cudnn.h"

#include <algorithm>
#include <optional>

#include "backends/cuda/device/driver_api_library.h"

namespace lathe::cuda {
namespace {

constexpr int kProposals = 16;  // of engines

std::string describe(const LibraryAttention& a) {
  auto number = [](int64_t n) { return std::to_string(n); };
  return number(a.batch) + " x " + number(a.queryHeads) + "/" + number(a.keyHeads) + " heads, " +
         number(a.queries) + " queries, " + number(a.keys) + " keys, depth " + number(a.depth) +
         "/" + number(a.valueDepth) + ", " + std::string(nameOf(a.dtype)) +
         (a.causal ? ", causal" : "") + (a.lengths ? ", with lengths" : "");
}

[[noreturn]] void refuse(const LibraryAttention& a, const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "cuDNN attention of " + describe(a) + ": " + what);
}

void checkSizes(const LibraryAttention& a) {
  if (a.dtype != DType::BF16 && a.dtype != DType::F16) refuse(a, "expected bf16 or f16");
  for (int64_t size : {a.batch, a.queryHeads, a.keyHeads, a.queries, a.keys, a.depth, a.valueDepth})
    if (size < 1) refuse(a, "expected sizes of at least 1");
  if (a.queryHeads % a.keyHeads) refuse(a, "expected a multiple of the key heads");
  if (a.depth % 8 || a.valueDepth % 8) refuse(a, "expected depths that are multiples of 8");
}

void checkOperands(const LibraryAttention& a, const LibraryAttentionOperands& o) {
  if (!o.q || !o.k || !o.v || !o.y) refuse(a, "an operand is missing");
  if (a.lengths != (o.lengths != nullptr)) refuse(a, "expected lengths where they are used");
  for (const void* operand : {o.q, o.k, o.v, static_cast<const void*>(o.y)})
    if (reinterpret_cast<uintptr_t>(operand) % 16)
      refuse(a, "expected operands that begin at multiples of 16 bytes");
}

}  // namespace

void checkDnn(const dnn::Api& api, dnn::Status status, const char* call) {
  if (!status) return;
  char details[1024] = "";
  api.lastError(details, sizeof details);
  // Statuses of 3000 to 3999 say that what was asked for is not there.
  throw Error(status >= 3000 && status < 4000 ? ErrorCode::Unsupported : ErrorCode::Io,
              std::string(call) + " failed: " + api.statusText(status) +
                  (*details ? std::string(": ") + details : ""));
}

DnnDescriptor::DnnDescriptor(const dnn::Api& api, dnn::DescriptorKind kind) : api_(api) {
  checkDnn(api_, api_.createDescriptor(kind, &raw_), "cudnnBackendCreateDescriptor");
}
DnnDescriptor::~DnnDescriptor() {
  if (raw_) api_.destroyDescriptor(raw_);
}
void DnnDescriptor::setRaw(dnn::Attribute attribute, dnn::AttributeType type, int64_t count,
                           const void* values) {
  checkDnn(api_, api_.set(raw_, attribute, type, count, values), "cudnnBackendSetAttribute");
}
void DnnDescriptor::finalize() { checkDnn(api_, api_.finalize(raw_), "cudnnBackendFinalize"); }

struct Cudnn::Plan {
  DnnGraph graph;
  DnnDescriptor whole, plan;
  std::optional<DnnDescriptor> engine = {};
  size_t workspaceBytes = 0;
};

std::unique_ptr<Cudnn> Cudnn::load(std::string& why) {
  const std::string file = "libcudnn.so.9";
  std::vector<std::string> places{file};
  for (const std::string& place : inCudaToolkits(file)) places.push_back(place);
  FoundLibrary found("LATHE_CUDNN", places);
  if (!found) {
    why = "cuDNN was not found:\n" + found.tried();
    return nullptr;
  }
  dnn::Api api;
  const char* missing = nullptr;
  auto get = [&](auto& function, const char* symbol) {
    if (!found.get(function, symbol) && !missing) missing = symbol;
  };
#define LATHE_CUDNN_FIND(member, name, parameters) get(api.member, #name);
  LATHE_CUDNN_FUNCTIONS(LATHE_CUDNN_FIND)
#undef LATHE_CUDNN_FIND
  get(api.version, "cudnnGetVersion");
  get(api.statusText, "cudnnGetErrorString");
  get(api.lastError, "cudnnGetLastErrorString");
  if (missing) {
    why = found.path() + " has no " + missing;
    return nullptr;
  }
  if (api.version() < kLowestVersion) {
    why = found.path() + " is version " + std::to_string(api.version()) + ", expected " +
          std::to_string(kLowestVersion) + " or later";
    return nullptr;
  }
  std::unique_ptr<Cudnn> library(new Cudnn(api));
  library->path_ = found.path();
  return library;
}

std::unique_ptr<Cudnn> Cudnn::open(std::string* why) {
  std::string ignored;
  std::string& reason = why ? *why : ignored;
  std::unique_ptr<Cudnn> library = load(reason);
  if (!library) return nullptr;
  if (dnn::Status status = library->api_.create(&library->handle_)) {
    reason = library->path_ + ": cudnnCreate failed: " + library->api_.statusText(status);
    library->handle_ = nullptr;
    return nullptr;
  }
  return library;
}

std::unique_ptr<Cudnn> Cudnn::openFor(const std::string& device, std::string* why) {
  std::string ignored;
  std::unique_ptr<Cudnn> library = load(why ? *why : ignored);
  if (!library) return nullptr;
  auto& d = library->device_;
  d = std::make_unique<DnnDescriptor>(library->api_, dnn::kDeviceProperties);
  d->setRaw(dnn::kDeviceText, dnn::kCharType, int64_t(device.size()), device.data());
  d->finalize();
  return library;
}

Cudnn::Cudnn(const dnn::Api& api) : api_(api) {}

Cudnn::~Cudnn() {
  plans_.clear();
  device_.reset();
  if (handle_) api_.destroy(handle_);
}

std::unique_ptr<Cudnn::Plan> Cudnn::makePlan(const LibraryAttention& a) {
  auto plan = std::unique_ptr<Plan>(
      new Plan{attentionGraph(api_, a), {api_, dnn::kOperationGraph}, {api_, dnn::kExecutionPlan}});
  std::vector<dnn::Descriptor> ops;
  for (const DnnDescriptor& op : plan->graph.ops) ops.push_back(op.raw());
  plan->whole.set(dnn::kGraphOps, dnn::kDescriptorType, ops);
  if (handle_) plan->whole.set<dnn::Handle>(dnn::kGraphHandle, dnn::kHandleType, {handle_});
  plan->whole.finalize();

  DnnDescriptor guess(api_, dnn::kEngineHeuristics);
  guess.set(dnn::kHeuristicsGraph, plan->whole);
  guess.set<dnn::HeuristicsMode>(dnn::kHeuristicsMode, dnn::kHeuristicsModeType, {dnn::kBestGuess});
  if (device_) guess.set(dnn::kHeuristicsDevice, *device_);
  guess.finalize();
  // The library leaves out those of its engines that turn out not to do it.
  int64_t count = 0;
  std::vector<DnnDescriptor> engines;
  std::vector<dnn::Descriptor> proposed;
  for (int i = 0; i < kProposals; ++i) {
    engines.emplace_back(api_, dnn::kEngineConfig);
    proposed.push_back(engines.back().raw());
  }
  checkDnn(api_,
           api_.get(guess.raw(), dnn::kHeuristicsResults, dnn::kDescriptorType, kProposals, &count,
                    proposed.data()),
           "cudnnBackendGetAttribute");
  if (count < 1)
    throw Error(ErrorCode::Unsupported, "cuDNN has no engine for an attention of " + describe(a));
  plan->engine.emplace(std::move(engines.front()));

  if (handle_) plan->plan.set<dnn::Handle>(dnn::kPlanHandle, dnn::kHandleType, {handle_});
  if (device_) plan->plan.set(dnn::kPlanDevice, *device_);
  plan->plan.set(dnn::kPlanEngineConfig, *plan->engine);
  plan->plan.finalize();
  int64_t bytes = 0;
  checkDnn(api_,
           api_.get(plan->plan.raw(), dnn::kPlanWorkspaceBytes, dnn::kInt64Type, 1, &count, &bytes),
           "cudnnBackendGetAttribute");
  plan->workspaceBytes = size_t(bytes);
  if (plan->workspaceBytes > kWorkspaceBytes)
    throw Error(ErrorCode::Unsupported, "cuDNN's attention of " + describe(a) + " wants " +
                                            std::to_string(bytes) +
                                            " bytes of workspace, at most " +
                                            std::to_string(kWorkspaceBytes) + " are there");
  return plan;
}

Cudnn::Plan& Cudnn::planOf(const LibraryAttention& a) {
  auto of = [&](const auto& known) { return known.first == a; };
  // What the library declines it need not be asked again.
  if (auto known = std::ranges::find_if(declined_, of); known != declined_.end())
    throw Error(ErrorCode::Unsupported, known->second);
  if (auto known = std::ranges::find_if(plans_, of); known != plans_.end()) return *known->second;
  try {
    plans_.emplace_back(a, makePlan(a));
  } catch (const Error& e) {
    const std::string what = "cuDNN attention of " + describe(a) + ": " + e.what();
    if (e.code() == ErrorCode::Unsupported) declined_.emplace_back(a, what);
    throw Error(e.code(), what);
  }
  return *plans_.back().second;
}

size_t Cudnn::plan(const LibraryAttention& a) {
  checkSizes(a);
  std::lock_guard lock(mutex_);
  return planOf(a).workspaceBytes;
}

void Cudnn::attend(const LibraryAttention& a, const LibraryAttentionOperands& o, void* workspace,
                   void* stream) {
  checkSizes(a);
  checkOperands(a, o);
  if (!handle_) refuse(a, "this library was opened to make plans alone");
  std::lock_guard lock(mutex_);
  Plan& plan = planOf(a);
  std::vector<int64_t> numbers{kDnnQ, kDnnK, kDnnV, kDnnY};
  std::vector<const void*> pointers{o.q, o.k, o.v, o.y};
  if (a.lengths) {
    numbers.insert(numbers.end(), {kDnnKeyLengths, kDnnQueryLengths});
    pointers.insert(pointers.end(), {o.lengths, o.lengths + a.batch});
  }
  for (const DnnGraph::Number& n : plan.graph.numbers) {
    numbers.push_back(n.tensor);
    pointers.push_back(&n.value);
  }
  DnnDescriptor pack(api_, dnn::kVariantPack);
  pack.set(dnn::kPackNumbers, dnn::kInt64Type, numbers);
  pack.set(dnn::kPackPointers, dnn::kPointerType, pointers);
  pack.set<void*>(dnn::kPackWorkspace, dnn::kPointerType, {workspace});
  pack.finalize();
  checkDnn(api_, api_.setStream(handle_, stream), "cudnnSetStream");
  checkDnn(api_, api_.execute(handle_, plan.plan.raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace lathe::cuda
