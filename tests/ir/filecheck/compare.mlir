// Numbers and pointers.

func.func @compare(%f: tensor<4xf16>, %p: !tile.ptr<f32>) {
  %a = tile.compare "lt" %f, %f : tensor<4xf16> to tensor<4xi1>
  %b = tile.compare "eq" %p, %p : !tile.ptr<f32> to i1
  func.return
}

// CHECK:      func.func @compare(%f: tensor<4xf16>, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   %a = tile.compare "lt" %f, %f : tensor<4xf16> to tensor<4xi1>
// CHECK-NEXT:   %b = tile.compare "eq" %p, %p : !tile.ptr<f32> to i1
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
