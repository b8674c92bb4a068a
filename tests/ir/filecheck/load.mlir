// Alone, masked, and with what to read where the mask is false.

func.func @load(%s: !tile.ptr<f32>, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {
  %a = tile.load %s : !tile.ptr<f32> to f32
  %b = tile.load %p : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  %c = tile.load %p mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  %d = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  func.return
}

// CHECK:      func.func @load(%s: !tile.ptr<f32>, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.load %s : !tile.ptr<f32> to f32
// CHECK-NEXT:   %b = tile.load %p : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   %c = tile.load %p mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   %d = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
