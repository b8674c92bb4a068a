// RUN: weft opt %s --pass uniform-carry
// A tile of pointers that each iteration shifts by one number is carried as the sum of the shifts, in 64 bits.

func.func @k(%x: tensor<8x!tile.ptr<f32>>, %n: i32, %s: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %end = scf.for %i = %zero to %n step %one iter_args(%at = %x) -> (tensor<8x!tile.ptr<f32>>) : i32 {
    %a = tile.load %at : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
    tile.store %at, %a : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
    %step = tile.splat %s : i32 to tensor<8xi32>
    %next = tile.addptr %at, %step : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
    scf.yield %next : tensor<8x!tile.ptr<f32>>
  }
  func.return
}

// CHECK:      [[START:%.*]] = tile.constant 0 : i64
// CHECK-NEXT: scf.for %i = %zero to %n step %one iter_args([[SUM:%.*]] = [[START]]) -> (i64) : i32 {
// CHECK-NEXT:   [[SHIFT:%.*]] = tile.splat [[SUM]] : i64 to tensor<8xi64>
// CHECK-NEXT:   [[AT:%.*]] = tile.addptr %x, [[SHIFT]] : tensor<8x!tile.ptr<f32>>, tensor<8xi64> to tensor<8x!tile.ptr<f32>>
// CHECK-NEXT:   %a = tile.load [[AT]] : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
// CHECK:        [[WIDE:%.*]] = tile.cast %s : i32 to i64
// CHECK-NEXT:   [[NEXT:%.*]] = tile.binary "add" [[SUM]], [[WIDE]] : i64
// CHECK-NEXT:   scf.yield [[NEXT]] : i64
