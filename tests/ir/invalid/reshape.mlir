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
