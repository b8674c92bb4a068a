// CHECK: tile.split takes two or more dimensions, the last of size 2, found tensor<2xf32>
func.func @split(%x: tensor<2xf32>) {
  %a, %b = tile.split %x : tensor<2xf32> to f32, f32
  func.return
}

// -----

// CHECK: tile.split takes two or more dimensions, the last of size 2, found tensor<2x4xf32>
func.func @split(%x: tensor<2x4xf32>) {
  %a, %b = tile.split %x : tensor<2x4xf32> to tensor<2xf32>, tensor<2xf32>
  func.return
}

// -----

// CHECK: tile.split of tensor<4x2xf32>: expected tensor<4xf32>, found tensor<4x1xf32>
func.func @split(%x: tensor<4x2xf32>) {
  %a, %b = tile.split %x : tensor<4x2xf32> to tensor<4xf32>, tensor<4x1xf32>
  func.return
}

// -----

// CHECK: tile.split of tensor<4x2xf32>: expected tensor<4xf32>, found tensor<4xf16>
func.func @split(%x: tensor<4x2xf32>) {
  %a, %b = tile.split %x : tensor<4x2xf32> to tensor<4xf16>, tensor<4xf32>
  func.return
}
