// RUN: weft opt %s --pass 'delay-sums{lanes=4}'
// A scalar total of a tile of 8: the loop carries 4 partial sums. A total for each of 2 rows that are consecutive in memory: 2 x 4. Rows
// no longer than a vector are carried as they are. Integers begin with 0, floats with -0.0.

func.func @k(%a: !tile.ptr<f32>, %c: !tile.ptr<i32>, %n: i32, %s: f32, %r: tensor<2xf32>, %q: tensor<2xi32>) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %eight = tile.arange 0 8 : tensor<8xi32>
  %pa = tile.splat %a : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
  %at = tile.addptr %pa, %eight : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
  %row = tile.expand_dims %at 0 : tensor<8x!tile.ptr<f32>> to tensor<1x8x!tile.ptr<f32>>
  %rows = tile.broadcast %row : tensor<1x8x!tile.ptr<f32>> to tensor<2x8x!tile.ptr<f32>>
  %four = tile.arange 0 4 : tensor<4xi32>
  %pc = tile.splat %c : !tile.ptr<i32> to tensor<4x!tile.ptr<i32>>
  %ct = tile.addptr %pc, %four : tensor<4x!tile.ptr<i32>>, tensor<4xi32> to tensor<4x!tile.ptr<i32>>
  %crow = tile.expand_dims %ct 0 : tensor<4x!tile.ptr<i32>> to tensor<1x4x!tile.ptr<i32>>
  %crows = tile.broadcast %crow : tensor<1x4x!tile.ptr<i32>> to tensor<2x4x!tile.ptr<i32>>
  %x, %y, %z = scf.for %i = %zero to %n step %one iter_args(%t = %s, %u = %r, %v = %q) -> (f32, tensor<2xf32>, tensor<2xi32>) : i32 {
    %e = tile.load %at : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
    %f = tile.reduce %e axis 0 : tensor<8xf32> to f32 {
    ^bb0(%l: f32, %m: f32):
      %o = tile.binary "add" %l, %m : f32
      tile.yield %o : f32
    }
    %t1 = tile.binary "add" %t, %f : f32
    %g = tile.load %rows : tensor<2x8x!tile.ptr<f32>> to tensor<2x8xf32>
    %h = tile.unary "neg" %g : tensor<2x8xf32>
    %j = tile.reduce %h axis 1 : tensor<2x8xf32> to tensor<2xf32> {
    ^bb0(%l2: f32, %m2: f32):
      %o2 = tile.binary "add" %l2, %m2 : f32
      tile.yield %o2 : f32
    }
    %u1 = tile.binary "add" %j, %u : tensor<2xf32>
    %k = tile.load %crows : tensor<2x4x!tile.ptr<i32>> to tensor<2x4xi32>
    %p = tile.reduce %k axis 1 : tensor<2x4xi32> to tensor<2xi32> {
    ^bb0(%l3: i32, %m3: i32):
      %o3 = tile.binary "add" %l3, %m3 : i32
      tile.yield %o3 : i32
    }
    %v1 = tile.binary "add" %v, %p : tensor<2xi32>
    scf.yield %t1, %u1, %v1 : f32, tensor<2xf32>, tensor<2xi32>
  }
  %w = tile.splat %x : f32 to tensor<2xf32>
  %w1 = tile.binary "add" %w, %y : tensor<2xf32>
  %pz = tile.splat %c : !tile.ptr<i32> to tensor<2x!tile.ptr<i32>>
  tile.store %pz, %z : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  %py = tile.splat %a : !tile.ptr<f32> to tensor<2x!tile.ptr<f32>>
  tile.store %py, %w1 : tensor<2x!tile.ptr<f32>>, tensor<2xf32>
  func.return
}

// CHECK-DAG:  [[A:%.*]] = tile.constant -0.0 : tensor<4xf32>
// CHECK-DAG:  [[B:%.*]] = tile.constant -0.0 : tensor<2x4xf32>
// CHECK-DAG:  [[C:%.*]] = tile.constant 0 : tensor<2x4xi32>
// CHECK:      [[X:%.*]], [[Y:%.*]], [[Z:%.*]] = scf.for %i = %zero to %n step %one iter_args(%t = [[A]], %u = [[B]], %v = [[C]]) -> (tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xi32>)
// CHECK:        [[E:%.*]] = tile.reshape %e : tensor<8xf32> to tensor<2x4xf32>
// CHECK-NEXT:   [[F:%.*]] = tile.reduce [[E]] axis 0 : tensor<2x4xf32> to tensor<4xf32>
// CHECK:        [[T:%.*]] = tile.binary "add" %t, [[F]] : tensor<4xf32>
// CHECK:        [[G:%.*]] = tile.reshape %h : tensor<2x8xf32> to tensor<2x2x4xf32>
// CHECK-NEXT:   [[H:%.*]] = tile.reduce [[G]] axis 1 : tensor<2x2x4xf32> to tensor<2x4xf32>
// CHECK:        [[U:%.*]] = tile.binary "add" %u, [[H]] : tensor<2x4xf32>
// CHECK:        [[V:%.*]] = tile.binary "add" %v, %k : tensor<2x4xi32>
// CHECK-NEXT:   scf.yield [[T]], [[U]], [[V]] : tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xi32>
// CHECK:      [[L:%.*]] = tile.reduce [[Z]] axis 1 : tensor<2x4xi32> to tensor<2xi32>
// CHECK:      [[M:%.*]] = tile.binary "add" %q, [[L]] : tensor<2xi32>
// CHECK:      [[N:%.*]] = tile.reduce [[Y]] axis 1 : tensor<2x4xf32> to tensor<2xf32>
// CHECK:      [[O:%.*]] = tile.binary "add" %r, [[N]] : tensor<2xf32>
// CHECK:      [[P:%.*]] = tile.reduce [[X]] axis 0 : tensor<4xf32> to f32
// CHECK:      [[Q:%.*]] = tile.binary "add" %s, [[P]] : f32
