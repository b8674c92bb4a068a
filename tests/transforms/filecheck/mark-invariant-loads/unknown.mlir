// RUN: weft opt %s --pass mark-invariant-loads
// A store whose pointer comes from either argument may write any of them: no load is invariant.

func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %flag: i1) {
  %p = tile.select %flag, %x, %y : i1, !tile.ptr<f32>
  %a = tile.load %x : !tile.ptr<f32> to f32
  tile.store %p, %a : !tile.ptr<f32>, f32
  func.return
}

// CHECK-NOT: invariant
