// CHECK: operand 'condition' at position 0 does not verify: Expected attribute i1 but got i32
func.func @assert(%x: i32) {
  "tile.assert"(%x) <{message = ""}> : (i32) -> ()
  func.return
}
