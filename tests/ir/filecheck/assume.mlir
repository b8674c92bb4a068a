// A scalar bool; no result.

func.func @assume(%b: i1) {
  tile.assume %b
  func.return
}

// CHECK:      func.func @assume(%b: i1) {
// CHECK-NEXT:   tile.assume %b
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
