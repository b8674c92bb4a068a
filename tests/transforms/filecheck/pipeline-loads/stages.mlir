// RUN: weft opt %s --pass pipeline-loads{target=sm_80}
// Both operands are copied two iterations ahead, in three slots: two groups before the loop, one in each iteration, which waits
// for all but the latest. The carried pointer of the left one runs ahead as a copy. A mask is copied with; 'other' is chosen
// after reading, since the slot has zeros.

func.func @k(%x: tensor<16x16x!tile.ptr<f16>>, %y: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %inside: tensor<16x16xi1>, %n: i32) -> tensor<16x16xf32> {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 16 : i32
  %other = tile.constant 2.0 : tensor<16x16xf16>
  %zero = tile.constant 0.0 : tensor<16x16xf32>
  %columns = tile.arange 0 16 : tensor<16xi32>
  %at = tile.expand_dims %columns 0 : tensor<16xi32> to tensor<1x16xi32>
  %ats = tile.broadcast %at : tensor<1x16xi32> to tensor<16x16xi32>
  %on = tile.constant 1 : tensor<16x16xi1>
  %ys = tile.splat %y : !tile.ptr<f16> to tensor<16x16x!tile.ptr<f16>>
  %first = tile.addptr %ys, %ats : tensor<16x16x!tile.ptr<f16>>, tensor<16x16xi32> to tensor<16x16x!tile.ptr<f16>>
  %r, %q = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %first) -> (tensor<16x16xf32>, tensor<16x16x!tile.ptr<f16>>) : i32 {
    %a = tile.load %p mask %on : tensor<16x16xi1> other %other : tensor<16x16xf16> : tensor<16x16x!tile.ptr<f16>> to tensor<16x16xf16>
    %b = tile.trans %a [1, 0] : tensor<16x16xf16> to tensor<16x16xf16>
    %d = tile.dot %a, %b, %acc : tensor<16x16xf16>, tensor<16x16xf16> to tensor<16x16xf32>
    %is = tile.splat %i : i32 to tensor<16x16xi32>
    %next = tile.addptr %p, %is : tensor<16x16x!tile.ptr<f16>>, tensor<16x16xi32> to tensor<16x16x!tile.ptr<f16>>
    scf.yield %d, %next : tensor<16x16xf32>, tensor<16x16x!tile.ptr<f16>>
  }
  func.return %r : tensor<16x16xf32>
}

// CHECK:      [[BUF:%.*]] = gpu.alloc : !gpu.buffer<3 x tensor<16x16xf16>>
// CHECK-NEXT: [[ON:%.*]] = tile.compare "lt" %c0, %n
// CHECK-NEXT: [[S0:%.*]] = tile.constant 0 : i32
// CHECK:      gpu.async_copy %first mask %on : tensor<16x16xi1> to [[BUF]][[[S0]]] if [[ON]]
// CHECK-NEXT: gpu.commit
// CHECK-NEXT: [[LEFT:%.*]] = tile.binary "sub" %n, %c0
// CHECK-NEXT: [[A:%.*]] = tile.bitcast [[LEFT]] : i32 to ui32
// CHECK-NEXT: [[B:%.*]] = tile.bitcast %c1 : i32 to ui32
// CHECK-NEXT: [[MORE:%.*]] = tile.compare "gt" [[A]], [[B]] : ui32 to i1
// CHECK-NEXT: [[ON1:%.*]] = tile.binary "and" [[ON]], [[MORE]]
// CHECK-NEXT: tile.binary "add" %c0, %c1
// CHECK-NEXT: [[S1:%.*]] = tile.constant 1 : i32
// CHECK:      gpu.async_copy %next mask %on : tensor<16x16xi1> to [[BUF]][[[S1]]] if [[ON1]]
// CHECK-NEXT: gpu.commit
// CHECK:      [[START:%.*]] = tile.constant 0 : i32
// CHECK-NEXT: [[SECOND:%.*]] = tile.constant 2 : i32
// CHECK-NEXT: scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %first, [[R:%.*]] = [[START]], [[W:%.*]] = [[SECOND]], [[I:%.*]] = {{%.*}}, [[E:%.*]] = {{%.*}}, [[P:%.*]] = %next_1)
// CHECK-NEXT: gpu.wait 1 : [[BUF]]
// CHECK:      [[NEXT:%.*]] = tile.addptr [[P]],
// CHECK-NEXT: gpu.async_copy [[P]] mask %on : tensor<16x16xi1> to [[BUF]][[[W]]] if [[E]]
// CHECK-NEXT: gpu.commit
// CHECK:      [[E1:%.*]] = tile.binary "and" [[E]],
// CHECK-NEXT: [[I1:%.*]] = tile.binary "add" [[I]], %c1
// CHECK-NEXT: [[V:%.*]] = gpu.local_load [[BUF]][[[R]]]
// CHECK-NEXT: %a = tile.select %on, [[V]], %other
// CHECK-NEXT: %b = tile.trans %a
// CHECK-NEXT: %d = tile.dot %a, %b, %acc
// CHECK:      [[AFTER:%.*]] = tile.binary "add" [[R]],
// CHECK-NEXT: [[THREE:%.*]] = tile.constant 3 : i32
// CHECK-NEXT: [[LAST:%.*]] = tile.compare "eq" [[AFTER]], [[THREE]]
// CHECK-NEXT: [[ZERO:%.*]] = tile.constant 0 : i32
// CHECK-NEXT: [[R1:%.*]] = tile.select [[LAST]], [[ZERO]], [[AFTER]]
// CHECK-NEXT: scf.yield %d, %next_3, [[R1]], [[R]], [[I1]], [[E1]], [[NEXT]]
