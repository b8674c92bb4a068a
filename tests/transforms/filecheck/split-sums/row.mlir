// RUN: weft opt %s --pass split-sums
// The loop runs part by part, each from -0.0, and the sums of parts are added one after the other.

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

// CHECK:      attributes {tile.sums = 1 : i64} {
// CHECK:      tile.constant 1024 : i64
// CHECK:      [[START:%[0-9]+]] = tile.constant 0.0 : f32
// CHECK:      %all = scf.for {{.*}} iter_args([[SUM:%[0-9]+]] = [[START]]) -> (f32) : i64 {
// CHECK:      [[MINUS:%[0-9]+]] = tile.constant -0.0 : tensor<64xf32>
// CHECK:      [[PART:%[0-9]+]] = scf.for %k = {{.*}} iter_args(%sum = [[MINUS]]) -> (tensor<64xf32>) : i32 {
// CHECK:      [[FOUND:%[0-9]+]] = tile.reduce [[PART]] axis 0 : tensor<64xf32> to f32 {
// CHECK:      tile.binary "add" [[SUM]], [[FOUND]] : f32
// CHECK:      tile.in_order
// CHECK:      tile.store %out, %all : !tile.ptr<f32>, f32
