// RUN: weft opt %s --pass mark-invariant-loads
// A volatile load keeps its place and its number even where the kernel writes nothing.

func.func @k(%x: !tile.ptr<f32>) {
  %a = tile.load %x volatile : !tile.ptr<f32> to f32
  %b = tile.load %x : !tile.ptr<f32> to f32
  func.return
}

// CHECK:      %a = tile.load %x volatile : !tile.ptr<f32> to f32
// CHECK-NEXT: %b = tile.load %x {invariant} : !tile.ptr<f32> to f32
