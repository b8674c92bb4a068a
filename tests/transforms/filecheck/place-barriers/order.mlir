// RUN: weft opt %s --pass place-barriers{disjoint=true}
// What the block stored comes before an atomic that releases. The atomic tells its value to all threads and waits there, so that
// what follows needs no barrier of its own.

func.func @k(%x: tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %flag: !tile.ptr<i32>, %n: i32, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %a = tile.atomic_rmw "add" %flag, %n : !tile.ptr<i32>, i32 to i32
  tile.store %x, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      tile.store %x, %v
// CHECK-NEXT: gpu.barrier "before an access that releases"
// CHECK-NEXT: %a = tile.atomic_rmw
// CHECK-NEXT: tile.store %x, %v
