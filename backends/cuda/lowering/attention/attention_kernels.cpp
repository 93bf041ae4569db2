// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/attention/attention_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool isSmall(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }

// Scratch of one split's row, in bytes.
int64_t partialBytes(const AttentionKernel& a, AttentionMethod method) {
  if (method == AttentionMethod::Decode) return 4 * (roundUp(a.valueDepth, 64) + 4);
  return (a.valueDepth + 2) * (a.dtype == DType::F64 ? 8 : 4);
}

// Every stride and the offset in whole 16-byte words of 2-byte elements.
bool isAligned(const AttentionView& view) {
  for (const DimExpr& e : {view.offset, view.batch, view.head, view.token})
    for (const auto& [monomial, coefficient] : e.terms())
      if (coefficient % 8 != 0) return false;
  return true;
}

std::string configText(const AttentionKernel& a, const AttentionChoice& choice,
                       std::string_view name, bool toShared) {
  const bool wide = a.dtype == DType::F64;
  const std::string_view real = wide ? "double" : "float";
  std::string_view mask = !a.mask                  ? "kMaskNone"
                          : *a.mask == DType::Bool ? "kMaskBool"
                                                   : "kMaskAdded";
  std::string text = fmt::format(
      "struct {} {{\n"
      "  typedef {} Element;\n"
      "  typedef {} Mask;\n"
      "  typedef {} Position;\n"
      "  typedef {} Entry;\n"
      "  static constexpr int kDepth = {}, kValueDepth = {}, kKeyHeads = {}, kGroup = {};\n"
      "  static constexpr int kCausal = {}, kMask = {}, kMaskedRow = {};\n"
      "  static constexpr i64 kWindow = {};\n"
      "  static constexpr {} kScale = {}, kSoftcap = {};\n"
      "  static constexpr bool kOverlaps = true;\n"
      "  static constexpr i64 kBlock = {};\n",
      name, elementType(a.dtype), elementType(a.mask.value_or(DType::Bool)),
      elementType(a.positions), elementType(a.table), a.depth, a.valueDepth, a.keyHeads, groupOf(a),
      "causal_" + std::string(nameOf(a.causal)), mask,
      "masked_row_" + std::string(nameOf(a.maskedRow)), a.window, real, realLiteral(a.scale, wide),
      real == "float" ? realLiteral(a.softcap) : realLiteral(a.softcap, true), a.blockKeys);
  text += fmt::format("  static constexpr int kWarps = {};\n", choice.warps);
  switch (choice.method) {
    case AttentionMethod::Decode:
      text += fmt::format(
          "  static constexpr int kLeastKeys = {}, kMostSplits = {};\n"
          "  static constexpr bool kOldKeys = {}, kToShared = {};\n",
          choice.leastKeys, kMostSplits, a.oldKeys, toShared);
      break;
    case AttentionMethod::Tiled:
      text += fmt::format(
          "  static constexpr int kRowTiles = {}, kKeys = {};\n"
          "  static constexpr bool kPacksHeads = {};\n",
          choice.rowTiles, choice.keys, choice.packsHeads);
      break;
    case AttentionMethod::Simt:
      text += fmt::format("  static constexpr int kLeastKeys = {};\n", choice.leastKeys);
      break;
    case AttentionMethod::Library:
      break;  // has no text
  }
  return text + "};\n";
}

std::string viewText(KernelParameters& p, std::string_view name, const AttentionView& view) {
  auto size = [&](std::string_view part, const DimExpr& e) {
    return p.size(fmt::format("{}_{}", name, part), e);
  };
  std::string batch = size("batch", view.batch), head = size("head", view.head);
  return fmt::format("{{{}, {}, {}}}", batch, head, size("token", view.token));
}

}  // namespace

int64_t sharedBytes(const AttentionKernel& a, const AttentionChoice& choice) {
  switch (choice.method) {
    case AttentionMethod::Decode: {
      int64_t pitch = roundUp(a.valueDepth, 64) + 16, chunks = roundUp(a.depth, 32) / 32;
      int64_t words = choice.warps * 16 * (pitch + 2) + 16 * kMostSplits + 16;
      return 4 * (words + (a.depth > 128 ? chunks * 256 : 0));
    }
    case AttentionMethod::Tiled: {
      int64_t pitch = roundUp(a.depth, 16) * 2 + 16,
              valuePitch = roundUp(a.valueDepth, 16) * 2 + 16;
      return choice.warps * choice.rowTiles * 16 * std::max(pitch, valuePitch) +
             2 * choice.keys * (pitch + valuePitch);
    }
    case AttentionMethod::Simt: {
      int64_t rows = choice.warps * 4;
      int64_t words = rows * a.depth + 32 * (a.depth | 1) + 32 * a.valueDepth + rows * 32;
      return words * (a.dtype == DType::F64 ? 8 : 4);
    }
    case AttentionMethod::Library:
      break;
  }
  return 0;
}

int64_t rowsPerBlock(const AttentionChoice& choice) {
  switch (choice.method) {
    case AttentionMethod::Decode:
      return 16;
    case AttentionMethod::Tiled:
      return choice.warps * choice.rowTiles * 16;
    case AttentionMethod::Simt:
      return choice.warps * 4;
    case AttentionMethod::Library:
      break;
  }
  return 1;
}

AttentionView AttentionView::dense(const DimExpr& heads, const DimExpr& tokens,
                                   const DimExpr& depth) {
  return {0, heads * tokens * depth, tokens * depth, depth};
}

std::string whyNotTensorCores(const AttentionKernel& a) {
  if (!isSmall(a.dtype)) return "tensor cores take bf16 and f16";
  if (a.depth % 8 || a.valueDepth % 8 || a.depth > 256 || a.valueDepth > 256)
    return fmt::format(
        "tensor cores take head depths that are multiples of 8 up to 256, got {} and {}", a.depth,
        a.valueDepth);
  for (const AttentionView* view : {&a.q, &a.k, &a.v, &a.y})
    if (!isAligned(*view)) return "rows of an operand do not begin at multiples of 16 bytes";
  return {};
}

std::string whyNotAttention(const AttentionKernel& a) {
  if (!isFloat(a.dtype)) return fmt::format("attention takes floats, got {}", nameOf(a.dtype));
  if (a.depth < 1 || a.valueDepth < 1)
    return fmt::format("attention takes head depths of at least 1, got {} and {}", a.depth,
                       a.valueDepth);
  AttentionChoice simt;
  if (whyNotTensorCores(a).empty() || sharedBytes(a, simt) <= kSharedLimit) return {};
  return fmt::format(
      "attention takes head depths whose tiles fit {} bytes of shared memory, {} and {} take {}",
      kSharedLimit, a.depth, a.valueDepth, sharedBytes(a, simt));
}

namespace {

// Statements that define `a`, of type AttentionArguments<config>. A result in memory is the buffer
// behind the operands.
std::string argumentsText(const AttentionKernel& a, KernelParameters& p, std::string_view config,
                          bool hasResult) {
  const std::string_view element = elementType(a.dtype);
  p.input(element, "q", 0);
  p.input(element, "k", 1);
  p.input(element, "v", 2);
  int next = 3;
  std::string mask = "nullptr", positions = "nullptr";
  if (a.mask) p.input(elementType(*a.mask), mask = "mask", next++);
  if (a.causal == Causal::positions)
    p.input(elementType(a.positions), positions = "positions", next++);
  if (a.blockKeys > 0) p.input(elementType(a.table), "table", next++);
  if (hasResult) p.output(element, "y", next);

  auto shifted = [&](std::string_view pointer, const DimExpr& offset) {
    if (offset == DimExpr(0)) return std::string(pointer);
    return fmt::format("{} + {}", pointer, p.size(fmt::format("{}_offset", pointer), offset));
  };
  std::string body = fmt::format("  AttentionArguments<{}> a;\n", config);
  auto assign = [&](std::string_view field, const std::string& value) {
    body += fmt::format("  a.{} = {};\n", field, value);
  };
  assign("q", shifted("q", a.q.offset));
  assign("k", shifted("k", a.k.offset));
  assign("v", shifted("v", a.v.offset));
  assign("y", hasResult ? shifted("y", a.y.offset) : "nullptr");
  assign("mask", mask);
  assign("positions", positions);
  assign("batches", p.size("batches", a.batch));
  assign("queries", p.size("queries", a.queries));
  assign("keys", p.size("keys", a.keys));
  body += fmt::format("  a.qs = {};\n", viewText(p, "q", a.q));
  body += fmt::format("  a.ks = {};\n", viewText(p, "k", a.k));
  body += fmt::format("  a.vs = {};\n", viewText(p, "v", a.v));
  body += fmt::format("  a.ys = {};\n", viewText(p, "y", a.y));
  const char* fields[] = {"maskBatch", "maskHead", "maskQuery", "maskKey"};
  for (size_t i = 0; i < 4; ++i) assign(fields[i], p.size(fields[i], a.maskStrides[i]));
  if (a.blockKeys > 0) {
    p.status("status", {-1, a.blocks, 0});
    assign("table", "table");
    assign("status", "status");
    assign("entries", p.size("entries", a.entries));
    assign("blocks", p.size("blocks", a.blocks));
  }
  return body;
}

}  // namespace

AttentionText attentionText(const AttentionKernel& a, const AttentionChoice& choice,
                            std::string_view config, KernelParameters& parameters) {
  return {configText(a, choice, config, true), argumentsText(a, parameters, config, false)};
}

void addAttention(const AttentionKernel& a, const AttentionChoice& choice, const std::string& name,
                  std::vector<Condition> conditions, KernelSet& set) {
  KernelParameters p;
  std::string body = argumentsText(a, p, "Config", true);
  Launch launch;
  launch.kernel = name;
  launch.threads = choice.warps * 32;
  launch.sharedBytes = sharedBytes(a, choice);
  launch.waits = true;
  Variant variant;
  variant.when = std::move(conditions);
  const int64_t rows = rowsPerBlock(choice);
  const DimExpr groupRows = a.queries * DimExpr(groupOf(a));
  std::string_view file, function;
  if (choice.method == AttentionMethod::Tiled) {
    file = "lathe_attention.cuh";
    function = "attentionTiled(a)";
    launch.grid = {GridAxis{choice.packsHeads ? a.keyHeads : a.queryHeads},
                   {.count = choice.packsHeads ? groupRows : a.queries, .per = rows, .folds = true},
                   {.count = a.batch, .folds = true}};
    variant.what = fmt::format("tiled {}x{} attention", rows, choice.keys);
  } else {
    const bool isDecode = choice.method == AttentionMethod::Decode;
    const std::string_view real = a.dtype == DType::F64 ? "double" : "float";
    file = isDecode ? "lathe_attention_decode.cuh" : "lathe_attention_simt.cuh";
    function = isDecode ? "attentionDecode(a, partials, counters)"
                        : "attentionSimt(a, partials, counters)";
    variant.what =
        fmt::format("{} attention, {} splits", isDecode ? "decode" : "simt", choice.mostSplits);
    // A block at least, also where there are no keys.
    launch.grid = {GridAxis{groupRows, rows},
                   GridAxis{a.batch * DimExpr(a.keyHeads), 1, kMostOnAxis},
                   GridAxis{a.keys + DimExpr(1), choice.leastKeys, choice.mostSplits}};
    if (choice.mostSplits > 1) {
      const int64_t row = a.queryHeads * choice.mostSplits * partialBytes(a, choice.method);
      variant.scratchBytes = a.batch * a.queries * DimExpr(row);
    }
    p.counters("counters", choice.mostSplits > 1 ? choice.mostTiles : 0);
    p.scratch(real, "partials", 0);
  }
  body += fmt::format("  {};\n", function);
  launch.arguments = p.arguments();
  launch.checks = p.checks();
  variant.launches.push_back(std::move(launch));
  set.variants.push_back(std::move(variant));
  auto isPrinted = [&](const KernelText& text) { return text.name == name; };
  if (std::ranges::any_of(set.kernels, isPrinted)) return;
  set.kernels.push_back(
      {name,
       fmt::format("#include \"{}\"\n\n{}\n{}", file, configText(a, choice, "Config", false),
                   kernelFunction(name, choice.warps * 32, p, body, residentBlocks(choice)))});
}

}  // namespace lathe::cuda
