// RUN: weft opt %s --pass 'delay-sums{lanes=16 sum_bytes=256}'
// A machine of 16 registers of 32 bytes keeps 8 for sums: of a row of 256 floats 64 are carried, of doubles 32, and of two rows of
// floats 32 each.

func.func @k(%a: !tile.ptr<f32>, %b: !tile.ptr<f64>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %none = tile.constant 0.0 : tensor<256xf32>
  %nothing = tile.constant 0.0 : tensor<256xf64>
  %nil = tile.constant 0.0 : tensor<2x256xf32>
  %wide = tile.arange 0 256 : tensor<256xi32>
  %pa = tile.splat %a : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
  %at = tile.addptr %pa, %wide : tensor<256x!tile.ptr<f32>>, tensor<256xi32> to tensor<256x!tile.ptr<f32>>
  %pb = tile.splat %b : !tile.ptr<f64> to tensor<256x!tile.ptr<f64>>
  %bt = tile.addptr %pb, %wide : tensor<256x!tile.ptr<f64>>, tensor<256xi32> to tensor<256x!tile.ptr<f64>>
  %row = tile.expand_dims %at 0 : tensor<256x!tile.ptr<f32>> to tensor<1x256x!tile.ptr<f32>>
  %rows = tile.broadcast %row : tensor<1x256x!tile.ptr<f32>> to tensor<2x256x!tile.ptr<f32>>
  %x, %y, %z = scf.for %i = %zero to %n step %one iter_args(%t = %none, %u = %nothing, %v = %nil) -> (tensor<256xf32>, tensor<256xf64>, tensor<2x256xf32>) : i32 {
    %e = tile.load %at : tensor<256x!tile.ptr<f32>> to tensor<256xf32>
    %t1 = tile.binary "add" %t, %e : tensor<256xf32>
    %d = tile.load %bt : tensor<256x!tile.ptr<f64>> to tensor<256xf64>
    %u1 = tile.binary "add" %u, %d : tensor<256xf64>
    %g = tile.load %rows : tensor<2x256x!tile.ptr<f32>> to tensor<2x256xf32>
    %v1 = tile.binary "add" %v, %g : tensor<2x256xf32>
    scf.yield %t1, %u1, %v1 : tensor<256xf32>, tensor<256xf64>, tensor<2x256xf32>
  }
  %f = tile.reduce %x axis 0 : tensor<256xf32> to f32 {
  ^bb0(%l: f32, %m: f32):
    %o = tile.binary "add" %l, %m : f32
    tile.yield %o : f32
  }
  %h = tile.reduce %y axis 0 : tensor<256xf64> to f64 {
  ^bb0(%l2: f64, %m2: f64):
    %o2 = tile.binary "add" %l2, %m2 : f64
    tile.yield %o2 : f64
  }
  %j = tile.reduce %z axis 1 : tensor<2x256xf32> to tensor<2xf32> {
  ^bb0(%l3: f32, %m3: f32):
    %o3 = tile.binary "add" %l3, %m3 : f32
    tile.yield %o3 : f32
  }
  tile.store %a, %f : !tile.ptr<f32>, f32
  tile.store %b, %h : !tile.ptr<f64>, f64
  %ps = tile.splat %a : !tile.ptr<f32> to tensor<2x!tile.ptr<f32>>
  tile.store %ps, %j : tensor<2x!tile.ptr<f32>>, tensor<2xf32>
  func.return
}

// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<32xf64>, tensor<2x32xf32>)
