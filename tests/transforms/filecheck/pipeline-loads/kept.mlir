// RUN: weft opt %s --pass pipeline-loads{target=sm_80}
// What stays: a loop of one stage; a loop without iterations; loads that are volatile, of two bytes at once, or that a store in the
// loop may touch; a dot that no matrix instruction computes.

func.func @stage(%p: tensor<16x16x!tile.ptr<f32>>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  } {tile.num_stages = 1 : i64}
  func.return
}

func.func @empty(%p: tensor<16x16x!tile.ptr<f32>>, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c1 to %c0 step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  func.return
}

func.func @volatile(%p: tensor<16x16x!tile.ptr<f32>>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p volatile : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  func.return
}

func.func @narrow(%p: tensor<16x16x!tile.ptr<f16>>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p : tensor<16x16x!tile.ptr<f16>> to tensor<16x16xf16>
    %d = tile.dot %a, %a, %acc : tensor<16x16xf16>, tensor<16x16xf16> to tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  func.return
}

func.func @stored(%p: tensor<16x16x!tile.ptr<f32>>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    tile.store %p, %d : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  func.return
}

func.func @exact(%p: tensor<16x16x!tile.ptr<f32>>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %p : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  func.return
}

// CHECK-NOT: gpu.
