// CHECK: Expected 0 operands, but got 1
func.func @barrier(%x: f32) {
  "tile.barrier"(%x) : (f32) -> ()
  func.return
}
