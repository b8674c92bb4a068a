// CHECK: tile.convert_layout keeps shape and element type, found tensor<4xf32> to tensor<8xf32>
func.func @convert_layout(%x: tensor<4xf32>) {
  %a = tile.convert_layout %x : tensor<4xf32> to tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.convert_layout keeps shape and element type, found tensor<4xf32> to tensor<4xi32>
func.func @convert_layout(%x: tensor<4xf32>) {
  %a = tile.convert_layout %x : tensor<4xf32> to tensor<4xi32>
  func.return
}
