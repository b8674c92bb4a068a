// CHECK: tile.num_programs: axis must be 0, 1 or 2, found -1
func.func @num_programs() {
  %a = tile.num_programs -1
  func.return
}
