// SPDX-License-Identifier: Apache-2.0
// Writes what bench/gpu/run_tuning.cpp measures: for the linear layers of the models in
// bench/configs and several numbers of rows, the choices that the model of gemm_choices.cpp ranks
// first, each as an entry point that runs it over many weights, so that no cache holds them.
//
//   write_gpu_tuning OUT.safetensors [TEXT]     TEXT: only layers whose name contains it
//
// A tensor LAYER holds a program; the metadata `layers` says what its entry points are.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/gemm_kernels.h"
#include "backends/cuda/lowering/kernel_cache.h"
#include "runtime/safetensors.h"

namespace lathe::cuda {
namespace {

using Json = nlohmann::ordered_json;

struct Layer {
  const char* name;
  int64_t n, k;
};
// Merged projections of llama-1b.json and llama-8b.json.
constexpr Layer kLayers[] = {{"1b.qkv", 3072, 2048},      {"1b.o", 2048, 2048},
                             {"1b.gate_up", 16384, 2048}, {"1b.down", 2048, 8192},
                             {"1b.head", 128256, 2048},   {"8b.qkv", 6144, 4096},
                             {"8b.o", 4096, 4096},        {"8b.gate_up", 28672, 4096},
                             {"8b.down", 4096, 14336},    {"8b.head", 128256, 4096}};
constexpr int64_t kRows[] = {1, 8, 512, 2048};
constexpr size_t kChoices = 10;
constexpr int64_t kWalked = 256 << 20;  // bytes of weights, four times an L2 cache

ProductKernel productOf(const Layer& layer, int64_t rows) {
  ProductKernel p;
  p.name = "product";
  p.m = rows;
  p.n = layer.n;
  p.k = layer.k;
  p.hooks = linearHooks(p, 2);
  return p;
}

std::string describe(const ProductChoice& c) {
  const auto text = [](int value) { return std::to_string(value); };
  const std::string splits = " splits " + text(c.splits);
  if (c.method == ProductMethod::GemvDot || c.method == ProductMethod::GemvMma)
    return std::string(c.method == ProductMethod::GemvDot ? "gemv dot" : "gemv mma") + " warps " +
           text(c.warpsN) + "x" + text(c.warpsK) + " columns " + text(c.columns) + " steps " +
           text(c.steps) + splits;
  return "gemm " + text(c.tileM) + "x" + text(c.tileN) + " stages " + text(c.stages) + " warps " +
         text(c.warpsM) + "x" + text(c.warpsN) + splits;
}

// y[i] = x w[i]^T for `count` weights; the last one is the output, so that all are run.
EntryPoint entryOf(const std::string& name, const std::string& callee, const Layer& layer,
                   int64_t rows, int count) {
  EntryPoint entry;
  entry.name = name;
  auto add = [&](SlotKind kind, int64_t a, int64_t b, int index) {
    Slot slot;
    slot.kind = kind;
    slot.dtype = DType::BF16;
    slot.shape = {a, b};
    slot.index = index;
    entry.slots.push_back(slot);
    return int(entry.slots.size()) - 1;
  };
  const int x = add(SlotKind::Argument, rows, layer.k, 0);
  entry.inputs.push_back({"x", x});
  for (int i = 0; i < count; ++i) {
    const int w = add(SlotKind::Weight, layer.n, layer.k, i);
    const bool last = i == count - 1;
    const int y = add(last ? SlotKind::Result : SlotKind::Arena, rows, layer.n, 0);
    Call call;
    call.kind = "linear";
    call.callee = callee;
    call.config = "{}";
    call.operands = {x, w};
    call.results = {y};
    call.origin = name;
    entry.calls.push_back(call);
    if (last) entry.outputs.push_back({"y", y});
  }
  return entry;
}

struct Kept {
  Program program;
  KernelTable table;
  std::vector<KernelText> texts;
};

// Entry points NAME (all weights) and NAME.one (the first alone) for every choice.
Json addChoices(Kept& kept, const Layer& layer, int64_t rows, int weights) {
  const ProductKernel product = productOf(layer, rows);
  const ProductSizes sizes{rows, layer.n, layer.k, 1};
  Json choices = Json::array();
  for (const ProductChoice& choice : productCandidates(product, sizes)) {
    if (choices.size() == kChoices) break;
    const std::string name = "m" + std::to_string(rows) + "_" + std::to_string(choices.size());
    ProductVariant made = printProduct(product, choice, rows, "product_" + name);
    kept.texts.push_back(made.text);
    kept.table[name] = {made.variant};
    kept.program.entries.push_back(entryOf(name, name, layer, rows, weights));
    kept.program.entries.push_back(entryOf(name + ".one", name, layer, rows, 1));
    choices.push_back({{"entry", name},
                       {"choice", describe(choice)},
                       {"model_us", 1e6 * productSeconds(product, sizes, choice)}});
  }
  return choices;
}

Array programOf(const Layer& layer, Json& description) {
  Kept kept;
  kept.program.backend = "cuda";
  const int64_t bytes = 2 * layer.n * layer.k;
  const int weights = int(std::clamp<int64_t>(kWalked / bytes, 2, 32));
  for (int i = 0; i < weights; ++i)
    kept.program.weights.push_back({"w" + std::to_string(i), DType::BF16, {layer.n, layer.k}});
  description = {{"n", layer.n}, {"k", layer.k}, {"weights", weights}, {"rows", Json::object()}};
  for (int64_t rows : kRows) {
    if (rows > 8 && std::string_view(layer.name).ends_with("head")) continue;  // of the last token
    description["rows"][std::to_string(rows)] = addChoices(kept, layer, rows, weights);
  }
  std::vector<KernelCode> codes;
  const std::vector<CompiledKernel> compiled = compileKernels(kept.texts);
  for (size_t i = 0; i < compiled.size(); ++i)
    codes.push_back({kept.texts[i].name, kept.texts[i].source, compiled[i].cubin, {}});
  storeKernels(kept.program, kept.table, codes);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("lathe-tune-" + std::to_string(getpid())))
          .string();
  kept.program.save(path);
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  Array array(DType::U8, {int64_t(text.size())});
  std::memcpy(array.data(), text.data(), text.size());
  return array;
}

int write(const std::string& path, const std::string& filter) {
  std::map<std::string, Array> programs;
  Json layers = Json::object();
  for (const Layer& layer : kLayers)
    if (std::string(layer.name).find(filter) != std::string::npos)
      programs[layer.name] = programOf(layer, layers[layer.name]);
  saveSafetensors(path, programs, {{"layers", layers.dump()}});
  std::cout << programs.size() << " layers, " << std::filesystem::file_size(path) << " bytes\n";
  return programs.empty() ? 1 : 0;
}

}  // namespace
}  // namespace lathe::cuda

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: write_gpu_tuning OUT.safetensors [TEXT]\n";
    return 2;
  }
  try {
    return lathe::cuda::write(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& e) {
    std::cerr << "write_gpu_tuning: " << e.what() << "\n";
    return 1;
  }
}
