// RUN: weft opt %s --pass join-programs{disjoint=true}
// A program of 2 rows of 16 elements. Up to 512 of them are a tile of rows of 32 KiB, whose accesses end with the last of them.

func.func @k(%a: !tile.ptr<f32> {tile.name = "a"}, %o: !tile.ptr<f32> {tile.name = "o"}, %n: i32 {tile.name = "n"}) {
  %x = tile.program_id 0
  %b = tile.constant 16 : i32
  %first = tile.binary "mul" %x, %b : i32
  %range = tile.arange 0 16 : tensor<16xi32>
  %here = tile.splat %first : i32 to tensor<16xi32>
  %columns = tile.binary "add" %here, %range : tensor<16xi32>
  %each = tile.arange 0 2 : tensor<2xi32>
  %rows = tile.expand_dims %each 1 : tensor<2xi32> to tensor<2x1xi32>
  %stride = tile.splat %n : i32 to tensor<2x1xi32>
  %down = tile.binary "mul" %rows, %stride : tensor<2x1xi32>
  %all = tile.broadcast %down : tensor<2x1xi32> to tensor<2x16xi32>
  %across = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %beside = tile.broadcast %across : tensor<1x16xi32> to tensor<2x16xi32>
  %at = tile.binary "add" %all, %beside : tensor<2x16xi32>
  %from = tile.splat %a : !tile.ptr<f32> to tensor<2x16x!tile.ptr<f32>>
  %p = tile.addptr %from, %at : tensor<2x16x!tile.ptr<f32>>, tensor<2x16xi32> to tensor<2x16x!tile.ptr<f32>>
  %to = tile.splat %o : !tile.ptr<f32> to tensor<2x16x!tile.ptr<f32>>
  %q = tile.addptr %to, %at : tensor<2x16x!tile.ptr<f32>>, tensor<2x16xi32> to tensor<2x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<2x16x!tile.ptr<f32>> to tensor<2x16xf32>
  tile.store %q, %v : tensor<2x16x!tile.ptr<f32>>, tensor<2x16xf32>
  func.return
}

// CHECK:      func.func @k(
// CHECK:      tile.store %q, %v : tensor<2x16x!tile.ptr<f32>>, tensor<2x16xf32>
// CHECK:      func.func @k.joined({{.*}} attributes {tile.joined = "0 512 8"} {
// CHECK:      %[[PRESENT:.*]] = cpu.present
// CHECK:      %[[WIDTH:.*]] = tile.constant 16 : i32
// CHECK:      %[[END:.*]] = tile.binary "mul" %[[PRESENT]], %[[WIDTH]] : i32
// CHECK:      %[[ENDS:.*]] = tile.splat %[[END]] : i32 to tensor<8192xi32>
// CHECK:      %[[EACH:.*]] = tile.arange 0 8192 : tensor<8192xi32>
// CHECK:      %[[THERE:.*]] = tile.compare "lt" %[[EACH]], %[[ENDS]] : tensor<8192xi32> to tensor<8192xi1>
// CHECK:      %[[ROW:.*]] = tile.expand_dims %[[THERE]] 0 : tensor<8192xi1> to tensor<1x8192xi1>
// CHECK:      %[[ROWS:.*]] = tile.broadcast %[[ROW]] : tensor<1x8192xi1> to tensor<2x8192xi1>
// CHECK:      tile.load %p mask %[[ROWS]] : tensor<2x8192xi1> : tensor<2x8192x!tile.ptr<f32>> to tensor<2x8192xf32>
// CHECK:      tile.store %q, {{.*}} mask {{.*}} : tensor<2x8192xi1> : tensor<2x8192x!tile.ptr<f32>>, tensor<2x8192xf32>
