// RUN: weft opt %s --pass licm
// Arithmetic on values from outside leaves both loops. Loads stay, and so does what depends on a loop's own values.

func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %a = tile.binary "add" %n, %n : i32
    scf.for %j = %zero to %n step %one : i32 {
      %b = tile.binary "mul" %a, %n : i32
      %c = tile.binary "mul" %i, %b : i32
      %d = tile.load %x : !tile.ptr<i32> to i32
      %e = tile.binary "add" %d, %j : i32
      %f = tile.binary "add" %e, %c : i32
      tile.store %x, %f : !tile.ptr<i32>, i32
    }
  }
  func.return
}

// CHECK:      %a = tile.binary "add" %n, %n : i32
// CHECK-NEXT: %b = tile.binary "mul" %a, %n : i32
// CHECK-NEXT: scf.for %i =
// CHECK-NEXT:   %c = tile.binary "mul" %i, %b : i32
// CHECK-NEXT:   scf.for %j =
// CHECK-NEXT:     %d = tile.load %x : !tile.ptr<i32> to i32
// CHECK-NEXT:     %e = tile.binary "add" %d, %j : i32
// CHECK-NEXT:     %f = tile.binary "add" %e, %c : i32
// CHECK-NEXT:     tile.store %x, %f : !tile.ptr<i32>, i32
