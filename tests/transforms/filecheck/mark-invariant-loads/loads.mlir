// RUN: weft opt %s --pass mark-invariant-loads
// Loads from %x, which the kernel never writes, are invariant; loads from %y, which it writes, are not.

func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
  %p = tile.addptr %x, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>
  %a = tile.load %p : !tile.ptr<f32> to f32
  %b = tile.load %y : !tile.ptr<f32> to f32
  tile.store %y, %a : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      %a = tile.load %p {invariant} : !tile.ptr<f32> to f32
// CHECK-NEXT: %b = tile.load %y : !tile.ptr<f32> to f32
