// RUN: weft opt %s --pass pack-dots
// A panel for each operand: the left one under the row that the program computes, the right one, which all programs share, under the
// iteration alone.

func.func @small(%a_ptr: !tile.ptr<f32> {tile.name = "a_ptr", tile.divisibility = 16 : i64}, %b_ptr: !tile.ptr<f32> {tile.name = "b_ptr", tile.divisibility = 16 : i64}, %c_ptr: !tile.ptr<f32> {tile.name = "c_ptr", tile.divisibility = 16 : i64}, %K: i32 {tile.name = "K"}) {
  %m = tile.arange 0 16 : tensor<16xi32, #tile.layout<"{register: [], lane: [1,2,4,8]} -> [dim0: 16]">>
  %m_1 = tile.arange 0 16 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">>
  %0 = tile.program_id 0
  %1 = tile.constant 16 : i32
  %row = tile.binary "mul" %0, %1 : i32
  %acc = tile.constant 0.0 : tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  %2 = tile.constant 0 : i32
  %3 = tile.splat %row : i32 to tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">>
  %4 = tile.binary "add" %3, %m_1 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">>
  %5 = tile.expand_dims %4 1 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">> to tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %6 = tile.splat %K : i32 to tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %7 = tile.binary "mul" %5, %6 : tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %8 = tile.splat %a_ptr : !tile.ptr<f32> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %9 = tile.addptr %8, %7 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>, tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %10 = tile.broadcast %9 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  %11 = tile.constant 16 : tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %12 = tile.splat %b_ptr : !tile.ptr<f32> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %13 = tile.expand_dims %m 0 : tensor<16xi32, #tile.layout<"{register: [], lane: [1,2,4,8]} -> [dim0: 16]">> to tensor<1x16xi32, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 1, dim1: 16]">>
  %14 = tile.broadcast %13 : tensor<1x16xi32, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 1, dim1: 16]">> to tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  %acc_1 = scf.for %i = %2 to %K step %1 iter_args(%acc_2 = %acc) -> (tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>) : i32 {
    %15 = tile.splat %i : i32 to tensor<16xi32, #tile.layout<"{register: [], lane: [1,2,4,8]} -> [dim0: 16]">>
    %16 = tile.splat %i : i32 to tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">>
    %17 = tile.binary "add" %15, %m : tensor<16xi32, #tile.layout<"{register: [], lane: [1,2,4,8]} -> [dim0: 16]">>
    %18 = tile.binary "add" %16, %m_1 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">>
    %19 = tile.expand_dims %17 0 : tensor<16xi32, #tile.layout<"{register: [], lane: [1,2,4,8]} -> [dim0: 16]">> to tensor<1x16xi32, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 1, dim1: 16]">>
    %20 = tile.broadcast %19 : tensor<1x16xi32, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 1, dim1: 16]">> to tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %21 = tile.addptr %10, %20 : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %a = tile.load %21 {invariant} : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %22 = tile.expand_dims %18 1 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">> to tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
    %23 = tile.binary "mul" %22, %11 : tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
    %24 = tile.addptr %12, %23 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>, tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
    %25 = tile.broadcast %24 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %26 = tile.addptr %25, %14 : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %b = tile.load %26 {invariant} : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    %acc_3 = tile.dot %a, %b, %acc_2 : tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
    scf.yield %acc_3 : tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  }
  %27 = tile.expand_dims %m_1 1 : tensor<16xi32, #tile.layout<"{register: [1,2,4,8], lane: [0,0,0,0]} -> [dim0: 16]">> to tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %28 = tile.binary "mul" %27, %11 : tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %29 = tile.splat %c_ptr : !tile.ptr<f32> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %30 = tile.addptr %29, %28 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>, tensor<16x1xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">>
  %31 = tile.broadcast %30 : tensor<16x1x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,0),(0,0),(0,0),(0,0)]} -> [dim0: 16, dim1: 1]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  %32 = tile.addptr %31, %14 : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  tile.store %32, %acc_1 : tensor<16x16x!tile.ptr<f32>, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  func.return
}

// CHECK:      %[[TRIPS:.*]] = tile.binary "max"
// CHECK:      = tile.constant 128 : i64
// CHECK:      scf.for %[[START:.*]] = %{{.*}} to %[[TRIPS]] step %{{.*}} iter_args(%[[ACC:.*]] = %acc)
// CHECK:      %[[COUNT:.*]] = tile.binary "min"
// CHECK-NEXT: %[[LEFT:.*]], %[[FILL:.*]] = cpu.claim %row, %[[START]] {bytes = 132096 : i64, slots = 64 : i64} : i32, i64
// CHECK-NEXT: scf.if %[[FILL]] {
// CHECK:      scf.for %[[STEP:.*]] = %{{.*}} to %[[COUNT]] step
// CHECK:      %a = tile.load
// CHECK-NEXT: cpu.pack %a to %[[LEFT]][%[[STEP]]] of %[[ROWS:.*]] {axis = 1 : i64, depth = 2048 : i64, width = 0 : i64, group = 1 : i64}
// CHECK:      %[[RIGHT:.*]], %[[FILL2:.*]] = cpu.claim %[[START]] {bytes = 131072 : i64, slots = 64 : i64} : i64
// CHECK-NEXT: scf.if %[[FILL2]] {
// CHECK:      %b = tile.load
// CHECK-NEXT: cpu.pack %b to %[[RIGHT]]
// CHECK:      %[[SUM:.*]] = cpu.multiply %[[LEFT]], %[[RIGHT]], %[[ACC]] over %{{.*}} of %{{.*}} x %{{.*}} {
// CHECK-NEXT: scf.yield %[[SUM]]
