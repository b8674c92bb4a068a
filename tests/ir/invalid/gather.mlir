// CHECK: tile.gather: axis 2 is out of range for rank 2
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x4xi32>) {
  %a = tile.gather %x, %i axis 2 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather: axis -1 is out of range for rank 2
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x4xi32>) {
  %a = tile.gather %x, %i axis -1 : tensor<2x4xf32>, tensor<2x4xi32> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather: axis 0 is out of range for rank 0
func.func @gather(%x: f32, %i: i32) {
  %a = tile.gather %x, %i axis 0 : f32, i32 to f32
  func.return
}

// -----

// CHECK: tile.gather: shapes (2, 4) and (4, 4) differ in more than dimension 1
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<4x4xi32>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<4x4xi32> to tensor<4x4xf32>
  func.return
}

// -----

// CHECK: tile.gather: shapes (2, 4) and (2,) differ in more than dimension 0
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2xi32>) {
  %a = tile.gather %x, %i axis 0 : tensor<2x4xf32>, tensor<2xi32> to tensor<2xf32>
  func.return
}

// -----

// CHECK: tile.gather: an index is an integer, found f32
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x4xf32>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x4xf32> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather: an index is an integer, found i1
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x4xi1>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x4xi1> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather: an index is an integer, found !tile.ptr<i32>
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x4x!tile.ptr<i32>>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x4x!tile.ptr<i32>> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather of tensor<2x4xf32>: expected tensor<2x8xf32>, found tensor<2x4xf32>
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x8xi32>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x8xi32> to tensor<2x4xf32>
  func.return
}

// -----

// CHECK: tile.gather of tensor<2x4xf32>: expected tensor<2x8xf32>, found tensor<2x8xf16>
func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x8xi32>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x8xi32> to tensor<2x8xf16>
  func.return
}
