// CHECK: tile.histogram is of tensors of rank 1, found tensor<2x4xi32>
func.func @histogram(%x: tensor<2x4xi32>) {
  %a = tile.histogram %x : tensor<2x4xi32> to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.histogram is of 32-bit integers, found i64
func.func @histogram(%x: tensor<4xi64>) {
  %a = tile.histogram %x : tensor<4xi64> to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.histogram is of 32-bit integers, found f32
func.func @histogram(%x: tensor<4xf32>) {
  %a = tile.histogram %x : tensor<4xf32> to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.histogram of tensor<4xi32>: the mask is tensor<8xi1>
func.func @histogram(%x: tensor<4xi32>, %m: tensor<8xi1>) {
  %a = tile.histogram %x mask %m : tensor<8xi1> : tensor<4xi32> to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.histogram of tensor<4xi32>: the mask is tensor<4xi32>
func.func @histogram(%x: tensor<4xi32>) {
  %a = tile.histogram %x mask %x : tensor<4xi32> : tensor<4xi32> to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.histogram: counts are int32 of rank 1, found tensor<4xi64>
func.func @histogram(%x: tensor<4xi32>) {
  %a = tile.histogram %x : tensor<4xi32> to tensor<4xi64>
  func.return
}
