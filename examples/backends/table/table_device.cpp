// SPDX-License-Identifier: Apache-2.0
// The run side, which needs no LLVM. Every kernel walks tables of positions that `bind` makes, so
// that broadcasts, transposes and reductions are the same loop.
#include <algorithm>
#include <vector>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/odd_rounding.h"
#include "table.h"

using namespace lathe;

namespace table {
namespace {

using Positions = std::vector<int64_t>;

[[noreturn]] void fail(const Call& call, const std::string& what) {
  throw Error(ErrorCode::InvalidFile, "the table device: call of '" + call.kind + "': " + what);
}

double load(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::F64:
      return static_cast<const double*>(data)[i];
    case DType::F32:
      return static_cast<const float*>(data)[i];
    case DType::BF16:
      return bf16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::F16:
      return f16ToFloat(static_cast<const uint16_t*>(data)[i]);
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

void store(DType dtype, void* data, int64_t i, double value) {
  switch (dtype) {
    case DType::F64:
      return void(static_cast<double*>(data)[i] = value);
    case DType::F32:
      return void(static_cast<float*>(data)[i] = float(value));
    case DType::BF16:
      return void(static_cast<uint16_t*>(data)[i] = doubleToBf16(value));
    case DType::F16:
      return void(static_cast<uint16_t*>(data)[i] = doubleToF16(value));
    default:
      return void(static_cast<uint8_t*>(data)[i] = value != 0);
  }
}

Shape rowMajor(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Strides of an operand in a walk over `to`: aligned at the last axis, 0 where it is stretched.
Shape stretched(const Shape& from, const Shape& to) {
  if (from.size() > to.size())
    throw Error(ErrorCode::InvalidFile,
                "the table device: an operand has a higher rank than its "
                "result");
  Shape strides(to.size(), 0);
  const Shape own = rowMajor(from);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) strides[to.size() - from.size() + i] = own[i];
  return strides;
}

// The position of every element of a walk over `shape`.
Positions walk(const Shape& shape, const Shape& strides) {
  Positions positions(size_t(elementCount(shape)));
  Shape at(shape.size(), 0);
  int64_t position = 0;
  for (int64_t& p : positions) {
    p = position;
    for (size_t axis = shape.size(); axis-- > 0;) {
      position += strides[axis];
      if (++at[axis] < shape[axis]) break;
      position -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return positions;
}

class TableKernel : public Kernel {
 public:
  TableKernel(const EntryPoint& entry, const Call& call) : call_(call) {
    for (auto* slots : {&call.operands, &call.results})
      for (int slot : *slots) dtypes_.push_back(entry.slots[size_t(slot)].dtype);
  }
  size_t bind(const KernelShapes& shapes) final {
    place(shapes.shapes);
    return 0;
  }

 protected:
  virtual void place(const std::vector<Shape>& shapes) = 0;
  void expectHeld() const {
    for (DType dtype : dtypes_)
      if (!isHeld(dtype)) fail(call_, "it takes no " + std::string(nameOf(dtype)));
  }
  Positions axesOf(const char* name, size_t rank) const {
    Positions axes;
    const JsonValue list = JsonValue::parse(call_.config, "call config").at(name);
    for (size_t i = 0; i < list.size(); ++i) axes.push_back(list.at(i).asInt(0, int64_t(rank) - 1));
    return axes;
  }
  const Call& call_;
  std::vector<DType> dtypes_;  // operands, then the result
};

class FunctionKernel final : public TableKernel {
 public:
  FunctionKernel(const EntryPoint& entry, const Call& call, const Function& function)
      : TableKernel(entry, call), function_(function) {
    expectHeld();
  }
  void place(const std::vector<Shape>& shapes) override {
    positions_.clear();
    for (size_t k = 0; k < function_.operands; ++k)
      positions_.push_back(walk(shapes.back(), stretched(shapes[k], shapes.back())));
  }
  void run(void* const* pointers, std::byte*) override {
    double x[3];
    for (size_t i = 0; i < positions_[0].size(); ++i) {
      for (size_t k = 0; k < function_.operands; ++k)
        x[k] = load(dtypes_[k], pointers[k], positions_[k][i]);
      store(dtypes_.back(), pointers[function_.operands], int64_t(i), function_.apply(x));
    }
  }

 private:
  const Function& function_;
  std::vector<Positions> positions_;
};

class FoldKernel final : public TableKernel {
 public:
  FoldKernel(const EntryPoint& entry, const Call& call, const Fold& fold)
      : TableKernel(entry, call), fold_(fold), isMean_(call.kind == "reduce_mean") {
    expectHeld();
  }
  void place(const std::vector<Shape>& shapes) override {
    Shape kept = shapes[0];
    for (int64_t axis : axesOf("axes", kept.size())) kept[size_t(axis)] = 1;
    if (elementCount(kept) != elementCount(shapes[1])) fail(call_, "its axes and shapes differ");
    into_ = walk(shapes[0], stretched(kept, shapes[0]));
    totals_.resize(size_t(elementCount(kept)));
  }
  void run(void* const* pointers, std::byte*) override {
    totals_.assign(totals_.size(), fold_.start);
    for (size_t i = 0; i < into_.size(); ++i) {
      double& total = totals_[size_t(into_[i])];
      total = fold_.take(total, load(dtypes_[0], pointers[0], int64_t(i)));
    }
    const double count = isMean_ ? double(into_.size()) / double(totals_.size()) : 1;
    for (size_t i = 0; i < totals_.size(); ++i)
      store(dtypes_[1], pointers[1], int64_t(i), totals_[i] / count);
  }

 private:
  const Fold& fold_;
  const bool isMean_;
  Positions into_;
  std::vector<double> totals_;
};

class MatmulKernel final : public TableKernel {
 public:
  MatmulKernel(const EntryPoint& entry, const Call& call) : TableKernel(entry, call) {
    expectHeld();
  }
  void place(const std::vector<Shape>& shapes) override {
    const Shape &a = shapes[0], &b = shapes[1], &y = shapes[2];
    if (a.size() < 2 || b.size() < 2 || y.size() < 2) fail(call_, "it takes matrices");
    k_ = a.back(), n_ = b.back();
    // Each result starts at a row of a and a column of b.
    Shape rows = stretched(a, y), columns = stretched(b, y);
    rows.back() = 0, columns[columns.size() - 2] = 0;
    rows_ = walk(y, rows), columns_ = walk(y, columns);
  }
  void run(void* const* pointers, std::byte*) override {
    for (size_t i = 0; i < rows_.size(); ++i) {
      double sum = 0;
      for (int64_t k = 0; k < k_; ++k)
        sum += load(dtypes_[0], pointers[0], rows_[i] + k) *
               load(dtypes_[1], pointers[1], columns_[i] + k * n_);
      store(dtypes_[2], pointers[2], int64_t(i), sum);
    }
  }

 private:
  int64_t k_ = 0, n_ = 0;
  Positions rows_, columns_;
};

// transpose, broadcast, and the copies that the program builder adds: of every dtype.
class MoveKernel final : public TableKernel {
 public:
  using TableKernel::TableKernel;
  void place(const std::vector<Shape>& shapes) override {
    Shape strides;
    if (call_.kind == "transpose") {
      const Shape own = rowMajor(shapes[0]);
      for (int64_t axis : axesOf("permutation", own.size())) strides.push_back(own[size_t(axis)]);
    } else {
      strides = stretched(shapes[0], shapes[1]);
    }
    if (strides.size() != shapes[1].size()) fail(call_, "its operand and result differ in rank");
    from_ = walk(shapes[1], strides);
  }
  void run(void* const* pointers, std::byte*) override {
    const size_t bytes = sizeOf(dtypes_[0]);
    const auto* from = static_cast<const std::byte*>(pointers[0]);
    auto* to = static_cast<std::byte*>(pointers[1]);
    for (int64_t position : from_) to = std::copy_n(from + size_t(position) * bytes, bytes, to);
  }

 private:
  Positions from_;
};

class TableDevice final : public Device {
 public:
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call& call) override {
    std::string kind = call.kind;
    if (kind == "compare")
      kind += "_" + JsonValue::parse(call.config, "call config").at("predicate").asString();
    const Function* function = findFunction(kind);
    const Fold* fold = findFold(kind);
    const bool moves = kind == "transpose" || kind == "broadcast" || kind == "copy";
    if (!function && !fold && !moves && kind != "matmul") fail(call, "there is no such kernel");
    const size_t operands = function ? function->operands : fold || moves ? 1 : 2;
    if (call.operands.size() != operands || call.results.size() != 1)
      fail(call, "expected " + std::to_string(operands) + " operands and a result");
    if (function) return std::make_unique<FunctionKernel>(entry, call, *function);
    if (fold) return std::make_unique<FoldKernel>(entry, call, *fold);
    if (moves) return std::make_unique<MoveKernel>(entry, call);
    return std::make_unique<MatmulKernel>(entry, call);
  }
};

}  // namespace

std::unique_ptr<Device> makeDevice(std::shared_ptr<const Program>, const DeviceOptions&) {
  return std::make_unique<TableDevice>();
}

}  // namespace table
