// RUN: weft opt %s --pass lay-out-buffers{target=sm_80}
// Copies of 16 bytes, read by ldmatrix: 8 float16 stay together. Then 128 bytes, the banks, hold two rows; the next two bits of rows
// are added to columns 8 and 16, so that 8 rows at one column are in different banks, and so are the copies of 8 lanes.

func.func @k(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %on: i1, %s: i32) {
  %b = gpu.alloc : !gpu.buffer<2 x tensor<16x32xf16>>
  %c = tile.constant 0 : i32
  %i = tile.arange 0 32 : tensor<32xi32, #tile.layout<"{register: [1,2,4], lane: [8,16,0,0,0], warp: [0]} -> [dim0: 32]">>
  %e = tile.expand_dims %i 0 : tensor<32xi32, #tile.layout<"{register: [1,2,4], lane: [8,16,0,0,0], warp: [0]} -> [dim0: 32]">> to tensor<1x32xi32, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(0,0),(0,0),(0,0)], warp: [(0,0)]} -> [dim0: 1, dim1: 32]">>
  %at = tile.broadcast %e : tensor<1x32xi32, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(0,0),(0,0),(0,0)], warp: [(0,0)]} -> [dim0: 1, dim1: 32]">> to tensor<16x32xi32, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<16x32x!tile.ptr<f16>, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">>
  %p = tile.addptr %xs, %at : tensor<16x32x!tile.ptr<f16>, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">>, tensor<16x32xi32, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">> to tensor<16x32x!tile.ptr<f16>, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">>
  gpu.async_copy %p to %b[%s] if %on : tensor<16x32x!tile.ptr<f16>, #tile.layout<"{register: [(0,1),(0,2),(0,4)], lane: [(0,8),(0,16),(1,0),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 32]">> to !gpu.buffer<2 x tensor<16x32xf16>>
  gpu.commit
  gpu.wait 0 : %b : !gpu.buffer<2 x tensor<16x32xf16>>
  %v = gpu.local_load %b[%s] : !gpu.buffer<2 x tensor<16x32xf16>> to tensor<16x32xf16, #tile.layout<"{register: [(0,1),(8,0),(0,8),(0,16)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [(0,0)]} -> [dim0: 16, dim1: 32]">>
  func.return
}

// CHECK: %b = gpu.alloc : !gpu.buffer<2 x tensor<16x32xf16, #tile.layout<"{offset: [(0,1),(0,2),(0,4),(0,8),(0,16),(1,0),(8,0),(2,8),(4,16)]} -> [dim0: 16, dim1: 32]">>>
