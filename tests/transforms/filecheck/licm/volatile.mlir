// RUN: weft opt %s --pass licm
// A volatile load is executed in every iteration.

func.func @k(%x: !tile.ptr<i32>, %n: i32, %one: i32) {
  scf.for %i = %one to %n step %one : i32 {
    %a = tile.load %x volatile : !tile.ptr<i32> to i32
    tile.barrier
    scf.yield
  }
  func.return
}

// CHECK:      scf.for
// CHECK-NEXT:   %a = tile.load %x volatile
// CHECK-NEXT:   tile.barrier
