// RUN: lathe-opt %s --lathe-fuse='patterns=%S/../../../examples/fusions/glu.pdl.mlir' --log-rewrites 2>&1 | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse='patterns=%S/../../../examples/fusions/glu.pdl.mlir' --stop-after-rewrite=0 | FileCheck %s --check-prefix=NONE
// RUN: not lathe-opt %s --lathe-fuse='patterns=%S/none.mlir' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not lathe-opt %s --lathe-fuse='patterns=%s' 2>&1 | FileCheck %s --check-prefix=WRONG

// A file's fusion comes before the built-in one of the same meaning.
// CHECK: rewrite #1 attempt {{[0-9]+}} glu_pdl
// CHECK-LABEL: @gate
// CHECK-NEXT: lathe.glu %arg0, %arg1
// NONE: lathe.sigmoid
// MISSING: error: {{.*}}none.mlir: cannot open
// WRONG: error: {{.*}}fuse_pattern_file.mlir:13: expected pdl.pattern, got func.func
func.func @gate(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %g, %s : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
