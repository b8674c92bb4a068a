// RUN: weft opt %s --pass match-operands{target=sm_90}
// Sums of float16 stay where an instruction has them, also for float8 as float16. Those of a dot that is smaller than an instruction
// become float32, and are rounded behind it.

func.func @k(%a: tensor<16x16xf16>, %b: tensor<16x8xf16>, %q: tensor<16x8xf8E4M3FN>, %c: tensor<16x8xf16>, %s: tensor<8x16xf16>, %d: tensor<8x8xf16>) {
  %e = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x8xf16> to tensor<16x8xf16>
  %f = tile.dot %a, %q, %e : tensor<16x16xf16>, tensor<16x8xf8E4M3FN> to tensor<16x8xf16>
  %g = tile.dot %s, %b, %d : tensor<8x16xf16>, tensor<16x8xf16> to tensor<8x8xf16>
  func.return
}

// CHECK:      %e = tile.dot %a, %b, %c
// CHECK-NEXT: [[Q:%.*]] = tile.cast %q : tensor<16x8xf8E4M3FN> to tensor<16x8xf16>
// CHECK-NEXT: %f = tile.dot %a, [[Q]], %e
// CHECK-NEXT: [[D:%.*]] = tile.cast %d : tensor<8x8xf16> to tensor<8x8xf32>
// CHECK-NEXT: [[W:%.*]] = tile.dot %s, %b, [[D]] : tensor<8x16xf16>, tensor<16x8xf16> to tensor<8x8xf32>
// CHECK-NEXT: {{%.*}} = tile.cast [[W]] : tensor<8x8xf32> to tensor<8x8xf16>
