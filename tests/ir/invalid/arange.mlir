// CHECK: tile.arange 0 4 has shape (8,), expected (4,)
func.func @arange() {
  %a = tile.arange 0 4 : tensor<8xi32>
  func.return
}

// -----

// CHECK: tile.arange makes int32, found tensor<4xi64>
func.func @arange() {
  %a = tile.arange 0 4 : tensor<4xi64>
  func.return
}

// -----

// CHECK: tile.arange: tensor<0xi32> has a size below 1
func.func @arange() {
  %a = tile.arange 0 0 : tensor<0xi32>
  func.return
}

// -----

// CHECK: tile.arange: the layout of tensor<4xi32, #tile.layout<"{lane: [1,2,4]} -> [dim0: 8]">> has another shape
func.func @arange() {
  %a = tile.arange 0 4 : tensor<4xi32, #tile.layout<"{lane: [1,2,4]} -> [dim0: 8]">>
  func.return
}
