// RUN: weft opt %s --pass place-barriers
// A loop is left from its first block: what that has stored has not waited, though the second block waits.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %y: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %c: i1) {
  %e = scf.while (%d = %c) : (i1) -> (i1) {
    tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    scf.condition(%d) %d : i1
  } do {
  ^b(%f: i1):
    tile.barrier
    %b = tile.load %x : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    tile.store %y, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    scf.yield %f : i1
  }
  %a = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      scf.while
// CHECK-NEXT:   gpu.barrier "one address, different threads"
// CHECK-NEXT:   tile.store %x, %v
// CHECK-NEXT:   scf.condition
// CHECK-NEXT: } do {
// CHECK:        tile.barrier
// CHECK-NEXT:   %b = tile.load %x
// CHECK-NEXT:   gpu.barrier "one address, different threads"
// CHECK-NEXT:   tile.store %y, %v
// CHECK:      gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %y
