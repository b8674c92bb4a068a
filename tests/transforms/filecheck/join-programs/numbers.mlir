// RUN: weft opt %s --pass join-programs
// A program of single numbers: its neighbours are the lanes of a tile. What the id does not reach stays a scalar.

func.func @k(%a: !tile.ptr<f32> {tile.name = "a"}, %s: !tile.ptr<f32> {tile.name = "s"}) {
  %x = tile.program_id 0
  %p = tile.addptr %a, %x : !tile.ptr<f32>, i32 to !tile.ptr<f32>
  %factor = tile.load %s : !tile.ptr<f32> to f32
  %one = tile.load %p : !tile.ptr<f32> to f32
  %new = tile.binary "mul" %one, %factor : f32
  tile.store %p, %new : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      func.func @k(
// CHECK:      tile.store %p, %new : !tile.ptr<f32>, f32
// CHECK:      func.func @k.joined({{.*}} attributes {tile.joined = "0 64"} {
// CHECK:      %x = tile.program_id 0
// CHECK:      tile.splat %x : i32 to tensor<64xi32>
// CHECK:      tile.arange 0 64 : tensor<64xi32>
// CHECK:      %factor = tile.load %s : !tile.ptr<f32> to f32
// CHECK:      %one = tile.load %p : tensor<64x!tile.ptr<f32>> to tensor<64xf32>
// CHECK:      tile.splat %factor : f32 to tensor<64xf32>
// CHECK:      tile.store %p, %new : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
