// A new dimension before, between and after the others.

func.func @expand_dims(%x: tensor<2x4xi8>) {
  %a = tile.expand_dims %x 0 : tensor<2x4xi8> to tensor<1x2x4xi8>
  %b = tile.expand_dims %x 1 : tensor<2x4xi8> to tensor<2x1x4xi8>
  %c = tile.expand_dims %x 2 : tensor<2x4xi8> to tensor<2x4x1xi8>
  func.return
}

// CHECK:      func.func @expand_dims(%x: tensor<2x4xi8>) {
// CHECK-NEXT:   %a = tile.expand_dims %x 0 : tensor<2x4xi8> to tensor<1x2x4xi8>
// CHECK-NEXT:   %b = tile.expand_dims %x 1 : tensor<2x4xi8> to tensor<2x1x4xi8>
// CHECK-NEXT:   %c = tile.expand_dims %x 2 : tensor<2x4xi8> to tensor<2x4x1xi8>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
