// Permutations of two and three dimensions, and the identity of one.

func.func @trans(%x: tensor<2x4xi8>, %y: tensor<2x4x8xi8>, %z: tensor<4xi8>) {
  %a = tile.trans %x [1, 0] : tensor<2x4xi8> to tensor<4x2xi8>
  %b = tile.trans %y [2, 0, 1] : tensor<2x4x8xi8> to tensor<8x2x4xi8>
  %c = tile.trans %z [0] : tensor<4xi8> to tensor<4xi8>
  func.return
}

// CHECK:      func.func @trans(%x: tensor<2x4xi8>, %y: tensor<2x4x8xi8>, %z: tensor<4xi8>) {
// CHECK-NEXT:   %a = tile.trans %x [1, 0] : tensor<2x4xi8> to tensor<4x2xi8>
// CHECK-NEXT:   %b = tile.trans %y [2, 0, 1] : tensor<2x4x8xi8> to tensor<8x2x4xi8>
// CHECK-NEXT:   %c = tile.trans %z [0] : tensor<4xi8> to tensor<4xi8>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
