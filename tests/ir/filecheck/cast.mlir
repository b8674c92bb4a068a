// Between any two element types.

func.func @cast(%f: tensor<4xf8E4M3FN>, %u: ui16, %b: i1) {
  %a = tile.cast %f : tensor<4xf8E4M3FN> to tensor<4xi64>
  %c = tile.cast %u : ui16 to f8E5M2
  %d = tile.cast %b : i1 to bf16
  %e = tile.cast %u : ui16 to i1
  func.return
}

// CHECK:      func.func @cast(%f: tensor<4xf8E4M3FN>, %u: ui16, %b: i1) {
// CHECK-NEXT:   %a = tile.cast %f : tensor<4xf8E4M3FN> to tensor<4xi64>
// CHECK-NEXT:   %c = tile.cast %u : ui16 to f8E5M2
// CHECK-NEXT:   %d = tile.cast %b : i1 to bf16
// CHECK-NEXT:   %e = tile.cast %u : ui16 to i1
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
