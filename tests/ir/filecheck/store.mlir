// Alone and masked; raising a flag, and with advice about caches.

func.func @store(%s: !tile.ptr<f32>, %w: f32, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
  tile.store %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
  tile.store %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
  tile.store %s, %w release : !tile.ptr<f32>, f32
  tile.store %s, %w release cache ".wt" evict "evict_last" : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      func.func @store(%s: !tile.ptr<f32>, %w: f32, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
// CHECK-NEXT:   tile.store %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:   tile.store %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:   tile.store %s, %w release : !tile.ptr<f32>, f32
// CHECK-NEXT:   tile.store %s, %w release cache ".wt" evict "evict_last" : !tile.ptr<f32>, f32
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
