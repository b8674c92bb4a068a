// The offset's type may be any integer.

func.func @addptr(%p: !tile.ptr<f32>, %q: tensor<4x!tile.ptr<f32>>, %o: ui8, %i: tensor<4xi64>) {
  %a = tile.addptr %p, %o : !tile.ptr<f32>, ui8 to !tile.ptr<f32>
  %b = tile.addptr %q, %i : tensor<4x!tile.ptr<f32>>, tensor<4xi64> to tensor<4x!tile.ptr<f32>>
  func.return
}

// CHECK:      func.func @addptr(%p: !tile.ptr<f32>, %q: tensor<4x!tile.ptr<f32>>, %o: ui8, %i: tensor<4xi64>) {
// CHECK-NEXT:   %a = tile.addptr %p, %o : !tile.ptr<f32>, ui8 to !tile.ptr<f32>
// CHECK-NEXT:   %b = tile.addptr %q, %i : tensor<4x!tile.ptr<f32>>, tensor<4xi64> to tensor<4x!tile.ptr<f32>>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
