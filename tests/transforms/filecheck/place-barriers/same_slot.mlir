// RUN: weft opt %s --pass place-barriers
// A slot that is written again in the iteration that reads it: the block waits for the copies of other threads, and again until all
// have read. So it does between two stores to a slot, and between a store and a read. A buffer on other bytes waits for none.

func.func @k(%p: tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>, %n: i32, %s: i32, %on: i1, %v: tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %a = gpu.alloc {gpu.scratch = 0 : i64} : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    gpu.wait 0 : %a : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    %x = gpu.local_load %a[%s] : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
    %y = gpu.local_load %a[%s] : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [64], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 128]">>
    gpu.async_copy %p to %a[%s] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
    gpu.commit
  }
  gpu.local_store %v to %a[%s] : tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.local_store %v to %a[%s] : tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  %z = gpu.local_load %a[%s] : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>> to tensor<128xf16, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">>
  %b = gpu.alloc {gpu.scratch = 256 : i64} : !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  gpu.async_copy %p to %b[%c0] if %on : tensor<128x!tile.ptr<f16>, #tile.layout<"{register: [1], lane: [2,4,8,16,32], warp: [64]} -> [dim0: 128]">> to !gpu.buffer<1 x tensor<128xf16, #tile.layout<"{offset: [1,2,4,8,16,32,64]} -> [dim0: 128]">>>
  func.return
}

// CHECK:      gpu.wait 0
// CHECK-NEXT: gpu.barrier "other threads have written the slot"
// CHECK-NEXT: %x = gpu.local_load
// CHECK-NEXT: %y = gpu.local_load
// CHECK-NEXT: gpu.barrier "the slot is still read"
// CHECK-NEXT: gpu.async_copy
// CHECK-NEXT: gpu.commit
// CHECK:      gpu.local_store
// CHECK-NEXT: gpu.barrier "the slot is still read"
// CHECK-NEXT: gpu.local_store
// CHECK-NEXT: gpu.barrier "other threads have written the slot"
// CHECK-NEXT: %z = gpu.local_load
// CHECK:      %b = gpu.alloc
// CHECK-NEXT: gpu.async_copy
