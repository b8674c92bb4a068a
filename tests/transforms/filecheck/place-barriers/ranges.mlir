// RUN: weft opt %s --pass place-barriers
// Accesses whose ranges behind one start do not meet need no barrier between them: halves of a buffer, and elements under a mask. A
// start that is not known is the same only within an iteration.

func.func @halves(%x: !tile.ptr<f32>, %pid: i32, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %i = tile.arange 0 128 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %size = tile.constant 128 : i32
  %near = tile.constant 127 : i32
  %start = tile.addptr %x, %pid : !tile.ptr<f32>, i32 to !tile.ptr<f32>
  %ss = tile.splat %start : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %s = tile.addptr %ss, %i : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %a = tile.binary "add" %pid, %size : i32
  %start_1 = tile.addptr %x, %a : !tile.ptr<f32>, i32 to !tile.ptr<f32>
  %ts = tile.splat %start_1 : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %t = tile.addptr %ts, %i : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = tile.binary "add" %pid, %near : i32
  %start_2 = tile.addptr %x, %b : !tile.ptr<f32>, i32 to !tile.ptr<f32>
  %us = tile.splat %start_2 : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %u = tile.addptr %us, %i : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.store %s, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %first = tile.load %t : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %second = tile.load %u : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

func.func @masked(%x: !tile.ptr<f32>, %v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %i = tile.arange 0 128 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %back = tile.constant 124 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %zero = tile.constant 0.0 : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %three = tile.constant 3 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %four = tile.constant 4 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %s = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %t = tile.addptr %s, %back : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %far = tile.compare "ge" %i, %four : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi1, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %close = tile.compare "ge" %i, %three : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi1, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  tile.store %s, %v : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %first = tile.load %t mask %far : tensor<128xi1, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> other %zero : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %second = tile.load %t mask %close : tensor<128xi1, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> other %zero : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

func.func @iterations(%x: !tile.ptr<f32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %size = tile.constant 128 : i32
  %i = tile.arange 0 128 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %ahead = tile.constant 128 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.for %j = %zero to %n step %size : i32 {
    %start = tile.addptr %x, %j : !tile.ptr<f32>, i32 to !tile.ptr<f32>
    %ss = tile.splat %start : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    %s = tile.addptr %ss, %i : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    %t = tile.addptr %s, %ahead : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    %a = tile.load %s : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
    tile.store %t, %a : tensor<128x!tile.ptr<f32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  }
  func.return
}

// CHECK-LABEL: func.func @halves
// CHECK:      tile.store %s, %v
// CHECK-NEXT: %first = tile.load %t
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %second = tile.load %u

// CHECK-LABEL: func.func @masked
// CHECK:      tile.store %s, %v
// CHECK-NEXT: %first = tile.load %t mask %far
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %second = tile.load %t mask %close

// CHECK-LABEL: func.func @iterations
// CHECK:      gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %s
// CHECK-NEXT: tile.store %t, %a
