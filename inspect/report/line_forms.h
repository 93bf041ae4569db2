// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of IR as a form and the numbers in it. The layers of a model repeat the same forms, so that
// a line costs a few numbers.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llvm::json {
class OStream;
}

namespace lathe {

/// Stands for a number in a form. MLIR prints no such byte: it escapes it.
inline constexpr char kHole = '\x7f';

class LineForms {
 public:
  struct Form {
    std::string text;                ///< "%<hole> = lathe.mul %<hole>, %arg<hole> : ..."
    std::vector<bool> values;        ///< per hole: whether it names a value of its function
    unsigned results = 0;            ///< so many of the first values are defined by the line
    std::vector<std::string> types;  ///< of those values, or of a function's arguments
  };

  /// Numbers of value names (%12), those within quotes and symbol names ("layers.3", @region_7),
  /// and the buffers of a kernel call (slots [4, 5]) are taken out into `holes`. `types`: of what
  /// the line defines, which its text need not say.
  unsigned split(std::string_view line, std::vector<std::string> types,
                 std::vector<uint32_t>& holes);

  const Form& form(unsigned id) const { return forms_[id]; }
  /// Keys `forms` and `formTypes`: per form, the types of what it defines.
  void write(llvm::json::OStream& out) const;

 private:
  std::vector<Form> forms_;
  std::unordered_map<std::string, unsigned> ids_;
};

}  // namespace lathe
