// RUN: weft opt %s --pass assign-layouts
// Indices that are only wanted as rows' addresses are loaded one for each register, and the addresses computed from them so. What
// is also wanted otherwise is loaded as a vector, and converted.

func.func @rows(%table: !tile.ptr<f32> {tile.name = "table"}, %index: !tile.ptr<i32> {tile.name = "index"}) {
  %range = tile.arange 0 4 : tensor<4xi32>
  %base = tile.splat %index : !tile.ptr<i32> to tensor<4x!tile.ptr<i32>>
  %p = tile.addptr %base, %range : tensor<4x!tile.ptr<i32>>, tensor<4xi32> to tensor<4x!tile.ptr<i32>>
  %at = tile.load %p : tensor<4x!tile.ptr<i32>> to tensor<4xi32>
  %sixteen = tile.constant 16 : tensor<4xi32>
  %row = tile.binary "mul" %at, %sixteen : tensor<4xi32>
  %column = tile.expand_dims %row 1 : tensor<4xi32> to tensor<4x1xi32>
  %rows = tile.broadcast %column : tensor<4x1xi32> to tensor<4x16xi32>
  %columns = tile.arange 0 16 : tensor<16xi32>
  %across = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %each = tile.broadcast %across : tensor<1x16xi32> to tensor<4x16xi32>
  %all = tile.splat %table : !tile.ptr<f32> to tensor<4x16x!tile.ptr<f32>>
  %down = tile.addptr %all, %rows : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xi32> to tensor<4x16x!tile.ptr<f32>>
  %place = tile.addptr %down, %each : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xi32> to tensor<4x16x!tile.ptr<f32>>
  %x = tile.load %place : tensor<4x16x!tile.ptr<f32>> to tensor<4x16xf32>
  tile.store %place, %x : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xf32>
  func.return
}

// CHECK:      func.func @rows
// CHECK-NOT:  tile.convert_layout
// CHECK:      %at_1 = tile.load {{.*}} to tensor<4xi32, #tile.layout<"{register: [1,2], lane: [0,0,0,0]} -> [dim0: 4]">>
// CHECK-NOT:  tile.convert_layout

func.func @both(%table: !tile.ptr<f32> {tile.name = "table"}, %index: !tile.ptr<i32> {tile.name = "index"}) {
  %range = tile.arange 0 4 : tensor<4xi32>
  %base = tile.splat %index : !tile.ptr<i32> to tensor<4x!tile.ptr<i32>>
  %p = tile.addptr %base, %range : tensor<4x!tile.ptr<i32>>, tensor<4xi32> to tensor<4x!tile.ptr<i32>>
  %at = tile.load %p : tensor<4x!tile.ptr<i32>> to tensor<4xi32>
  tile.store %p, %at : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  %sixteen = tile.constant 16 : tensor<4xi32>
  %row = tile.binary "mul" %at, %sixteen : tensor<4xi32>
  %column = tile.expand_dims %row 1 : tensor<4xi32> to tensor<4x1xi32>
  %rows = tile.broadcast %column : tensor<4x1xi32> to tensor<4x16xi32>
  %columns = tile.arange 0 16 : tensor<16xi32>
  %across = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %each = tile.broadcast %across : tensor<1x16xi32> to tensor<4x16xi32>
  %all = tile.splat %table : !tile.ptr<f32> to tensor<4x16x!tile.ptr<f32>>
  %down = tile.addptr %all, %rows : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xi32> to tensor<4x16x!tile.ptr<f32>>
  %place = tile.addptr %down, %each : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xi32> to tensor<4x16x!tile.ptr<f32>>
  %x = tile.load %place : tensor<4x16x!tile.ptr<f32>> to tensor<4x16xf32>
  tile.store %place, %x : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xf32>
  func.return
}

// CHECK:      func.func @both
// CHECK:      %at = tile.load {{.*}} to tensor<4xi32, #tile.layout<"{register: [], lane: [1,2,0,0]} -> [dim0: 4]">>
// CHECK:      tile.convert_layout
