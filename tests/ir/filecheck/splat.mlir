// A scalar or a pointer in every element.

func.func @splat(%x: f32, %p: !tile.ptr<f32>) {
  %a = tile.splat %x : f32 to tensor<4xf32>
  %b = tile.splat %p : !tile.ptr<f32> to tensor<2x4x!tile.ptr<f32>>
  func.return
}

// CHECK:      func.func @splat(%x: f32, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   %a = tile.splat %x : f32 to tensor<4xf32>
// CHECK-NEXT:   %b = tile.splat %p : !tile.ptr<f32> to tensor<2x4x!tile.ptr<f32>>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
