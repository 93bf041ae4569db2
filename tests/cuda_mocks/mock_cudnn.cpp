// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph interface on host memory for tests: what the graph of an execution plan says, op by
// op, in double. LATHE_MOCK_DNN_FAIL=NAME:STATUS fails every call of a function;
// LATHE_MOCK_DNN_ENGINES is the number of engines (1), LATHE_MOCK_DNN_WORKSPACE the bytes that a
// plan wants (4096), LATHE_MOCK_DNN_VERSION the library's version (91900).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device/cudnn_api.h"
#include "lathe/runtime/dtype.h"

namespace {

using namespace lathe::cuda::dnn;
constexpr Status kBadParameter = 2000, kNotSupportedGraph = 3001;

struct Object {
  DescriptorKind kind;
  bool isFinal = false;
  std::map<int, std::vector<std::byte>> attributes;

  template <class T>
  std::vector<T> list(Attribute a) const {
    auto it = attributes.find(a);
    if (it == attributes.end()) return {};
    std::vector<T> values(it->second.size() / sizeof(T));
    std::memcpy(values.data(), it->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  T one(Attribute a, T otherwise = {}) const {
    auto values = list<T>(a);
    return values.empty() ? otherwise : values[0];
  }
  const Object* object(Attribute a) const { return one<const Object*>(a); }
};

std::string& log() {
  static std::string text;
  return text;
}
std::string& error() {
  static std::string text;
  return text;
}
int64_t number(const char* variable, int64_t otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::atoll(value) : otherwise;
}
Status enter(const std::string& name) {
  log() += name + "\n";
  const char* fail = std::getenv("LATHE_MOCK_DNN_FAIL");
  if (!fail || !std::string(fail).starts_with(name + ":")) return 0;
  error() = "mock: " + name + " fails";
  return std::atoi(fail + name.size() + 1);
}
#define ENTER(name) \
  if (Status failed = enter(name)) return failed

size_t sizeOfType(AttributeType type) {
  switch (type) {
    case kBooleanType:
    case kCharType:
      return 1;
    case kHandleType:
    case kInt64Type:
    case kDoubleType:
    case kPointerType:
    case kDescriptorType:
      return 8;
    default:
      return 4;
  }
}

using Index = std::array<int64_t, 4>;

struct Run {
  std::map<int64_t, void*> given;                 // by tensor number
  std::map<int64_t, std::vector<double>> inside;  // of virtual tensors, dense

  static Index dims(const Object* t) {
    auto d = t->list<int64_t>(kTensorDims);
    return {d[0], d[1], d[2], d[3]};
  }
  static int64_t placeOf(const Object* t, const Index& at, bool dense) {
    auto d = dims(t);
    auto s = t->list<int64_t>(kTensorStrides);
    int64_t place = 0;
    for (size_t i = 0; i < 4; ++i) {
      // An axis of one element is read for every other one.
      const int64_t index = d[i] == 1 ? 0 : at[i];
      place = dense ? place * d[i] + index : place + index * s[i];
    }
    return place;
  }
  double read(const Object* t, Index at) {
    const int64_t n = t->one<int64_t>(kTensorNumber);
    if (t->one<uint8_t>(kTensorIsVirtual)) return inside.at(n)[size_t(placeOf(t, at, true))];
    const auto place = size_t(placeOf(t, at, false));
    const void* data = given.at(n);
    switch (t->one<DataType>(kTensorType)) {
      case kFloat32:
        return static_cast<const float*>(data)[place];
      case kInt32:
        return static_cast<const int32_t*>(data)[place];
      case kBfloat16:
        return lathe::bf16ToFloat(static_cast<const uint16_t*>(data)[place]);
      case kFloat16:
        return lathe::f16ToFloat(static_cast<const uint16_t*>(data)[place]);
      case kBoolean:
        break;
    }
    return 0;
  }
  void write(const Object* t, const Index& at, double value) {
    const int64_t n = t->one<int64_t>(kTensorNumber);
    if (t->one<uint8_t>(kTensorIsVirtual)) {
      auto d = dims(t);
      auto& values = inside[n];
      values.resize(size_t(d[0] * d[1] * d[2] * d[3]));
      values[size_t(placeOf(t, at, true))] = value;
      return;
    }
    auto* data = static_cast<uint16_t*>(given.at(n));
    data[placeOf(t, at, false)] = t->one<DataType>(kTensorType) == kBfloat16
                                      ? lathe::floatToBf16(float(value))
                                      : lathe::floatToF16(float(value));
  }
  template <class Each>
  static void forAll(const Index& d, const Each& each) {
    for (int64_t b = 0; b < d[0]; ++b)
      for (int64_t h = 0; h < d[1]; ++h)
        for (int64_t r = 0; r < d[2]; ++r)
          for (int64_t c = 0; c < d[3]; ++c) each(Index{b, h, r, c});
  }

  void multiply(const Object* op) {
    const Object *a = op->object(kMatmulOpA), *b = op->object(kMatmulOpB),
                 *c = op->object(kMatmulOpC);
    const Index da = dims(a), db = dims(b), dc = dims(c);
    auto bound = [&](Attribute which, int64_t batch, int64_t otherwise) {
      const Object* t = op->object(which);
      return t ? int64_t(read(t, {batch, 0, 0, 0})) : otherwise;
    };
    forAll(dc, [&](Index at) {
      const int64_t rows = bound(kMatmulOpRows, at[0], dc[2]),
                    columns = bound(kMatmulOpColumns, at[0], dc[3]),
                    depth = bound(kMatmulOpDepth, at[0], da[3]);
      double sum = 0;
      // What a length leaves out is not read.
      for (int64_t k = 0; k < (at[2] < rows && at[3] < columns ? depth : 0); ++k)
        sum +=
            read(a, {at[0], at[1], at[2], k}) * read(b, {at[0], at[1] * db[1] / dc[1], k, at[3]});
      write(c, at, sum);
    });
  }
  void pointwise(const Object* op) {
    const Object *kind = op->object(kPointwiseOpKind), *x = op->object(kPointwiseOpX),
                 *b = op->object(kPointwiseOpB), *t = op->object(kPointwiseOpT),
                 *y = op->object(kPointwiseOpY);
    const auto mode = kind->one<PointwiseMode>(kPointwiseMode);
    forAll(dims(y), [&](Index at) {
      const double p = mode == kIndexAlongAxis ? 0 : read(x, at), q = b ? read(b, at) : 0;
      double value = 0;
      switch (mode) {
        case kAdd:
          value = p + q;
          break;
        case kMultiply:
          value = p * q;
          break;
        case kDivide:
          value = p / q;
          break;
        case kSubtract:
          value = p - q;
          break;
        case kExponential:
          value = std::exp(p);
          break;
        case kLogarithm:
          value = std::log(p);
          break;
        case kGreaterOrEqual:
          value = p >= q;
          break;
        case kLess:
          value = p < q;
          break;
        case kLogicalAnd:
          value = p != 0 && q != 0;
          break;
        case kIndexAlongAxis:
          value = double(at[size_t(kind->one<int64_t>(kPointwiseAxis))]);
          break;
        case kSelect:
          value = read(t, at) != 0 ? p : q;
          break;
      }
      write(y, at, value);
    });
  }
  void reduce(const Object* op) {
    const Object *x = op->object(kReductionOpX), *y = op->object(kReductionOpY);
    const bool isMax =
        op->object(kReductionOpKind)->one<ReductionOperator>(kReductionOperator) == kMax;
    const int64_t columns = dims(x)[3];
    forAll(dims(y), [&](Index at) {
      double all = isMax ? -std::numeric_limits<double>::infinity() : 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double value = read(x, {at[0], at[1], at[2], c});
        all = isMax ? std::max(all, value) : all + value;
      }
      write(y, at, all);
    });
  }
};

// The engines of attention want these ops, each as often.
bool isAttention(const Object* graph) {
  std::map<int, int> count;
  for (const Object* op : graph->list<const Object*>(kGraphOps)) {
    if (op->kind == kMatmulOp) ++count[-1];
    if (op->kind == kReductionOp) ++count[-2];
    if (op->kind == kPointwiseOp)
      ++count[op->object(kPointwiseOpKind)->one<PointwiseMode>(kPointwiseMode)];
  }
  return count[-1] == 2 && count[-2] == 2 && count[kMultiply] == 1 && count[kExponential] == 1 &&
         count[kLogarithm] == 1 && count[kDivide] == 1;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return size_t(number("LATHE_MOCK_DNN_VERSION", 91900)); }
const char* cudnnGetErrorString(Status status) {
  return status >= 3000 && status < 4000 ? "mock: not supported" : "mock: failed";
}
void cudnnGetLastErrorString(char* text, size_t size) {
  std::strncpy(text, error().c_str(), size - 1);
  text[size - 1] = 0;
  error().clear();
}
Status cudnnCreate(Handle* handle) {
  ENTER("cudnnCreate");
  *handle = reinterpret_cast<Handle>(new char);
  return 0;
}
Status cudnnDestroy(Handle handle) {
  ENTER("cudnnDestroy");
  delete reinterpret_cast<char*>(handle);
  return 0;
}
Status cudnnSetStream(Handle, Stream stream) {
  ENTER(stream ? "cudnnSetStream" : "cudnnSetStream of none");
  return 0;
}
Status cudnnBackendCreateDescriptor(DescriptorKind kind, Descriptor* made) {
  ENTER("cudnnBackendCreateDescriptor");
  *made = new Object{kind};
  return 0;
}
Status cudnnBackendDestroyDescriptor(Descriptor d) {
  ENTER("cudnnBackendDestroyDescriptor");
  delete static_cast<Object*>(d);
  return 0;
}
Status cudnnBackendSetAttribute(Descriptor d, Attribute attribute, AttributeType type,
                                int64_t count, const void* values) {
  ENTER("cudnnBackendSetAttribute");
  auto* object = static_cast<Object*>(d);
  if (object->isFinal || count < 1) return kBadParameter;
  const auto* bytes = static_cast<const std::byte*>(values);
  if (type == kDescriptorType)
    for (const Object* other : [&] {
           std::vector<const Object*> all(static_cast<size_t>(count));
           std::memcpy(all.data(), bytes, all.size() * sizeof(Object*));
           return all;
         }())
      if (!other->isFinal) return kBadParameter;
  object->attributes[attribute].assign(bytes, bytes + size_t(count) * sizeOfType(type));
  return 0;
}
Status cudnnBackendGetAttribute(Descriptor d, Attribute attribute, AttributeType, int64_t wanted,
                                int64_t* count, void* values) {
  ENTER("cudnnBackendGetAttribute");
  auto* object = static_cast<Object*>(d);
  if (!object->isFinal) return kBadParameter;
  if (attribute == kHeuristicsResults) {
    const bool fits = isAttention(object->object(kHeuristicsGraph));
    *count = fits ? std::min<int64_t>(number("LATHE_MOCK_DNN_ENGINES", 1), wanted) : 0;
    auto** engines = static_cast<Object**>(values);
    for (int64_t i = 0; i < *count; ++i) {
      engines[i]->attributes = object->attributes;
      engines[i]->isFinal = true;
    }
    return 0;
  }
  if (attribute != kPlanWorkspaceBytes) return kBadParameter;
  *count = 1;
  *static_cast<int64_t*>(values) = number("LATHE_MOCK_DNN_WORKSPACE", 4096);
  return 0;
}
Status cudnnBackendFinalize(Descriptor d) {
  auto* object = static_cast<Object*>(d);
  ENTER(object->kind == kExecutionPlan ? "cudnnBackendFinalize of a plan" : "cudnnBackendFinalize");
  object->isFinal = true;
  return 0;
}
Status cudnnBackendExecute(Handle handle, Descriptor plan, Descriptor pack) {
  ENTER("cudnnBackendExecute");
  const auto *p = static_cast<Object*>(plan), *given = static_cast<Object*>(pack);
  if (!handle || !p->isFinal || !given->isFinal) return kBadParameter;
  if (!given->one<void*>(kPackWorkspace)) return kBadParameter;
  Run run;
  const auto numbers = given->list<int64_t>(kPackNumbers);
  const auto pointers = given->list<void*>(kPackPointers);
  for (size_t i = 0; i < numbers.size(); ++i) run.given[numbers[i]] = pointers[i];
  const Object* graph = p->object(kPlanEngineConfig)->object(kHeuristicsGraph);
  for (const Object* op : graph->list<const Object*>(kGraphOps)) {
    if (op->kind == kMatmulOp)
      run.multiply(op);
    else if (op->kind == kPointwiseOp)
      run.pointwise(op);
    else if (op->kind == kReductionOp)
      run.reduce(op);
    else
      return kNotSupportedGraph;
  }
  return 0;
}

const char* mockDnnLog() { return log().c_str(); }
void mockDnnReset() { log().clear(); }
}
