// RUN: weft opt %s --pass dce
// A result of an if that nothing reads goes, and what computes it in the branches.

func.func @k(%x: !tile.ptr<i32>, %n: i32, %c: i1) {
  %unread, %kept = scf.if %c -> (i32, i32) {
    %a = tile.binary "mul" %n, %n : i32
    scf.yield %a, %n : i32, i32
  } else {
    %b = tile.binary "add" %n, %n : i32
    scf.yield %n, %b : i32, i32
  }
  tile.store %x, %kept : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      %kept = scf.if %c -> (i32) {
// CHECK-NEXT:   scf.yield %n : i32
// CHECK-NEXT: } else {
// CHECK-NEXT:   %b = tile.binary "add" %n, %n : i32
// CHECK-NEXT:   scf.yield %b : i32
// CHECK-NEXT: }
// CHECK-NEXT: tile.store %x, %kept : !tile.ptr<i32>, i32
