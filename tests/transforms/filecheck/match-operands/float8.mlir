// RUN: weft opt %s --pass match-operands{target=sm_80}
// sm_80 has no instruction for float8: both operands become float16, which holds all of their values. Those of float32 stay, and so do
// those of a product that is smaller than an instruction.

func.func @k(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E5M2>, %s: tensor<8x32xf8E4M3FN>, %c: tensor<16x8xf32>, %d: tensor<8x8xf32>, %x: tensor<16x32xf32>, %y: tensor<32x8xf32>) {
  %e = tile.dot %a, %b, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<16x8xf32>
  %f = tile.dot %s, %b, %d : tensor<8x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<8x8xf32>
  %g = tile.dot %x, %y, %c : tensor<16x32xf32>, tensor<32x8xf32> to tensor<16x8xf32>
  func.return
}

// CHECK:      %0 = tile.cast %a : tensor<16x32xf8E4M3FN> to tensor<16x32xf16>
// CHECK-NEXT: %1 = tile.cast %b : tensor<32x8xf8E5M2> to tensor<32x8xf16>
// CHECK-NEXT: %e = tile.dot %0, %1, %c
// CHECK-NEXT: %f = tile.dot %s, %b, %d
// CHECK-NEXT: %g = tile.dot %x, %y, %c
