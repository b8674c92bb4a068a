// RUN: weft opt %s --pass match-operands{target=sm_89}
// sm_89 multiplies float8 of one type as it is; two types become float16. An operand of float16 stays, the other becomes one.

func.func @k(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E4M3FN>, %m: tensor<32x8xf8E5M2>, %h: tensor<16x32xf16>, %c: tensor<16x8xf32>) {
  %e = tile.dot %a, %b, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN> to tensor<16x8xf32>
  %f = tile.dot %a, %m, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<16x8xf32>
  %g = tile.dot %h, %b, %c : tensor<16x32xf16>, tensor<32x8xf8E4M3FN> to tensor<16x8xf32>
  func.return
}

// CHECK:      %e = tile.dot %a, %b, %c
// CHECK-NEXT: %0 = tile.cast %a : tensor<16x32xf8E4M3FN> to tensor<16x32xf16>
// CHECK-NEXT: %1 = tile.cast %m : tensor<32x8xf8E5M2> to tensor<32x8xf16>
// CHECK-NEXT: %f = tile.dot %0, %1, %c
// CHECK-NEXT: %2 = tile.cast %b : tensor<32x8xf8E4M3FN> to tensor<32x8xf16>
// CHECK-NEXT: %g = tile.dot %h, %2, %c
