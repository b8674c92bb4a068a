// RUN: weft opt %s --pass assign-layouts{lanes=4}
// Lanes walk memory: a contiguous tile of 16 has neighbours in the 4 lanes and the rest in 4 registers.

func.func @k(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.arange 0 16 : tensor<16xi32>
  %s = tile.splat %x : !tile.ptr<f32> to tensor<16x!tile.ptr<f32>>
  %p = tile.addptr %s, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi32> to tensor<16x!tile.ptr<f32>>
  %a = tile.load %p : tensor<16x!tile.ptr<f32>> to tensor<16xf32>
  %b = tile.binary "add" %a, %a : tensor<16xf32>
  tile.store %p, %b : tensor<16x!tile.ptr<f32>>, tensor<16xf32>
  func.return
}

// CHECK-NOT: tile.convert_layout
// CHECK: %a = tile.load %p : {{.*}} to tensor<16xf32, #tile.layout<"{register: [4,8], lane: [1,2]} -> [dim0: 16]">>
// CHECK: %b = tile.binary "add" %a, %a : tensor<16xf32, #tile.layout<"{register: [4,8], lane: [1,2]} -> [dim0: 16]">>
