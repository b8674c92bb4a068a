// Alone, masked, with what to read where the mask is false; volatile, and with advice about caches.

func.func @load(%s: !tile.ptr<f32>, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {
  %a = tile.load %s : !tile.ptr<f32> to f32
  %b = tile.load %p : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  %c = tile.load %p mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  %d = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  %e = tile.load %s volatile : !tile.ptr<f32> to f32
  %f = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> volatile cache ".cg" evict "evict_first" : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  func.return
}

// CHECK:      func.func @load(%s: !tile.ptr<f32>, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.load %s : !tile.ptr<f32> to f32
// CHECK-NEXT:   %b = tile.load %p : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   %c = tile.load %p mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   %d = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   %e = tile.load %s volatile : !tile.ptr<f32> to f32
// CHECK-NEXT:   %f = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> volatile cache ".cg" evict "evict_first" : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
