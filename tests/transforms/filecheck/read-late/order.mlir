// RUN: weft opt %s --pass read-late
// Reads keep their order, and so does what is computed from them. A read stays before a loop.

func.func @k(%w: tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: i32) {
  %buffer = gpu.alloc : !gpu.buffer<2 x tensor<128xf16>>
  %a = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %c = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %v = tile.convert_layout %w : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf16, #tile.layout<"{register: [], lane: [32,2,4,8,16], warp: [1,64]} -> [dim0: 128]">>
  %x = tile.convert_layout %v : tensor<128xf16, #tile.layout<"{register: [], lane: [32,2,4,8,16], warp: [1,64]} -> [dim0: 128]">> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %y = tile.binary "add" %a, %b : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.for %i = %n to %n step %n : i32 {
    tile.store %p, %y : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  }
  %z = tile.binary "add" %x, %c : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.store %p, %z : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      gpu.alloc
// CHECK-NEXT: %v = tile.convert_layout %w
// CHECK-NEXT: %x = tile.convert_layout %v
// CHECK-NEXT: %a = gpu.local_load
// CHECK-NEXT: %b = gpu.local_load
// CHECK-NEXT: %c = gpu.local_load
// CHECK-NEXT: %y = tile.binary "add" %a, %b
// CHECK-NEXT: scf.for
