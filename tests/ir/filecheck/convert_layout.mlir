// From no layout to one and on to another.

func.func @convert_layout(%x: tensor<4xf32>) {
  %a = tile.convert_layout %x : tensor<4xf32> to tensor<4xf32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>
  %b = tile.convert_layout %a : tensor<4xf32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">> to tensor<4xf32, #tile.layout<"{lane: [2,1]} -> [dim0: 4]">>
  func.return
}

// CHECK:      func.func @convert_layout(%x: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.convert_layout %x : tensor<4xf32> to tensor<4xf32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>
// CHECK-NEXT:   %b = tile.convert_layout %a : tensor<4xf32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">> to tensor<4xf32, #tile.layout<"{lane: [2,1]} -> [dim0: 4]">>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
