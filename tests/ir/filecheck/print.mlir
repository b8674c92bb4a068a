// A prefix; a tile, a scalar, or no value.

func.func @print(%x: tensor<4xi32>, %p: !tile.ptr<f32>) {
  tile.print " x: " %x : tensor<4xi32>
  tile.print " p: " hex %p : !tile.ptr<f32>
  tile.print " here"
  func.return
}

// CHECK:      func.func @print(%x: tensor<4xi32>, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   tile.print " x: " %x : tensor<4xi32>
// CHECK-NEXT:   tile.print " p: " hex %p : !tile.ptr<f32>
// CHECK-NEXT:   tile.print " here"
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
