// RUN: weft opt %s --pass "pipeline-loads{target=sm_80 stages=2 disjoint=true}"
// A load that others' addresses are made of runs ahead, too, and reads nothing where its iteration does not run. Stores to another
// array do not matter where arrays are disjoint. Loads that feed no dot stay, and so does one whose address depends on the dot.

func.func @k(%x: !tile.ptr<f32>, %numbers: !tile.ptr<i32>, %y: !tile.ptr<f32>, %n: i32, %z: tensor<16x16xf32>) {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %one = tile.constant 1.0 : f32
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<16x16x!tile.ptr<f32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<16x16xf32>) : i32 {
    %at = tile.addptr %numbers, %i : !tile.ptr<i32>, i32 to !tile.ptr<i32>
    %number = tile.load %at : !tile.ptr<i32> to i32
    %ns = tile.splat %number : i32 to tensor<16x16xi32>
    %p = tile.addptr %xs, %ns : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32> to tensor<16x16x!tile.ptr<f32>>
    %a = tile.load %p cache ".ca" : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %d = tile.dot %a, %a, %acc {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    %g = tile.cast %d : tensor<16x16xf32> to tensor<16x16xi32>
    %q = tile.addptr %xs, %g : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32> to tensor<16x16x!tile.ptr<f32>>
    %b = tile.load %q : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %f = tile.dot %b, %b, %d {input_precision = "tf32"} : tensor<16x16xf32>, tensor<16x16xf32> to tensor<16x16xf32>
    %other = tile.load %p : tensor<16x16x!tile.ptr<f32>> to tensor<16x16xf32>
    %sum = tile.binary "add" %f, %other : tensor<16x16xf32>
    tile.store %y, %one : !tile.ptr<f32>, f32
    scf.yield %sum : tensor<16x16xf32>
  }
  func.return
}

// CHECK:      [[BUF:%.*]] = gpu.alloc : !gpu.buffer<2 x tensor<16x16xf32>>
// CHECK-NOT:  gpu.alloc
// CHECK:      [[ON:%.*]] = tile.compare "lt" %c0, %n
// CHECK:      tile.load %at mask [[ON]] : i1 : !tile.ptr<i32> to i32
// CHECK:      gpu.async_copy %p to [[BUF]][{{%.*}}] if [[ON]] cache ".ca"
// CHECK:      scf.for
// CHECK-NEXT: gpu.wait 0 : [[BUF]]
// CHECK:      tile.load {{%.*}} mask [[E:%.*]] : i1 : !tile.ptr<i32> to i32
// CHECK:      gpu.async_copy {{%.*}} to [[BUF]][{{%.*}}] if [[E]] cache ".ca"
// CHECK:      %number = tile.load {{%.*}} : !tile.ptr<i32> to i32
// CHECK:      %a = gpu.local_load [[BUF]]
// CHECK:      %b = tile.load %q
// CHECK:      %other = tile.load
