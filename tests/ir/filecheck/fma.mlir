// Floats of any width.

func.func @fma(%f: tensor<4xf16>, %d: f64) {
  %a = tile.fma %f, %f, %f : tensor<4xf16>
  %b = tile.fma %d, %d, %d : f64
  func.return
}

// CHECK:      func.func @fma(%f: tensor<4xf16>, %d: f64) {
// CHECK-NEXT:   %a = tile.fma %f, %f, %f : tensor<4xf16>
// CHECK-NEXT:   %b = tile.fma %d, %d, %d : f64
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
