// RUN: weft opt %s --pass place-barriers
// Scratch of 512 bytes each, at other places: a wait is for common bytes only.

func.func @k(%v: tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.convert_layout %v {gpu.scratch = 512 : i64} : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %b = tile.convert_layout %v {gpu.scratch = 0 : i64} : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %c = tile.convert_layout %v {gpu.scratch = 512 : i64} : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %d = tile.convert_layout %v {gpu.scratch = 768 : i64} : tensor<128xf32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  func.return
}

// CHECK:      %a = tile.convert_layout
// CHECK-NEXT: %b = tile.convert_layout
// CHECK-NEXT: %c = tile.convert_layout
// CHECK-NEXT: gpu.barrier "scratch is still read"
// CHECK-NEXT: %d = tile.convert_layout
