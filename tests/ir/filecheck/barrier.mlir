// It stands alone.

func.func @barrier() {
  tile.barrier
  func.return
}

// CHECK:      func.func @barrier() {
// CHECK-NEXT:   tile.barrier
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
