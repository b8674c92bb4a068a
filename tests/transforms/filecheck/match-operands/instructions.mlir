// RUN: weft opt %s --pass match-operands{target=sm_89}
// sm_89 multiplies float8 as it is, also of two types, as all targets do integers of 8 bits with and without sign. An operand of
// float16 stays, the other becomes one.

func.func @k(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E4M3FN>, %m: tensor<32x8xf8E5M2>, %h: tensor<16x32xf16>, %s: tensor<16x32xi8>, %u: tensor<32x8xui8>, %c: tensor<16x8xf32>, %d: tensor<16x8xi32>) {
  %e = tile.dot %a, %b, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN> to tensor<16x8xf32>
  %f = tile.dot %a, %m, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<16x8xf32>
  %g = tile.dot %h, %b, %c : tensor<16x32xf16>, tensor<32x8xf8E4M3FN> to tensor<16x8xf32>
  %i = tile.dot %s, %u, %d : tensor<16x32xi8>, tensor<32x8xui8> to tensor<16x8xi32>
  func.return
}

// CHECK:      %e = tile.dot %a, %b, %c
// CHECK-NEXT: %f = tile.dot %a, %m, %c
// CHECK-NEXT: %0 = tile.cast %b : tensor<32x8xf8E4M3FN> to tensor<32x8xf16>
// CHECK-NEXT: %g = tile.dot %h, %0, %c
// CHECK-NEXT: %i = tile.dot %s, %u, %d
