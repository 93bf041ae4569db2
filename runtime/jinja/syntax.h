// SPDX-License-Identifier: Apache-2.0
#pragma once
// A template as a tree.
#include <memory>
#include <string>
#include <vector>

#include "runtime/jinja/value.h"

namespace lathe::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  enum class Kind {
    // Expressions. `parts` hold operands, then arguments, of which the last have `names`.
    Literal,      // value
    Name,         // text
    List,         // parts
    Dict,         // parts: key, value, key, value
    Attribute,    // parts[0].text
    Subscript,    // parts[0][parts[1]]
    Slice,        // parts[0][parts[1]:parts[2]:parts[3]], each may be null
    Call,         // parts[0](parts[1...])
    Filter,       // parts[0] | text(parts[1...])
    Test,         // parts[0] is text(parts[1...])
    Unary,        // text parts[0]: not, -, +
    Binary,       // parts[0] text parts[1]
    Compare,      // parts[0] names[0] parts[1] names[1] parts[2]
    Conditional,  // parts[1] if parts[0] else parts[2], which may be null
    // Statements
    Body,      // parts
    Data,      // text
    Output,    // parts[0]
    If,        // parts: condition, body, condition, body, and perhaps a last body
    For,       // for names in parts[0] [if parts[1]] parts[2] [else parts[3]]; 1 and 3 may be null
    Set,       // names = parts[0]; with text: names[0].text = parts[0]
    SetBlock,  // names[0] = what parts[0] prints
    Macro,     // text(names), defaults of the last ones in parts[1...]; parts[0] is the body
    Break,
    Continue,
  };
  Kind kind;
  int line = 0;
  std::string text = {};
  Value value = {};
  std::vector<NodePtr> parts = {};
  std::vector<std::string> names = {};
  int depth = 1;  // of the tree below
};

}  // namespace lathe::jinja
