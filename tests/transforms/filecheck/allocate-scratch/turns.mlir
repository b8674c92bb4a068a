// RUN: weft opt %s --pass allocate-scratch{target=sm_90}
// A conversion across warps and a scalar that one thread tells to all take turns between two places. The kernel has both.

func.func @k(%y: !tile.ptr<i32>, %n: i32) {
  %a = tile.arange 0 128 : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  %b = tile.convert_layout %a : tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi32, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %c = tile.atomic_rmw "add" %y, %n : !tile.ptr<i32>, i32 to i32
  func.return
}

// CHECK: func.func @k({{.*}}) attributes {gpu.shared = 640 : i64} {
// CHECK: tile.convert_layout %a {gpu.scratch = 0 : i64}
// CHECK: tile.atomic_rmw "add" %y, %n {gpu.scratch = 512 : i64}
