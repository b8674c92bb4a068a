// RUN: weft opt %s --pass assign-thread-layouts{warps=2}
// The solver. Under the preference order the load's layout is converted before the transposition (`coalesced.mlir`). Here the
// store has vectors of four floats. The load has requests of single ones behind one pointer, and eight lanes fill a sector. Nothing is
// converted.

func.func @k(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.arange 0 256 : tensor<256xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
  %px = tile.addptr %xs, %i : tensor<256x!tile.ptr<f32>>, tensor<256xi32> to tensor<256x!tile.ptr<f32>>
  %v = tile.load %px : tensor<256x!tile.ptr<f32>> to tensor<256xf32>
  %m = tile.reshape %v : tensor<256xf32> to tensor<16x16xf32>
  %t = tile.trans %m [1, 0] : tensor<16x16xf32> to tensor<16x16xf32>
  %f = tile.reshape %t : tensor<16x16xf32> to tensor<256xf32>
  %ys = tile.splat %y : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
  %py = tile.addptr %ys, %i : tensor<256x!tile.ptr<f32>>, tensor<256xi32> to tensor<256x!tile.ptr<f32>>
  tile.store %py, %f : tensor<256x!tile.ptr<f32>>, tensor<256xf32>
  func.return
}

// CHECK:      %v = tile.load %px {{.*}} to tensor<256xf32, #tile.layout<"{register: [16,32], lane: [64,128,1,2,4], warp: [8]} -> [dim0: 256]">>
// CHECK-NOT:  tile.convert_layout
// CHECK:      tile.store %py, %f {{.*}} tensor<256xf32, #tile.layout<"{register: [1,2], lane: [4,8,16,32,64], warp: [128]} -> [dim0: 256]">>
