// RUN: weft opt %s --pass dce
// What has no effect and no reader goes, with what only it reads. A plain load has no effect; an atomic has.

func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  %a = tile.binary "add" %n, %n : i32
  %b = tile.binary "mul" %a, %n : i32
  %c = tile.load %x : !tile.ptr<i32> to i32
  %d = tile.atomic_rmw "add" %x, %n : !tile.ptr<i32>, i32 to i32
  %e = tile.binary "sub" %n, %n : i32
  tile.store %x, %e : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      func.func @k(
// CHECK-NEXT:   %d = tile.atomic_rmw "add" %x, %n
// CHECK-NEXT:   %e = tile.binary "sub" %n, %n : i32
// CHECK-NEXT:   tile.store %x, %e : !tile.ptr<i32>, i32
// CHECK-NEXT:   func.return
