// RUN: weft opt %s --pass simplify
// Arithmetic on tiles whose elements are all equal is arithmetic on one number.

func.func @k(%x: tensor<8x!tile.ptr<i32>>, %n: i32, %m: i32) {
  %a = tile.splat %n : i32 to tensor<8xi32>
  %b = tile.splat %m : i32 to tensor<8xi32>
  %c = tile.binary "mul" %a, %b : tensor<8xi32>
  tile.store %x, %c : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  func.return
}

// CHECK:      [[PRODUCT:%.*]] = tile.binary "mul" %n, %m : i32
// CHECK-NEXT: %c = tile.splat [[PRODUCT]] : i32 to tensor<8xi32>
// CHECK-NEXT: tile.store %x, %c : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
