// RUN: weft opt %s --pass place-barriers
// What either branch leaves behind meets what follows. Where both wait, what came before has waited; where only one may, it has not.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %y: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %c: i1) {
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.if %c {
    tile.barrier
  }
  %a = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.barrier
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.if %c {
    tile.barrier
  } else {
    tile.barrier
  }
  %b = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.barrier
  scf.if %c {
    tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  } else {
  }
  %d = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.barrier
  scf.if %c {
  } else {
    tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  }
  %e = tile.load %y : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      tile.store %x, %v
// CHECK:      gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %y
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: } else {
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: }
// CHECK-NEXT: %b = tile.load %y
// CHECK-NEXT: tile.barrier
// CHECK:      tile.store
// CHECK:      gpu.barrier "one address, different threads"
// CHECK-NEXT: %d = tile.load %y
// CHECK-NEXT: tile.barrier
// CHECK:      tile.store
// CHECK:      gpu.barrier "one address, different threads"
// CHECK-NEXT: %e = tile.load %y
