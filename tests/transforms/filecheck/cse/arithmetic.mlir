// RUN: weft opt %s --pass cse
// Equal ops and commuted ones become one op. Operands of a difference have an order, and zeros a sign.

func.func @k(%x: !tile.ptr<f32>, %n: i32, %m: i32) {
  %a = tile.binary "add" %n, %m : i32
  %b = tile.binary "add" %m, %n : i32
  %c = tile.binary "sub" %n, %m : i32
  %d = tile.binary "sub" %m, %n : i32
  %e = tile.binary "mul" %a, %b : i32
  %p = tile.constant 0.0 : f32
  %q = tile.constant -0.0 : f32
  %r = tile.constant 0.0 : f32
  %s = tile.binary "add" %p, %r : f32
  func.return
}

// CHECK:      func.func @k(
// CHECK-NEXT:   %a = tile.binary "add" %n, %m : i32
// CHECK-NEXT:   %c = tile.binary "sub" %n, %m : i32
// CHECK-NEXT:   %d = tile.binary "sub" %m, %n : i32
// CHECK-NEXT:   %e = tile.binary "mul" %a, %a : i32
// CHECK-NEXT:   %p = tile.constant 0.0 : f32
// CHECK-NEXT:   %q = tile.constant -0.0 : f32
// CHECK-NEXT:   %s = tile.binary "add" %p, %p : f32
// CHECK-NEXT:   func.return
