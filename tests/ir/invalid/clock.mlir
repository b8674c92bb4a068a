// CHECK: Expected 0 operands, but got 1
func.func @clock(%x: f32) {
  %t = "tile.clock"(%x) : (f32) -> i64
  func.return
}
