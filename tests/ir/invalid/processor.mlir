// CHECK: Expected 0 operands, but got 1
func.func @processor(%x: f32) {
  %t = "tile.processor"(%x) : (f32) -> i32
  func.return
}
