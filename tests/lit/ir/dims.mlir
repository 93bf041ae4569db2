// RUN: lathe-opt %s | FileCheck %s
// RUN: lathe-opt %s | lathe-opt | FileCheck %s

// Sums of products read back in canonical form, and equality is equality of the canonical texts.
// CHECK-LABEL: @canonical
// CHECK-SAME: #lathe.dims<cache+2*seq, 4>
func.func @canonical(%a: tensor<?x4xf32, #lathe.dims<2*seq+cache, 4>>,
                     %b: tensor<?x4xf32, #lathe.dims<seq+cache+seq, 4>>) {
  // CHECK: lathe.add %{{.*}}, %{{.*}} : tensor<?x4xf32, #lathe.dims<cache+2*seq, 4>>, tensor<?x4xf32, #lathe.dims<cache+2*seq, 4>>
  %0 = lathe.add %a, %b : tensor<?x4xf32, #lathe.dims<2*seq+cache, 4>>, tensor<?x4xf32, #lathe.dims<seq+cache+seq, 4>>
  return
}

// CHECK-LABEL: @concat_adds
func.func @concat_adds(%a: tensor<?x4xf32, #lathe.dims<cache, 4>>,
                       %b: tensor<?x4xf32, #lathe.dims<seq, 4>>) -> tensor<?x4xf32, #lathe.dims<cache+seq, 4>> {
  %0 = lathe.concat %a, %b axis 0 : tensor<?x4xf32, #lathe.dims<cache, 4>>, tensor<?x4xf32, #lathe.dims<seq, 4>>
  return %0 : tensor<?x4xf32, #lathe.dims<cache+seq, 4>>
}

// CHECK-LABEL: @reshape_multiplies
func.func @reshape_multiplies(%a: tensor<?x?x4x16xf32, #lathe.dims<batch, seq, 4, 16>>)
    -> tensor<?x64xf32, #lathe.dims<batch*seq, 64>> {
  %0 = lathe.reshape %a to <batch*seq, 64> : tensor<?x?x4x16xf32, #lathe.dims<batch, seq, 4, 16>>
  return %0 : tensor<?x64xf32, #lathe.dims<batch*seq, 64>>
}

// A number may be taken off by its sign.
// CHECK-LABEL: @signs
// CHECK-SAME: #lathe.dims<2*cache+seq minus 1>
// CHECK-SAME: #lathe.dims<seq minus 2*cache minus 3>
func.func @signs(%a: tensor<?xf32, #lathe.dims<seq-1+2*cache>>,
                 %b: tensor<?xf32, #lathe.dims<seq-2*cache - 3>>) { return }

// Without a term to begin with, a difference begins with 0.
// CHECK-LABEL: @nothing_but_differences
// CHECK-SAME: #lathe.dims<0 minus seq+8, 4>
// CHECK-SAME: #lathe.dims<0 minus 2*cache minus seq minus 3>
// CHECK-SAME: #lathe.dims<0 minus cache*seq>
func.func @nothing_but_differences(%a: tensor<?x4xf32, #lathe.dims<8 minus seq, 4>>,
                                   %b: tensor<?xf32, #lathe.dims<0 minus seq-3 minus 2*cache>>,
                                   %c: tensor<?xf32, #lathe.dims<0 minus seq*cache>>) { return }

// A difference is printed with the word, which symbols need: their sign cannot be read.
// CHECK-LABEL: @difference
func.func @difference(%a: tensor<?xf32, #lathe.dims<seq>>) {
  // CHECK: lathe.slice %{{.*}} starts <1> sizes <seq minus 1> strides [1]
  %0 = lathe.slice %a starts <1> sizes <seq minus 1> strides [1] : tensor<?xf32, #lathe.dims<seq>>
  return
}

// An unnamed dim is equal to nothing, but passes through where nothing is compared.
// CHECK-LABEL: @unnamed
func.func @unnamed(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = lathe.exp %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
