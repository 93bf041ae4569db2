// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which launches of a stream may still run while another one does. With programmatic dependent
// launch a kernel begins when the one before it has let it, which in turn may have begun beside its
// own predecessor: everything since the last launch that did not overlap may still run.
#include <cstdint>
#include <string>
#include <vector>

namespace lathe::cuda::host {

class LaunchHistory {
 public:
  /// A kernel begins; `overlaps`: it may do so before the previous one has ended.
  void begin(const std::string& kernel, bool overlaps);
  /// It has ended; `waited`: one of its threads ran griddepcontrol.wait, so that it could not end
  /// before the launches that it overlapped.
  void end(bool waited);
  /// Everything so far has ended: a copy, a synchronization, the start of a recorded graph.
  void settle();

  /// Of the launch that runs, counted from 1.
  uint32_t number() const { return number_; }
  /// Whether an earlier launch may still run when a thread of the current one touches memory;
  /// `waited`: it has run griddepcontrol.wait.
  bool mayRun(uint32_t launch, bool waited) const {
    return launch >= running_ && launch < (waited ? unordered_ : number_);
  }
  /// Whether the launch or the current one itself may run at some time while the current one does.
  bool runsBeside(uint32_t launch) const { return launch >= running_; }
  /// "linear_0, 2 launches before", of one that may still run.
  std::string describe(uint32_t launch) const;

 private:
  uint32_t number_ = 0;
  uint32_t running_ = 1;    // the first launch that may still run
  uint32_t unordered_ = 1;  // those below it may run even behind a wait: one since did not wait
  bool overlaps_ = false;
  std::vector<std::string> names_;  // of the launches from running_ on
};

}  // namespace lathe::cuda::host
