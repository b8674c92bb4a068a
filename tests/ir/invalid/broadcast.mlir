// CHECK: tile.broadcast cannot take shape (2, 4) to (4, 4)
func.func @broadcast(%x: tensor<2x4xi8>) {
  %a = tile.broadcast %x : tensor<2x4xi8> to tensor<4x4xi8>
  func.return
}

// -----

// CHECK: tile.broadcast cannot take shape (1, 4) to (4,)
func.func @broadcast(%x: tensor<1x4xi8>) {
  %a = tile.broadcast %x : tensor<1x4xi8> to tensor<4xi8>
  func.return
}

// -----

// CHECK: tile.broadcast keeps the element type, found tensor<1x4xi8> to tensor<2x4xui8>
func.func @broadcast(%x: tensor<1x4xi8>) {
  %a = tile.broadcast %x : tensor<1x4xi8> to tensor<2x4xui8>
  func.return
}

// -----

// CHECK: tile.broadcast takes and gives tensors, found the scalar f32
func.func @broadcast(%x: f32) {
  %y = tile.broadcast %x : f32 to tensor<4xf32>
  func.return
}
