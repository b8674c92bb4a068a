// RUN: weft opt %s --pass join-programs
// The range that is added to the id's product becomes as long as 8 programs together, and with it each dimension that it is. The
// equal range of rows is another dimension, and stays.

func.func @k(%a: !tile.ptr<f32> {tile.name = "a"}, %n: i32 {tile.name = "n"}) {
  %x = tile.program_id 0
  %b = tile.constant 16 : i32
  %first = tile.binary "mul" %x, %b : i32
  %range = tile.arange 0 16 : tensor<16xi32>
  %here = tile.splat %first : i32 to tensor<16xi32>
  %columns = tile.binary "add" %here, %range : tensor<16xi32>
  %rows = tile.expand_dims %range 1 : tensor<16xi32> to tensor<16x1xi32>
  %stride = tile.splat %n : i32 to tensor<16x1xi32>
  %down = tile.binary "mul" %rows, %stride : tensor<16x1xi32>
  %all = tile.broadcast %down : tensor<16x1xi32> to tensor<16x16xi32>
  %across = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %each = tile.broadcast %across : tensor<1x16xi32> to tensor<16x16xi32>
  %at = tile.binary "add" %all, %each : tensor<16x16xi32>
  %base = tile.splat %a : !tile.ptr<f32> to tensor<16x16x!tile.ptr<f32>>
  %p = tile.addptr %base, %at : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32> to tensor<16x16x!tile.ptr<f32>>
  %one = tile.constant 1.0 : tensor<16x16xf32>
  tile.store %p, %one : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xf32>
  func.return
}

// CHECK:      func.func @k(
// CHECK:      tile.store %p, %one : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xf32>
// CHECK:      func.func @k.joined({{.*}} attributes {tile.joined = "0 8 0 1"} {
// CHECK:      tile.arange 0 128 : tensor<128xi32>
// CHECK:      %columns = tile.binary "add" %here, {{.*}} : tensor<128xi32>
// CHECK:      %rows = tile.expand_dims {{.*}} 1 : tensor<16xi32> to tensor<16x1xi32>
// CHECK:      tile.store %p, {{.*}} : tensor<16x128x!tile.ptr<f32>>, tensor<16x128xf32>
