// RUN: weft opt %s --pass assign-layouts{lanes=4}
// A tile that is read along rows and written along columns is converted once, between load and store.

func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %four = tile.constant 4 : tensor<4x1xi32>
  %i = tile.arange 0 4 : tensor<4xi32>
  %c = tile.expand_dims %i 1 : tensor<4xi32> to tensor<4x1xi32>
  %r = tile.expand_dims %i 0 : tensor<4xi32> to tensor<1x4xi32>
  %m = tile.binary "mul" %c, %four : tensor<4x1xi32>
  %cs = tile.broadcast %m : tensor<4x1xi32> to tensor<4x4xi32>
  %rs = tile.broadcast %r : tensor<1x4xi32> to tensor<4x4xi32>
  %o = tile.binary "add" %cs, %rs : tensor<4x4xi32>
  %u = tile.trans %o [1, 0] : tensor<4x4xi32> to tensor<4x4xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<4x4x!tile.ptr<f32>>
  %ys = tile.splat %y : !tile.ptr<f32> to tensor<4x4x!tile.ptr<f32>>
  %p = tile.addptr %xs, %o : tensor<4x4x!tile.ptr<f32>>, tensor<4x4xi32> to tensor<4x4x!tile.ptr<f32>>
  %q = tile.addptr %ys, %u : tensor<4x4x!tile.ptr<f32>>, tensor<4x4xi32> to tensor<4x4x!tile.ptr<f32>>
  %a = tile.load %p : tensor<4x4x!tile.ptr<f32>> to tensor<4x4xf32>
  tile.store %q, %a : tensor<4x4x!tile.ptr<f32>>, tensor<4x4xf32>
  func.return
}

// CHECK: %a = tile.load %p : {{.*}} to tensor<4x4xf32, #tile.layout<"{register: [(1,0),(2,0)], lane: [(0,1),(0,2)]} -> [dim0: 4, dim1: 4]">>
// CHECK: [[A:%.*]] = tile.convert_layout %a : {{.*}} to tensor<4x4xf32, #tile.layout<"{register: [(0,1),(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 4, dim1: 4]">>
// CHECK-NOT: tile.convert_layout
// CHECK: tile.store {{%.*}}, [[A]] :
