// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated code of a program, loaded for the tier of this machine.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lathe/runtime/program.h"

namespace lathe::cpu {

/// void kernel(pointers, sizes, begin, end, scratch, status): rows [begin, end) of a region.
using RegionFunction = void (*)(char* const*, const int64_t*, int64_t, int64_t, char*, int64_t*);

struct RegionCode {
  RegionFunction run = nullptr;
  std::vector<DimExpr> sizes;  ///< what the kernel reads from its `sizes` argument
  DimExpr rows;                ///< parallel iterations
  DimExpr cost;                ///< elements touched per row, for the split over threads
  DimExpr scratchBytes;        ///< per worker
  int64_t buffers = 0;         ///< operands and results
};

class LoadedCode {
 public:
  /// Picks the best tier that both the program and this machine have; Error (Unsupported) if none.
  explicit LoadedCode(const Program& program);
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  const RegionCode& region(const std::string& name) const;
  const std::string& tier() const { return tier_; }

 private:
  // A member, so that a constructor that throws gives the library back.
  struct Library {
    ~Library();
    void* handle = nullptr;
    int fd = -1;
  };
  Library library_;
  std::string tier_;
  std::map<std::string, RegionCode> regions_;
};

}  // namespace lathe::cpu
