// Each class of types; the kinds are a table.

func.func @unary(%f: tensor<4xbf16>, %i: ui8, %b: tensor<2x2xi1>) {
  %a = tile.unary "exp2" %f : tensor<4xbf16>
  %c = tile.unary "abs" %i : ui8
  %d = tile.unary "not" %b : tensor<2x2xi1>
  func.return
}

// CHECK:      func.func @unary(%f: tensor<4xbf16>, %i: ui8, %b: tensor<2x2xi1>) {
// CHECK-NEXT:   %a = tile.unary "exp2" %f : tensor<4xbf16>
// CHECK-NEXT:   %c = tile.unary "abs" %i : ui8
// CHECK-NEXT:   %d = tile.unary "not" %b : tensor<2x2xi1>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
