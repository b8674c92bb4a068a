// RUN: weft opt %s --pass collect-assertions
// A scan carries whether the assertion failed for each element; the tile is flattened to be reduced.

func.func @k(%x: tensor<4x8xi32>) {
  %s = tile.scan %x axis 0 reverse : tensor<4x8xi32> to tensor<4x8xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = tile.compare "lt" %a, %b : i32 to i1
    tile.assert %c, "order"
    tile.yield %b : i32
  }
  func.return
}

// CHECK:      %s, [[F:%.*]] = tile.scan %x, {{.*}} axis 0 reverse : tensor<4x8xi32>, tensor<4x8xi32> to tensor<4x8xi32>, tensor<4x8xi32> {
// CHECK-NOT:  tile.assert
// CHECK:      tile.yield %b, {{.*}} : i32, i32
// CHECK:      [[FLAT:%.*]] = tile.reshape [[F]] : tensor<4x8xi32> to tensor<32xi32>
// CHECK-NEXT: [[ANY:%.*]] = tile.reduce [[FLAT]] axis 0 : tensor<32xi32> to i32 {
// CHECK:      tile.assert {{.*}}, "order"
