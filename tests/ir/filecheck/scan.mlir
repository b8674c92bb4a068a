// One tensor, one from the end, and two at once with a region that does not commute.

func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>, %i: tensor<2x4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = tile.binary "add" %p, %q : f32
    tile.yield %s : f32
  }
  %b = tile.scan %y axis 0 reverse : tensor<4xi32> to tensor<4xi32> {
  ^bb0(%p2: i32, %q2: i32):
    %s2 = tile.binary "max" %p2, %q2 : i32
    tile.yield %s2 : i32
  }
  %c, %d = tile.scan %x, %i axis 0 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<2x4xf32>, tensor<2x4xi32> {
  ^bb0(%p3: f32, %pi3: i32, %q3: f32, %qi3: i32):
    tile.yield %q3, %pi3 : f32, i32
  }
  func.return
}

// CHECK:      func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>, %i: tensor<2x4xi32>) {
// CHECK-NEXT:   %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
// CHECK-NEXT:   ^bb0(%p: f32, %q: f32):
// CHECK-NEXT:     %s = tile.binary "add" %p, %q : f32
// CHECK-NEXT:     tile.yield %s : f32
// CHECK-NEXT:   }
// CHECK-NEXT:   %b = tile.scan %y axis 0 reverse : tensor<4xi32> to tensor<4xi32> {
// CHECK-NEXT:   ^bb0(%p2: i32, %q2: i32):
// CHECK-NEXT:     %s2 = tile.binary "max" %p2, %q2 : i32
// CHECK-NEXT:     tile.yield %s2 : i32
// CHECK-NEXT:   }
// CHECK-NEXT:   %c, %d = tile.scan %x, %i axis 0 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<2x4xf32>, tensor<2x4xi32> {
// CHECK-NEXT:   ^bb0(%p3: f32, %pi3: i32, %q3: f32, %qi3: i32):
// CHECK-NEXT:     tile.yield %q3, %pi3 : f32, i32
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
