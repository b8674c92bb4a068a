// Of both signs, alone and masked.

func.func @histogram(%x: tensor<8xi32>, %u: tensor<1xui32>, %m: tensor<8xi1>) {
  %a = tile.histogram %x : tensor<8xi32> to tensor<4xi32>
  %b = tile.histogram %u : tensor<1xui32> to tensor<16xi32>
  %c = tile.histogram %x mask %m : tensor<8xi1> : tensor<8xi32> to tensor<8xi32>
  func.return
}

// CHECK:      %a = tile.histogram %x : tensor<8xi32> to tensor<4xi32>
// CHECK-NEXT: %b = tile.histogram %u : tensor<1xui32> to tensor<16xi32>
// CHECK-NEXT: %c = tile.histogram %x mask %m : tensor<8xi1> : tensor<8xi32> to tensor<8xi32>
// CHECK-NEXT: func.return
