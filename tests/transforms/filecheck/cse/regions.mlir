// RUN: weft opt %s --pass cse
// An op before a region replaces equal ops inside it. An op in one branch replaces none in the other or after it.

func.func @k(%x: !tile.ptr<i32>, %n: i32, %flag: i1) {
  %a = tile.binary "add" %n, %n : i32
  scf.if %flag {
    %b = tile.binary "add" %n, %n : i32
    %c = tile.binary "mul" %b, %n : i32
    tile.store %x, %c : !tile.ptr<i32>, i32
  } else {
    %d = tile.binary "mul" %a, %n : i32
    tile.store %x, %d : !tile.ptr<i32>, i32
  }
  %e = tile.binary "mul" %a, %n : i32
  tile.store %x, %e : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      %a = tile.binary "add" %n, %n : i32
// CHECK-NEXT: scf.if %flag {
// CHECK-NEXT:   %c = tile.binary "mul" %a, %n : i32
// CHECK-NEXT:   tile.store %x, %c : !tile.ptr<i32>, i32
// CHECK-NEXT: } else {
// CHECK-NEXT:   %d = tile.binary "mul" %a, %n : i32
// CHECK-NEXT:   tile.store %x, %d : !tile.ptr<i32>, i32
// CHECK-NEXT: }
// CHECK-NEXT: %e = tile.binary "mul" %a, %n : i32
// CHECK-NEXT: tile.store %x, %e : !tile.ptr<i32>, i32
