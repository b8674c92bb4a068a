// RUN: weft opt %s --pass simplify
// A branch on a constant is the branch; a loop of no iteration gives its initial values, a loop of one its body.

func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  %yes = tile.constant 1 : i1
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %a = scf.if %yes -> (i32) {
    scf.yield %n : i32
  } else {
    scf.yield %zero : i32
  }
  %b = scf.for %i = %one to %zero step %one iter_args(%c = %a) -> (i32) : i32 {
    %d = tile.binary "mul" %c, %c : i32
    scf.yield %d : i32
  }
  %e = scf.for %i = %zero to %one step %one iter_args(%f = %b) -> (i32) : i32 {
    %g = tile.binary "mul" %f, %f : i32
    scf.yield %g : i32
  }
  tile.store %x, %e : !tile.ptr<i32>, i32
  func.return
}

// CHECK-NOT:  scf.
// CHECK:      [[SQUARE:%.*]] = tile.binary "mul" %n, %n : i32
// CHECK-NEXT: tile.store %x, [[SQUARE]] : !tile.ptr<i32>, i32
