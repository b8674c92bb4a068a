// Equal widths, pointers being 64 bits wide.

func.func @bitcast(%f: tensor<4xbf16>, %p: !tile.ptr<f32>) {
  %a = tile.bitcast %f : tensor<4xbf16> to tensor<4xui16>
  %b = tile.bitcast %p : !tile.ptr<f32> to i64
  %c = tile.bitcast %b : i64 to !tile.ptr<i8>
  %d = tile.bitcast %p : !tile.ptr<f32> to !tile.ptr<f16>
  func.return
}

// CHECK:      func.func @bitcast(%f: tensor<4xbf16>, %p: !tile.ptr<f32>) {
// CHECK-NEXT:   %a = tile.bitcast %f : tensor<4xbf16> to tensor<4xui16>
// CHECK-NEXT:   %b = tile.bitcast %p : !tile.ptr<f32> to i64
// CHECK-NEXT:   %c = tile.bitcast %b : i64 to !tile.ptr<i8>
// CHECK-NEXT:   %d = tile.bitcast %p : !tile.ptr<f32> to !tile.ptr<f16>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
