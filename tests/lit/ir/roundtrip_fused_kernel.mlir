// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: @fused
func.func @fused(%x: tensor<2x8xf32>, %gain: tensor<8xf32>, %table: tensor<2x4xf32>,
                 %q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %mask: tensor<3x5xi1>,
                 %positions: tensor<2xi64>, %w: tensor<6x8xf32>, %bias: tensor<6xf32>,
                 %residual: tensor<2x6xf32>, %ids: tensor<7xi64>,
                 %experts: tensor<3x6x8xf32>, %chosen: tensor<2xi32>,
                 %blocks: tensor<9x2x4x8xf32>, %places: tensor<2x6xi64>, %hidden: tensor<3x24xi1>) {
  // CHECK: lathe.softmax %{{.*}} axis 1 : tensor<2x8xf32>
  %0 = lathe.softmax %x axis 1 : tensor<2x8xf32>
  // CHECK: lathe.softmax %{{.*}} axis 0 masked_row zero : tensor<2x8xf32>
  %1 = lathe.softmax %x axis 0 masked_row zero : tensor<2x8xf32>
  // CHECK: lathe.rms_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<2x8xf32>, tensor<8xf32>
  %2 = lathe.rms_norm %x, %gain epsilon 1.0e-5 : tensor<2x8xf32>, tensor<8xf32>
  // CHECK: lathe.rms_norm %{{.*}}, %{{.*}} epsilon {{[^ ]+}} rounding before_gain
  %3 = lathe.rms_norm %x, %gain epsilon 1.0e-6 rounding before_gain : tensor<2x8xf32>, tensor<8xf32>
  // CHECK: lathe.rope half %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  %4 = lathe.rope half %x, %table, %table : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  // CHECK: lathe.glu %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<8xf32>
  %5 = lathe.glu %x, %gain : tensor<2x8xf32>, tensor<8xf32>
  // CHECK: lathe.glu %{{.*}}, %{{.*}} activation gelu
  %6 = lathe.glu %x, %gain activation gelu : tensor<2x8xf32>, tensor<8xf32>
  // CHECK: lathe.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>
  %7 = lathe.attention %q, %k, %k scale 0.5 : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>
  // CHECK: lathe.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} positions %{{.*}} scale 5.000000e-01 causal positions masked_row zero
  %8 = lathe.attention %q, %k, %k mask %mask positions %positions scale 0.5 causal positions masked_row zero : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32> mask tensor<3x5xi1> positions tensor<2xi64>
  // CHECK: lathe.paged_attention %{{.*}}, %{{.*}}, %{{.*}} table %{{.*}} positions %{{.*}} scale 5.000000e-01 : tensor<2x4x3x8xf32>, tensor<9x2x4x8xf32>, tensor<9x2x4x8xf32> table tensor<2x6xi64> positions tensor<2xi64>
  %40 = lathe.paged_attention %q, %blocks, %blocks table %places positions %positions scale 0.5 : tensor<2x4x3x8xf32>, tensor<9x2x4x8xf32>, tensor<9x2x4x8xf32> table tensor<2x6xi64> positions tensor<2xi64>
  // CHECK: lathe.paged_attention %{{.*}}, %{{.*}}, %{{.*}} table %{{.*}} positions %{{.*}} mask %{{.*}} scale 5.000000e-01 softcap 2.000000e+00 window 3 masked_row zero
  %41 = lathe.paged_attention %q, %blocks, %blocks table %places positions %positions mask %hidden scale 0.5 softcap 2.0 window 3 masked_row zero : tensor<2x4x3x8xf32>, tensor<9x2x4x8xf32>, tensor<9x2x4x8xf32> table tensor<2x6xi64> positions tensor<2xi64> mask tensor<3x24xi1>
  // CHECK: lathe.linear %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<6x8xf32>
  %9 = lathe.linear %x, %w : tensor<2x8xf32>, tensor<6x8xf32>
  // CHECK: lathe.linear %{{.*}}, %{{.*}} bias %{{.*}} residual %{{.*}} layout packed
  %10 = lathe.linear %x, %w bias %bias residual %residual layout packed : tensor<2x8xf32>, tensor<6x8xf32> bias tensor<6xf32> residual tensor<2x6xf32>
  // CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %{{.*}} : tensor<2x8xf32>, tensor<3x6x8xf32>, tensor<2xi32>
  %42 = lathe.grouped_linear %x, %experts by %chosen : tensor<2x8xf32>, tensor<3x6x8xf32>, tensor<2xi32>
  // CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %{{.*}} layout packed : tensor<2x8xf32>, tensor<3x6x8xf32>, tensor<2xi32>
  %43 = lathe.grouped_linear %x, %experts by %chosen layout packed : tensor<2x8xf32>, tensor<3x6x8xf32>, tensor<2xi32>
  // CHECK: lathe.embedding %{{.*}}, %{{.*}} : tensor<7xi64>, tensor<6x8xf32>
  %11 = lathe.embedding %ids, %w : tensor<7xi64>, tensor<6x8xf32>
  return
}

// CHECK-LABEL: @kernel
func.func @kernel(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>, %experts: tensor<3x6x8xf32>) {
  // CHECK: lathe.pack %{{.*}} out_in : tensor<6x8xf32>
  %0 = lathe.pack %w out_in : tensor<6x8xf32>
  // CHECK: lathe.pack %{{.*}} in_out : tensor<3x6x8xf32>
  %4 = lathe.pack %experts in_out : tensor<3x6x8xf32>
  // CHECK: lathe.region(%{{.*}}) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = lathe.region(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32> {
  ^bb0(%a: tensor<2x8xf32>):
    %2 = lathe.exp %a : tensor<2x8xf32>
    // CHECK: lathe.yield %{{.*}} : tensor<2x8xf32>
    lathe.yield %2 : tensor<2x8xf32>
  }
  // CHECK: lathe.kernel "region" @exp(%{{.*}}) {rows = 2 : i64} slots [0, 1]
  %3 = lathe.kernel "region" @exp(%x) {rows = 2 : i64} slots [0, 1] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}
