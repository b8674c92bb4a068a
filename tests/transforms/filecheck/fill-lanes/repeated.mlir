// RUN: weft opt %s --pass 'fill-lanes{lanes=4}'
// Eight registers whose lanes are equal become two for the functions. The sum, and what is in fewer registers or in different lanes, stays.

func.func @f(%x: tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>, %y: tensor<2xf32, #tile.layout<"{register: [1], lane: [0,0]} -> [dim0: 2]">>, %z: tensor<32xf32, #tile.layout<"{register: [4,8,16], lane: [1,2]} -> [dim0: 32]">>) {
  %e = tile.unary "exp" %x : tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
  %s = tile.binary "add" %e, %x : tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
  %p = tile.binary "pow" %e, %s : tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
  %few = tile.unary "exp" %y : tensor<2xf32, #tile.layout<"{register: [1], lane: [0,0]} -> [dim0: 2]">>
  %apart = tile.unary "exp" %z : tensor<32xf32, #tile.layout<"{register: [4,8,16], lane: [1,2]} -> [dim0: 32]">>
  func.return
}

// CHECK:      %[[X:.*]] = tile.convert_layout %x : tensor<8xf32, {{.*}} to tensor<8xf32, #tile.layout<"{register: [4], lane: [1,2]} -> [dim0: 8]">>
// CHECK-NEXT: %[[E:.*]] = tile.unary "exp" %[[X]] : tensor<8xf32, #tile.layout<"{register: [4], lane: [1,2]} -> [dim0: 8]">>
// CHECK-NEXT: %[[SAME:.*]] = tile.convert_layout %[[E]] : {{.*}} to tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
// CHECK-NEXT: %s = tile.binary "add" %[[SAME]], %x : tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
// CHECK-NEXT: %[[A:.*]] = tile.convert_layout %[[SAME]]
// CHECK-NEXT: %[[B:.*]] = tile.convert_layout %s
// CHECK-NEXT: %[[P:.*]] = tile.binary "pow" %[[A]], %[[B]]
// CHECK-NEXT: %{{.*}} = tile.convert_layout %[[P]] : {{.*}} to tensor<8xf32, #tile.layout<"{register: [1,2,4], lane: [0,0]} -> [dim0: 8]">>
// CHECK-NEXT: %few = tile.unary "exp" %y
// CHECK-NEXT: %apart = tile.unary "exp" %z
