// CHECK: tile.fma takes floats, found i32
func.func @fma(%x: i32) {
  %a = tile.fma %x, %x, %x : i32
  func.return
}

// -----

// CHECK: tile.fma takes floats, found !tile.ptr<f32>
func.func @fma(%x: !tile.ptr<f32>) {
  %a = tile.fma %x, %x, %x : !tile.ptr<f32>
  func.return
}
