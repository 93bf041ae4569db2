// SPDX-License-Identifier: Apache-2.0
// lathe-gpu-golden: runs the kernels of golden/ on a GPU and on the host's twin of the device
// header, writes what the GPU returned, and compares the two with each other and with the manual.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "backends/cuda/device/driver.h"
#include "bench/gpu/golden.h"
#include "bench/gpu/held_gpu.h"
#include "bench/gpu/isolated.h"
#include "lathe/runtime/error.h"

namespace {

using namespace lathe::cuda;
using namespace lathe::cuda::golden;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: lathe-gpu-golden DEVICE KERNELS OUT.json OUT.bin\n"
    "DEVICE is gpu or host; KERNELS holds golden_*.cu and, for gpu, golden_*.cubin\n";

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Words runOn(Driver& driver, const Case& c, const std::string& folder, bool cubin) {
  KernelCode code{c.kernel, readFile(folder + "/" + c.kernel + ".cu"), {}, {}};
  if (cubin) code.cubin = readFile(folder + "/" + c.kernel + ".cubin");
  const Driver::Function function = driver.load({code}).front();
  Words output(c.outputWords());
  const size_t inBytes = c.input.size() * 4, outBytes = output.size() * 4;
  void *in = driver.allocate(inBytes, "input"), *out = driver.allocate(outBytes, "output");
  driver.upload(in, c.input.data(), inBytes);
  driver.zero(out, outBytes);
  long long n = c.n;
  void* arguments[] = {&in, &out, &n};
  driver.launch(function, {{c.blocks, 1, 1}, c.threads, c.cluster, 0, false}, arguments);
  driver.synchronize();
  driver.download(output.data(), out, outBytes);
  driver.synchronize();
  driver.release(in);
  driver.release(out);
  return output;
}

// False if anything is outside what the region allows.
bool report(Json& to, const char* against, const Difference& d) {
  to[against] = {{"different_words", d.words}, {"outside", d.outside}, {"worst_ulps", d.worstUlps}};
  if (!d.first.empty()) to[against]["first"] = d.first;
  return d.outside == 0;
}

// Appends the case's part of the report; the number of regions that disagree.
int check(Json& results, const Case& c, const Words& got, const Words* host, size_t offset) {
  int wrong = 0;
  size_t at = 0;
  for (const Region& r : c.regions) {
    Json item{{"kernel", c.kernel},
              {"primitive", r.name},
              {"offset", (offset + at) * 4},
              {"bytes", r.words * 4}};
    bool good = true;
    if (host) good &= report(item, "host", compare(r, got.data() + at, host->data() + at));
    if (auto it = c.manual.find(r.name); it != c.manual.end())
      good &= report(item, "manual", compare(r, got.data() + at, it->second.data()));
    item["ok"] = good;
    if (!good) {
      std::cout << c.kernel << ": " << r.name << " differs: " << item.dump() << "\n";
      ++wrong;
    }
    results.push_back(item);
    at += r.words;
  }
  return wrong;
}

// Both outputs and the names of what gave them.
struct Outcome {
  Words tested, host;  // `host` is empty where it is what is tested
  std::string facts;
};

Outcome runCase(const Case& c, const std::string& folder, const std::string& device) {
  Outcome outcome;
  Driver* tested = heldGpu(device);
  std::string noTwin;
  try {
    std::unique_ptr<Driver> host = openHost();
    outcome.host = runOn(*host, c, folder, false);
    outcome.facts = host->facts().name;
  } catch (const lathe::Error& e) {
    // Without a compiler a GPU's words are kept, and held against the manual alone.
    if (!tested || e.code() != lathe::ErrorCode::Unsupported) throw;
    noTwin = std::string(", not compared with the host: ") + e.what();
  }
  if (!tested) {
    outcome.tested = std::move(outcome.host);
    outcome.host.clear();
    return outcome;
  }
  outcome.tested = runOn(*tested, c, folder, true);
  outcome.facts = tested->facts().name + ", driver " + tested->facts().driver + noTwin;
  return outcome;
}

int run(const std::string& device, const std::string& folder, const std::string& json,
        const std::string& bin) {
  const std::vector<Case> cases = allCases();
  std::ofstream(bin, std::ios::trunc);
  Json report{{"check", "golden"}, {"device", device}}, results = Json::array(),
                                                        errors = Json::object();
  int wrong = 0;
  size_t offset = 0;
  auto work = [&](size_t i) {
    const Outcome outcome = runCase(cases[i], folder, device);
    Json part = Json::array();
    const Words* host = outcome.host.empty() ? nullptr : &outcome.host;
    const int differ = check(part, cases[i], outcome.tested, host, offset);
    std::ofstream(bin, std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(outcome.tested.data()),
               std::streamsize(outcome.tested.size() * 4));
    offset += outcome.tested.size();  // of this process; the other one counts in `done`
    return Json{{"facts", outcome.facts}, {"wrong", differ}, {"results", part}}.dump();
  };
  auto save = [&](const char* outcome) {
    report["outcome"] = outcome;
    report["wrong"] = wrong;
    report["errors"] = errors;
    report["results"] = results;
    std::ofstream(json) << report.dump(1) << "\n";
  };
  auto done = [&](size_t i, const std::string& text, bool failed) {
    if (failed) {
      errors[cases[i].kernel] = text;
      std::cout << cases[i].kernel << ": " << text << std::endl;
      ++wrong;
      save("stopped early");
      return;
    }
    const Json part = Json::parse(text);
    report["facts"] = part["facts"];
    wrong += int(part["wrong"]);
    for (const Json& r : part["results"]) results.push_back(r);
    offset += cases[i].outputWords();
    save("stopped early");  // what is known if the process dies
  };
  save("stopped early");
  runIsolated(cases.size(), work, done);
  save(wrong ? "failed" : "passed");
  std::cout << results.size() << " primitives, " << wrong << " differ or failed\n";
  return wrong ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || (std::string(argv[1]) != "gpu" && std::string(argv[1]) != "host")) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& e) {
    std::cerr << "lathe-gpu-golden: " << e.what() << "\n";
    return 2;
  }
}
