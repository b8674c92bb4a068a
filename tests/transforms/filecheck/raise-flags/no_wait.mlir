// RUN: weft opt %s --pass raise-flags
// No access of the kernel reads and acquires, so no program can see the order of these stores.

func.func @k(%flag: !tile.ptr<i32>, %one: !tile.ptr<i32>, %x: i32) {
  %a = tile.load %flag : !tile.ptr<i32> to i32
  %b = tile.atomic_rmw "add" %flag, %x sem "release" : !tile.ptr<i32>, i32 to i32
  tile.barrier
  tile.store %one, %x : !tile.ptr<i32>, i32
  func.return
}

// CHECK:     tile.store %one, %x : !tile.ptr<i32>, i32
// CHECK-NOT: release{{ }}
