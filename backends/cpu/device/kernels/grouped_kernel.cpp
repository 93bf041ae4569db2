// SPDX-License-Identifier: Apache-2.0
// The call `grouped_linear`: checks the indices and says which row of x each of them meets.
#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/grouped_linear.h"
#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/kernels/new_rows.h"

namespace lathe::cpu {
namespace {

class GroupedKernel final : public Kernel {
 public:
  explicit GroupedKernel(const CallInfo& info)
      : pool_(info.pool), where_(at(info.call)), wide_(info.in(2) == DType::I64) {
    calibration();  // now: its buffer would come on top of the weights
    spec_.dtype = info.in(0);
    spec_.outDType = info.out();
    spec_.layout = readConfig<GroupedLinearConfig>(info.config).layout;
  }

  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];
    const Shape& indices = s.shapes[2];
    if (!layer_) {
      spec_.groups = s.shapes[1][0];  // the buffer of a packed weight is padded behind it
      spec_.k = x.back();
      spec_.n = s.shapes[3].back();
      layer_.emplace(spec_, pool_.threads());
    }
    args_.rows = elementCount(indices);
    rowOfX_.assign(1, 0);
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      std::vector<int64_t> inner;
      for (int64_t row : rowOfX_)
        for (int64_t i = 0; i < indices[axis]; ++i)
          inner.push_back(row * x[axis] + (x[axis] == 1 ? 0 : i));
      rowOfX_ = std::move(inner);
    }
    groupOfRow_.resize(size_t(args_.rows));
    args_.rowOfA = rowOfX_.data();
    args_.groupOfRow = groupOfRow_.data();
    scratchBytes_ = layer_->scratchBytes(args_.rows);
    return scratchBytes_;
  }

  void run(void* const* p, std::byte* scratch) override {
    for (int64_t r = 0; r < args_.rows; ++r) {
      const int64_t group = integerAt(p[2], wide_, r);
      if (group < 0 || group >= spec_.groups)
        throw Error(ErrorCode::InvalidArgument,
                    where_ + "index " + std::to_string(group) + " is outside of the " +
                        std::to_string(spec_.groups) + " weights that it chooses from");
      groupOfRow_[size_t(r)] = group;
    }
    args_.a = p[0];
    args_.weights = p[1];
    args_.c = p[3];
    layer_->run(args_, pool_, {scratch, scratchBytes_});
  }

 private:
  ThreadPool& pool_;
  std::string where_;
  bool wide_;
  GroupedSpec spec_;
  std::optional<GroupedLinear> layer_;
  GroupedArgs args_;
  std::vector<int64_t> rowOfX_, groupOfRow_;
  size_t scratchBytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeGroupedLinear(const CallInfo& info) {
  return std::make_unique<GroupedKernel>(info);
}

}  // namespace lathe::cpu
