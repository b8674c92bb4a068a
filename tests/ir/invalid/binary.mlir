// CHECK: tile.binary: unknown kind 'hypot', expected one of add, sub, mul, div, div_rn, rem, and, or, xor, shl, shr, min, max, minnan, maxnan, umulhi, pow, atan2
func.func @binary(%x: f32) {
  %a = tile.binary "hypot" %x, %x : f32
  func.return
}

// -----

// CHECK: tile.binary and does not take float32
func.func @binary(%x: f32) {
  %a = tile.binary "and" %x, %x : f32
  func.return
}

// -----

// CHECK: tile.binary maxnan does not take uint8
func.func @binary(%x: ui8) {
  %a = tile.binary "maxnan" %x, %x : ui8
  func.return
}

// -----

// CHECK: tile.binary add does not take pointers
func.func @binary(%x: !tile.ptr<f32>) {
  %a = tile.binary "add" %x, %x : !tile.ptr<f32>
  func.return
}

// -----

// CHECK: operand 'rhs' at position 1 does not verify: attribute i32 expected from variable 'T', but got ui32
func.func @binary(%x: i32, %y: ui32) {
  %a = "tile.binary"(%x, %y) <{kind = "add"}> : (i32, ui32) -> i32
  func.return
}
