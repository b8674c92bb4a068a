// RUN: weft opt %s --pass widen-dot
// Operands narrower than the accumulator are cast to its type; operands of its type stay. A value
// that is both operands is cast once. Sums of float16 become float32, and are rounded to float16 behind the dot.

func.func @k(%a: tensor<2x4xf8E4M3FN>, %b: tensor<4x2xf16>, %c: tensor<2x2xf32>, %d: tensor<2x2xi8>, %e: tensor<2x2xi32>, %h: tensor<2x2xf16>) {
  %r = tile.dot %a, %b, %c : tensor<2x4xf8E4M3FN>, tensor<4x2xf16> to tensor<2x2xf32>
  %s = tile.dot %d, %d, %e : tensor<2x2xi8>, tensor<2x2xi8> to tensor<2x2xi32>
  %t = tile.dot %c, %c, %r : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x2xf32>
  %u = tile.dot %h, %h, %h {max_num_imprecise_acc = 1 : i64} : tensor<2x2xf16>, tensor<2x2xf16> to tensor<2x2xf16>
  %v = tile.unary "neg" %u : tensor<2x2xf16>
  func.return
}

// CHECK:      [[A:%.*]] = tile.cast %a : tensor<2x4xf8E4M3FN> to tensor<2x4xf32>
// CHECK-NEXT: [[B:%.*]] = tile.cast %b : tensor<4x2xf16> to tensor<4x2xf32>
// CHECK-NEXT: %r = tile.dot [[A]], [[B]], %c : tensor<2x4xf32>, tensor<4x2xf32> to tensor<2x2xf32>
// CHECK-NEXT: [[D:%.*]] = tile.cast %d : tensor<2x2xi8> to tensor<2x2xi32>
// CHECK-NEXT: %s = tile.dot [[D]], [[D]], %e : tensor<2x2xi32>, tensor<2x2xi32> to tensor<2x2xi32>
// CHECK-NEXT: %t = tile.dot %c, %c, %r : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x2xf32>
// CHECK-NEXT: [[H:%.*]] = tile.cast %h : tensor<2x2xf16> to tensor<2x2xf32>
// CHECK-NEXT: [[G:%.*]] = tile.cast %h : tensor<2x2xf16> to tensor<2x2xf32>
// CHECK-NEXT: [[W:%.*]] = tile.dot [[G]], [[G]], [[H]] {max_num_imprecise_acc = 1 : i64} : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x2xf32>
// CHECK-NEXT: [[U:%.*]] = tile.cast [[W]] : tensor<2x2xf32> to tensor<2x2xf16>
// CHECK-NEXT: %v = tile.unary "neg" [[U]] : tensor<2x2xf16>
