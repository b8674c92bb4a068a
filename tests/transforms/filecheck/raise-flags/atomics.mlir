// RUN: weft opt %s --pass raise-flags
// A kernel waits that uses the old value of an atomic that acquires, wherever it stands.

func.func @k(%flag: !tile.ptr<i32>, %one: !tile.ptr<i32>, %other: !tile.ptr<i32>, %c: i1, %x: i32) {
  tile.store %one, %x : !tile.ptr<i32>, i32
  scf.if %c {
    %a = tile.atomic_cas %flag, %x, %x sem "acquire" : !tile.ptr<i32>, i32
    tile.store %other, %a : !tile.ptr<i32>, i32
  }
  func.return
}

// CHECK: tile.store %one, %x release : !tile.ptr<i32>, i32
