// RUN: weft opt %s --pass place-barriers
// A loop may have no iteration: what came before it has not waited, though the body waits. An iteration meets what the one before
// left behind.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %y: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.for %i = %zero to %n step %one : i32 {
    tile.barrier
  }
  %a = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.barrier
  scf.for %j = %zero to %n step %one : i32 {
    tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  }
  func.return
}

// CHECK:      tile.store %x, %v
// CHECK-NEXT: scf.for
// CHECK-NEXT:   tile.barrier
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %y
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: scf.for
// CHECK-NEXT:   gpu.barrier "one address, different threads"
// CHECK-NEXT:   tile.store %x, %v
