// RUN: weft opt %s --pass "cut-strips{warps=1 disjoint=true registers=7 strip=4}"
// A thread of 32 has 4 of the 8 x 16 elements of each load: 8 registers, where it may have 7. With 4 for a strip there are two of 4 rows.
// Numbers are those of the strip. A row that all rows share is loaded before the loop, as a whole.

func.func @k(%x: !tile.ptr<f32>, %n: !tile.ptr<i32>, %b: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %rows = tile.arange 2 10 : tensor<8xi32>
  %row = tile.expand_dims %rows 1 : tensor<8xi32> to tensor<8x1xi32>
  %columns = tile.arange 0 16 : tensor<16xi32>
  %column = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %bs = tile.splat %b : !tile.ptr<f32> to tensor<1x16x!tile.ptr<f32>>
  %bp = tile.addptr %bs, %column : tensor<1x16x!tile.ptr<f32>>, tensor<1x16xi32> to tensor<1x16x!tile.ptr<f32>>
  %bias = tile.load %bp : tensor<1x16x!tile.ptr<f32>> to tensor<1x16xf32>
  %all = tile.broadcast %bias : tensor<1x16xf32> to tensor<8x16xf32>
  %limit = tile.constant 9 : tensor<8x1xi32>
  %some = tile.compare "lt" %row, %limit : tensor<8x1xi32> to tensor<8x1xi1>
  %mask = tile.broadcast %some : tensor<8x1xi1> to tensor<8x16xi1>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %xp mask %mask : tensor<8x16xi1> : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  %ns = tile.splat %n : !tile.ptr<i32> to tensor<8x16x!tile.ptr<i32>>
  %np = tile.addptr %ns, %i : tensor<8x16x!tile.ptr<i32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<i32>>
  %w = tile.load %np : tensor<8x16x!tile.ptr<i32>> to tensor<8x16xi32>
  %g = tile.gather %v, %w axis 1 : tensor<8x16xf32>, tensor<8x16xi32> to tensor<8x16xf32>
  %s = tile.binary "add" %g, %all : tensor<8x16xf32>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %op = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  tile.store %op, %s : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// CHECK:      %bias = tile.load
// CHECK-NOT:  tile.store
// CHECK:      [[LOW:%.*]] = tile.constant 0 : i32
// CHECK-NEXT: [[HIGH:%.*]] = tile.constant 2 : i32
// CHECK-NEXT: [[STEP:%.*]] = tile.constant 1 : i32
// CHECK-NEXT: scf.for [[S:%.*]] = [[LOW]] to [[HIGH]] step [[STEP]]
// CHECK-NEXT: [[C64:%.*]] = tile.constant 64 : i32
// CHECK-NEXT: [[AT:%.*]] = tile.binary "mul" [[S]], [[C64]] : i32
// CHECK-NEXT: [[A:%.*]] = tile.arange 0 64 : tensor<64xi32>
// CHECK-NEXT: [[SPLAT:%.*]] = tile.splat [[AT]] : i32 to tensor<64xi32>
// CHECK-NEXT: [[FLAT:%.*]] = tile.binary "add" [[A]], [[SPLAT]] : tensor<64xi32>
// CHECK-NEXT: [[I:%.*]] = tile.reshape [[FLAT]] : tensor<64xi32> to tensor<4x16xi32>
// CHECK-NEXT: [[C4:%.*]] = tile.constant 4 : i32
// CHECK-NEXT: [[AT:%.*]] = tile.binary "mul" [[S]], [[C4]] : i32
// CHECK-NEXT: [[A:%.*]] = tile.arange 2 6 : tensor<4xi32>
// CHECK:      [[ALL:%.*]] = tile.broadcast %bias : tensor<1x16xf32> to tensor<4x16xf32>
// CHECK:      [[V:%.*]] = tile.load {{%.*}} mask {{%.*}} : tensor<4x16xi1> : tensor<4x16x!tile.ptr<f32>> to tensor<4x16xf32>
// CHECK:      [[W:%.*]] = tile.load
// CHECK-NEXT: [[G:%.*]] = tile.gather [[V]], [[W]] axis 1 : tensor<4x16xf32>, tensor<4x16xi32> to tensor<4x16xf32>
// CHECK-NEXT: [[SUM:%.*]] = tile.binary "add" [[G]], [[ALL]] : tensor<4x16xf32>
// CHECK:      tile.store {{%.*}}, [[SUM]] : tensor<4x16x!tile.ptr<f32>>, tensor<4x16xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.return
