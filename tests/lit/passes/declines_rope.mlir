// RUN: lathe-opt %s --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s

// Each reason for which a pattern of rotations refuses a match.

// The halves overlap.
// CHECK: remark: rope-half: {{.*}}lathe.slice: the parts are not the two halves of the last axis
func.func @halves_overlap(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 3> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-half: {{.*}}'axis' of lathe.concat: the halves are not joined along the last axis
func.func @halves_in_rows(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<10x4xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 0 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<10x4xf32>
}

// -----

// One angle for all pairs.
// CHECK: remark: rope-half: {{.*}}the table f32[5, 1] has not one angle per pair of f32[5, 8]: it is broadcast
func.func @one_angle(%x: tensor<5x8xf32>, %c: tensor<5x1xf32>, %s: tensor<5x1xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x1xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x1xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x1xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x1xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Pairs of halves, joined as neighbours.
// CHECK: remark: rope-interleaved: {{.*}}lathe.slice: the parts are not the even and the odd elements of the last axis
func.func @halves_as_neighbours(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %f1 = lathe.reshape %f to <5, 4, 1> : tensor<5x4xf32>
  %g1 = lathe.reshape %g to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %f1, %g1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %y = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-interleaved: {{.*}}'axis' of lathe.concat: the parts are not joined along a new last axis
func.func @neighbours_as_halves(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %f1 = lathe.reshape %f to <5, 1, 4> : tensor<5x4xf32>
  %g1 = lathe.reshape %g to <5, 1, 4> : tensor<5x4xf32>
  %j = lathe.concat %f1, %g1 axis 1 : tensor<5x1x4xf32>, tensor<5x1x4xf32>
  %y = lathe.reshape %j to <5, 8> : tensor<5x2x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-doubled-tables: {{.*}}'axis' of lathe.concat: the halves are not joined along the last axis
func.func @rotated_rows(%x: tensor<8x8xf32>, %t: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %c = lathe.concat %t, %t axis 1 : tensor<8x4xf32>, tensor<8x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <4, 8> strides [1, 1] : tensor<8x8xf32>
  %b = lathe.slice %x starts <4, 0> sizes <4, 8> strides [1, 1] : tensor<8x8xf32>
  %n = lathe.neg %b : tensor<4x8xf32>
  %r = lathe.concat %n, %a axis 0 : tensor<4x8xf32>, tensor<4x8xf32>
  %p = lathe.mul %x, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %q = lathe.mul %r, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %y = lathe.add %p, %q : tensor<8x8xf32>, tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// The second half is the first again.
// CHECK: remark: rope-doubled-tables: {{.*}}lathe.slice: the parts are not the two halves of the last axis
func.func @one_half_twice(%x: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %c = lathe.concat %t, %t axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %a : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-doubled-tables: {{.*}}lathe.mul: another value is scaled than the one that is rotated
func.func @other_value(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %c = lathe.concat %t, %t axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %z, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The sine of two different halves.
// CHECK: remark: rope-doubled-tables: {{.*}}the halves of the table cannot be proved equal: wanted lathe.concat
func.func @two_halves(%x: tensor<5x8xf32>, %t: tensor<5x4xf32>, %u: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %c = lathe.concat %t, %t axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %s = lathe.concat %t, %u axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-doubled-neighbours: {{.*}}'axis' of lathe.concat: the parts are not joined along a new last axis
func.func @neighbours_joined_first(%x: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %t1 = lathe.reshape %t to <5, 4, 1> : tensor<5x4xf32>
  %t2 = lathe.broadcast %t1 to <5, 4, 2> : tensor<5x4x1xf32>
  %c = lathe.reshape %t2 to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 1, 4> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 1, 4> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 1 : tensor<5x1x4xf32>, tensor<5x1x4xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x2x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-doubled-neighbours: {{.*}}lathe.slice: the parts are not the even and the odd elements of the last axis
func.func @odd_elements_first(%x: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %t1 = lathe.reshape %t to <5, 4, 1> : tensor<5x4xf32>
  %t2 = lathe.broadcast %t1 to <5, 4, 2> : tensor<5x4x1xf32>
  %c = lathe.reshape %t2 to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-doubled-neighbours: {{.*}}lathe.mul: another value is scaled than the one that is rotated
func.func @other_value_of_neighbours(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %t1 = lathe.reshape %t to <5, 4, 1> : tensor<5x4xf32>
  %t2 = lathe.broadcast %t1 to <5, 4, 2> : tensor<5x4x1xf32>
  %c = lathe.reshape %t2 to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %z, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A sine of one column.
// CHECK: remark: rope-doubled-neighbours: {{.*}}the table f32[5, 1] has not two angles per pair of f32[5, 8]
func.func @one_sine_of_neighbours(%x: tensor<5x8xf32>, %s: tensor<5x1xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %t1 = lathe.reshape %t to <5, 4, 1> : tensor<5x4xf32>
  %t2 = lathe.broadcast %t1 to <5, 4, 2> : tensor<5x4x1xf32>
  %c = lathe.reshape %t2 to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %s : tensor<5x8xf32>, tensor<5x1xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Neighbours of the value, halves of the table.
// CHECK: remark: rope-doubled-neighbours: {{.*}}the neighbours of the table cannot be proved equal: wanted lathe.broadcast
func.func @table_of_halves(%x: tensor<5x8xf32>, %t: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %c = lathe.concat %t, %t axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Two tables side by side: neighbours have an angle each.
// CHECK: remark: rope-doubled-neighbours: {{.*}}the neighbours of the table cannot be proved equal: wanted lathe.broadcast
func.func @neighbours_of_two_tables(%x: tensor<5x8xf32>, %t: tensor<5x4x1xf32>, %u: tensor<5x4x1xf32>) -> tensor<5x8xf32> {
  %d = lathe.concat %t, %u axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %c = lathe.reshape %d to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-partial: {{.*}}'axis' of lathe.concat: the parts are not joined along the last axis
func.func @rest_in_rows(%x: tensor<10x4xf32>, %t: tensor<5x2xf32>) -> tensor<10x4xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<10x4xf32>
  %b = lathe.slice %x starts <5, 0> sizes <5, 4> strides [1, 1] : tensor<10x4xf32>
  %r = lathe.rope half %a, %t, %t : tensor<5x4xf32>, tensor<5x2xf32>, tensor<5x2xf32>
  %y = lathe.concat %r, %b axis 0 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<10x4xf32>
}

// -----

// CHECK: remark: rope-partial: {{.*}}lathe.slice: the parts are not the first elements and the rest of one value
func.func @rest_of_another(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %t: tensor<5x2xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %z starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %r = lathe.rope half %a, %t, %t : tensor<5x4xf32>, tensor<5x2xf32>, tensor<5x2xf32>
  %y = lathe.concat %r, %b axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// The rest is not all of the rest.
// CHECK: remark: rope-partial: {{.*}}lathe.slice: the parts are not the first elements and the rest of one value
func.func @rest_cut_short(%x: tensor<5x9xf32>, %t: tensor<5x2xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x9xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x9xf32>
  %r = lathe.rope half %a, %t, %t : tensor<5x4xf32>, tensor<5x2xf32>, tensor<5x2xf32>
  %y = lathe.concat %r, %b axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: rope-partial: {{.*}}only a part of the head rotates
func.func @part_of_the_part(%x: tensor<5x8xf32>, %t: tensor<5x1xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %r = lathe.rope half %a, %t, %t : tensor<5x4xf32>, tensor<5x1xf32>, tensor<5x1xf32>
  %y = lathe.concat %r, %b axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// One half of one value and the other of another.
// CHECK: remark: rope-half: {{.*}}lathe.slice: the parts are not the two halves of the last axis
func.func @halves_of_two_values(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %z starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// One table of the two holds each angle twice.
// CHECK: remark: rope-doubled-tables: {{.*}}the halves of the table cannot be proved equal: wanted lathe.concat
func.func @one_doubled_table(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %cc = lathe.concat %c, %c axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %cc : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// One table of the two holds each angle twice in a row.
// CHECK: remark: rope-doubled-neighbours: {{.*}}the neighbours of the table cannot be proved equal: wanted lathe.broadcast
func.func @one_table_of_neighbours(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %c1 = lathe.reshape %c to <5, 4, 1> : tensor<5x4xf32>
  %c2 = lathe.broadcast %c1 to <5, 4, 2> : tensor<5x4x1xf32>
  %cc = lathe.reshape %c2 to <5, 8> : tensor<5x4x2xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <5, 4> strides [1, 2] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %n1 = lathe.reshape %n to <5, 4, 1> : tensor<5x4xf32>
  %a1 = lathe.reshape %a to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %n1, %a1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %r = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  %p = lathe.mul %x, %cc : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
