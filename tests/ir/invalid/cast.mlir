// CHECK: tile.cast keeps shape and layout, found tensor<4xf32> to tensor<8xi32>
func.func @cast(%x: tensor<4xf32>) {
  %a = tile.cast %x : tensor<4xf32> to tensor<8xi32>
  func.return
}

// -----

// CHECK: tile.cast converts numbers; use tile.bitcast for pointers
func.func @cast(%x: i64) {
  %a = tile.cast %x : i64 to !tile.ptr<f32>
  func.return
}

// -----

// CHECK: tile.cast converts numbers; use tile.bitcast for pointers
func.func @cast(%x: !tile.ptr<f32>) {
  %a = tile.cast %x : !tile.ptr<f32> to i64
  func.return
}
