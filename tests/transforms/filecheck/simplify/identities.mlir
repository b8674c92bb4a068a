// RUN: weft opt %s --pass simplify
// x + 0 is x for integers. For floats it is not: -0 + 0 is 0. x + -0 and x - 0 are x.

func.func @k(%x: !tile.ptr<i32>, %y: !tile.ptr<f32>, %n: i32, %a: f32) {
  %zero = tile.constant 0 : i32
  %b = tile.binary "add" %n, %zero : i32
  tile.store %x, %b : !tile.ptr<i32>, i32
  %plus = tile.constant 0.0 : f32
  %minus = tile.constant -0.0 : f32
  %c = tile.binary "add" %a, %plus : f32
  %d = tile.binary "add" %c, %minus : f32
  %e = tile.binary "sub" %d, %plus : f32
  tile.store %y, %e : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      tile.store %x, %n : !tile.ptr<i32>, i32
// CHECK:      %c = tile.binary "add" %a, %plus : f32
// CHECK-NEXT: tile.store %y, %c : !tile.ptr<f32>, f32
