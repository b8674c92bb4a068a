// Each class of types; signedness is the type's.

func.func @binary(%f: tensor<4xf16>, %i: i64, %u: ui32, %b: i1) {
  %a = tile.binary "minnan" %f, %f : tensor<4xf16>
  %c = tile.binary "div" %i, %i : i64
  %d = tile.binary "shr" %u, %u : ui32
  %e = tile.binary "xor" %b, %b : i1
  func.return
}

// CHECK:      func.func @binary(%f: tensor<4xf16>, %i: i64, %u: ui32, %b: i1) {
// CHECK-NEXT:   %a = tile.binary "minnan" %f, %f : tensor<4xf16>
// CHECK-NEXT:   %c = tile.binary "div" %i, %i : i64
// CHECK-NEXT:   %d = tile.binary "shr" %u, %u : ui32
// CHECK-NEXT:   %e = tile.binary "xor" %b, %b : i1
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
