// RUN: weft opt %s --pass place-barriers
// Buffers that lie on the same bytes one after the other. Slots of different numbers are apart in one buffer only: what is copied into any
// slot of the second waits until all have read the first. In one buffer the slot that is read and the one that is written are apart in
// an iteration, and behind the loop no longer.

func.func @k(%p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>, %n: i32, %s: i32, %t: i32, %on: i1) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %a = gpu.alloc {gpu.scratch = 0 : i64} : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    gpu.wait 0 : %a : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    %u = tile.binary "add" %s, %i : i32
    %x = gpu.local_load %a[%u] : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    gpu.async_copy %p to %a[%t] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    gpu.commit
  }
  %b = gpu.alloc {gpu.scratch = 256 : i64} : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.async_copy %p to %b[%c0] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.wait 0 : %b : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  %y = gpu.local_load %b[%c0] : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
  gpu.async_copy %p to %b[%c1] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  func.return
}

func.func @again(%p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>, %n: i32, %s: i32, %t: i32, %on: i1) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %a = gpu.alloc {gpu.scratch = 0 : i64} : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    gpu.wait 0 : %a : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    %u = tile.binary "add" %s, %i : i32
    %x = gpu.local_load %a[%u] : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    gpu.async_copy %p to %a[%t] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    gpu.commit
  }
  gpu.async_copy %p to %a[%s] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  func.return
}

// CHECK:      scf.for
// CHECK-NEXT: gpu.wait 0
// CHECK-NEXT: %u = tile.binary
// CHECK-NEXT: gpu.barrier "other threads have written the slot"
// CHECK-NEXT: %x = gpu.local_load
// CHECK-NEXT: gpu.async_copy
// CHECK-NEXT: gpu.commit
// CHECK:      %b = gpu.alloc
// CHECK-NEXT: gpu.barrier "the slot is still read"
// CHECK-NEXT: gpu.async_copy
// CHECK-NEXT: gpu.wait 0
// CHECK-NEXT: gpu.barrier "other threads have written the slot"
// CHECK-NEXT: %y = gpu.local_load
// CHECK-NEXT: gpu.async_copy

// CHECK:      func.func @again
// CHECK:      gpu.async_copy
// CHECK-NEXT: gpu.commit
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier "the slot is still read"
// CHECK-NEXT: gpu.async_copy
