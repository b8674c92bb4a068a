// CHECK: operand 'condition' at position 0 does not verify: Expected attribute i1 but got i32
func.func @assume(%x: i32) {
  "tile.assume"(%x) : (i32) -> ()
  func.return
}
