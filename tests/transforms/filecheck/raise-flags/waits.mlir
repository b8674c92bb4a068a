// RUN: weft opt %s --pass raise-flags
// The kernel has a volatile load, so a store of one element may raise a flag. A store of several raises none.

func.func @k(%flag: !tile.ptr<i32>, %one: !tile.ptr<i32>, %data: tensor<4x!tile.ptr<i32>>, %v: tensor<4xi32>, %s: tensor<1x!tile.ptr<i32>>, %w: tensor<1xi32>) {
  %a = tile.load %flag volatile : !tile.ptr<i32> to i32
  tile.store %data, %v : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  tile.store %one, %a cache ".wt" : !tile.ptr<i32>, i32
  tile.store %s, %w : tensor<1x!tile.ptr<i32>>, tensor<1xi32>
  func.return
}

// CHECK:      tile.store %data, %v : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
// CHECK-NEXT: tile.store %one, %a release cache ".wt" : !tile.ptr<i32>, i32
// CHECK-NEXT: tile.store %s, %w release : tensor<1x!tile.ptr<i32>>, tensor<1xi32>
