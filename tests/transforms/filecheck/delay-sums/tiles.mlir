// RUN: weft opt %s --pass 'delay-sums{lanes=4}'
// Tiles that a loop adds up, of which only the sums are used: a row of 64 columns becomes one of 8 vectors, 16 rows of 8 columns become
// rows of one vector, and what a loop begins with is summed as well, unless it is 0.

func.func @k(%a: !tile.ptr<f32>, %n: i32, %s: tensor<64xf32>, %r: tensor<16xi32>) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %none = tile.constant 0.0 : tensor<64xf32>
  %nothing = tile.constant 0.0 : tensor<16x8xf32>
  %wide = tile.arange 0 64 : tensor<64xi32>
  %pa = tile.splat %a : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>
  %at = tile.addptr %pa, %wide : tensor<64x!tile.ptr<f32>>, tensor<64xi32> to tensor<64x!tile.ptr<f32>>
  %eight = tile.arange 0 8 : tensor<8xi32>
  %pe = tile.splat %a : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
  %et = tile.addptr %pe, %eight : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
  %erow = tile.expand_dims %et 0 : tensor<8x!tile.ptr<f32>> to tensor<1x8x!tile.ptr<f32>>
  %rows = tile.broadcast %erow : tensor<1x8x!tile.ptr<f32>> to tensor<16x8x!tile.ptr<f32>>
  %x, %y, %z = scf.for %i = %zero to %n step %one iter_args(%t = %none, %u = %s, %v = %nothing) -> (tensor<64xf32>, tensor<64xf32>, tensor<16x8xf32>) : i32 {
    %e = tile.load %at : tensor<64x!tile.ptr<f32>> to tensor<64xf32>
    %t1 = tile.binary "add" %t, %e : tensor<64xf32>
    %u1 = tile.binary "add" %e, %u : tensor<64xf32>
    %g = tile.load %rows : tensor<16x8x!tile.ptr<f32>> to tensor<16x8xf32>
    %v1 = tile.binary "add" %v, %g : tensor<16x8xf32>
    scf.yield %t1, %u1, %v1 : tensor<64xf32>, tensor<64xf32>, tensor<16x8xf32>
  }
  %f = tile.reduce %x axis 0 : tensor<64xf32> to f32 {
  ^bb0(%l: f32, %m: f32):
    %o = tile.binary "add" %l, %m : f32
    tile.yield %o : f32
  }
  %h = tile.reduce %y axis 0 : tensor<64xf32> to f32 {
  ^bb0(%l2: f32, %m2: f32):
    %o2 = tile.binary "add" %l2, %m2 : f32
    tile.yield %o2 : f32
  }
  %j = tile.reduce %z axis 1 : tensor<16x8xf32> to tensor<16xf32> {
  ^bb0(%l3: f32, %m3: f32):
    %o3 = tile.binary "add" %l3, %m3 : f32
    tile.yield %o3 : f32
  }
  %w = tile.binary "add" %f, %h : f32
  tile.store %a, %w : !tile.ptr<f32>, f32
  %ps = tile.splat %a : !tile.ptr<f32> to tensor<16x!tile.ptr<f32>>
  tile.store %ps, %j : tensor<16x!tile.ptr<f32>>, tensor<16xf32>
  func.return
}

// CHECK:      [[A:%.*]] = tile.constant 0.0 : tensor<32xf32>
// CHECK-NEXT: [[R:%.*]] = tile.reshape %s : tensor<64xf32> to tensor<2x32xf32>
// CHECK-NEXT: [[S:%.*]] = tile.reduce [[R]] axis 0 : tensor<2x32xf32> to tensor<32xf32>
// CHECK:      [[B:%.*]] = tile.constant 0.0 : tensor<16x4xf32>
// CHECK:      scf.for %i = %zero to %n step %one iter_args(%t = [[A]], %u = [[S]], %v = [[B]]) -> (tensor<32xf32>, tensor<32xf32>, tensor<16x4xf32>)
// CHECK:        [[E:%.*]] = tile.reshape %e : tensor<64xf32> to tensor<2x32xf32>
// CHECK-NEXT:   [[F:%.*]] = tile.reduce [[E]] axis 0 : tensor<2x32xf32> to tensor<32xf32>
// CHECK:        [[T:%.*]] = tile.binary "add" %t, [[F]] : tensor<32xf32>
// CHECK:        [[U:%.*]] = tile.binary "add" %u,
// CHECK:        [[G:%.*]] = tile.reshape %g : tensor<16x8xf32> to tensor<16x2x4xf32>
// CHECK-NEXT:   [[H:%.*]] = tile.reduce [[G]] axis 1 : tensor<16x2x4xf32> to tensor<16x4xf32>
// CHECK:        [[V:%.*]] = tile.binary "add" %v, [[H]] : tensor<16x4xf32>
// CHECK-NEXT:   scf.yield [[T]], [[U]], [[V]] : tensor<32xf32>, tensor<32xf32>, tensor<16x4xf32>
// CHECK:      tile.reduce %x axis 0 : tensor<32xf32> to f32
// CHECK:      tile.reduce %y axis 0 : tensor<32xf32> to f32
// CHECK:      tile.reduce %z axis 1 : tensor<16x4xf32> to tensor<16xf32>
