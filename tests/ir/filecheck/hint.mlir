// One number a dimension, for a scalar one.

func.func @hint(%i: tensor<2x4xi32>, %p: !tile.ptr<f32>) {
  %a = tile.hint %i divisibility [1, 16] contiguity [1, 4] constancy [2, 1] : tensor<2x4xi32>
  %b = tile.hint %p divisibility [16] : !tile.ptr<f32>
  func.return
}

// CHECK:      func.func @hint(%i: tensor<2x4xi32>, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   %a = tile.hint %i divisibility [1, 16] contiguity [1, 4] constancy [2, 1] : tensor<2x4xi32>
// CHECK-NEXT:   %b = tile.hint %p divisibility [16] : !tile.ptr<f32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
