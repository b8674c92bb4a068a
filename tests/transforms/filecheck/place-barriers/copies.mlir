// RUN: weft opt %s --pass place-barriers
// Threads that hold copies read what the first of them has stored. Registers with copies are of one thread.

func.func @k(%x: !tile.ptr<f32>, %w: tensor<128xf32, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %v: tensor<64xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>) {
  %i = tile.arange 0 64 : tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  %s = tile.splat %x : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  %p = tile.addptr %s, %i : tensor<64x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">> to tensor<64x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  tile.store %p, %v : tensor<64x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, tensor<64xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  %a = tile.load %p : tensor<64x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">> to tensor<64xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  tile.barrier
  %j = tile.arange 0 128 : tensor<128xi32, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %t = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %q = tile.addptr %t, %j : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.store %q, %w : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = tile.load %q : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [0], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      tile.store %p, %v
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %p
// CHECK:      tile.store %q, %w
// CHECK-NEXT: %b = tile.load %q
