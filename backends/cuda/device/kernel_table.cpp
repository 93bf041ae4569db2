// SPDX-License-Identifier: Apache-2.0
// A kernel table as JSON. What has its default value is left out, so the text stays short.
#include "backends/cuda/device/kernel_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/cuda/device/library_matmul.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"

namespace lathe::cuda {
namespace {

using nlohmann::json;

constexpr int64_t kMany = int64_t(1) << 40;
constexpr const char* kAxes[] = {"x", "y", "z"};
constexpr const char* kArgumentKinds[] = {"buffer", "size", "scratch", "status", "counters"};

json toJson(const GridAxis& axis) {
  json a = {{"count", axis.count.text()}};
  if (axis.per != 1) a["per"] = axis.per;
  if (axis.most != 0) a["most"] = axis.most;
  if (axis.folds) a["folds"] = true;
  return a;
}
json toJson(const Argument& argument) {
  json a = {{"kind", kArgumentKinds[size_t(argument.kind)]}};
  if (argument.index != 0) a["index"] = argument.index;
  if (!(argument.value == DimExpr(0))) a["value"] = argument.value.text();
  return a;
}
json toJson(const PlainMatmul& p) {
  json matmul = {
      {"dtype", nameOf(p.dtype)},  {"rows", p.rows.text()}, {"columns", p.columns.text()},
      {"depth", p.depth.text()},   {"x", toJson(p.x)},      {"weight", toJson(p.weight)},
      {"result", toJson(p.result)}};
  if (p.bias) matmul["bias"] = toJson(*p.bias);
  if (p.residual) matmul["residual"] = toJson(*p.residual);
  if (p.rank) matmul["rank"] = p.rank;
  if (p.required) matmul["required"] = true;
  if (p.resultDType) matmul["result_dtype"] = nameOf(*p.resultDType);
  return matmul;
}
json toJson(const PlainAttention::View& v) {
  return {{"buffer", toJson(v.buffer)},
          {"offset", v.offset.text()},
          {"batch", v.batch.text()},
          {"head", v.head.text()},
          {"token", v.token.text()}};
}
json toJson(const PlainAttention& a) {
  json attention = {{"dtype", nameOf(a.dtype)},
                    {"batch", a.batch.text()},
                    {"queries", a.queries.text()},
                    {"keys", a.keys.text()},
                    {"query_heads", a.queryHeads},
                    {"key_heads", a.keyHeads},
                    {"depth", a.depth},
                    {"value_depth", a.valueDepth},
                    {"q", toJson(a.q)},
                    {"k", toJson(a.k)},
                    {"v", toJson(a.v)},
                    {"y", toJson(a.y)},
                    {"scale", a.scale}};
  if (a.causal) attention["causal"] = true;
  if (a.lengths) attention["lengths"] = toJson(*a.lengths);
  if (a.required) attention["required"] = true;
  return attention;
}
json toJson(const IndexCheck& check) {
  json c = {{"op", check.op}, {"length", check.length.text()}, {"count", check.count.text()}};
  if (!(check.block == DimExpr(0))) c["block"] = check.block.text();
  return c;
}
json toJson(const Launch& launch) {
  json grid = json::object(), arguments = json::array();
  for (size_t i = 0; i < 3; ++i) grid[kAxes[i]] = toJson(launch.grid[i]);
  for (const Argument& argument : launch.arguments) arguments.push_back(toJson(argument));
  json out = {{"kernel", launch.kernel},
              {"grid", grid},
              {"threads", launch.threads},
              {"cluster", launch.cluster},
              {"shared_bytes", launch.sharedBytes},
              {"unless_same", launch.unlessSame},
              {"waits", launch.waits},
              {"arguments", arguments}};
  for (const IndexCheck& check : launch.checks) out["checks"].push_back(toJson(check));
  if (launch.matmul) out["product"] = toJson(*launch.matmul);
  if (launch.attention) out["attention"] = toJson(*launch.attention);
  return out;
}
json toJson(const Variant& variant) {
  json when = json::array(), launches = json::array(), temporaries = json::array();
  for (const DimExpr& bytes : variant.temporaries) temporaries.push_back(bytes.text());
  for (const Condition& c : variant.when)
    when.push_back({{"value", c.value.text()}, {"low", c.low}, {"high", c.high}});
  for (const Launch& launch : variant.launches) launches.push_back(toJson(launch));
  return {{"what", variant.what},
          {"buffers", variant.buffers},
          {"when", when},
          {"scratch_bytes", variant.scratchBytes.text()},
          {"temporaries", temporaries},
          {"launches", launches}};
}

DimExpr dimFrom(const JsonValue& v) {
  auto e = DimExpr::parse(v.asString());
  if (!e) throw v.error("expected a size expression, got " + v.show());
  return *e;
}

GridAxis axisFrom(const JsonValue& v) {
  GridAxis axis{dimFrom(v.at("count"))};
  if (auto per = v.find("per")) axis.per = per->asInt(1, kMany);
  if (auto most = v.find("most")) axis.most = most->asInt(0, kMany);
  if (auto folds = v.find("folds")) axis.folds = folds->asBool();
  return axis;
}
Argument argumentFrom(const JsonValue& v) {
  const std::string& kind = v.at("kind").asString();
  for (size_t i = 0; i < std::size(kArgumentKinds); ++i) {
    if (kind != kArgumentKinds[i]) continue;
    Argument argument{Argument::Kind(i)};
    if (auto index = v.find("index")) argument.index = int(index->asInt(0, 1 << 30));
    if (auto value = v.find("value")) argument.value = dimFrom(*value);
    return argument;
  }
  throw v.at("kind").error("expected buffer, size, scratch, status or counters, got " +
                           v.at("kind").show());
}
DType dtypeFrom(const JsonValue& v) {
  auto dtype = parseDType(v.asString());
  if (!dtype) throw v.error("expected a dtype, got " + v.show());
  return *dtype;
}
PlainMatmul matmulFrom(const JsonValue& v) {
  PlainMatmul p;
  p.dtype = dtypeFrom(v.at("dtype"));
  if (auto result = v.find("result_dtype")) p.resultDType = dtypeFrom(*result);
  p.rows = dimFrom(v.at("rows"));
  p.columns = dimFrom(v.at("columns"));
  p.depth = dimFrom(v.at("depth"));
  p.x = argumentFrom(v.at("x"));
  p.weight = argumentFrom(v.at("weight"));
  p.result = argumentFrom(v.at("result"));
  if (auto bias = v.find("bias")) p.bias = argumentFrom(*bias);
  if (auto residual = v.find("residual")) p.residual = argumentFrom(*residual);
  if (auto rank = v.find("rank")) p.rank = int(rank->asInt(0, kLibraryRanks - 1));
  if (auto required = v.find("required")) p.required = required->asBool();
  return p;
}
PlainAttention::View viewFrom(const JsonValue& v) {
  return {argumentFrom(v.at("buffer")), dimFrom(v.at("offset")), dimFrom(v.at("batch")),
          dimFrom(v.at("head")), dimFrom(v.at("token"))};
}
PlainAttention attentionFrom(const JsonValue& v) {
  PlainAttention a;
  a.dtype = dtypeFrom(v.at("dtype"));
  a.batch = dimFrom(v.at("batch"));
  a.queries = dimFrom(v.at("queries"));
  a.keys = dimFrom(v.at("keys"));
  a.queryHeads = v.at("query_heads").asInt(1, kMany);
  a.keyHeads = v.at("key_heads").asInt(1, kMany);
  a.depth = v.at("depth").asInt(1, kMany);
  a.valueDepth = v.at("value_depth").asInt(1, kMany);
  a.q = viewFrom(v.at("q"));
  a.k = viewFrom(v.at("k"));
  a.v = viewFrom(v.at("v"));
  a.y = viewFrom(v.at("y"));
  a.scale = v.at("scale").asDouble();
  if (auto causal = v.find("causal")) a.causal = causal->asBool();
  if (auto lengths = v.find("lengths")) a.lengths = argumentFrom(*lengths);
  if (auto required = v.find("required")) a.required = required->asBool();
  return a;
}
IndexCheck checkFrom(const JsonValue& v) {
  IndexCheck check{int(v.at("op").asInt(-1, 1 << 20)), dimFrom(v.at("length")),
                   dimFrom(v.at("count"))};
  if (auto block = v.find("block")) check.block = dimFrom(*block);
  return check;
}
Launch launchFrom(const JsonValue& v) {
  Launch launch;
  launch.kernel = v.at("kernel").asString();
  for (size_t i = 0; i < 3; ++i) launch.grid[i] = axisFrom(v.at("grid").at(kAxes[i]));
  launch.threads = int(v.at("threads").asInt(1, 1024));
  launch.cluster = int(v.at("cluster").asInt(1, 16));
  launch.sharedBytes = v.at("shared_bytes").asInt(0, kMany);
  for (size_t i = 0; i < 2; ++i)
    launch.unlessSame[i] = int(v.at("unless_same").at(i).asInt(-1, 1 << 20));
  launch.waits = v.at("waits").asBool();
  launch.arguments = listFrom(v.at("arguments"), argumentFrom);
  if (auto checks = v.find("checks")) launch.checks = listFrom(*checks, checkFrom);
  if (auto matmul = v.find("product")) launch.matmul = matmulFrom(*matmul);
  if (auto attention = v.find("attention")) launch.attention = attentionFrom(*attention);
  return launch;
}
Condition conditionFrom(const JsonValue& v) {
  Condition c{dimFrom(v.at("value")), v.at("low").asInt(), v.at("high").asInt()};
  if (c.low > c.high) throw v.error("a condition that no value meets");
  return c;
}
Variant variantFrom(const JsonValue& v) {
  return {v.at("what").asString(),
          int(v.at("buffers").asInt(0, 1 << 20)),
          listFrom(v.at("when"), conditionFrom),
          dimFrom(v.at("scratch_bytes")),
          listFrom(v.at("temporaries"), dimFrom),
          listFrom(v.at("launches"), launchFrom)};
}

}  // namespace

std::array<uint32_t, 3> gridOf(const Launch& launch,
                               const std::function<int64_t(const DimExpr&)>& valueOf) {
  constexpr int64_t kMost[] = {0x7fffffff, kMostOnAxis, kMostOnAxis};
  std::array<int64_t, 3> blocks{};
  for (size_t i = 0; i < 3; ++i) {
    const GridAxis& axis = launch.grid[i];
    blocks[i] = valueOf(axis.count) / axis.per + (valueOf(axis.count) % axis.per != 0);
    if (axis.most) blocks[i] = std::min(blocks[i], axis.most);
    if (!axis.folds) continue;
    if (__builtin_mul_overflow(blocks[0], blocks[i], &blocks[0])) blocks[0] = kMany;
    blocks[i] = 1;
  }
  std::array<uint32_t, 3> grid{};
  for (size_t i = 0; i < 3; ++i) {
    if (blocks[i] > kMost[i])
      throw Error(ErrorCode::Unsupported, "kernel '" + launch.kernel + "' would need " +
                                              std::to_string(blocks[i]) + " blocks along " +
                                              kAxes[i] + ", at most " + std::to_string(kMost[i]) +
                                              " are possible; run fewer rows at a time");
    grid[i] = uint32_t(blocks[i]);
  }
  return grid;
}

std::string whyNotEveryGrid(const Launch& launch) {
  for (size_t i = 1; i < 3; ++i) {
    const GridAxis& axis = launch.grid[i];
    if (axis.folds || (axis.most > 0 && axis.most <= kMostOnAxis)) continue;
    const auto count = axis.count.asConstant();
    if (count && (*count + axis.per - 1) / axis.per <= kMostOnAxis) continue;
    return "kernel '" + launch.kernel + "' would need " + axis.count.text() + " / " +
           std::to_string(axis.per) + " blocks along " + kAxes[i] + ", at most " +
           std::to_string(kMostOnAxis) + " are possible; fold or limit the axis";
  }
  return {};
}

std::string toJson(const KernelTable& table) {
  json calls = json::object();
  for (auto& [callee, variants] : table) {
    json list = json::array();
    for (const Variant& variant : variants) list.push_back(toJson(variant));
    calls[callee] = list;
  }
  return calls.dump();
}

KernelTable parseKernelTable(std::string_view text) {
  JsonValue calls = JsonValue::parse(text, "kernel table");
  if (!calls.isObject()) throw calls.error("expected an object, got " + calls.show());
  KernelTable table;
  for (size_t i = 0; i < calls.size(); ++i) {
    auto [callee, variants] = calls.member(i);
    table[callee] = listFrom(variants, variantFrom);
  }
  return table;
}

}  // namespace lathe::cuda
