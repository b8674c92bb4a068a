// RUN: weft opt %s --pass raise-flags
// Nothing uses the old values, so no program learns from these atomics that another has reached some point.

func.func @k(%flag: !tile.ptr<i32>, %one: !tile.ptr<i32>, %x: i32) {
  %a = tile.atomic_rmw "add" %flag, %x sem "acq_rel" : !tile.ptr<i32>, i32 to i32
  %b = tile.atomic_cas %flag, %x, %x sem "acquire" : !tile.ptr<i32>, i32
  tile.store %one, %x : !tile.ptr<i32>, i32
  func.return
}

// CHECK:     tile.store %one, %x : !tile.ptr<i32>, i32
// CHECK-NOT: release{{ }}
