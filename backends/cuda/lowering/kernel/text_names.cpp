// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/text_names.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "backends/cuda/device/headers.h"

namespace lathe::cuda {
namespace {

// Words of C++20, of CUDA and of the printers that a name would hide or break.
constexpr std::string_view kWords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq NULL assert asm linux main restrict unix warpSize "
    "threadIdx blockIdx blockDim gridDim j k status";

// What the headers of kernels define: macros and what they are given to define, types, functions.
std::set<std::string, std::less<>> definedIn(const Headers& headers) {
  std::set<std::string, std::less<>> names;
  for (const auto& [file, text] : headers) {
    auto charAt = [&text = text](size_t at) { return at < text.size() ? text[at] : '\0'; };
    std::string before;
    bool isType = false;  // in the words from "struct" or "typedef" on
    for (size_t at = 0; at < text.size();) {
      if (text.compare(at, 2, "//") == 0) at = std::min(text.find('\n', at), text.size());
      if (at >= text.size() || !isWordCharacter(text[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < text.size() && isWordCharacter(text[end])) ++end;
      const std::string word = text.substr(at, end - at);
      const char next = charAt(end), ahead = charAt(end + 1);
      // "float name(": behind a type.
      const bool isFunction = next == '(' && at > 1 && text[at - 1] == ' ' &&
                              (isWordCharacter(text[at - 2]) ||
                               std::string_view(">*&").find(text[at - 2]) != std::string::npos);
      const bool isGiven = before.rfind("LT_", 0) == 0 && at > 0 && text[at - 1] == '(';
      isType |= word == "struct" || word == "typedef";
      const bool endsType = next == ';' || (next == ' ' && (ahead == '{' || ahead == ':'));
      if (isFunction || isGiven || before == "define" || (isType && endsType)) names.insert(word);
      isType &= !endsType;
      before = word;
      at = end;
    }
  }
  return names;
}

bool isReserved(const std::string& name) {
  static const std::set<std::string, std::less<>> reserved = [] {
    auto names = definedIn(deviceHeaders());
    names.merge(definedIn(hostHeaders()));
    for (size_t at = 0; at < kWords.size();) {
      const size_t end = std::min(kWords.find(' ', at), kWords.size());
      names.emplace(kWords.substr(at, end - at));
      at = end + 1;
    }
    return names;
  }();
  return reserved.count(name) != 0;
}

}  // namespace

std::string identifierOf(std::string_view hint) {
  constexpr size_t kMost = 48;
  std::string name;
  for (char c : hint.substr(0, kMost)) {
    if (!isWordCharacter(c)) c = '_';
    // Names with two underscores, or with one in front, belong to compilers.
    if (c == '_' && (name.empty() || name.back() == '_')) continue;
    name += c;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "x" + name;
  return name;
}

std::string wordFor(std::string_view mnemonic) {
  static const std::map<std::string_view, const char*> words{{"add", "sum"},
                                                             {"sub", "difference"},
                                                             {"mul", "product"},
                                                             {"div", "quotient"},
                                                             {"mod", "remainder"},
                                                             {"rem", "remainder"},
                                                             {"neg", "negated"},
                                                             {"abs", "magnitude"},
                                                             {"pow", "raised"},
                                                             {"max", "larger"},
                                                             {"maximum", "larger"},
                                                             {"min", "smaller"},
                                                             {"minimum", "smaller"},
                                                             {"fma", "fused"},
                                                             {"copysign", "signed_as"},
                                                             // functions
                                                             {"exp", "power"},
                                                             {"log", "logarithm"},
                                                             {"sqrt", "root"},
                                                             {"rsqrt", "inverse_root"},
                                                             {"reciprocal", "inverse"},
                                                             {"sin", "sine"},
                                                             {"cos", "cosine"},
                                                             {"tanh", "tanh"},
                                                             {"erf", "error"},
                                                             {"sigmoid", "sigmoid"},
                                                             {"floor", "below"},
                                                             {"ceil", "above"},
                                                             {"round", "nearest"},
                                                             {"roundeven", "nearest"},
                                                             // choices and conversions
                                                             {"select", "chosen"},
                                                             {"compare", "holds"},
                                                             {"cmp", "holds"},
                                                             {"cmpi", "holds"},
                                                             {"if", "picked"},
                                                             {"cast", "as"},
                                                             {"bitcast", "bits"},
                                                             {"trunc", "rounded"},
                                                             {"ext", "wide"},
                                                             {"sitofp", "as_float"},
                                                             {"uitofp", "as_float"},
                                                             {"fptosi", "as_int"},
                                                             {"fptoui", "as_int"},
                                                             // reductions
                                                             {"reduce_sum", "total"},
                                                             {"reduce_mean", "mean"},
                                                             {"reduce_max", "largest"},
                                                             {"reduce_min", "smallest"},
                                                             {"reduce_prod", "all_product"},
                                                             {"reduce_any", "any"},
                                                             {"reduce_all", "all"},
                                                             {"argmax", "best"},
                                                             {"argmin", "least"},
                                                             {"call_opaque", "reduced"},
                                                             // movement
                                                             {"gather", "picked"},
                                                             {"concat", "joined"},
                                                             {"pad", "padded"},
                                                             {"iota", "counted"},
                                                             {"shuffle", "moved"},
                                                             {"insert", "inserted"},
                                                             {"random_bits", "random"}};
  auto it = words.find(mnemonic);
  if (it == words.end() && mnemonic.ends_with('f'))
    it = words.find(mnemonic.substr(0, mnemonic.size() - 1));
  return it == words.end() ? "" : it->second;
}

std::string Names::unique(std::string_view hint) {
  const std::string base = identifierOf(hint);
  std::string name = base;
  for (int i = 2; isReserved(name) || !taken_.insert(name).second; ++i)
    name = base + std::to_string(i);
  return name;
}

}  // namespace lathe::cuda
