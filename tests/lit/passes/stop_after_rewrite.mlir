// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse --log-rewrites -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse --stop-after-rewrite=0 | FileCheck %s --check-prefix=NONE
// RUN: lathe-opt %s --canonicalize --stop-after-rewrite=0 | FileCheck %s --check-prefix=NONE
// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse --stop-after-rewrite=1 | FileCheck %s --check-prefix=ONE
// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse --stop-after-rewrite=2 | FileCheck %s --check-prefix=TWO

// LOG: rewrite #1 attempt {{[0-9]+}} fold
// LOG-NEXT: rewrite #2 attempt {{[0-9]+}} pass lathe-cse
// LOG-NEXT: rewrite #3 attempt {{[0-9]+}} glu
// LOG-NOT: rewrite

// NONE-COUNT-2: lathe.neg
// ONE-NOT: lathe.neg
// ONE-COUNT-2: lathe.exp
// TWO-COUNT-1: lathe.exp
// TWO-NOT: lathe.glu
func.func @silu(%g: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %n = lathe.neg %g : tensor<4xf32>
  %p = lathe.neg %n : tensor<4xf32>
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %s, %p : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %u, %a : tensor<4xf32>, tensor<4xf32>
  %e = lathe.exp %y : tensor<4xf32>
  %t = lathe.sigmoid %e : tensor<4xf32>
  %f = lathe.exp %y : tensor<4xf32>
  return %t, %f : tensor<4xf32>, tensor<4xf32>
}
