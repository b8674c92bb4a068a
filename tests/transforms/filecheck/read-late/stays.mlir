// RUN: weft opt %s --pass read-late
// Where nothing waits before the reader, a read stays where it is: the order of other ops is that of the kernel.

func.func @k(%w: tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: i32) {
  %buffer = gpu.alloc : !gpu.buffer<2 x tensor<128xf16>>
  %a = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %c = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<128xf16>> to tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %x = tile.unary "neg" %w : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %y = tile.binary "add" %a, %b : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.for %i = %n to %n step %n : i32 {
    tile.store %p, %y : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  }
  %z = tile.binary "add" %x, %c : tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.store %p, %z : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf16, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      gpu.alloc
// CHECK-NEXT: %a = gpu.local_load
// CHECK-NEXT: %b = gpu.local_load
// CHECK-NEXT: %c = gpu.local_load
// CHECK-NEXT: %x = tile.unary "neg" %w
// CHECK-NEXT: %y = tile.binary "add" %a, %b
// CHECK-NEXT: scf.for
