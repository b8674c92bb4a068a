// CHECK: tile.join takes tensors, found the scalar f32
func.func @join(%x: f32) {
  %a = tile.join %x, %x : f32, f32 to tensor<2xf32>
  func.return
}

// -----

// CHECK: tile.join: tensor<4xf32> and tensor<8xf32> differ
func.func @join(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  %a = tile.join %x, %y : tensor<4xf32>, tensor<8xf32> to tensor<4x2xf32>
  func.return
}

// -----

// CHECK: tile.join: tensor<4xf32> and tensor<4xf16> differ
func.func @join(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  %a = tile.join %x, %y : tensor<4xf32>, tensor<4xf16> to tensor<4x2xf32>
  func.return
}

// -----

// CHECK: tile.join of tensor<4xf32>: expected tensor<4x2xf32>, found tensor<2x4xf32>
func.func @join(%x: tensor<4xf32>) {
  %a = tile.join %x, %x : tensor<4xf32>, tensor<4xf32> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.join of tensor<4xf32>: expected tensor<4x2xf32>, found tensor<4x2xf16>
func.func @join(%x: tensor<4xf32>) {
  %a = tile.join %x, %x : tensor<4xf32>, tensor<4xf32> to tensor<4x2xf16>
  func.return
}
