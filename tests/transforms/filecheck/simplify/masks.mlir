// RUN: weft opt %s --pass simplify
// Under a mask that is true everywhere, an access has none; under one that is false, there is no access.

func.func @k(%x: !tile.ptr<f32>, %other: f32) {
  %yes = tile.constant 1 : i1
  %no = tile.constant 0 : i1
  %a = tile.load %x mask %yes : i1 other %other : f32 : !tile.ptr<f32> to f32
  %b = tile.load %x mask %no : i1 other %other : f32 : !tile.ptr<f32> to f32
  tile.store %x, %a mask %no : i1 : !tile.ptr<f32>, f32
  tile.store %x, %b mask %yes : i1 : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      %a = tile.load %x : !tile.ptr<f32> to f32
// CHECK-NEXT: tile.store %x, %other : !tile.ptr<f32>, f32
// CHECK-NEXT: func.return
