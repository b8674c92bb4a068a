// RUN: weft opt %s --pass 'delay-sums{lanes=4}'
// Four totals stay: one that the loop reads, one of float16, one along an axis that memory is not consecutive along, and a total of maxima.

func.func @k(%a: !tile.ptr<f32>, %b: !tile.ptr<f16>, %n: i32, %s: f32, %q: f16, %r: tensor<8xf32>) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %eight = tile.arange 0 8 : tensor<8xi32>
  %pa = tile.splat %a : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
  %at = tile.addptr %pa, %eight : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
  %column = tile.expand_dims %at 1 : tensor<8x!tile.ptr<f32>> to tensor<8x1x!tile.ptr<f32>>
  %columns = tile.broadcast %column : tensor<8x1x!tile.ptr<f32>> to tensor<8x2x!tile.ptr<f32>>
  %pb = tile.splat %b : !tile.ptr<f16> to tensor<8x!tile.ptr<f16>>
  %bt = tile.addptr %pb, %eight : tensor<8x!tile.ptr<f16>>, tensor<8xi32> to tensor<8x!tile.ptr<f16>>
  %w, %x, %y, %z = scf.for %i = %zero to %n step %one iter_args(%t = %s, %h = %q, %v = %r, %g = %s) -> (f32, f16, tensor<8xf32>, f32) : i32 {
    %e = tile.load %at : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
    %f = tile.reduce %e axis 0 : tensor<8xf32> to f32 {
    ^bb0(%l: f32, %m: f32):
      %o = tile.binary "add" %l, %m : f32
      tile.yield %o : f32
    }
    %t1 = tile.binary "add" %t, %f : f32
    tile.store %a, %t : !tile.ptr<f32>, f32
    %d = tile.load %bt : tensor<8x!tile.ptr<f16>> to tensor<8xf16>
    %c = tile.reduce %d axis 0 : tensor<8xf16> to f16 {
    ^bb0(%l1: f16, %m1: f16):
      %o1 = tile.binary "add" %l1, %m1 : f16
      tile.yield %o1 : f16
    }
    %h1 = tile.binary "add" %h, %c : f16
    %j = tile.load %columns : tensor<8x2x!tile.ptr<f32>> to tensor<8x2xf32>
    %k = tile.reduce %j axis 1 : tensor<8x2xf32> to tensor<8xf32> {
    ^bb0(%l2: f32, %m2: f32):
      %o2 = tile.binary "add" %l2, %m2 : f32
      tile.yield %o2 : f32
    }
    %v1 = tile.binary "add" %v, %k : tensor<8xf32>
    %p = tile.reduce %e axis 0 : tensor<8xf32> to f32 {
    ^bb0(%l3: f32, %m3: f32):
      %o3 = tile.binary "max" %l3, %m3 : f32
      tile.yield %o3 : f32
    }
    %g1 = tile.binary "add" %g, %p : f32
    scf.yield %t1, %h1, %v1, %g1 : f32, f16, tensor<8xf32>, f32
  }
  func.return
}

// CHECK:     iter_args(%t = %s, %h = %q, %v = %r, %g = %s) -> (f32, f16, tensor<8xf32>, f32)
// CHECK-NOT: tile.reshape
// CHECK:     scf.yield %t1, %h1, %v1, %g1 : f32, f16, tensor<8xf32>, f32
