// CHECK: tile.reshape: 8 elements cannot become 4
func.func @reshape(%x: tensor<2x4xi8>) {
  %a = tile.reshape %x : tensor<2x4xi8> to tensor<4xi8>
  func.return
}

// -----

// CHECK: tile.reshape keeps the element type, found tensor<2x4xi8> to tensor<8xi16>
func.func @reshape(%x: tensor<2x4xi8>) {
  %a = tile.reshape %x : tensor<2x4xi8> to tensor<8xi16>
  func.return
}

// -----

// CHECK: tile.reshape takes and gives tensors, found the scalar f32
func.func @reshape(%x: tensor<1xf32>) {
  %y = tile.reshape %x : tensor<1xf32> to f32
  func.return
}
