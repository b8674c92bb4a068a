// Two results of one type.

func.func @split(%x: tensor<4x2xf32>, %p: tensor<2x4x2x!tile.ptr<f16>>) {
  %a, %b = tile.split %x : tensor<4x2xf32> to tensor<4xf32>, tensor<4xf32>
  %c, %d = tile.split %p : tensor<2x4x2x!tile.ptr<f16>> to tensor<2x4x!tile.ptr<f16>>, tensor<2x4x!tile.ptr<f16>>
  func.return
}

// CHECK:      %a, %b = tile.split %x : tensor<4x2xf32> to tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: %c, %d = tile.split %p : tensor<2x4x2x!tile.ptr<f16>> to tensor<2x4x!tile.ptr<f16>>, tensor<2x4x!tile.ptr<f16>>
// CHECK-NEXT: func.return
