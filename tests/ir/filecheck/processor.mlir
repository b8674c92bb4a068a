
func.func @processor() {
  %t = tile.processor
  func.return
}

// CHECK:      func.func @processor() {
// CHECK-NEXT:   %t = tile.processor
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
