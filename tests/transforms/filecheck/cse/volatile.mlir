// RUN: weft opt %s --pass cse
// Each volatile load reads memory anew; equal atomics all take effect.

func.func @k(%x: !tile.ptr<i32>, %v: i32) {
  %a = tile.load %x volatile : !tile.ptr<i32> to i32
  %b = tile.load %x volatile : !tile.ptr<i32> to i32
  %c = tile.atomic_cas %x, %a, %b : !tile.ptr<i32>, i32
  %d = tile.atomic_cas %x, %a, %b : !tile.ptr<i32>, i32
  tile.store %x, %v : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      %a = tile.load %x volatile
// CHECK-NEXT: %b = tile.load %x volatile
// CHECK-NEXT: %c = tile.atomic_cas %x, %a, %b
// CHECK-NEXT: %d = tile.atomic_cas %x, %a, %b
