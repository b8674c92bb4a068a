// The three axes of the grid.

func.func @program_id() {
  %x = tile.program_id 0
  %y = tile.program_id 1
  %z = tile.program_id 2
  func.return
}

// CHECK:      func.func @program_id() {
// CHECK-NEXT:   %x = tile.program_id 0
// CHECK-NEXT:   %y = tile.program_id 1
// CHECK-NEXT:   %z = tile.program_id 2
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
