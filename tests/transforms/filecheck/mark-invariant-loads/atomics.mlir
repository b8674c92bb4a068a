// RUN: weft opt %s --pass mark-invariant-loads
// Both kinds of atomics write.

func.func @k(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>, %v: i32) {
  %a = tile.atomic_rmw "add" %x, %v : !tile.ptr<i32>, i32 to i32
  %b = tile.atomic_cas %y, %v, %v : !tile.ptr<i32>, i32
  %c = tile.load %x : !tile.ptr<i32> to i32
  %d = tile.load %y : !tile.ptr<i32> to i32
  %e = tile.load %z : !tile.ptr<i32> to i32
  func.return
}

// CHECK:      %c = tile.load %x : !tile.ptr<i32> to i32
// CHECK-NEXT: %d = tile.load %y : !tile.ptr<i32> to i32
// CHECK-NEXT: %e = tile.load %z {invariant} : !tile.ptr<i32> to i32
