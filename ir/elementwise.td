// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_ELEMENTWISE_TD
#define LATHE_ELEMENTWISE_TD
include "attrs.td"

// What an elementwise op does to one element (ScalarOp): `value` is an expression of a ScalarBuilder
// `k` and of the operands by their names. `element` is the first operand's element type, and
// `isUnsigned` is true of ui8 and i1.
class Emission<list<string> operands, string value> {
  string declaration = [{
    ::mlir::Value emit(::lathe::ScalarBuilder &k, ::mlir::ValueRange operands);
  }];
  string names = !interleave(!foreach(i, !range(operands),
      "const ::mlir::Value " # operands[i] # " = operands[" # i # "];"), " ");
  string definition = [{
    ::mlir::Value $cppClass::emit(::lathe::ScalarBuilder &k, ::mlir::ValueRange operands) {
      [[maybe_unused]] const ::mlir::Type element =
          ::mlir::getElementTypeOrSelf((*this)->getOperand(0));
      [[maybe_unused]] const bool isUnsigned = ::lathe::isUnsigned(element);
      }] # names # [{
      return }] # value # [{;
    }
  }];
}

class Unary<string mnemonic, string text, string value, Type type = RealTensor, list<Trait> t = []>
    : PureInferred<mnemonic, !listconcat([IsElementwise], t)> {
  let summary = text;
  let description = "The result has the operand's type.";
  let arguments = (ins type:$x);
  let results = (outs type:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let extraClassDeclaration = Emission<["x"], value>.declaration # [{
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes) {
      return sizes.reals(getY());
    }
  }];
  let extraClassDefinition = Emission<["x"], value>.definition # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        ::std::optional<::mlir::Location>, Adaptor a, ::llvm::SmallVectorImpl<::mlir::Type> &r) {
      r.push_back(a.getX().getType());
      return ::mlir::success();
    }
  }];
}
class Binary<string mnemonic, string text, string value, Type type = NumberTensor,
             list<Trait> t = []>
    : PureInferred<mnemonic, !listconcat([IsElementwise], t)> {
  let summary = text;
  let description = [{
    Shapes broadcast as in NumPy: aligned at the last axis, a literal 1 stretches.

    - [C1] both operands have one element type.
    - [C2] two dims are equal, or one is a literal 1.
  }];
  let arguments = (ins type:$a, type:$b);
  let results = (outs type:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
  let extraClassDeclaration = Emission<["a", "b"], value>.declaration # [{
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes) {
      return sizes.reals(getY());
    }
  }];
  let extraClassDefinition = Emission<["a", "b"], value>.definition # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        ::std::optional<::mlir::Location> loc, Adaptor a, ::llvm::SmallVectorImpl<::mlir::Type> &r) {
      return ::lathe::inferBroadcast(loc, getOperationName(), {a.getA(), a.getB()}, nullptr, r);
    }
  }];
}

def NegOp : Unary<"neg", "minus x", "k.negative(x)", NumberTensor> { let hasFolder = 1; }
def AbsOp : Unary<"abs", "magnitude of x", "k.magnitude(x, isUnsigned)", NumberTensor>;
def SignOp : Unary<"sign", "-1, 0 or 1 by the sign of x; NaN stays",
    "k.sign(x, isUnsigned)", NumberTensor>;
def ExpOp : Unary<"exp", "e to the x", "k.exponential(x)", RealTensor, [IsTranscendental]>;
def LogOp : Unary<"log", "natural logarithm; NaN below 0",
    "k.make<math::LogOp>(x)", RealTensor, [IsTranscendental]>;
def SqrtOp : Unary<"sqrt", "square root", "k.make<math::SqrtOp>(x)">;
def RsqrtOp : Unary<"rsqrt", "1 / sqrt(x)", "k.make<math::RsqrtOp>(x)">;
def ReciprocalOp : Unary<"reciprocal", "1 / x", "k.quotient(k.whole(x.getType(), 1), x)">;
def SinOp : Unary<"sin", "sine of x in radians",
    "k.make<math::SinOp>(x)", RealTensor, [IsTranscendental]>;
def CosOp : Unary<"cos", "cosine of x in radians",
    "k.make<math::CosOp>(x)", RealTensor, [IsTranscendental]>;
def TanhOp : Unary<"tanh", "hyperbolic tangent",
    "k.make<math::TanhOp>(x)", RealTensor, [IsTranscendental]>;
def ErfOp : Unary<"erf", "error function",
    "k.make<math::ErfOp>(x)", RealTensor, [IsTranscendental]>;
def SigmoidOp : Unary<"sigmoid", "1 / (1 + exp(-x))",
    "k.sigmoid(x)", RealTensor, [IsTranscendental]>;
def FloorOp : Unary<"floor", "largest integer not above x", "k.make<math::FloorOp>(x)">;
def CeilOp : Unary<"ceil", "smallest integer not below x", "k.make<math::CeilOp>(x)">;
def RoundOp : Unary<"round", "nearest integer, ties to even", "k.make<math::RoundEvenOp>(x)">;
def LogicalNotOp : Unary<"logical_not", "true where x is false",
    "k.opposite(x)", BoolTensor> { let hasFolder = 1; }

def IsNanOp : PureInferred<"is_nan", [IsElementwise, HasNoArithmetic]> {
  let summary = "true where x is NaN";
  let description = "The result has the operand's shape and element type i1.";
  let arguments = (ins RealTensor:$x);
  let results = (outs BoolTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  defvar emission = Emission<["x"], "k.isNan(x)">;
  let extraClassDeclaration = emission.declaration;
  let extraClassDefinition = emission.definition;
}

def AddOp : Binary<"add", "a + b",
    "k.sum(a, b)", NumberTensor, [Commutative]> { let hasFolder = 1; }
def SubOp : Binary<"sub", "a - b", "k.difference(a, b)"> { let hasFolder = 1; }
def MulOp : Binary<"mul", "a * b",
    "k.product(a, b)", NumberTensor, [Commutative]> { let hasFolder = 1; }
def DivOp : Binary<"div", "a / b; integers round toward zero, x / 0 is 0 for integers",
    "k.quotient(a, b, isUnsigned)"> {
  let hasFolder = 1;
}
def MaxOp : Binary<"max", "the larger; NaN if either is NaN",
    "k.larger(a, b, isUnsigned)", NumberTensor, [Commutative]>;
def MinOp : Binary<"min", "the smaller; NaN if either is NaN",
    "k.smaller(a, b, isUnsigned)", NumberTensor, [Commutative]>;
def PowOp : Binary<"pow", "a to the b",
    "k.make<math::PowFOp>(a, b)", RealTensor, [IsTranscendental]> { let hasFolder = 1; }
def ModOp : Binary<"mod", "remainder with the sign of b (floored division); 0 for integer b = 0",
    "k.flooredRemainder(a, b, isUnsigned)">;
def LogicalAndOp : Binary<"logical_and", "a and b",
    "k.make<arith::AndIOp>(a, b)", BoolTensor, [Commutative]>;
def LogicalOrOp : Binary<"logical_or", "a or b",
    "k.make<arith::OrIOp>(a, b)", BoolTensor, [Commutative]>;
def BitwiseAndOp : Binary<"bitwise_and", "a & b",
    "k.make<arith::AndIOp>(a, b)", IntegerTensor, [Commutative]>;
def BitwiseOrOp : Binary<"bitwise_or", "a | b",
    "k.make<arith::OrIOp>(a, b)", IntegerTensor, [Commutative]>;
def BitwiseXorOp : Binary<"bitwise_xor", "a ^ b",
    "k.make<arith::XOrIOp>(a, b)", IntegerTensor, [Commutative]>;
def ShiftLeftOp : Binary<"shift_left", "a << b; 0 when b is at least the width",
    "k.shiftLeft(a, b)", IntegerTensor>;
def ShiftRightOp : Binary<"shift_right", "a >> b, logical; 0 when b is at least the width",
    "k.shiftRight(a, b)", IntegerTensor>;

def CompareOp : PureInferred<"compare", [IsElementwise, HasNoArithmetic]> {
  let summary = "elementwise comparison";
  let description = [{
    Broadcasts as the binary ops do; the element type of the result is i1.

    - [C1] both operands have one element type.
    - [C2] two dims are equal, or one is a literal 1.
  }];
  let arguments = (ins AnyTensorType:$a, AnyTensorType:$b, CompareAttr:$predicate);
  let results = (outs BoolTensor:$y);
  let assemblyFormat = "`` $predicate $a `,` $b attr-dict `:` type($a) `,` type($b)";
  defvar emission = Emission<["a", "b"], "k.compare(getPredicate(), a, b, isUnsigned)">;
  let extraClassDeclaration = emission.declaration;
  let extraClassDefinition = emission.definition;
}
def SelectOp : PureInferred<"select", [IsElementwise, HasNoArithmetic]> {
  let summary = "a where the condition holds, else b";
  let description = [{
    All three broadcast together.

    - [C1] `a` and `b` have one element type.
    - [C2] two dims are equal, or one is a literal 1.
  }];
  let arguments = (ins BoolTensor:$condition, AnyTensorType:$a, AnyTensorType:$b);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($a) `,` type($b)";
  defvar emission = Emission<["condition", "a", "b"], "k.make<arith::SelectOp>(condition, a, b)">;
  let extraClassDeclaration = emission.declaration;
  let extraClassDefinition = emission.definition;
}
def CastOp : PureInferred<"cast", [IsElementwise, HasNoArithmetic]> {
  let summary = "conversion to another element type";
  let description = [{
    To a narrower float: nearest, ties to even. Float to integer: toward zero; beyond the range the
    lowest or highest integer, and 0 for NaN. To i1: not equal zero. To a narrower integer: the low
    bits.

    - [C1] `dtype` is an element type that tensors can have.
    - [C2] 4-bit integers become i8 or u8 and come from them alone.
  }];
  let arguments = (ins StoredTensor:$x, TypeAttr:$dtype);
  let results = (outs StoredTensor:$y);
  let assemblyFormat = "$x `to` $dtype attr-dict `:` type($x)";
  let hasFolder = 1;
  let hasVerifier = 1;
  defvar emission = Emission<["x"], "k.convert(x, element, getDtype())">;
  let extraClassDeclaration = emission.declaration;
  let extraClassDefinition = emission.definition;
}
def BitcastOp : PureInferred<"bitcast", [IsElementwise, HasNoArithmetic]> {
  let summary = "the same bits read as another element type of equal width";
  let description = "- [C1] both element types have the same width.";
  let arguments = (ins AnyTensorType:$x, TypeAttr:$dtype);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `to` $dtype attr-dict `:` type($x)";
  defvar emission = Emission<["x"], "k.bitcast(x, element, getDtype())">;
  let extraClassDeclaration = emission.declaration;
  let extraClassDefinition = emission.definition;
}
#endif
