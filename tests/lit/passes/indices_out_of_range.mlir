// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse | FileCheck %s

// An index behind the end or in front of the first is an error when the program runs: what would hide
// it is not folded away. Of a named size nothing is known but that it is no less than 0.
// CHECK-LABEL: @stays
// CHECK-COUNT-4: lathe.gather
func.func @stays() -> (tensor<7xi64>, tensor<8xi64>, tensor<?xi64, #lathe.dims<more>>, tensor<?xi64, #lathe.dims<more>>) {
  %two = lathe.constant dense<2> : tensor<i64>
  %one = lathe.constant dense<1> : tensor<i64>
  %i = lathe.iota <8> axis 0 dtype i64
  %seven = lathe.iota <7> axis 0 dtype i64
  %late = lathe.add %seven, %two : tensor<7xi64>, tensor<i64>
  %early = lathe.sub %i, %one : tensor<8xi64>, tensor<i64>
  %named = lathe.iota <more> axis 0 dtype i64
  %next = lathe.add %named, %one : tensor<?xi64, #lathe.dims<more>>, tensor<i64>
  %a = lathe.gather %i, %late axis 0 : tensor<8xi64>, tensor<7xi64>
  %b = lathe.gather %i, %early axis 0 : tensor<8xi64>, tensor<8xi64>
  %c = lathe.gather %i, %named axis 0 : tensor<8xi64>, tensor<?xi64, #lathe.dims<more>>
  %d = lathe.gather %named, %next axis 0 : tensor<?xi64, #lathe.dims<more>>, tensor<?xi64, #lathe.dims<more>>
  return %a, %b, %c, %d : tensor<7xi64>, tensor<8xi64>, tensor<?xi64, #lathe.dims<more>>, tensor<?xi64, #lathe.dims<more>>
}

// A cache may be empty: its length is not known to be more than 0, nor a ramp's end from it.
// CHECK-LABEL: @empty_cache
// CHECK: lathe.select
func.func @empty_cache(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %one = lathe.constant dense<1> : tensor<i64>
  %zero = lathe.constant dense<0> : tensor<i64>
  %ones = lathe.broadcast %one to <more> : tensor<i64>
  %length = lathe.reduce_sum %ones axes [0] : tensor<?xi64, #lathe.dims<more>>
  %some = lathe.compare gt %length, %zero : tensor<i64>, tensor<i64>
  %s = lathe.select %some, %x, %y : tensor<i1>, tensor<3xf32>, tensor<3xf32>
  return %s : tensor<3xf32>
}
