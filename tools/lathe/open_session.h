// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a program to a session that is ready to run.
#include <memory>
#include <string>

#include "lathe/runtime/session.h"
#include "tools/lathe/model.h"

namespace lathe::cli {

struct SessionFlags {
  std::string weights;  ///< --weights: a folder, an index, a .safetensors or a .gguf file
  bool randomWeights = false, profile = false;
  int threads = 0;
  std::string device;         ///< --device
  bool rankThreads = false;   ///< --rank-threads
  bool stopsInOrder = false;  ///< as of becomeLauncher()
};

/// Binds the weights of --weights, of the folder, or of the folder that an artifact was compiled
/// from. Every weight that is missing, unexpected or misshapen is listed in one
/// Error(InvalidFile).
Session openSession(const Model& model, std::shared_ptr<const Program> program,
                    const SessionFlags& flags);
/// Throws that error; `path` is the checkpoint.
void checkProgramWeights(const Program& program, const std::string& path,
                         const std::vector<std::string>& loras);

/// Key of Program::metadata that holds the path of the weights, seen from the program's folder: the
/// two move together.
inline constexpr const char* kWeightsPath = "weights_path";
/// The same of LoRA folders, a JSON list.
inline constexpr const char* kLoraPaths = "lora_paths";
/// Notes both for a program that is to be written as `output` from the model.
void noteWeights(Program& program, const std::string& output, const Model& model);

}  // namespace lathe::cli
