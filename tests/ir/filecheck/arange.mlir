// A range that need not start at 0, without and with a layout.

func.func @arange() {
  %a = tile.arange 0 4 : tensor<4xi32>
  %b = tile.arange -2 6 : tensor<8xi32>
  %c = tile.arange 0 4 : tensor<4xi32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>
  func.return
}

// CHECK:      func.func @arange() {
// CHECK-NEXT:   %a = tile.arange 0 4 : tensor<4xi32>
// CHECK-NEXT:   %b = tile.arange -2 6 : tensor<8xi32>
// CHECK-NEXT:   %c = tile.arange 0 4 : tensor<4xi32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
