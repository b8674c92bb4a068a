// RUN: weft opt %s --pass place-barriers
// In a loop with a slot more than copies under way the block waits once: behind that, other threads have read the slot that is
// written, and what they copied is there. Reads of one slot do not hinder a copy into another in the same iteration. Behind the
// loop scratch lies where slots may still be read.

func.func @k(%p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>, %n: i32, %r0: i32, %w0: i32, %on: i1, %v: tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %a = gpu.alloc {gpu.scratch = 0 : i64} : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.async_copy %p to %a[%r0] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.commit
  %r1, %w1 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %r0, %w = %w0) -> (i32, i32) : i32 {
    gpu.wait 0 : %a : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    gpu.async_copy %p to %a[%w] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    gpu.commit
    %x = gpu.local_load %a[%r] : !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    gpu.async_copy %p to %a[%w] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<2 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    scf.yield %w, %r : i32, i32
  }
  %out = tile.convert_layout %v {gpu.scratch = 128 : i64} : tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to tensor<128xf16, #tile.layout<"{register: [64], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 128]">>
  func.return
}

// CHECK:      gpu.async_copy %p to %a[%r0]
// CHECK-NEXT: gpu.commit
// CHECK-NEXT: {{.*}} = scf.for
// CHECK-NEXT: gpu.wait 0
// CHECK-NEXT: gpu.barrier "the slot is still read"
// CHECK-NEXT: gpu.async_copy %p to %a[%w]
// CHECK-NEXT: gpu.commit
// CHECK-NEXT: %x = gpu.local_load %a[%r]
// CHECK-NEXT: gpu.async_copy %p to %a[%w]
// CHECK-NEXT: scf.yield
// CHECK:      gpu.barrier "scratch is still read"
// CHECK-NEXT: %out = tile.convert_layout
