// RUN: weft opt %s --pass place-barriers
// Elements of one tile of pointers may be one address, which different threads then touch.

func.func @k(%x: tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.atomic_rmw "add" %x, %n sem "relaxed" : tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = tile.load %x : tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      %a = tile.atomic_rmw
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %b = tile.load %x
