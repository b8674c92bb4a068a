// RUN: weft opt %s --pass 'narrow-operands{features="avx2"}'
// No instruction of AVX2 multiplies int8 and adds in int32, but one does int16: operands are cast to it first.

func.func @wider(%a: tensor<16x16xi8, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, %acc: tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>) {
  %wide = tile.cast %a : tensor<16x16xi8, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  %sums = tile.dot %wide, %wide, %acc : tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>, tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">> to tensor<16x16xi32, #tile.layout<"{register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 16, dim1: 16]">>
  func.return
}

// CHECK:      %[[LEFT:.*]] = tile.cast %a : tensor<16x16xi8, {{.*}} to tensor<16x16xi16
// CHECK-NEXT: %[[A:.*]] = tile.cast %[[LEFT]] : tensor<16x16xi16, {{.*}} to tensor<16x16xi32
// CHECK-NEXT: %[[RIGHT:.*]] = tile.cast %a : tensor<16x16xi8, {{.*}} to tensor<16x16xi16
// CHECK-NEXT: %[[B:.*]] = tile.cast %[[RIGHT]] : tensor<16x16xi16, {{.*}} to tensor<16x16xi32
// CHECK-NEXT: %sums = tile.dot %[[A]], %[[B]], %acc
