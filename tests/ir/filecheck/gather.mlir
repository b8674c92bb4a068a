// Along both axes; the index may be longer or shorter than the source along the axis.

func.func @gather(%x: tensor<2x4xf32>, %i: tensor<2x8xi32>, %j: tensor<1x4xui8>, %p: tensor<4x!tile.ptr<f16>>, %k: tensor<4xi64>) {
  %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x8xi32> to tensor<2x8xf32>
  %b = tile.gather %x, %j axis 0 : tensor<2x4xf32>, tensor<1x4xui8> to tensor<1x4xf32>
  %c = tile.gather %p, %k axis 0 : tensor<4x!tile.ptr<f16>>, tensor<4xi64> to tensor<4x!tile.ptr<f16>>
  func.return
}

// CHECK:      %a = tile.gather %x, %i axis 1 : tensor<2x4xf32>, tensor<2x8xi32> to tensor<2x8xf32>
// CHECK-NEXT: %b = tile.gather %x, %j axis 0 : tensor<2x4xf32>, tensor<1x4xui8> to tensor<1x4xf32>
// CHECK-NEXT: %c = tile.gather %p, %k axis 0 : tensor<4x!tile.ptr<f16>>, tensor<4xi64> to tensor<4x!tile.ptr<f16>>
// CHECK-NEXT: func.return
