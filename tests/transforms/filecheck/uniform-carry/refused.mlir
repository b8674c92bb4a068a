// RUN: weft opt %s --pass uniform-carry
// A tile to which a tile of different numbers is added stays carried as a tile, and so does one that is multiplied.

func.func @k(%x: tensor<8xi32>, %y: tensor<8xi32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %p, %q = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (tensor<8xi32>, tensor<8xi32>) : i32 {
    %c = tile.binary "add" %a, %y : tensor<8xi32>
    %two = tile.constant 2 : tensor<8xi32>
    %d = tile.binary "mul" %b, %two : tensor<8xi32>
    scf.yield %c, %d : tensor<8xi32>, tensor<8xi32>
  }
  func.return
}

// CHECK:      scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (tensor<8xi32>, tensor<8xi32>) : i32 {
// CHECK-NEXT:   %c = tile.binary "add" %a, %y : tensor<8xi32>
// CHECK-NEXT:   %two = tile.constant 2 : tensor<8xi32>
// CHECK-NEXT:   %d = tile.binary "mul" %b, %two : tensor<8xi32>
// CHECK-NEXT:   scf.yield %c, %d : tensor<8xi32>, tensor<8xi32>
