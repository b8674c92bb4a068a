// A scalar bool and a message; no result.

func.func @assert(%b: i1) {
  tile.assert %b, "x is positive"
  func.return
}

// CHECK:      func.func @assert(%b: i1) {
// CHECK-NEXT:   tile.assert %b, "x is positive"
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
