// RUN: weft opt %s --pass cse
// Loads and stores stay, each of them: another program may write between two loads.

func.func @k(%x: !tile.ptr<f32>) {
  %a = tile.load %x : !tile.ptr<f32> to f32
  %b = tile.load %x : !tile.ptr<f32> to f32
  tile.store %x, %a : !tile.ptr<f32>, f32
  tile.store %x, %a : !tile.ptr<f32>, f32
  tile.store %x, %b : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      %a = tile.load %x : !tile.ptr<f32> to f32
// CHECK-NEXT: %b = tile.load %x : !tile.ptr<f32> to f32
// CHECK-NEXT: tile.store %x, %a : !tile.ptr<f32>, f32
// CHECK-NEXT: tile.store %x, %a : !tile.ptr<f32>, f32
// CHECK-NEXT: tile.store %x, %b : !tile.ptr<f32>, f32
