// SPDX-License-Identifier: Apache-2.0
// The dialect and what every family of ops shares. Families include attrs.td (hence this file) and
// never each other.
#ifndef LATHE_BASE_TD
#define LATHE_BASE_TD
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "interfaces.td"

def LatheDialect : Dialect {
  let name = "lathe";
  let cppNamespace = "::lathe";
  let summary = "computation graphs of transformers";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 0;
  let extraClassDeclaration = [{
    // Set by a driver that numbers rewrites; every lathe pass uses it as its listener.
    ::lathe::RewriteLog *rewriteLog = nullptr;
    // What rewrites may do to rounding and special values (passes/rewrite/numerics_scope.h).
    ::lathe::NumericsPolicy *numerics = nullptr;
  }];
}

def RealTensor : RankedTensorOf<[F64, F32, BF16, F16]>;
def IntegerTensor : RankedTensorOf<[I64, I32, I16, I8, UI8]>;
def IdTensor : RankedTensorOf<[I64, I32]>;
def BoolTensor : RankedTensorOf<[I1]>;
def NumberTensor : RankedTensorOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8]>;
def AnyTensorType : RankedTensorOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8, I1]>;

// What memory can hold: 4-bit integers lie two to a byte, and only ops that name them take them.
def QuantizedTensor : RankedTensorOf<[I8, UI8, I<4>, UI<4>]>;
def StoredTensor
    : RankedTensorOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8, I1, I<4>, UI<4>]>;

// In assembly formats `` in front of an enumeration takes back one of two spaces: the format and the
// attribute both print one.
class LatheOp<string mnemonic, list<Trait> traits = []> : Op<LatheDialect, mnemonic, traits> {
  // The C++ function that records an op (lathe/ir/recorded_ops.h, written by scripts/generate_api) is named
  // as the op in camel case and takes its operands, then its attributes, those with a default last.
  // Where that does not serve, these are its parameters, and the rest are the fields of a struct.
  list<string> builderParameters = [];
  string builderOptions = "";
}
// A required attribute for which the C++ function has a default.
class Given<Attr attr, string value, string text = ""> : Arg<attr, text> {
  string builderDefault = value;
}

// Result types come from Adaptor-form inferReturnTypes: one definition serves the builder, the
// parser (no result type in the text) and the verifier.
class PureInferred<string mnemonic, list<Trait> traits = []>
    : LatheOp<mnemonic, !listconcat([Pure, InferTypeOpAdaptor, CostedOp, FactoredOp], traits)>;
class Movement<string mnemonic, list<Trait> traits = []>
    : PureInferred<mnemonic, !listconcat([IsMovement], traits)>;
#endif
