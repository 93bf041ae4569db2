// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compile side of a backend. A backend is one folder; it registers itself by name.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/passes/pipeline.h"
#include "lathe/passes/weight_formats.h"
#include "lathe/runtime/program.h"

namespace mlir {
class ModuleOp;
class Operation;
}  // namespace mlir

namespace lathe {

/// What a user asks of a backend.
struct BackendOptions {
  bool allTiers = false;  ///< code for every ISA tier, for artifacts that travel
  bool float64 = false;   ///< reference backend only: f64 throughout, no rounding
  /// cuda backend only: "sm_90a" puts machine code for such GPUs (and portable PTX) into the
  /// program; empty: only if this machine has a GPU. Host execution needs none.
  std::string target = {};
  /// In how many bits weights are held; other formats than the stored ones weaken the contract
  /// `weight-precision`, which strict mode keeps.
  WeightFormats weights = {};
};

/// A compilation as a backend sees it: what the user asks of it, and what it needs to know of the
/// pipeline.
struct BackendRequest : BackendOptions {
  NumericsMode mode = NumericsMode::Relaxed;
  int64_t ranks = 1;  ///< that run a copy of the program each: of a mesh that is not simulated
  /// If set: told the text of every generated kernel (CompileRecord::Code has the fields). Must not
  /// throw.
  std::function<void(std::string kernel, std::string tier, std::string language, std::string text)>
      onCode = {};
};

/// Options that only some backends have.
struct BackendFeatures {
  bool float64 = false;  ///< BackendOptions::float64
  bool target = false;   ///< BackendOptions::target
  bool weights = false;  ///< other BackendOptions::weights than the stored ones
  bool ranks = false;    ///< BackendRequest::ranks above 1
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual BackendFeatures features() const { return {}; }
  /// Why it cannot compile with these options, or an empty string.
  std::string whyNotWith(const BackendRequest& request) const;
  /// Why this op cannot run here, or an empty string. A "no" for a fused op expands it through its
  /// decomposition; for an elementary op it is an error of compilation.
  virtual std::string whyNot(mlir::Operation* op) const = 0;
  /// Layouts and weight-only arithmetic: `fused` to `laid-out`.
  virtual std::vector<Step> layOut(const BackendRequest& request) const = 0;
  /// `laid-out` to `lowered`: kernel calls and generated functions, before buffers.
  virtual std::vector<Step> lower(const BackendRequest& request) const = 0;
  /// `lowered` to `program`: buffers, code. Annotates the module with the slots.
  virtual Program build(mlir::ModuleOp module, const BackendRequest& request) const = 0;
};

void registerBackend(std::unique_ptr<Backend> backend);
/// Throws Error (Unsupported) naming the backends of this process.
const Backend& findBackend(std::string_view name);
std::vector<std::string> backendNames();

}  // namespace lathe
