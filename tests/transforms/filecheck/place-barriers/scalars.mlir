// RUN: weft opt %s --pass place-barriers
// Thread 0 stores a scalar, and all threads load it.

func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  tile.store %x, %n : !tile.ptr<i32>, i32
  %a = tile.load %x : !tile.ptr<i32> to i32
  func.return
}

// CHECK:      tile.store %x, %n
// CHECK-NEXT: gpu.barrier "one address, different threads"
// CHECK-NEXT: %a = tile.load %x
