// The three axes of the grid.

func.func @num_programs() {
  %x = tile.num_programs 0
  %y = tile.num_programs 1
  %z = tile.num_programs 2
  func.return
}

// CHECK:      func.func @num_programs() {
// CHECK-NEXT:   %x = tile.num_programs 0
// CHECK-NEXT:   %y = tile.num_programs 1
// CHECK-NEXT:   %z = tile.num_programs 2
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
