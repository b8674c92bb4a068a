// RUN: weft opt %s --pass 'split-sums{phase="totals"}'
// The sums of parts are read from memory, in order. The loads of the loop are gone.

func.func @k(%a: !tile.ptr<f32> {tile.name = "a"}, %out: !tile.ptr<f32> {tile.name = "out"}, %n: i32 {tile.name = "n"}) {
  %zero = tile.constant 0 : i32
  %step = tile.constant 64 : i32
  %none = tile.constant 0.0 : tensor<64xf32>
  %range = tile.arange 0 64 : tensor<64xi32>
  %base = tile.splat %a : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>
  %total = scf.for %k = %zero to %n step %step iter_args(%sum = %none) -> (tensor<64xf32>) : i32 {
    %first = tile.splat %k : i32 to tensor<64xi32>
    %columns = tile.binary "add" %first, %range : tensor<64xi32>
    %p = tile.addptr %base, %columns : tensor<64x!tile.ptr<f32>>, tensor<64xi32> to tensor<64x!tile.ptr<f32>>
    %x = tile.load %p : tensor<64x!tile.ptr<f32>> to tensor<64xf32>
    %next = tile.binary "add" %sum, %x : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  %all = tile.reduce %total axis 0 : tensor<64xf32> to f32 {
  ^bb0(%l: f32, %r: f32):
    %s = tile.binary "add" %l, %r : f32
    tile.yield %s : f32
  }
  tile.store %out, %all : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      %sums: !tile.ptr<i64>) attributes {tile.sums = 1 : i64} {
// CHECK:      %all = scf.for {{.*}} iter_args([[SUM:%[0-9]+]] = {{.*}}) -> (f32) : i64 {
// CHECK:      [[FOUND:%[0-9]+]] = tile.load {{.*}} : !tile.ptr<f32> to f32
// CHECK:      tile.binary "add" [[SUM]], [[FOUND]] : f32
// CHECK-NOT:  tensor<64xf32> to f32
// CHECK:      tile.store %out, %all : !tile.ptr<f32>, f32
