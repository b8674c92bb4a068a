// RUN: weft opt %s --pass collect-assertions
// Each assertion is one more tile of the reduction. One in a branch is 0 on the other side, also where there is none. What fails for
// a row is reduced once more. A reduction without assertions stays.

func.func @k(%x: tensor<4x8xf32>) {
  %s = tile.reduce %x axis 1 : tensor<4x8xf32> to tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.compare "lt" %a, %b : f32 to i1
    tile.assert %c, "order"
    scf.if %c {
      %d = tile.compare "gt" %a, %b : f32 to i1
      tile.assert %d, "inner"
    }
    %r = tile.binary "add" %a, %b : f32
    tile.yield %r : f32
  }
  %p = tile.reduce %s axis 0 : tensor<4xf32> to f32 {
  ^bb0(%a: f32, %b: f32):
    %r = tile.binary "add" %a, %b : f32
    tile.yield %r : f32
  }
  func.return
}

// CHECK:      [[ZEROS:%.*]] = tile.constant 0 : tensor<4x8xi32>
// CHECK-NEXT: %s, [[F:%.*]], [[G:%.*]] = tile.reduce %x, [[ZEROS]], [[ZEROS]] axis 1 : tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi32> to tensor<4xf32>, tensor<4xi32>, tensor<4xi32> {
// CHECK-NEXT: ^{{.*}}(%a: f32, [[F0:%.*]]: i32, [[G0:%.*]]: i32, %b: f32, [[F1:%.*]]: i32, [[G1:%.*]]: i32):
// CHECK-NEXT:   %c = tile.compare "lt" %a, %b : f32 to i1
// CHECK-NEXT:   [[NC:%.*]] = tile.unary "not" %c : i1
// CHECK-NEXT:   [[FC:%.*]] = tile.cast [[NC]] : i1 to i32
// CHECK-NEXT:   [[IF:%.*]] = scf.if %c -> (i32) {
// CHECK-NEXT:     %d = tile.compare "gt" %a, %b : f32 to i1
// CHECK-NEXT:     [[ND:%.*]] = tile.unary "not" %d : i1
// CHECK-NEXT:     [[FD:%.*]] = tile.cast [[ND]] : i1 to i32
// CHECK-NEXT:     scf.yield [[FD]] : i32
// CHECK-NEXT:   } else {
// CHECK-NEXT:     [[NONE:%.*]] = tile.constant 0 : i32
// CHECK-NEXT:     scf.yield [[NONE]] : i32
// CHECK-NEXT:   }
// CHECK-NEXT:   %r = tile.binary "add" %a, %b : f32
// CHECK-NEXT:   [[F2:%.*]] = tile.binary "or" [[F0]], [[F1]] : i32
// CHECK-NEXT:   [[F3:%.*]] = tile.binary "or" [[F2]], [[FC]] : i32
// CHECK-NEXT:   [[G2:%.*]] = tile.binary "or" [[G0]], [[G1]] : i32
// CHECK-NEXT:   [[G3:%.*]] = tile.binary "or" [[G2]], [[IF]] : i32
// CHECK-NEXT:   tile.yield %r, [[F3]], [[G3]] : f32, i32, i32
// CHECK-NEXT: }
// CHECK-NEXT: [[ANY:%.*]] = tile.reduce [[F]] axis 0 : tensor<4xi32> to i32 {
// CHECK:      [[FAILED:%.*]] = tile.cast [[ANY]] : i32 to i1
// CHECK-NEXT: [[HOLDS:%.*]] = tile.unary "not" [[FAILED]] : i1
// CHECK-NEXT: tile.assert [[HOLDS]], "order"
// CHECK-NEXT: [[OTHER:%.*]] = tile.reduce [[G]] axis 0 : tensor<4xi32> to i32 {
// CHECK:      tile.assert {{.*}}, "inner"
// CHECK-NEXT: %p = tile.reduce %s axis 0 : tensor<4xf32> to f32 {
