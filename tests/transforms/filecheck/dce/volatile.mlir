// RUN: weft opt %s --pass dce
// What other programs observe stays, though no result is read: volatile loads, atomics, barriers, and the loop that waits.

func.func @k(%x: !tile.ptr<i32>, %v: i32) {
  %plain = tile.load %x : !tile.ptr<i32> to i32
  %a = tile.load %x volatile : !tile.ptr<i32> to i32
  %b = tile.atomic_cas %x, %v, %v sem "relaxed" : !tile.ptr<i32>, i32
  tile.barrier
  scf.while () : () -> () {
    %c = tile.load %x volatile : !tile.ptr<i32> to i32
    %d = tile.compare "ne" %c, %v : i32 to i1
    scf.condition(%d)
  } do {
    scf.yield
  }
  func.return
}

// CHECK-NOT:  plain
// CHECK:      %a = tile.load %x volatile
// CHECK-NEXT: %b = tile.atomic_cas
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: scf.while
// CHECK-NEXT:   %c = tile.load %x volatile
