// CHECK: tile.program_id: axis must be 0, 1 or 2, found 3
func.func @program_id() {
  %a = tile.program_id 3
  func.return
}
