// RUN: weft opt %s --pass place-barriers
// One pointer under one layout is touched by the same threads: no barrier. Under another layout other threads touch it.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %z: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %w: tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>) {
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %a = tile.load %x : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = tile.load %z : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  tile.store %z, %w : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  func.return
}

// CHECK:      tile.store %x, %v
// CHECK-NEXT: %a = tile.load %x
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %b = tile.load %z
// CHECK-NEXT: tile.store %z, %w
