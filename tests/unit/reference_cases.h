// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small programs for the tests of the reference interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe {

/// "2x3xf32" and its elements.
struct Literal {
  std::string type;
  std::vector<double> values;

  Array array() const {
    Shape shape;
    size_t begin = 0;
    for (size_t x; (x = type.find('x', begin)) != std::string::npos; begin = x + 1)
      shape.push_back(std::stoll(type.substr(begin, x - begin)));
    std::string element = type.substr(begin);
    DType dtype = element == "i1"    ? DType::Bool
                  : element == "ui8" ? DType::U8
                                     : parseDType(element).value();
    Array a(dtype, shape);
    EXPECT_EQ(a.size(), int64_t(values.size())) << type;
    for (size_t i = 0; i < values.size(); ++i) a.set(int64_t(i), values[i]);
    return a;
  }
};

/// The elements with nine digits, so that NaN and the sign of zero can be compared.
inline std::string show(const Array& a) {
  std::string s;
  for (int64_t i = 0; i < a.size(); ++i) {
    double v = a.at(i);
    char text[40];
    if (!isFloat(a.dtype())) {
      s += (i ? " " : "") + std::to_string(int64_t(v));
      continue;
    }
    std::snprintf(text, sizeof text, "%.9g", std::isnan(v) ? std::abs(v) : v);
    s += (i ? " " : "") + std::string(text);
  }
  return s;
}

/// One op on arguments %a, %b, ...; `$a` in its text stands for the type of %a.
struct OpCase {
  std::string op;
  std::vector<Literal> arguments;
  std::string resultTypes;  // comma-separated
  std::vector<std::string> expected;

  std::string text() const {
    std::string parameters, body = op, types, values;
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::string name(1, char('a' + i)), type = "tensor<" + arguments[i].type + ">";
      parameters += (i ? ", %" : "%") + name + ": " + type;
      for (size_t at; (at = body.find("$" + name)) != std::string::npos;) body.replace(at, 2, type);
    }
    size_t begin = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      size_t end = std::min(resultTypes.find(',', begin), resultTypes.size());
      types += (i ? ", tensor<" : "tensor<") + resultTypes.substr(begin, end - begin) + ">";
      values += (i ? ", %r#" : "%r#") + std::to_string(i);
      begin = end + 1;
    }
    return "func.func @f(" + parameters + ") -> (" + types +
           ") {\n  %r:" + std::to_string(expected.size()) + " = " + body + "\n  return " + values +
           " : " + types + "\n}\n";
  }
};

class ReferenceProgram {
 public:
  explicit ReferenceProgram(const std::string& text)
      : context_(createContext()), module_(parseModule(*context_, text, "test.mlir")) {}
  mlir::func::FuncOp function() { return *module_->getOps<mlir::func::FuncOp>().begin(); }
  std::vector<Array> run(const std::vector<Array>& arguments,
                         Precision precision = Precision::OwnDtype, const Symbols& symbols = {}) {
    return interpret(function(), arguments, weights, precision, observe, symbols);
  }
  std::string error(const std::vector<Array>& arguments,
                    ErrorCode code = ErrorCode::InvalidArgument, const Symbols& symbols = {}) {
    try {
      run(arguments, Precision::OwnDtype, symbols);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code);
      return e.what();
    }
    return "no error";
  }

  WeightProvider weights;
  ObserveFn observe;

 private:
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

}  // namespace lathe
