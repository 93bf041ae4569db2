// SPDX-License-Identifier: Apache-2.0
// Writes what bench/gpu/run_cases.cpp runs on a machine without the compiler: for every op and
// dtype that the cuda backend takes, the program of all its samples with machine code for sm_90a,
// and for every size the inputs and the outputs of the reference in float64. Random numbers in f64
// pack badly, more than half of all bytes would be theirs: these cases, which no model has, are
// left to host execution unless TEXT asks for them.
//
//   write_gpu_cases OUT.safetensors [TEXT]     TEXT: only cases whose name contains it (`/f64`)
//
// Tensors are named CASE/program, CASE/weights/NAME, CASE/SIZE/in/NAME and CASE/SIZE/out/NAME; the
// metadata `cases` lists them as JSON, `failed` what did not compile.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "lathe/frontend/compile.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/safetensors.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {
namespace {

using Json = nlohmann::ordered_json;
using Tensors = std::map<std::string, Array>;

// The artifact's bytes without portable code: machine code for a GPU, text for host execution.
Array artifactOf(Program program) {
  std::erase_if(program.blobs,
                [](const auto& blob) { return blob.first.starts_with("cuda.compute_90/"); });
  const std::string path =
      (std::filesystem::temp_directory_path() / ("lathe-case-" + std::to_string(getpid())))
          .string();
  program.save(path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  Array array(DType::U8, {int64_t(bytes.size())});
  std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

Session referenceOf(const Graph& graph, bool float64, const Data& data) {
  Session session(compile(graph, {.backend = "reference", .backendOptions = {.float64 = float64}}),
                  {.threads = 2});
  session.bindWeights(data.weights);
  return session;
}

// Adds one case; nothing for what the backend refuses.
void addCase(const OpRow& row, DType dtype, Tensors& tensors, Json& cases) {
  const std::string name = row.op.substr(6) + "/" + std::string(nameOf(dtype));
  const std::vector<Sample> samples = row.samples(dtype);
  const Graph graph = recordSamples(samples);
  try {
    tensors[name + "/program"] =
        artifactOf(compile(graph, {.backend = "cuda", .backendOptions = {.target = "sm_90a"}}));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    return;
  }
  Data data = makeData(samples, allSizes()[0], row.op);
  for (const auto& [weight, value] : data.weights) tensors[name + "/weights/" + weight] = value;
  Session wide = referenceOf(graph, true, data), narrow = referenceOf(graph, false, data);
  const EntryPoint& forward = narrow.program().entry("forward");
  Json exact = Json::array();
  for (const Port& port : forward.outputs)
    if (samples[std::stoul(port.name)].exact) exact.push_back(port.name);
  for (Sizes sizes : allSizes()) {
    const std::string at =
        name + "/" + std::to_string(sizes.rows) + "x" + std::to_string(sizes.cols);
    data.inputs = makeData(samples, sizes, row.op).inputs;
    const Arrays want = wide.run("forward", data.inputs);
    const Arrays rounded = narrow.run("forward", data.inputs);
    for (const auto& [input, value] : data.inputs) tensors[at + "/in/" + input] = value;
    for (const auto& [output, value] : rounded)
      tensors[at + "/out/" + output] =
          samples[std::stoul(output)].ownDtype ? value : want.at(output).to(value.dtype());
  }
  cases.push_back({{"name", name}, {"op", row.op.substr(6)}, {"exact", exact}});
}

int write(const std::string& path, const std::string& filter) {
  Tensors tensors;
  Json cases = Json::array(), sizes = Json::array(), failed = Json::object();
  for (Sizes s : allSizes()) sizes.push_back(std::to_string(s.rows) + "x" + std::to_string(s.cols));
  for (const OpRow& row : opTable())
    for (DType dtype : row.dtypes) {
      const std::string name = row.op.substr(6) + "/" + std::string(nameOf(dtype));
      if (name.find(filter) == std::string::npos) continue;
      if (dtype == DType::F64 && filter.find("f64") == std::string::npos) continue;
      try {
        addCase(row, dtype, tensors, cases);
      } catch (const std::exception& e) {  // told by the machine that runs the others
        failed[name] = e.what();
        std::cerr << name << ": " << e.what() << "\n";
      }
    }
  saveSafetensors(path, tensors,
                  {{"cases", cases.dump()}, {"sizes", sizes.dump()}, {"failed", failed.dump()}});
  std::cout << cases.size() << " cases, " << failed.size() << " did not compile, "
            << std::filesystem::file_size(path) << " bytes\n";
  return cases.empty() ? 1 : 0;
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: write_gpu_cases OUT.safetensors [TEXT]\n";
    return 2;
  }
  try {
    return lathe::conformance::write(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& e) {
    std::cerr << "write_gpu_cases: " << e.what() << "\n";
    return 1;
  }
}
