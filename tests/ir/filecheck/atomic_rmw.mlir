// Alone and masked.

func.func @atomic_rmw(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
  %a = tile.atomic_rmw "add" %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  %b = tile.atomic_rmw "add" %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  func.return
}

// CHECK:      func.func @atomic_rmw(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.atomic_rmw "add" %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   %b = tile.atomic_rmw "add" %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
