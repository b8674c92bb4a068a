// Sizes of 1 grow.

func.func @broadcast(%x: tensor<1x4xi8>, %y: tensor<1x1xi8>) {
  %a = tile.broadcast %x : tensor<1x4xi8> to tensor<2x4xi8>
  %b = tile.broadcast %y : tensor<1x1xi8> to tensor<2x4xi8>
  func.return
}

// CHECK:      func.func @broadcast(%x: tensor<1x4xi8>, %y: tensor<1x1xi8>) {
// CHECK-NEXT:   %a = tile.broadcast %x : tensor<1x4xi8> to tensor<2x4xi8>
// CHECK-NEXT:   %b = tile.broadcast %y : tensor<1x1xi8> to tensor<2x4xi8>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
