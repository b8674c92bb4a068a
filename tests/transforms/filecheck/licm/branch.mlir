// RUN: weft opt %s --pass licm
// Ops in a branch stay there: hoisting them would compute what the branch may not need.

func.func @k(%x: !tile.ptr<i32>, %n: i32, %flag: i1) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    scf.if %flag {
      %a = tile.binary "mul" %n, %n : i32
      tile.store %x, %a : !tile.ptr<i32>, i32
    }
  }
  func.return
}

// CHECK:      scf.for %i =
// CHECK-NEXT:   scf.if %flag {
// CHECK-NEXT:     %a = tile.binary "mul" %n, %n : i32
// CHECK-NEXT:     tile.store %x, %a : !tile.ptr<i32>, i32
