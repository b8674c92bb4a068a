// One tensor to a tensor, one to a scalar, and two at once (argmax).

func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>, %i: tensor<2x4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = tile.binary "add" %p, %q : f32
    tile.yield %s : f32
  }
  %b = tile.reduce %y axis 0 : tensor<4xi32> to i32 {
  ^bb0(%p2: i32, %q2: i32):
    %s2 = tile.binary "max" %p2, %q2 : i32
    tile.yield %s2 : i32
  }
  %c, %d = tile.reduce %x, %i axis 0 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<4xf32>, tensor<4xi32> {
  ^bb0(%p3: f32, %pi3: i32, %q3: f32, %qi3: i32):
    %g3 = tile.compare "gt" %q3, %p3 : f32 to i1
    %s3 = tile.select %g3, %q3, %p3 : i1, f32
    %t3 = tile.select %g3, %qi3, %pi3 : i1, i32
    tile.yield %s3, %t3 : f32, i32
  }
  func.return
}

// CHECK:      func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>, %i: tensor<2x4xi32>) {
// CHECK-NEXT:   %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
// CHECK-NEXT:   ^bb0(%p: f32, %q: f32):
// CHECK-NEXT:     %s = tile.binary "add" %p, %q : f32
// CHECK-NEXT:     tile.yield %s : f32
// CHECK-NEXT:   }
// CHECK-NEXT:   %b = tile.reduce %y axis 0 : tensor<4xi32> to i32 {
// CHECK-NEXT:   ^bb0(%p2: i32, %q2: i32):
// CHECK-NEXT:     %s2 = tile.binary "max" %p2, %q2 : i32
// CHECK-NEXT:     tile.yield %s2 : i32
// CHECK-NEXT:   }
// CHECK-NEXT:   %c, %d = tile.reduce %x, %i axis 0 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<4xf32>, tensor<4xi32> {
// CHECK-NEXT:   ^bb0(%p3: f32, %pi3: i32, %q3: f32, %qi3: i32):
// CHECK-NEXT:     %g3 = tile.compare "gt" %q3, %p3 : f32 to i1
// CHECK-NEXT:     %s3 = tile.select %g3, %q3, %p3 : i1, f32
// CHECK-NEXT:     %t3 = tile.select %g3, %qi3, %pi3 : i1, i32
// CHECK-NEXT:     tile.yield %s3, %t3 : f32, i32
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
