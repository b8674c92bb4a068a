// RUN: weft opt %s --pass dce
// A value that a loop carries and nothing reads goes, and what computes it. %kept is read after the loop.

func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %unread, %kept = scf.for %i = %zero to %n step %one iter_args(%a = %zero, %b = %zero) -> (i32, i32) : i32 {
    %c = tile.binary "mul" %i, %i : i32
    %d = tile.binary "add" %b, %i : i32
    scf.yield %c, %d : i32, i32
  }
  tile.store %x, %kept : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      %kept = scf.for %i = %zero to %n step %one iter_args(%b = %zero) -> (i32) : i32 {
// CHECK-NEXT:   %d = tile.binary "add" %b, %i : i32
// CHECK-NEXT:   scf.yield %d : i32
// CHECK-NEXT: }
// CHECK-NEXT: tile.store %x, %kept : !tile.ptr<i32>, i32
