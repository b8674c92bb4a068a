// RUN: weft opt %s --pass 'narrow-operands{features="amx-tile,amx-bf16"}'
// The right operand was loaded along its columns, the left one is in them: both are converted while they are bfloat16.

func.func @turned(%a: tensor<16x32xbf16, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(0,16)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 32]">>, %b: tensor<32x16xbf16, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(16,0)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 32, dim1: 16]">>, %acc: tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>) {
  %left = tile.cast %a : tensor<16x32xbf16, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(0,16)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 32]">> to tensor<16x32xf32, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(0,16)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 32]">>
  %wide = tile.cast %b : tensor<32x16xbf16, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(16,0)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 32, dim1: 16]">> to tensor<32x16xf32, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(16,0)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 32, dim1: 16]">>
  %right = tile.convert_layout %wide : tensor<32x16xf32, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(16,0)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 32, dim1: 16]">> to tensor<32x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0),(16,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 32, dim1: 16]">>
  %sums = tile.dot %left, %right, %acc : tensor<16x32xf32, #tile.layout<"{register: [(0,1),(0,2),(0,4),(0,8),(0,16)], lane: [(1,0),(2,0),(4,0),(8,0)]} -> [dim0: 16, dim1: 32]">>, tensor<32x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0),(16,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 32, dim1: 16]">> to tensor<16x16xf32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  func.return
}

// CHECK:      %[[A:.*]] = tile.convert_layout %a : tensor<16x32xbf16, {{.*}} to tensor<16x32xbf16, #tile.layout<"{register: [(0,16),(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 32]">>
// CHECK-NEXT: %[[LEFT:.*]] = tile.cast %[[A]] : {{.*}} to tensor<16x32xf32
// CHECK-NEXT: %[[B:.*]] = tile.convert_layout %b : tensor<32x16xbf16, {{.*}} to tensor<32x16xbf16, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0),(16,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 32, dim1: 16]">>
// CHECK-NEXT: %[[RIGHT:.*]] = tile.cast %[[B]] : {{.*}} to tensor<32x16xf32
// CHECK-NEXT: %sums = tile.dot %[[LEFT]], %[[RIGHT]], %acc
