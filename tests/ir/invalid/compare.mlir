// CHECK: tile.compare: unknown kind 'ult', expected one of eq, ne, lt, le, gt, ge
func.func @compare(%x: f32) {
  %a = tile.compare "ult" %x, %x : f32 to i1
  func.return
}

// -----

// CHECK: tile.compare of tensor<4xf32> gives tensor<4xi1>, found i1
func.func @compare(%x: tensor<4xf32>) {
  %a = tile.compare "lt" %x, %x : tensor<4xf32> to i1
  func.return
}
