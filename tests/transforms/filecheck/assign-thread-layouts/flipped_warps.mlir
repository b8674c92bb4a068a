// RUN: weft opt %s --pass assign-thread-layouts{warps=2}
// The bit that is flipped is not in warps: bit 64, which the default layout has there, trades places with a register's. Both flips
// keep the layout of their source, and nothing is converted.

func.func @k(%x: !tile.ptr<f32>) {
  %i = tile.arange 0 128 : tensor<128xi32>
  %s = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %p = tile.addptr %s, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %a = tile.load %p : tensor<128x!tile.ptr<f32>> to tensor<128xf32>
  %b = tile.reshape %a : tensor<128xf32> to tensor<2x64xf32>
  %c = tile.flip %b axis 0 : tensor<2x64xf32> to tensor<2x64xf32>
  %d = tile.reshape %c : tensor<2x64xf32> to tensor<128xf32>
  tile.store %p, %d : tensor<128x!tile.ptr<f32>>, tensor<128xf32>
  %e = tile.reshape %a : tensor<128xf32> to tensor<64x2xf32>
  %f = tile.flip %e axis 1 : tensor<64x2xf32> to tensor<64x2xf32>
  %g = tile.reshape %f : tensor<64x2xf32> to tensor<128xf32>
  tile.store %p, %g : tensor<128x!tile.ptr<f32>>, tensor<128xf32>
  func.return
}

// CHECK-NOT: tile.convert_layout
// CHECK: %a = tile.load {{.*}} to tensor<128xf32, #tile.layout<"{register: [64], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 128]">>
// CHECK: %c = tile.flip %b axis 0 : {{.*}} to tensor<2x64xf32, #tile.layout<"{register: [(1,0)], lane: [(0,1),(0,2),(0,4),(0,8),(0,16)], warp: [(0,32)]} -> [dim0: 2, dim1: 64]">>
// CHECK: %f = tile.flip %e axis 1 : {{.*}} to tensor<64x2xf32, #tile.layout<"{register: [(32,0)], lane: [(0,1),(1,0),(2,0),(4,0),(8,0)], warp: [(16,0)]} -> [dim0: 64, dim1: 2]">>
