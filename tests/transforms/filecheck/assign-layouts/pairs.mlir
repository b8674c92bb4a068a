// RUN: weft opt %s --pass assign-layouts{lanes=4}
// Pairs that memory has side by side are in lanes; a split takes row-major halves, after a conversion. A join puts the pair in
// registers, and a flip has its source's layout.

func.func @k(%x: !tile.ptr<f32>) {
  %i = tile.arange 0 16 : tensor<16xi32>
  %s = tile.splat %x : !tile.ptr<f32> to tensor<16x!tile.ptr<f32>>
  %p = tile.addptr %s, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi32> to tensor<16x!tile.ptr<f32>>
  %a = tile.load %p : tensor<16x!tile.ptr<f32>> to tensor<16xf32>
  %b = tile.reshape %a : tensor<16xf32> to tensor<8x2xf32>
  %c, %d = tile.split %b : tensor<8x2xf32> to tensor<8xf32>, tensor<8xf32>
  %e = tile.flip %c axis 0 : tensor<8xf32> to tensor<8xf32>
  %f = tile.join %e, %d : tensor<8xf32>, tensor<8xf32> to tensor<8x2xf32>
  %g = tile.reshape %f : tensor<8x2xf32> to tensor<16xf32>
  tile.store %p, %g : tensor<16x!tile.ptr<f32>>, tensor<16xf32>
  func.return
}

// CHECK: tile.convert_layout {{.*}} to tensor<16xf32, #tile.layout<"{register: [1,8], lane: [2,4]} -> [dim0: 16]">>
// CHECK: %c, %d = tile.split {{.*}} to tensor<8xf32, #tile.layout<"{register: [4], lane: [1,2]} -> [dim0: 8]">>
// CHECK: %e = tile.flip %c axis 0 : tensor<8xf32, #tile.layout<"{register: [4], lane: [1,2]} -> [dim0: 8]">>
// CHECK: %f = tile.join %e, %d : {{.*}} to tensor<8x2xf32, #tile.layout<"{register: [(0,1),(4,0)], lane: [(1,0),(2,0)]} -> [dim0: 8, dim1: 2]">>
// CHECK: tile.convert_layout {{.*}} to tensor<8x2xf32, #tile.layout<"{register: [(2,0),(4,0)], lane: [(0,1),(1,0)]} -> [dim0: 8, dim1: 2]">>
