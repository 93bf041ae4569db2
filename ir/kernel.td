// SPDX-License-Identifier: Apache-2.0
// What passes and backends make: fusion regions, packed weights, kernel calls. Users never record
// these.
#ifndef LATHE_KERNEL_TD
#define LATHE_KERNEL_TD
include "attrs.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def PackOp : PureInferred<"pack", [HasOwnKernel, HasNoArithmetic]> {
  let summary = "a weight matrix, or each of a stack, re-ordered for the backend's matmul";
  let description = [{
    The result keeps the logical type of the `[n, k]` matrix, or of `[groups, n, k]`; its bytes are
    the backend's own. `source` says how the operand lies: `out_in` is `[n, k]`, `in_out` is
    `[k, n]`.

    - [C1] the operand is static and of rank 2 or 3.
    - [C2] `source` is not `packed`.
  }];
  let arguments = (ins RankedTensorOf<[F64, F32, BF16, F16, I8, UI8, I<4>, UI<4>]>:$w, WeightLayoutAttr:$source);
  let results = (outs RankedTensorOf<[F64, F32, BF16, F16, I8, UI8, I<4>, UI<4>]>:$y);
  let assemblyFormat = "$w `` $source attr-dict `:` type($w)";
}
def RegionOp : LatheOp<"region", [Pure, HasOwnKernel, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "elementary ops that run as one generated kernel";
  let description = [{
    - [C1] the block's arguments have the types of the operands.
    - [C2] the yielded values have the types of the results.
  }];
  let arguments = (ins Variadic<AnyTensorType>:$inputs);
  let results = (outs Variadic<AnyTensorType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
}
def YieldOp : LatheOp<"yield", [Pure, IsDeclaration, Terminator, ReturnLike, HasParent<"RegionOp">]> {
  let summary = "the results of a fusion region";
  let arguments = (ins Variadic<AnyTensorType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let builders = [OpBuilder<(ins), [{ }]>];
}
def KernelOp : LatheOp<"kernel", [Pure, HasOwnKernel]> {
  let summary = "one call of a backend's kernel";
  let description = [{
    `kind` names the kernel family (`region`, `linear`, `attention`, ...), `callee` the generated
    function for `region`; `config` is what the kernel is told (lathe/runtime/call_config.h). After planning, `slots` holds one
    slot number per operand and result.
  }];
  let arguments = (ins Variadic<StoredTensor>:$inputs, StrAttr:$kind,
      OptionalAttr<FlatSymbolRefAttr>:$callee, DictionaryAttr:$config,
      OptionalAttr<DenseI64ArrayAttr>:$slots);
  let results = (outs Variadic<StoredTensor>:$outputs);
  let assemblyFormat = "$kind ($callee^)? `(` $inputs `)` $config (`slots` $slots^)? attr-dict `:` functional-type($inputs, $outputs)";
}
#endif
