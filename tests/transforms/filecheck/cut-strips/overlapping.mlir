// RUN: weft opt %s --pass "cut-strips{warps=1 registers=3 strip=2}"
// Arrays may overlap: a strip would be loaded behind the store of another.

func.func @k(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %i = tile.arange 0 128 : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %v = tile.load %p : tensor<128x!tile.ptr<f32>> to tensor<128xf32>
  tile.store %q, %v : tensor<128x!tile.ptr<f32>>, tensor<128xf32>
  func.return
}

// CHECK-NOT: scf.for
