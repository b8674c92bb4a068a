// CHECK: tile.trans: (0, 2) is not a permutation of 2 dimensions
func.func @trans(%x: tensor<2x4xi8>) {
  %a = tile.trans %x [0, 2] : tensor<2x4xi8> to tensor<2x4xi8>
  func.return
}

// -----

// CHECK: tile.trans: (1,) is not a permutation of 2 dimensions
func.func @trans(%x: tensor<2x4xi8>) {
  %a = tile.trans %x [1] : tensor<2x4xi8> to tensor<2x4xi8>
  func.return
}

// -----

// CHECK: tile.trans: shape (2, 4) in order (1, 0) is not (2, 4)
func.func @trans(%x: tensor<2x4xi8>) {
  %a = tile.trans %x [1, 0] : tensor<2x4xi8> to tensor<2x4xi8>
  func.return
}

// -----

// CHECK: tile.trans keeps the element type, found tensor<2x4xi8> to tensor<4x2xui8>
func.func @trans(%x: tensor<2x4xi8>) {
  %a = tile.trans %x [1, 0] : tensor<2x4xi8> to tensor<4x2xui8>
  func.return
}

// -----

// CHECK: tile.trans takes and gives tensors, found the scalar f32
func.func @trans(%x: f32) {
  %y = tile.trans %x [] : f32 to f32
  func.return
}
