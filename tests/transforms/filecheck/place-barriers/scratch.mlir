// RUN: weft opt %s --pass place-barriers
// The second conversion writes where the first is still read. In a loop the next iteration does.

func.func @k(%v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %a = tile.convert_layout %v : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %b = tile.binary "mul" %a, %a : tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %c = tile.convert_layout %b : tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  scf.for %i = %zero to %n step %one : i32 {
    %d = tile.convert_layout %c : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  }
  func.return
}

// CHECK:      %a = tile.convert_layout %v
// CHECK-NEXT: %b = tile.binary
// CHECK-NEXT: gpu.barrier "scratch is still read"
// CHECK-NEXT: %c = tile.convert_layout %b
// CHECK-NEXT: scf.for
// CHECK-NEXT:   gpu.barrier "scratch is still read"
// CHECK-NEXT:   %d = tile.convert_layout %c
