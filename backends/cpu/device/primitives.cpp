// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/primitives.h"

#include <dlfcn.h>

#include <list>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "backends/cpu/device/linear.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

using dnnl::memory;

// oneDNN sizes its work by the OpenMP team of the calling thread, at creation and at execution.
// The functions are looked up in whatever OpenMP runtime oneDNN brought along; without one it has
// no team to size.
class SingleOmpThread {
 public:
  SingleOmpThread() {
    if (!api().set || !api().get) return;
    before_ = api().get();
    if (before_ != 1) api().set(1);
  }
  ~SingleOmpThread() {
    if (before_ > 1) api().set(before_);
  }
  SingleOmpThread(const SingleOmpThread&) = delete;
  SingleOmpThread& operator=(const SingleOmpThread&) = delete;

 private:
  struct Api {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  static const Api& api() {
    static const Api found{
        reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads")),
        reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))};
    return found;
  }
  int before_ = 0;
};

// Never destroyed: primitives in static storage elsewhere may still refer to it at exit.
dnnl::engine& engine() {
  static auto* const cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu;
}

memory::data_type dataType(DType dtype) {
  return dtype == DType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

std::string describeKey(const MatmulKey& key) {
  return std::string(nameOf(key.dtype)) + " " + std::to_string(key.m) + "x" +
         std::to_string(key.k) + "x" + std::to_string(key.n) + (key.packedB ? " packed" : "") +
         (key.outDType == key.dtype ? "" : " -> " + std::string(nameOf(key.outDType)));
}

struct KeyHash {
  size_t operator()(const MatmulKey& key) const {
    size_t hash = 0;
    for (int64_t value : {int64_t(key.dtype), int64_t(key.outDType), key.m, key.k, key.n, key.aRow,
                          key.aCol, int64_t(key.packedB), key.bRow, key.bCol, key.cRow})
      hash = (hash ^ size_t(value)) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

class Table {
 public:
  std::shared_ptr<const MatmulPrimitive> get(const MatmulKey& key) {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(key);
    if (found != entries_.end()) {
      if (!key.packedB) recent_.splice(recent_.begin(), recent_, found->second.place);
      return found->second.primitive;
    }
    auto primitive = std::make_shared<const MatmulPrimitive>(key);
    Entry entry{primitive, {}};
    if (!key.packedB) {
      recent_.push_front(key);
      entry.place = recent_.begin();
      if (recent_.size() > kRecent) {
        entries_.erase(recent_.back());
        recent_.pop_back();
      }
    }
    entries_.emplace(key, std::move(entry));
    return primitive;
  }

  void note(PrimitiveInfo info) {
    std::lock_guard lock(infoMutex_);
    if (infos_.size() < kInfos) infos_.push_back(std::move(info));
  }
  std::vector<PrimitiveInfo> infos() {
    std::lock_guard lock(infoMutex_);
    return infos_;
  }

 private:
  static constexpr size_t kRecent = 256, kInfos = 4096;
  struct Entry {
    std::shared_ptr<const MatmulPrimitive> primitive;
    std::list<MatmulKey>::iterator place;
  };
  std::mutex mutex_, infoMutex_;
  std::unordered_map<MatmulKey, Entry, KeyHash> entries_;
  std::list<MatmulKey> recent_;
  std::vector<PrimitiveInfo> infos_;
};

Table& table() {
  static auto* const primitives = new Table;
  return *primitives;
}

}  // namespace

struct MatmulPrimitive::Impl {
  dnnl::matmul primitive;
  memory::desc a, b, c, scratch;
  bool slow = false;
};

MatmulPrimitive::MatmulPrimitive(const MatmulKey& key) : impl_(std::make_unique<Impl>()) {
  SingleOmpThread single;
  Impl& impl = *impl_;
  try {
    impl.a = memory::desc({key.m, key.k}, dataType(key.dtype), memory::dims{key.aRow, key.aCol});
    if (key.packedB)
      impl.b = memory::desc(
          {key.k, key.n}, dataType(key.dtype),
          key.dtype == DType::BF16 ? memory::format_tag::BA16a64b2a : memory::format_tag::BA16a64b);
    else
      impl.b = memory::desc({key.k, key.n}, dataType(key.dtype), memory::dims{key.bRow, key.bCol});
    impl.c = memory::desc({key.m, key.n}, dataType(key.outDType), memory::dims{key.cRow, 1});
    dnnl::primitive_attr attributes;
    // One primitive run by two threads on oneDNN's own scratchpad gives wrong numbers.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc pd(engine(), impl.a, impl.b, impl.c, attributes);
    impl.primitive = dnnl::matmul(pd);
    impl.scratch = pd.scratchpad_desc();
    std::string name = pd.impl_info_str();
    impl.slow = name.find("ref") != std::string::npos || name.find("gemm:jit") == 0;
    table().note({describeKey(key), name, impl.slow});
  } catch (const dnnl::error& e) {
    throw Error(ErrorCode::Unsupported,
                "oneDNN has no matmul for " + describeKey(key) + " on this CPU: " + e.what());
  }
}

MatmulPrimitive::~MatmulPrimitive() = default;

size_t MatmulPrimitive::scratchBytes() const { return impl_->scratch.get_size(); }
bool MatmulPrimitive::slow() const { return impl_->slow; }

void MatmulPrimitive::execute(const void* a, const void* b, void* c, void* scratch) const {
  SingleOmpThread single;
  const Impl& impl = *impl_;
  try {
    auto wrap = [](const memory::desc& desc, const void* data) {
      return memory(desc, engine(), const_cast<void*>(data));
    };
    memory inputs[] = {wrap(impl.a, a), wrap(impl.b, b)};
    memory output = wrap(impl.c, c), scratchMemory;
    dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, inputs[0].get()},
                               {DNNL_ARG_WEIGHTS, inputs[1].get()},
                               {DNNL_ARG_DST, output.get()}};
    int count = 3;
    if (scratchBytes()) {
      scratchMemory = wrap(impl.scratch, scratch);
      args[count++] = {DNNL_ARG_SCRATCHPAD, scratchMemory.get()};
    }
    dnnl::stream stream(engine());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(impl.primitive.get(), stream.get(), count, args),
                            "could not execute a matmul");
  } catch (const dnnl::error& e) {
    throw Error(e.status == dnnl_out_of_memory ? ErrorCode::OutOfMemory : ErrorCode::Unsupported,
                std::string("oneDNN failed: ") + e.what());
  }
}

std::shared_ptr<const MatmulPrimitive> matmulPrimitive(const MatmulKey& key) {
  return table().get(key);
}

std::vector<PrimitiveInfo> primitiveReport() { return table().infos(); }

}  // namespace lathe::cpu
