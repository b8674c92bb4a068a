// RUN: weft opt %s --pass simplify
// Arithmetic on constants becomes a constant: integers wrap, floats round as their type does. Dead constants stay for dce.

func.func @k(%x: !tile.ptr<i8>, %y: !tile.ptr<f16>) {
  %a = tile.constant 100 : i8
  %b = tile.binary "add" %a, %a : i8
  tile.store %x, %b : !tile.ptr<i8>, i8
  %c = tile.constant 2048.0 : f16
  %d = tile.constant 1.0 : f16
  %e = tile.binary "add" %c, %d : f16
  tile.store %y, %e : !tile.ptr<f16>, f16
  func.return
}

// CHECK:      [[SUM:%.*]] = tile.constant -56 : i8
// CHECK-NEXT: tile.store %x, [[SUM]] : !tile.ptr<i8>, i8
// CHECK:      [[ROUNDED:%.*]] = tile.constant 2048.0 : f16
// CHECK:      [[ROUNDED2:%.*]] = tile.constant 2048.0 : f16
// CHECK-NEXT: tile.store %y, [[ROUNDED2]] : !tile.ptr<f16>, f16
