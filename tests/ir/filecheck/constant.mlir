// Numbers: integers and bools exactly, floats with the point or exponent MLIR asks for, and the three that have no digits.

func.func @constant() {
  %i = tile.constant -3 : i32
  %u = tile.constant 18446744073709551615 : ui64
  %b = tile.constant 1 : i1
  %f = tile.constant 0.5 : tensor<2x4xbf16>
  %e = tile.constant 1.0e-30 : f64
  %z = tile.constant -0.0 : f8E5M2
  %p = tile.constant inf : f16
  %n = tile.constant ninf : tensor<4xf64>
  %q = tile.constant nan : f8E4M3FN
  func.return
}

// CHECK:      func.func @constant() {
// CHECK-NEXT:   %i = tile.constant -3 : i32
// CHECK-NEXT:   %u = tile.constant 18446744073709551615 : ui64
// CHECK-NEXT:   %b = tile.constant 1 : i1
// CHECK-NEXT:   %f = tile.constant 0.5 : tensor<2x4xbf16>
// CHECK-NEXT:   %e = tile.constant 1.0e-30 : f64
// CHECK-NEXT:   %z = tile.constant -0.0 : f8E5M2
// CHECK-NEXT:   %p = tile.constant inf : f16
// CHECK-NEXT:   %n = tile.constant ninf : tensor<4xf64>
// CHECK-NEXT:   %q = tile.constant nan : f8E4M3FN
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
