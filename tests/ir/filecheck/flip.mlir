// Along each axis, and of pointers.

func.func @flip(%x: tensor<4x8xf32>, %p: tensor<4x!tile.ptr<f16>>) {
  %a = tile.flip %x axis 0 : tensor<4x8xf32> to tensor<4x8xf32>
  %b = tile.flip %x axis 1 : tensor<4x8xf32> to tensor<4x8xf32>
  %c = tile.flip %p axis 0 : tensor<4x!tile.ptr<f16>> to tensor<4x!tile.ptr<f16>>
  func.return
}

// CHECK:      %a = tile.flip %x axis 0 : tensor<4x8xf32> to tensor<4x8xf32>
// CHECK-NEXT: %b = tile.flip %x axis 1 : tensor<4x8xf32> to tensor<4x8xf32>
// CHECK-NEXT: %c = tile.flip %p axis 0 : tensor<4x!tile.ptr<f16>> to tensor<4x!tile.ptr<f16>>
// CHECK-NEXT: func.return
