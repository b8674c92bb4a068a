// RUN: weft opt %s --pass simplify
// An access that loses its mask keeps its order and its advice; without an active element nothing is left.

func.func @k(%x: !tile.ptr<i32>) {
  %yes = tile.constant 1 : i1
  %no = tile.constant 0 : i1
  %a = tile.load %x mask %yes : i1 volatile cache ".cg" : !tile.ptr<i32> to i32
  tile.store %x, %a mask %yes : i1 release evict "evict_last" : !tile.ptr<i32>, i32
  %b = tile.load %x mask %no : i1 other %a : i32 volatile : !tile.ptr<i32> to i32
  tile.store %x, %b mask %no : i1 release : !tile.ptr<i32>, i32
  func.return
}

// CHECK:      %a = tile.load %x volatile cache ".cg" : !tile.ptr<i32> to i32
// CHECK-NEXT: tile.store %x, %a release evict "evict_last" : !tile.ptr<i32>, i32
// CHECK-NEXT: func.return
