// RUN: weft opt %s --pass read-late
// A read goes to its first reader, past a conversion, and what is computed from reads alone goes with it. It stays before what
// fills buffers: the second read.

func.func @k(%w: tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>, %p: tensor<16x16x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>, %n: i32, %enabled: i1) {
  %buffer = gpu.alloc : !gpu.buffer<2 x tensor<16x16xf16>>
  %value = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<16x16xf16>> to tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  %kept = gpu.local_load %buffer[%n] : !gpu.buffer<2 x tensor<16x16xf16>> to tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  %turned = tile.unary "neg" %value : tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  %v = tile.convert_layout %w : tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(2,0)], warp: [(1,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  %x = tile.convert_layout %v : tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(2,0)], warp: [(1,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  %y = tile.binary "mul" %x, %turned : tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  gpu.async_copy %p to %buffer[%n] if %enabled : tensor<16x16x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">> to !gpu.buffer<2 x tensor<16x16xf16>>
  %z = tile.binary "add" %y, %kept : tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  tile.store %p, %z : tensor<16x16x!tile.ptr<f16>, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xf16, #tile.layout<"{register: [], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 16]">>
  func.return
}

// CHECK:      gpu.alloc
// CHECK-NEXT: %v = tile.convert_layout %w
// CHECK-NEXT: %x = tile.convert_layout %v
// CHECK-NEXT: %value = gpu.local_load
// CHECK-NEXT: %turned = tile.unary "neg" %value
// CHECK-NEXT: %y = tile.binary "mul" %x, %turned
// CHECK-NEXT: %kept = gpu.local_load
// CHECK-NEXT: gpu.async_copy
// CHECK-NEXT: %z = tile.binary "add" %y, %kept
