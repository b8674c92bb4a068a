// Of numbers and of pointers, of one dimension and of two.

func.func @join(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<2x4x!tile.ptr<f16>>) {
  %a = tile.join %x, %y : tensor<4xf32>, tensor<4xf32> to tensor<4x2xf32>
  %b = tile.join %p, %p : tensor<2x4x!tile.ptr<f16>>, tensor<2x4x!tile.ptr<f16>> to tensor<2x4x2x!tile.ptr<f16>>
  func.return
}

// CHECK:      %a = tile.join %x, %y : tensor<4xf32>, tensor<4xf32> to tensor<4x2xf32>
// CHECK-NEXT: %b = tile.join %p, %p : tensor<2x4x!tile.ptr<f16>>, tensor<2x4x!tile.ptr<f16>> to tensor<2x4x2x!tile.ptr<f16>>
// CHECK-NEXT: func.return
