// RUN: weft opt %s --pass share-invariants{target=sm_80}
// 128 threads: the carried tile of 128 x 128 float32 takes 128 registers of each, scores of 128 x 64 take 64. The left operand of the
// first dot takes 64 more, with others too many: it is stored before the loop and read in front of the dot. The right operand of
// the second dot comes from the loop. Of two operands from outside the larger goes first, and the other stays if there is room.

func.func @one(%q: tensor<128x128xf16>, %x: tensor<64x128x!tile.ptr<f16>>, %zero: tensor<128x64xf32>, %init: tensor<128x128xf32>, %n: i32) -> tensor<128x128xf32> {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<128x128xf32>) : i32 {
    %v = tile.load %x : tensor<64x128x!tile.ptr<f16>> to tensor<64x128xf16>
    %k = tile.trans %v [1, 0] : tensor<64x128xf16> to tensor<128x64xf16>
    %s = tile.dot %q, %k, %zero : tensor<128x128xf16>, tensor<128x64xf16> to tensor<128x64xf32>
    %p = tile.cast %s : tensor<128x64xf32> to tensor<128x64xf16>
    %d = tile.dot %p, %v, %acc : tensor<128x64xf16>, tensor<64x128xf16> to tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  func.return %r : tensor<128x128xf32>
}

// CHECK:      func.func @one
// CHECK:      [[BUF:%.*]] = gpu.alloc : !gpu.buffer<1 x tensor<128x128xf16>>
// CHECK-NEXT: [[SLOT:%.*]] = tile.constant 0 : i32
// CHECK-NEXT: gpu.local_store %q to [[BUF]][[[SLOT]]]
// CHECK-NEXT: scf.for
// CHECK:      %k = tile.trans
// CHECK-NEXT: [[Q:%.*]] = gpu.local_load [[BUF]][[[SLOT]]]
// CHECK-NEXT: %s = tile.dot [[Q]], %k
// CHECK:      %d = tile.dot %p, %v
// CHECK-NOT:  gpu.

func.func @larger_first(%q: tensor<128x128xf16>, %w: tensor<32x128xf16>, %x: tensor<64x128x!tile.ptr<f16>>, %z: tensor<32x64xf32>, %init: tensor<128x64xf32>, %n: i32) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<128x64xf32>) : i32 {
    %v = tile.load %x : tensor<64x128x!tile.ptr<f16>> to tensor<64x128xf16>
    %k = tile.trans %v [1, 0] : tensor<64x128xf16> to tensor<128x64xf16>
    %s = tile.dot %q, %k, %acc : tensor<128x128xf16>, tensor<128x64xf16> to tensor<128x64xf32>
    %t = tile.dot %w, %k, %z : tensor<32x128xf16>, tensor<128x64xf16> to tensor<32x64xf32>
    scf.yield %s : tensor<128x64xf32>
  }
  func.return
}

// CHECK:      func.func @larger_first
// CHECK:      gpu.alloc : !gpu.buffer<1 x tensor<128x128xf16>>
// CHECK-NOT:  gpu.alloc
// CHECK:      tile.dot %w, %k

func.func @room(%q: tensor<128x64xf16>, %x: tensor<64x64x!tile.ptr<f16>>, %zero: tensor<128x64xf32>, %init: tensor<128x64xf32>, %n: i32) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<128x64xf32>) : i32 {
    %v = tile.load %x : tensor<64x64x!tile.ptr<f16>> to tensor<64x64xf16>
    %s = tile.dot %q, %v, %acc : tensor<128x64xf16>, tensor<64x64xf16> to tensor<128x64xf32>
    scf.yield %s : tensor<128x64xf32>
  }
  func.return
}

// CHECK:      func.func @room
// CHECK-NOT:  gpu.
