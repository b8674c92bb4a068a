
func.func @clock() {
  %t = tile.clock
  func.return
}

// CHECK:      func.func @clock() {
// CHECK-NEXT:   %t = tile.clock
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
