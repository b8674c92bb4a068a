// CHECK: tile.flip: axis 1 is out of range for rank 1
func.func @flip(%x: tensor<4xf32>) {
  %a = tile.flip %x axis 1 : tensor<4xf32> to tensor<4xf32>
  func.return
}

// -----

// CHECK: tile.flip: axis -1 is out of range for rank 1
func.func @flip(%x: tensor<4xf32>) {
  %a = tile.flip %x axis -1 : tensor<4xf32> to tensor<4xf32>
  func.return
}

// -----

// CHECK: tile.flip: axis 0 is out of range for rank 0
func.func @flip(%x: f32) {
  %a = tile.flip %x axis 0 : f32 to f32
  func.return
}

// -----

// CHECK: tile.flip keeps shape and element type, found tensor<4xf32> to tensor<4x1xf32>
func.func @flip(%x: tensor<4xf32>) {
  %a = tile.flip %x axis 0 : tensor<4xf32> to tensor<4x1xf32>
  func.return
}

// -----

// CHECK: tile.flip keeps shape and element type, found tensor<4xf32> to tensor<4xf16>
func.func @flip(%x: tensor<4xf32>) {
  %a = tile.flip %x axis 0 : tensor<4xf32> to tensor<4xf16>
  func.return
}
