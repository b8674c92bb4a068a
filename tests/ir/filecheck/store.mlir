// Alone and masked.

func.func @store(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
  tile.store %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
  tile.store %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
  func.return
}

// CHECK:      func.func @store(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
// CHECK-NEXT:   tile.store %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:   tile.store %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
