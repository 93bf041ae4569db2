// SPDX-License-Identifier: Apache-2.0
// The device header's own instructions. No GPU is here, and host execution runs the other twin: so
// each primitive is compiled alone, and the instruction that comes of it, with its modifiers and
// the order of its operands, is held to what the twins promise.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "tests/cuda_mocks/kernel_texts.h"

namespace lathe::cuda {
namespace {

struct Primitive {
  const char* name;
  /// A letter for each asm statement: p is pure, v volatile, o volatile and ordered with memory.
  const char* statements;
  const char* parameters;  ///< of a kernel; y is where its results go
  const char* body;
  /// By PTX's manual. Operands are called as the parameters, y0 is what y[0] gets, t0 is neither.
  const char* instructions;
};

#define MMA_OPERANDS                                                                     \
  "float* y, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, float c0, float c1, float " \
  "c2, float c3"
#define MMA_BODY(function)                                                  \
  "frag_c c = {{c0, c1, c2, c3}}; frag_a a = {{a0, a1, a2, a3}}; " function \
  "(c, a, b0, b1); y[0] = c.r[0], y[1] = c.r[1], y[2] = c.r[2], y[3] = c.r[3];"

const Primitive kPrimitives[] = {
    {"to_f32", "p", "float* y, u16 a", "y[0] = to_f32(f16{a});", "cvt.f32.f16 y0, a"},
    {"to_bf16", "p", "u16* y, float a", "y[0] = to_bf16(a).bits;", "cvt.rn.bf16.f32 y0, a"},
    {"to_f16", "p", "u16* y, float a", "y[0] = to_f16(a).bits;", "cvt.rn.f16.f32 y0, a"},
    {"pack_bf16x2", "p", "u32* y, float lo, float hi", "y[0] = pack_bf16x2(lo, hi);",
     "cvt.rn.bf16x2.f32 y0, hi, lo"},
    {"pack_f16x2", "p", "u32* y, float lo, float hi", "y[0] = pack_f16x2(lo, hi);",
     "cvt.rn.f16x2.f32 y0, hi, lo"},
    {"ld_global_16", "o", "uint4* y, const void* p", "y[0] = ld_global_16(p);",
     "ld.global.v4.u32 {y0,y1,y2,y3}, [p]"},
    {"ld_global_8", "o", "uint2* y, const void* p", "y[0] = ld_global_8(p);",
     "ld.global.v2.u32 {y0,y1}, [p]"},
    {"ld_global_4", "o", "u32* y, const void* p", "y[0] = ld_global_4(p);",
     "ld.global.u32 y0, [p]"},
    {"ld_global_nc_16", "v", "uint4* y, const void* p", "y[0] = ld_global_nc_16(p);",
     "ld.global.nc.L1::no_allocate.v4.u32 {y0,y1,y2,y3}, [p]"},
    {"ld_global_nc_8", "v", "uint2* y, const void* p", "y[0] = ld_global_nc_8(p);",
     "ld.global.nc.L1::no_allocate.v2.u32 {y0,y1}, [p]"},
    {"ld_global_nc_4", "v", "u32* y, const void* p", "y[0] = ld_global_nc_4(p);",
     "ld.global.nc.L1::no_allocate.u32 y0, [p]"},
    {"st_global_16", "o", "void* p, u32 a, u32 b, u32 c, u32 d",
     "st_global_16(p, make_uint4(a, b, c, d));", "st.global.v4.u32 [p], {a,b,c,d}"},
    {"st_global_8", "o", "void* p, u32 a, u32 b", "st_global_8(p, make_uint2(a, b));",
     "st.global.v2.u32 [p], {a,b}"},
    {"st_global_4", "o", "void* p, u32 a", "st_global_4(p, a);", "st.global.u32 [p], a"},
    {"prefetch_l2", "v", "const void* p", "prefetch_l2(p);", "prefetch.global.L2 [p]"},
    {"prefetch_l2_bulk", "o", "const void* p, u32 n", "prefetch_l2_bulk(p, n);",
     "cp.async.bulk.prefetch.L2.global [p], n"},
    {"ld_shared_16", "o", "uint4* y, u32 s", "y[0] = ld_shared_16(s);",
     "ld.shared.v4.u32 {y0,y1,y2,y3}, [s]"},
    {"ld_shared_8", "o", "uint2* y, u32 s", "y[0] = ld_shared_8(s);",
     "ld.shared.v2.u32 {y0,y1}, [s]"},
    {"ld_shared_4", "o", "u32* y, u32 s", "y[0] = ld_shared_4(s);", "ld.shared.u32 y0, [s]"},
    {"st_shared_16", "o", "u32 s, u32 a, u32 b, u32 c, u32 d",
     "st_shared_16(s, make_uint4(a, b, c, d));", "st.shared.v4.u32 [s], {a,b,c,d}"},
    {"st_shared_8", "o", "u32 s, u32 a, u32 b", "st_shared_8(s, make_uint2(a, b));",
     "st.shared.v2.u32 [s], {a,b}"},
    {"st_shared_4", "o", "u32 s, u32 a", "st_shared_4(s, a);", "st.shared.u32 [s], a"},
    {"max_nan", "p", "float* y, float a, float b", "y[0] = max_nan(a, b);", "max.NaN.f32 y0, a, b"},
    {"min_nan", "p", "float* y, float a, float b", "y[0] = min_nan(a, b);", "min.NaN.f32 y0, a, b"},
    {"fast_ex2", "p", "float* y, float a", "y[0] = fast_ex2(a);", "ex2.approx.ftz.f32 y0, a"},
    {"fast_lg2", "p", "float* y, float a", "y[0] = fast_lg2(a);", "lg2.approx.ftz.f32 y0, a"},
    {"fast_rsqrt", "p", "float* y, float a", "y[0] = fast_rsqrt(a);", "rsqrt.approx.ftz.f32 y0, a"},
    {"fast_rcp", "p", "float* y, float a", "y[0] = fast_rcp(a);", "rcp.approx.ftz.f32 y0, a"},
    {"fast_div", "p", "float* y, float a, float b", "y[0] = fast_div(a, b);",
     "div.approx.ftz.f32 y0, a, b"},
    {"fast_tanh", "p", "float* y, float a", "y[0] = fast_tanh(a);", "tanh.approx.f32 y0, a"},
    {"block_sync", "", "", "block_sync();", "bar.sync 0"},
    {"warp_sync", "", "", "warp_sync();", "bar.warp.sync -1"},
    {"named_sync", "o", "int id, int n", "named_sync(id, n);", "bar.sync id, n"},
    {"shfl_xor", "", "u32* y, u32 a, int m", "y[0] = shfl_xor(a, m);",
     "shfl.sync.bfly.b32 y0|t0, a, m, 31, -1"},
    {"shfl_idx", "", "u32* y, u32 a, int m", "y[0] = shfl_idx(a, m);",
     "shfl.sync.idx.b32 y0|t0, a, m, 31, -1"},
    {"shfl_down", "", "u32* y, u32 a, int m", "y[0] = shfl_down(a, m);",
     "shfl.sync.down.b32 y0|t0, a, m, 31, -1"},
    {"shfl_up", "", "u32* y, u32 a, int m", "y[0] = shfl_up(a, m);",
     "shfl.sync.up.b32 y0|t0, a, m, 0, -1"},
    {"warp_ballot", "", "u32* y, u32 a", "y[0] = warp_ballot(a != 0);",
     "vote.sync.ballot.b32 y0, a 0, -1"},
    {"ldmatrix_x2", "o", "u32* y, u32 s", "u32 r[2]; ldmatrix_x2(r, s); y[0] = r[0], y[1] = r[1];",
     "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {y0,y1}, [s]"},
    {"ldmatrix_x2_trans", "o", "u32* y, u32 s",
     "u32 r[2]; ldmatrix_x2_trans(r, s); y[0] = r[0], y[1] = r[1];",
     "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {y0,y1}, [s]"},
    {"ldmatrix_x4", "o", "u32* y, u32 s",
     "u32 r[4]; ldmatrix_x4(r, s); y[0] = r[0], y[1] = r[1], y[2] = r[2], y[3] = r[3];",
     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {y0,y1,y2,y3}, [s]"},
    {"ldmatrix_x4_trans", "o", "u32* y, u32 s",
     "u32 r[4]; ldmatrix_x4_trans(r, s); y[0] = r[0], y[1] = r[1], y[2] = r[2], y[3] = r[3];",
     "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {y0,y1,y2,y3}, [s]"},
    {"mma_bf16", "v", MMA_OPERANDS, MMA_BODY("mma_bf16"),
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, "
     "{c0,c1,c2,c3}"},
    {"mma_f16", "v", MMA_OPERANDS, MMA_BODY("mma_f16"),
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, "
     "{c0,c1,c2,c3}"},
    {"cp_async_16", "oo", "u32 s, const void* p, int n", "cp_async_16(s, p); cp_async_16(s, p, n);",
     "cp.async.cg.shared.global [s], [p], 16; cp.async.cg.shared.global [s], [p], 16, n"},
    {"cp_async_8", "oo", "u32 s, const void* p, int n", "cp_async_8(s, p); cp_async_8(s, p, n);",
     "cp.async.ca.shared.global [s], [p], 8; cp.async.ca.shared.global [s], [p], 8, n"},
    {"cp_async_4", "oo", "u32 s, const void* p, int n", "cp_async_4(s, p); cp_async_4(s, p, n);",
     "cp.async.ca.shared.global [s], [p], 4; cp.async.ca.shared.global [s], [p], 4, n"},
    {"cp_async_commit", "o", "", "cp_async_commit();", "cp.async.commit_group"},
    {"cp_async_wait", "o", "", "cp_async_wait<0>(); cp_async_wait<3>();",
     "cp.async.wait_group 0; cp.async.wait_group 3"},
    {"mbar_init", "o", "u64* p, u32 n", "mbar_init(p, n);", "mbarrier.init.shared::cta.b64 [p], n"},
    {"mbar_init_fence", "o", "", "mbar_init_fence();", "fence.mbarrier_init.release.cluster"},
    {"mbar_arrive", "o", "u64* p", "mbar_arrive(p);", "mbarrier.arrive.shared::cta.b64 _, [p]"},
    {"mbar_arrive_expect_tx", "o", "u64* p, u32 n", "mbar_arrive_expect_tx(p, n);",
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [p], n"},
    {"mbar_wait", "o", "u64* p, u32 n", "mbar_wait(p, n);",
     "LT_WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [p], n; @!p bra LT_WAIT"},
    {"bulk_load", "o", "void* to, const void* from, u32 n, u64* bar",
     "bulk_load(to, from, n, bar);",
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], n, [bar]"},
    {"cluster_rank", "p", "u32* y", "y[0] = cluster_rank();", "mov.u32 y0, %cluster_ctarank"},
    {"cluster_size", "p", "u32* y", "y[0] = cluster_size();", "mov.u32 y0, %cluster_nctarank"},
    {"cluster_sync", "o", "", "cluster_sync();",
     "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned"},
    {"cluster_read", "po", "u32* y, const u32* p, u32 n", "y[0] = cluster_read(p, n);",
     "mapa.shared::cluster.u32 t0, p, n; ld.shared::cluster.u32 y0, [t0]"},
    {"grid_dep_wait", "o", "", "grid_dep_wait();", "griddepcontrol.wait"},
    {"grid_dep_launch", "o", "", "grid_dep_launch();", "griddepcontrol.launch_dependents"},
    {"counter_add_acq_rel", "o", "u32* y, u32* p, u32 n", "y[0] = counter_add_acq_rel(p, n);",
     "atom.acq_rel.gpu.global.add.u32 y0, [p], n"},
    {"counter_load_acquire", "o", "u32* y, const u32* p", "y[0] = counter_load_acquire(p);",
     "ld.acquire.gpu.global.u32 y0, [p]"},
    {"counter_store_release", "o", "u32* p, u32 n", "counter_store_release(p, n);",
     "st.release.gpu.global.u32 [p], n"},
    {"lt_report_index", "o", "i64* p, i64 n", "lt_report_index(p, n);",
     "st.relaxed.gpu.global.u64 [p], t0"},
};

std::string textOfAll() {
  std::string text = "#include \"lathe_device.cuh\"\n";
  for (const Primitive& p : kPrimitives)
    text += std::string("extern \"C\" __global__ void use_") + p.name + "(" + p.parameters +
            ") { " + p.body + " }\n";
  return text;
}

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + by.size();
  }
  return parts;
}

// The instructions of one kernel's inline assembly, and the compiler's own for warps and barriers,
// with registers by the parameter or the result that they hold.
std::string instructionsOf(const std::string& ptx, const Primitive& primitive) {
  const size_t entry = ptx.find(std::string(".entry use_") + primitive.name + "(");
  if (entry == std::string::npos) return "no such kernel";
  const size_t begin = ptx.find("\n{", entry), end = ptx.find("\n}\n", begin);
  std::vector<std::string> parameters;
  for (const std::string& p : split(primitive.parameters, ", "))
    parameters.push_back(p.substr(p.find_last_of(" *") + 1));
  std::map<std::string, std::string> names;
  std::vector<std::pair<std::string, std::string>> copies;
  std::vector<std::string> kept;
  bool isInline = false;
  for (std::string line : split(ptx.substr(begin, end - begin), "\n")) {
    line = std::regex_replace(line, std::regex("^\\s+|;$"), "");
    line = std::regex_replace(line, std::regex("\\s+"), " ");
    if (line.starts_with("//")) {
      isInline = line == "// begin inline asm" || (isInline && line != "// end inline asm");
      continue;
    }
    const std::string op = line.substr(0, line.find(' '));
    auto is = [&](const char* prefix) { return op.starts_with(prefix); };
    if (isInline || is("shfl.") || is("vote.") || is("bar.")) {
      if (!is(".reg") && line.find_first_not_of("{}") != std::string::npos) kept.push_back(line);
      continue;
    }
    const std::string operands = line.size() > op.size() ? line.substr(op.size() + 1) : "";
    const size_t comma = operands.find(", ");
    if (comma == std::string::npos) continue;
    const std::string to = operands.substr(0, comma), from = operands.substr(comma + 2);
    if (is("ld.param")) {
      names[to] = parameters.at(std::stoul(from.substr(from.find("param_") + 6)));
    } else if (is("mov.") || is("cvta.") || is("cvt.u32.u") || is("cvt.u16.u32") || is("setp.")) {
      std::string value;
      for (const std::string& part : split(from, ", "))
        value += (value.empty() ? "" : " ") + (names.count(part) ? names[part] : part);
      if (value.find('%') == std::string::npos)
        names[to] = value;
      else
        copies.emplace_back(to, from);
    } else if (is("st.global")) {
      std::smatch m;
      std::regex_match(operands, m, std::regex("\\[(%\\w+)(?:\\+(\\d+))?\\], \\{?([^}]*)\\}?"));
      const int bytes = op.ends_with("16") ? 2 : 4;
      int at = m[2].matched ? std::stoi(m[2]) / bytes : 0;
      for (const std::string& value : split(m[3], ", "))
        names.try_emplace(value, names[m[1]] + std::to_string(at++));
    }
  }
  for (auto it = copies.rbegin(); it != copies.rend(); ++it)
    if (names.count(it->first)) names.try_emplace(it->second, names[it->first]);
  std::string text;
  int unnamed = 0;
  static const std::regex aRegister("%[a-z]+[0-9]+");
  for (const std::string& line : kept) {
    text += text.empty() ? "" : "; ";
    size_t last = 0;
    for (std::sregex_iterator it(line.begin(), line.end(), aRegister), none; it != none; ++it) {
      auto [entered, isNew] = names.try_emplace(it->str(), "");
      if (isNew) entered->second = "t" + std::to_string(unnamed++);
      text += line.substr(last, size_t(it->position()) - last) + entered->second;
      last = size_t(it->position() + it->length());
    }
    text += line.substr(last);
  }
  return text;
}

// The letters of each function's, or macro's, asm statements.
std::map<std::string, std::string> statementsOf(const std::string& header) {
  std::map<std::string, std::string> all;
  static const std::regex part("LT_FN [^\\n;{]*?(\\w+)\\(|#define (LT_\\w+)\\(|asm( volatile)?\\(");
  std::string name;
  for (std::sregex_iterator it(header.begin(), header.end(), part), none; it != none; ++it) {
    const std::smatch& m = *it;
    if (!m.str().starts_with("asm")) {
      name = m[1].matched ? m[1] : m[2];
      continue;
    }
    // Up to the parenthesis that closes the statement, beside those in its strings.
    const size_t begin = size_t(m.position() + m.length());
    size_t end = begin;
    bool isText = false;
    for (int depth = 1; end < header.size(); ++end) {
      if (header[end] == '"' && header[end - 1] != '\\') isText = !isText;
      if (isText) continue;
      depth += header[end] == '(' ? 1 : header[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    const bool ordered = header.substr(begin, end - begin).find("\"memory\"") != std::string::npos;
    all[name] += !m[3].matched ? 'p' : ordered ? 'o' : 'v';
  }
  return all;
}

// What this text of the header does that the table does not say, by primitive.
std::map<std::string, std::string> differences(const std::string& header) {
  std::map<std::string, std::string> found, statements = statementsOf(header);
  for (const char* mma : {"mma_bf16", "mma_f16"}) statements[mma] = statements["LT_MMA_ASM"];
  statements.erase("LT_MMA_ASM");
  Headers headers = deviceHeaders();
  headers["lathe_device.cuh"] = header;
  const std::string ptx =
      Nvrtc::library().compile("primitives", textOfAll(), headers, "compute_90").ptx;
  for (const Primitive& p : kPrimitives) {
    if (const std::string got = instructionsOf(ptx, p); got != p.instructions)
      found[p.name] = got + "\nexpected " + p.instructions;
    if (statements[p.name] != p.statements)
      found[p.name] +=
          " asm statements '" + statements[p.name] + "', expected '" + p.statements + "'";
    statements.erase(p.name);
  }
  for (const auto& [name, kinds] : statements) found[name] = "is not in the table";
  return found;
}

TEST(DeviceInstructions, AreWhatThePrimitivesPromise) {
  SKIP_WITHOUT_NVRTC();
  for (const auto& [name, text] : differences(deviceHeaders().at("lathe_device.cuh")))
    ADD_FAILURE() << name << ": " << text;
}

// Each of these compiles, and would be wrong, or wrong now and then, on a GPU alone.
TEST(DeviceInstructions, AChangedOneIsNoticed) {
  SKIP_WITHOUT_NVRTC();
  struct Plant {
    const char *primitive, *old, *now;
  };
  const Plant plants[] = {
      {"ldmatrix_x4_trans", "m8n8.x4.trans.shared", "m8n8.x4.shared"},
      {"ldmatrix_x2", "m8n8.x2.shared", "m8n8.x2.trans.shared"},
      {"counter_add_acq_rel", "atom.acq_rel.gpu", "atom.relaxed.gpu"},
      {"counter_load_acquire", "ld.acquire.gpu", "ld.relaxed.gpu"},
      {"counter_store_release", "st.release.gpu", "st.release.cta"},
      {"shfl_down", "__shfl_down_sync", "__shfl_up_sync"},
      {"shfl_xor", "__shfl_xor_sync(0xffffffffu", "__shfl_xor_sync(0x0000ffffu"},
      {"mma_f16", "mma.sync.aligned.m16n8k16", "mma.sync.aligned.m16n8k8"},
      {"mma_bf16", "\"r\"(a.r[1]), \"r\"(a.r[2])", "\"r\"(a.r[2]), \"r\"(a.r[1])"},
      {"pack_bf16x2", "\"f\"(hi), \"f\"(lo)", "\"f\"(lo), \"f\"(hi)"},
      {"cp_async_16", "[%0], [%1], 16, %2", "[%0], [%1], 8, %2"},
      {"cp_async_wait", "cp.async.wait_group %0", "cp.async.wait_all"},
      {"cp_async_commit", "cp.async.commit_group;", "cp.async.wait_group 0;"},
      {"grid_dep_wait", "griddepcontrol.wait", "griddepcontrol.launch_dependents"},
      {"ld_global_8", "\"ld.global.v2", "\"ld.global.nc.v2"},
      {"ld_global_nc_4", "asm volatile(\"ld.global.nc.L1::no_allocate.u32",
       "asm(\"ld.global.nc.L1::no_allocate.u32"},
      {"st_shared_4", "\"r\"(a), \"r\"(v) : \"memory\"", "\"r\"(a), \"r\"(v)"},
      {"to_bf16", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32"},
      {"max_nan", "max.NaN.f32", "max.f32"},
      {"fast_ex2", "ex2.approx.ftz", "ex2.approx"},
      {"mbar_wait", "@!p bra", "@p bra"},
      {"cluster_sync", "arrive.release", "arrive.relaxed"},
  };
  // One text holds them all: each shows at its own primitive.
  std::string header = deviceHeaders().at("lathe_device.cuh");
  std::set<std::string> planted;
  for (const Plant& p : plants) {
    const size_t at = header.find(p.old);
    ASSERT_NE(at, std::string::npos) << p.old;
    header.replace(at, std::string(p.old).size(), p.now);
    planted.insert(p.primitive);
  }
  for (const char* ofOneMacro : {"mma_bf16", "mma_f16"}) planted.insert(ofOneMacro);
  std::set<std::string> noticed;
  for (const auto& [name, text] : differences(header)) noticed.insert(name);
  EXPECT_EQ(noticed, planted);
}

}  // namespace
}  // namespace lathe::cuda
