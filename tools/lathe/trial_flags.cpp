// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/trial_flags.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fmt/format.h>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/error.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/input_spec.h"

namespace lathe::cli {

void addTrialFlags(CLI::App& parser, TrialFlags& flags) {
  parser.add_option("--set", flags.sizes, "sizes: SYMBOL=NUMBER,...; the others are small")
      ->allow_extra_args(false);
  parser
      .add_option("--input", flags.inputs,
                  "NAME=SPEC as for `lathe run`; inputs that are not given are random")
      ->allow_extra_args(false);
  parser.add_option(
      "--weights", flags.weights,
      ".safetensors or .gguf file or folder of weights (default: the model's, else random)");
  parser.add_option("--seed", flags.seed, "of the random data (default: 0)")->check(WholeNumber{0});
  parser
      .add_option("--precision", flags.precision,
                  "of the interpreter: float64, or own: the dtypes of the graph "
                  "(default: float64, own with --mode strict)")
      ->check(CLI::IsMember({"float64", "own"}));
  parser
      .add_option("--tolerance", flags.tolerance,
                  "largest relative difference (default: the contract of docs/questions.md)")
      ->check(RealNumber{1e-300});
  parser.add_option("--entry", flags.entry, "the only entry point to run (default: all)");
  addDevice(parser, flags.device);
}

const std::vector<const char*>& trialFlagNames() {
  static const std::vector<const char*> names{"--set",       "--input",     "--seed",  "--weights",
                                              "--precision", "--tolerance", "--entry", "--device"};
  return names;
}

TrialOptions trialOptions(const Model& model, const CompileFlags& compile,
                          const TrialFlags& flags) {
  TrialOptions options;
  options.sizes = parseSizes(flags.sizes, "--set");
  for (const std::string& spec : flags.inputs) {
    auto [name, array] = parseInput(spec);
    if (!options.inputs.emplace(name, array).second)
      throw Error(ErrorCode::InvalidArgument, "--input " + name + ": given twice");
  }
  bool own = flags.precision.empty() ? compile.mode == "strict" : flags.precision == "own";
  options.precision = own ? Precision::OwnDtype : Precision::Float64;
  options.seed = uint64_t(flags.seed);
  options.tolerance = flags.tolerance;
  options.entry = flags.entry;
  options.device = flags.device;
  if (!flags.device.empty() && requestFor(model, compile).compile.backend != "cuda")
    throw Error(ErrorCode::InvalidArgument, "--device is of the cuda backend, this call is for " +
                                                requestFor(model, compile).compile.backend +
                                                "; add --backend cuda");
  std::string path = flags.weights;
  if (path.empty() && hasOwnWeights(model)) path = model.path;
  if (!path.empty())
    options.weights =
        [checkpoint = std::make_shared<Checkpoint>(Checkpoint::open(path, model.loras))](
            const std::string& name) { return checkpoint->find(name).value_or(Array()); };
  return options;
}

std::string flagsText(const TrialFlags& flags) {
  std::string text;
  auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", flag, shellWord(value));
  };
  for (const std::string& sizes : flags.sizes) add("--set", sizes);
  for (const std::string& input : flags.inputs) add("--input", input);
  add("--weights", flags.weights);
  if (flags.seed) add("--seed", std::to_string(flags.seed));
  add("--precision", flags.precision);
  if (flags.tolerance > 0) add("--tolerance", fmt::format("{}", flags.tolerance));
  add("--entry", flags.entry);
  add("--device", flags.device);
  return text;
}

void keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

std::string sizesText(const SymbolValues& sizes) {
  std::string text;
  for (auto& [name, value] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "no sizes to choose" : text;
}

Json deviationJson(const Deviation& d) {
  return {{"absolute", numberOrText(d.absolute)}, {"relative", numberOrText(d.relative)},
          {"ulps", numberOrText(d.ulps)},         {"identical", d.identical},
          {"within_contract", d.within},          {"where", d.where}};
}

}  // namespace lathe::cli
