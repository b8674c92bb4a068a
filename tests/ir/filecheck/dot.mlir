// Each accumulator with operands that fit into it, which may differ; how precisely they are multiplied and summed.

func.func @dot(%a: tensor<2x4xf8E4M3FN>, %b: tensor<4x8xf8E5M2>, %c: tensor<2x8xf32>, %d: tensor<2x2xi8>, %e: tensor<2x2xi32>, %f: tensor<2x2xf64>, %h: tensor<2x2xf16>) {
  %r = tile.dot %a, %b, %c : tensor<2x4xf8E4M3FN>, tensor<4x8xf8E5M2> to tensor<2x8xf32>
  %s = tile.dot %d, %d, %e : tensor<2x2xi8>, tensor<2x2xi8> to tensor<2x2xi32>
  %t = tile.dot %f, %f, %f : tensor<2x2xf64>, tensor<2x2xf64> to tensor<2x2xf64>
  %u = tile.dot %a, %b, %c {input_precision = "tf32x3", max_num_imprecise_acc = 4 : i64} : tensor<2x4xf8E4M3FN>, tensor<4x8xf8E5M2> to tensor<2x8xf32>
  %v = tile.dot %h, %h, %h : tensor<2x2xf16>, tensor<2x2xf16> to tensor<2x2xf16>
  func.return
}

// CHECK:      func.func @dot(%a: tensor<2x4xf8E4M3FN>, %b: tensor<4x8xf8E5M2>, %c: tensor<2x8xf32>, %d: tensor<2x2xi8>, %e: tensor<2x2xi32>, %f: tensor<2x2xf64>, %h: tensor<2x2xf16>) {
// CHECK-NEXT:   %r = tile.dot %a, %b, %c : tensor<2x4xf8E4M3FN>, tensor<4x8xf8E5M2> to tensor<2x8xf32>
// CHECK-NEXT:   %s = tile.dot %d, %d, %e : tensor<2x2xi8>, tensor<2x2xi8> to tensor<2x2xi32>
// CHECK-NEXT:   %t = tile.dot %f, %f, %f : tensor<2x2xf64>, tensor<2x2xf64> to tensor<2x2xf64>
// CHECK-NEXT:   %u = tile.dot %a, %b, %c {input_precision = "tf32x3", max_num_imprecise_acc = 4 : i64} : tensor<2x4xf8E4M3FN>, tensor<4x8xf8E5M2> to tensor<2x8xf32>
// CHECK-NEXT:   %v = tile.dot %h, %h, %h : tensor<2x2xf16>, tensor<2x2xf16> to tensor<2x2xf16>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
