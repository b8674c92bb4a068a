// RUN: weft opt %s --pass place-barriers
// An exchange through scratch within each warp does not wait for the block.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %y: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %w: tensor<256xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,0]} -> [dim0: 256]">>) {
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %a = tile.convert_layout %w : tensor<256xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,0]} -> [dim0: 256]">> to tensor<256xf32, #tile.layout<"{register: [32,64,128], lane: [1,2,4,8,16], warp: [0,0]} -> [dim0: 256]">>
  %b = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %c = tile.convert_layout %w : tensor<256xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,0]} -> [dim0: 256]">> to tensor<256xf32, #tile.layout<"{register: [32,64,128], lane: [1,2,4,8,16], warp: [0,0]} -> [dim0: 256]">>
  func.return
}

// CHECK:      tile.store %x, %v
// CHECK-NEXT: %a = tile.convert_layout
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %b = tile.load %y
// CHECK-NEXT: %c = tile.convert_layout
