// Any shape with as many elements; one element is still a tensor.

func.func @reshape(%x: tensor<2x4xi8>, %y: tensor<1xf64>) {
  %a = tile.reshape %x : tensor<2x4xi8> to tensor<8xi8>
  %b = tile.reshape %x : tensor<2x4xi8> to tensor<4x1x2xi8>
  %c = tile.reshape %y : tensor<1xf64> to tensor<1x1xf64>
  func.return
}

// CHECK:      func.func @reshape(%x: tensor<2x4xi8>, %y: tensor<1xf64>) {
// CHECK-NEXT:   %a = tile.reshape %x : tensor<2x4xi8> to tensor<8xi8>
// CHECK-NEXT:   %b = tile.reshape %x : tensor<2x4xi8> to tensor<4x1x2xi8>
// CHECK-NEXT:   %c = tile.reshape %y : tensor<1xf64> to tensor<1x1xf64>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
