// RUN: weft opt %s --pass allocate-scratch{target=sm_90}
// Two buffers of 512 and 256 bytes that a loop uses lie one behind the other until the loop ends. Scratch inside the loop is behind
// both; scratch behind the loop, and a buffer that is made there, take their bytes again.

func.func @k(%n: i32, %s: i32, %v: tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %a = gpu.alloc : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  %b = gpu.alloc : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = gpu.local_load %a[%s] : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    %y = gpu.local_load %b[%s] : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    %in = tile.convert_layout %x : tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to tensor<128xf16, #tile.layout<"{register: [64], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 128]">>
  }
  %out = tile.convert_layout %v : tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to tensor<128xf16, #tile.layout<"{register: [64], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 128]">>
  %c = gpu.alloc : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  %z = gpu.local_load %c[%s] : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
  func.return
}

// CHECK:      func.func @k({{.*}}) attributes {gpu.shared = 1024 : i64} {
// CHECK:      %a = gpu.alloc {gpu.scratch = 0 : i64}
// CHECK-NEXT: %b = gpu.alloc {gpu.scratch = 512 : i64}
// CHECK:      tile.convert_layout %x {gpu.scratch = 768 : i64}
// CHECK:      tile.convert_layout %v {gpu.scratch = 0 : i64}
// CHECK-NEXT: %c = gpu.alloc {gpu.scratch = 0 : i64}
