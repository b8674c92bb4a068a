// Alone and masked; with an order and a scope. The defaults ("acq_rel", "gpu") are not printed.

func.func @atomic_rmw(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
  %a = tile.atomic_rmw "add" %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  %b = tile.atomic_rmw "add" %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  %c = tile.atomic_rmw "xchg" %p, %v sem "relaxed" : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  %d = tile.atomic_rmw "max" %p, %v mask %m : tensor<4xi1> sem "acquire" scope "cta" : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
  func.return
}

// CHECK:      func.func @atomic_rmw(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.atomic_rmw "add" %p, %v : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   %b = tile.atomic_rmw "add" %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   %c = tile.atomic_rmw "xchg" %p, %v sem "relaxed" : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   %d = tile.atomic_rmw "max" %p, %v mask %m : tensor<4xi1> sem "acquire" scope "cta" : tensor<4x!tile.ptr<f32>>, tensor<4xf32> to tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
