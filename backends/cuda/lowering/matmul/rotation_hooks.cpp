// SPDX-License-Identifier: Apache-2.0
// The hooks of a projection whose heads are normed, rotated and written into a cache.
#include <fmt/format.h>

#include <map>
#include <set>

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/index_checks.h"
#include "backends/cuda/lowering/matmul/rotated_projection.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

class RotationPrinter {
 public:
  RotationPrinter(RotatedProjection projection, KernelParameters& parameters,
                  const std::function<int(Value)>& bufferOf)
      : p(std::move(projection)),
        parameters(parameters),
        bufferOf(bufferOf),
        type(elementType(elementOf(p.linear.getY()))) {}

  RotationHooks print() {
    const int64_t perHead = p.depth / 2, turning = p.rotated / 2;
    std::string& f = hooks.functions;
    f += fmt::format(
        "  // Pair number `pair` is two columns of one head: those that rotate together come "
        "first.\n"
        "  LT_FN i64 columnOf(i64 pair, int which) {{\n"
        "    const i64 head = pair / {0}, p = pair % {0};\n",
        perHead);
    const char* rotating = p.pairing == Pairing::half ? "p + which * {0}" : "2 * p + which";
    const std::string turned = fmt::format(fmt::runtime(rotating), turning);
    if (turning == perHead)
      f += fmt::format("    return head * {} + {};\n  }}\n", p.depth, turned);
    else
      f += fmt::format("    return head * {} + (p < {} ? {} : 2 * p + which);\n  }}\n", p.depth,
                       turning, turned);
    f += "  LT_FN i64 firstColumn(i64 pair) { return columnOf(pair, 0); }\n"
         "  LT_FN i64 secondColumn(i64 pair) { return columnOf(pair, 1); }\n"
         "  // What a pair takes beside its sums.\n"
         "  struct Early {\n"
         "    float c, n;\n"
         "    i64 position;\n";
    if (p.hasNorms()) f += fmt::format("    {} gains[2];\n", type);
    f += "  };\n";
    const std::string tokens = size("tokens", p.tokens);
    const std::string place = fmt::format(
        "    const i64 b = row / {0}, s = row % {0}, column = columnOf(pair, 0), p = pair % {1};\n"
        "    const i64 across = columnOf(pair, 1) - column;\n",
        tokens, perHead);
    std::string store =
        "  __device__ __forceinline__ void storePair(i64 row, i64 pair, float first, float second";
    if (p.hasNorms()) store += ", float squares";
    store += ", const Early& e) const {\n" + place;
    store += fmt::format(
        "    // The projection's own rounding.\n"
        "    {0} x = from_f32<{0}>(first), y = from_f32<{0}>(second);\n",
        type);
    f += "  __device__ __forceinline__ Early early(i64 row, i64 pair) const {\n" + place +
         "    Early e{};\n";
    for (size_t i = 0; i < p.groups.size(); ++i)
      group(p.groups[i], int(i), tokens, turning, f, store);
    f += "    return e;\n  }\n" + store + "  }\n";
    if (p.hasNorms())
      f += fmt::format(
          "  // What a pair adds to the squares of its head.\n"
          "  LT_FN float term(float first, float second) {{\n"
          "    const float x = to_f32(from_f32<{0}>(first)), y = to_f32(from_f32<{0}>(second));\n"
          "    return fmaf(x, x, y * y);\n"
          "  }}\n",
          type);
    return std::move(hooks);
  }

 private:
  // A size as text inside the struct: a literal, or a field.
  std::string size(const std::string& name, const DimExpr& value) {
    std::string text = parameters.size(name, value);
    if (!value.asConstant() && sizes.insert(text).second) {
      hooks.fields += fmt::format("  i64 {};\n", text);
      hooks.values += ", " + text;
    }
    return text;
  }
  // A buffer of the call as a field.
  std::string buffer(std::string_view element, const std::string& name, Value v, bool written) {
    const int index = bufferOf(v);
    if (auto it = fields.find(index); it != fields.end()) return it->second;
    if (written)
      parameters.output(element, name, index);
    else
      parameters.input(element, name, index);
    hooks.fields += fmt::format("  {}{}* {};\n", written ? "" : "const ", element, name);
    hooks.values += ", " + name;
    return fields[index] = name;
  }

  // Tables of one shape share the names of their strides; one of another shape has names of its
  // own.
  std::string strideName(size_t axis, const DimExpr& stride, int group) {
    std::string name = fmt::format("table_stride_{}", axis);
    const auto [named, isNew] = tableStrides.try_emplace(name, stride);
    return isNew || named->second == stride ? name : fmt::format("{}_{}", name, group);
  }

  // "b * 32 + s * 64 + p" for a table that broadcasts to [batch, heads, tokens, rotated / 2].
  std::string tableIndex(Value table, int group) {
    auto sizes = dimExprs(table);
    auto strides = broadcastStrides(sizes);
    static constexpr const char* axes[] = {"b", "(head - {})", "s", "p"};
    std::string text;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (strides[i] == DimExpr(0)) continue;
      const size_t axis = 4 - sizes.size() + i;
      std::string name = axes[axis];
      if (axis == 1) name = fmt::format(fmt::runtime(name), firstHead);
      const bool one = strides[i] == DimExpr(1);
      text += (text.empty() ? "" : " + ") + name +
              (one ? "" : " * " + size(strideName(axis, strides[i], group), strides[i]));
    }
    return text.empty() ? "0" : text;
  }

  // The norm of a head, with the roundings of its op.
  void norm(const HeadGroup& g, int number, std::string& early, std::string& store) {
    const double epsilon = g.norm->getAttrOfType<FloatAttr>("epsilon").getValueAsDouble();
    auto rounding = g.norm->getAttrOfType<GainRoundingAttr>("rounding");
    const bool before = rounding && rounding.getValue() == GainRounding::before_gain;
    std::string gain;
    if (g.gain) gain = buffer(type, fmt::format("gain_{}", number), g.gain, false);
    store += fmt::format("      const float scale = math_rsqrt(squares / {}.0f + {});\n", p.depth,
                         realLiteral(epsilon));
    for (int i : {0, 1}) {
      const char* variable = i ? "y" : "x";
      std::string value = fmt::format("to_f32({}) * scale", variable);
      if (g.gain && before) value = fmt::format("to_f32(from_f32<{}>({}))", type, value);
      if (g.gain) {
        early += fmt::format("      e.gains[{}] = {}[at{}];\n", i, gain, i ? " + across" : "");
        value += fmt::format(" * to_f32(e.gains[{}])", i);
      }
      store += fmt::format("      {} = from_f32<{}>({});\n", variable, type, value);
    }
  }

  // The status word of a write. Writes at the same positions into caches of one capacity fail
  // together: the first of them is told.
  std::string statusOf(UpdateOp update) {
    IndexCheck check = checkOf(update);
    const int positions = bufferOf(update.getPositions());
    auto [known, isNew] = statuses.try_emplace({positions, check.length.text()});
    if (!isNew) return known->second;
    for (HeadGroup& g : p.groups)
      if (g.update && bufferOf(g.update.getPositions()) == positions) {
        IndexCheck other = checkOf(g.update);
        if (other.length == check.length && other.op < check.op) check = other;
      }
    known->second = fmt::format("status_{}", statuses.size() - 1);
    parameters.status(known->second, check);
    hooks.fields += fmt::format("  i64* {};\n", known->second);
    hooks.values += ", " + known->second;
    return known->second;
  }

  // What a group adds to the two functions.
  void group(HeadGroup g, int number, const std::string& tokens, int64_t turning,
             std::string& early, std::string& store) {
    firstHead = g.firstColumn / p.depth;
    const int64_t end = g.firstColumn + g.heads * p.depth;
    const std::string begin =
        fmt::format("    {}if (column < {}) {{\n", number ? "else " : "", end) +
        fmt::format("      const i64 head = column / {0}, at = column % {0};\n", p.depth);
    early += begin;
    store += begin;
    if (g.norm) norm(g, number, early, store);
    if (g.rope) {
      const std::string cos = buffer("float", fmt::format("cos_{}", number), g.cos, false);
      const std::string sin = buffer("float", fmt::format("sin_{}", number), g.sin, false);
      const std::string index = tableIndex(g.cos, number);
      const std::string turns =
          p.rotated == p.depth ? "      {\n" : fmt::format("      if (p < {}) {{\n", turning);
      early += turns + fmt::format("        e.c = {0}[{2}];\n        e.n = {1}[{2}];\n      }}\n",
                                   cos, sin, index);
      store += turns + fmt::format(
                           "        const float even = to_f32(x), odd = to_f32(y);\n"
                           "        x = from_f32<{0}>(even * e.c - odd * e.n);\n"
                           "        y = from_f32<{0}>(even * e.n + odd * e.c);\n"
                           "      }}\n",
                           type);
    }
    std::string length = tokens, row = "s";
    if (g.update) {
      Value positions = g.update.getPositions();
      const std::string from = buffer(elementType(elementOf(positions)),
                                      fmt::format("positions_{}", number), positions, false);
      length = size(fmt::format("capacity_{}", number), dimExprs(g.update.getX())[2]);
      const std::string status = statusOf(g.update);
      early += fmt::format("      e.position = {}[b];\n", from);
      store += fmt::format(
          "      if (e.position < 0 || e.position > {} - {}) {{\n"
          "        lt_report_index({}, e.position);\n"
          "        return;\n"
          "      }}\n",
          length, tokens, status);
      row = "(e.position + s)";
    }
    const std::string to = buffer(type, fmt::format("y_{}", number), g.result, true);
    early += "    }\n";
    store += fmt::format(
        "      {0}* out = {1} + ((b * {2} + (head - {3})) * {4} + {5}) * {6} + at;\n"
        "      out[0] = x;\n"
        "      out[across] = y;\n"
        "    }}\n",
        type, to, g.heads, firstHead, length, row, p.depth);
  }

  RotatedProjection p;
  KernelParameters& parameters;
  const std::function<int(Value)>& bufferOf;
  std::string type;
  RotationHooks hooks;
  std::map<int, std::string> fields;  // by buffer
  std::set<std::string> sizes;
  std::map<std::string, DimExpr> tableStrides;                  // of tables, by name
  std::map<std::pair<int, std::string>, std::string> statuses;  // by positions and capacity
  int64_t firstHead = 0;
};

}  // namespace

RotationHooks printRotation(const RotatedProjection& projection, KernelParameters& parameters,
                            const std::function<int(Value)>& bufferOf) {
  return RotationPrinter(projection, parameters, bufferOf).print();
}

}  // namespace lathe::cuda
