// Numbers and pointers.

func.func @select(%c: tensor<4xi1>, %f: tensor<4xf16>, %s: i1, %p: !tile.ptr<f32>) {
  %a = tile.select %c, %f, %f : tensor<4xi1>, tensor<4xf16>
  %b = tile.select %s, %p, %p : i1, !tile.ptr<f32>
  func.return
}

// CHECK:      func.func @select(%c: tensor<4xi1>, %f: tensor<4xf16>, %s: i1, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   %a = tile.select %c, %f, %f : tensor<4xi1>, tensor<4xf16>
// CHECK-NEXT:   %b = tile.select %s, %p, %p : i1, !tile.ptr<f32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
