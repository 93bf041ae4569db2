// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorded lines by number: what every part of the report is linked through.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Location.h"

namespace llvm::json {
class OStream;
}

namespace lathe {

class OriginTable {
 public:
  struct Origin {
    unsigned file = 0, line = 0, column = 0;
    std::string path;  ///< module path: "model.layers.3.mlp"
  };

  /// The number of the set of recorded lines behind a location; 0 is the empty set. The first
  /// member is the line of the op that the rewrites started from.
  unsigned setOf(mlir::Location location);

  const std::vector<std::string>& files() const { return files_; }
  const std::vector<Origin>& origins() const { return origins_; }
  /// Keys `files`, `origins` [file, line, column, path] and `sets`.
  void write(llvm::json::OStream& out) const;

 private:
  unsigned originOf(mlir::Location leaf);

  std::vector<std::string> files_;
  std::map<std::string, unsigned> fileIds_;
  std::vector<Origin> origins_;
  llvm::DenseMap<mlir::Location, unsigned> originIds_, setIds_;
  std::vector<std::vector<unsigned>> sets_{{}};
  std::map<std::vector<unsigned>, unsigned> setsByContent_{{{}, 0}};
};

}  // namespace lathe
