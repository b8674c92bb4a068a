// RUN: weft opt %s --pass assign-thread-layouts{warps=2}
// The solver. Under the preference order the load's layout is converted before the transposition (`coalesced.mlir`). Here both accesses
// have vectors of two floats in registers, and four lanes complete the sector of 32 bytes of each. Nothing is converted.

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

// CHECK:      %v = tile.load %px {{.*}} to tensor<256xf32, #tile.layout<"{register: [16,1], lane: [32,64,2,4,128], warp: [8]} -> [dim0: 256]">>
// CHECK-NOT:  tile.convert_layout
// CHECK:      tile.store %py, %f {{.*}} tensor<256xf32, #tile.layout<"{register: [1,16], lane: [2,4,32,64,8], warp: [128]} -> [dim0: 256]">>
