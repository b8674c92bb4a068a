// RUN: weft opt %s --pass assign-thread-layouts{warps=1}
// Neighbours under a mask that changes anywhere are loaded one by one: then neighbouring lanes shall load neighbours. The bound of the
// second mask is a multiple of 16, so that four neighbours have one mask value and go in a vector.

func.func @k(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %m: i32 {tile.divisibility = 16 : i64}) {
  %i = tile.arange 0 128 : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %ns = tile.splat %n : i32 to tensor<128xi32>
  %anywhere = tile.compare "lt" %i, %ns : tensor<128xi32> to tensor<128xi1>
  %a = tile.load %p mask %anywhere : tensor<128xi1> : tensor<128x!tile.ptr<f32>> to tensor<128xf32>
  %ms = tile.splat %m : i32 to tensor<128xi32>
  %whole = tile.compare "lt" %i, %ms : tensor<128xi32> to tensor<128xi1>
  %q = tile.addptr %p, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %r = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32> to tensor<128x!tile.ptr<f32>>
  %b = tile.load %r mask %whole : tensor<128xi1> : tensor<128x!tile.ptr<f32>> to tensor<128xf32>
  tile.store %q, %a : tensor<128x!tile.ptr<f32>>, tensor<128xf32>
  tile.store %q, %b : tensor<128x!tile.ptr<f32>>, tensor<128xf32>
  func.return
}

// CHECK: %a = tile.load {{.*}} to tensor<128xf32, #tile.layout<"{register: [32,64], lane: [1,2,4,8,16], warp: []} -> [dim0: 128]">>
// CHECK: %b = tile.load {{.*}} to tensor<128xf32, #tile.layout<"{register: [1,2], lane: [4,8,16,32,64], warp: []} -> [dim0: 128]">>
