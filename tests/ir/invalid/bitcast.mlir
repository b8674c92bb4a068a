// CHECK: tile.bitcast: 32 bits cannot become 16
func.func @bitcast(%x: i32) {
  %a = tile.bitcast %x : i32 to f16
  func.return
}

// -----

// CHECK: tile.bitcast: 8 bits cannot become 1
func.func @bitcast(%x: i8) {
  %a = tile.bitcast %x : i8 to i1
  func.return
}

// -----

// CHECK: tile.bitcast: 64 bits cannot become 32
func.func @bitcast(%x: !tile.ptr<f32>) {
  %a = tile.bitcast %x : !tile.ptr<f32> to i32
  func.return
}

// -----

// CHECK: tile.bitcast keeps shape and layout, found tensor<4xi32> to tensor<2x2xf32>
func.func @bitcast(%x: tensor<4xi32>) {
  %a = tile.bitcast %x : tensor<4xi32> to tensor<2x2xf32>
  func.return
}
