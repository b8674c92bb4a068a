// CHECK: tile.expand_dims: axis 3 is out of range for rank 2
func.func @expand_dims(%x: tensor<2x4xi8>) {
  %a = tile.expand_dims %x 3 : tensor<2x4xi8> to tensor<2x4x1xi8>
  func.return
}

// -----

// CHECK: tile.expand_dims: axis -1 is out of range for rank 2
func.func @expand_dims(%x: tensor<2x4xi8>) {
  %a = tile.expand_dims %x -1 : tensor<2x4xi8> to tensor<2x4x1xi8>
  func.return
}

// -----

// CHECK: tile.expand_dims: expected shape (1, 2, 4), found (2, 1, 4)
func.func @expand_dims(%x: tensor<2x4xi8>) {
  %a = tile.expand_dims %x 0 : tensor<2x4xi8> to tensor<2x1x4xi8>
  func.return
}

// -----

// CHECK: tile.expand_dims keeps the element type, found tensor<4xi8> to tensor<1x4xf16>
func.func @expand_dims(%x: tensor<4xi8>) {
  %a = tile.expand_dims %x 0 : tensor<4xi8> to tensor<1x4xf16>
  func.return
}

// -----

// CHECK: tile.expand_dims takes and gives tensors, found the scalar f32
func.func @expand_dims(%x: f32) {
  %y = tile.expand_dims %x 0 : f32 to tensor<1xf32>
  func.return
}
