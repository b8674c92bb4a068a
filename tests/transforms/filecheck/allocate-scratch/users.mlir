// RUN: weft opt %s --pass allocate-scratch{target=sm_90}
// The bytes of each kind of user, in steps of 128; users in turn take the first and the second place: an exchange between warps; one within warps, which have scratch of their own where they hold copies;
// pointers, which are of 8 bytes; what one thread tells to all; a tile of atomics tells
// threads with copies its elements of 4 bytes, if they are used; nothing for plain loads.

func.func @pointers(%x: tensor<128x!tile.ptr<i8>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.convert_layout %x : tensor<128x!tile.ptr<i8>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128x!tile.ptr<i8>, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  func.return
}

func.func @copies(%x: tensor<256xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,0]} -> [dim0: 256]">>) {
  %a = tile.convert_layout %x : tensor<256xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,0]} -> [dim0: 256]">> to tensor<256xf32, #tile.layout<"{register: [32,64,128], lane: [1,2,4,8,16], warp: [0,0]} -> [dim0: 256]">>
  func.return
}

func.func @half(%x: tensor<512xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,256]} -> [dim0: 512]">>) {
  %a = tile.convert_layout %x : tensor<512xf32, #tile.layout<"{register: [1,2,4], lane: [8,16,32,64,128], warp: [0,256]} -> [dim0: 512]">> to tensor<512xf32, #tile.layout<"{register: [32,64,128], lane: [1,2,4,8,16], warp: [0,256]} -> [dim0: 512]">>
  func.return
}

func.func @larger_first(%x: tensor<128xf64, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %y: tensor<128xi8, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.convert_layout %x : tensor<128xf64, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xf64, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  %b = tile.convert_layout %y : tensor<128xi8, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi8, #tile.layout<"{register: [], lane: [32,64,4,8,16], warp: [1,2]} -> [dim0: 128]">>
  func.return
}

func.func @told(%x: !tile.ptr<i32>, %n: i32) {
  %a = tile.atomic_cas %x, %n, %n : !tile.ptr<i32>, i32
  func.return
}

func.func @volatile(%x: !tile.ptr<i32>, %y: tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.load %x volatile : !tile.ptr<i32> to i32
  func.return
}

func.func @threads(%x: !tile.ptr<i32>, %y: tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, %n: tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>) {
  %a = tile.load %x : !tile.ptr<i32> to i32
  %b = tile.atomic_rmw "add" %y, %n : tensor<128x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>, tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">> to tensor<128xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,64]} -> [dim0: 128]">>
  func.return
}

func.func @told_copies(%x: tensor<64x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, %n: tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>) {
  %a = tile.atomic_rmw "add" %x, %n : tensor<64x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">> to tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  %b = tile.binary "add" %a, %a : tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  func.return
}

func.func @unused(%x: tensor<64x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, %n: tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>) {
  %a = tile.atomic_rmw "add" %x, %n : tensor<64x!tile.ptr<i32>, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>, tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">> to tensor<64xi32, #tile.layout<"{register: [], lane: [1,2,4,8,16], warp: [32,0]} -> [dim0: 64]">>
  func.return
}

// CHECK: func.func @pointers({{.*}}) attributes {gpu.shared = 1024 : i64} {
// CHECK: tile.convert_layout %x {gpu.scratch = 0 : i64}
// CHECK: func.func @copies({{.*}}) attributes {gpu.shared = 4096 : i64} {
// CHECK: tile.convert_layout %x {gpu.scratch = 0 : i64}
// CHECK: func.func @half({{.*}}) attributes {gpu.shared = 4096 : i64} {
// CHECK: tile.convert_layout %x {gpu.scratch = 0 : i64}
// CHECK: func.func @larger_first({{.*}}) attributes {gpu.shared = 1152 : i64} {
// CHECK: tile.convert_layout %x {gpu.scratch = 0 : i64}
// CHECK-NEXT: %b = tile.convert_layout %y {gpu.scratch = 1024 : i64}
// CHECK: func.func @told({{.*}}) attributes {gpu.shared = 128 : i64} {
// CHECK: tile.atomic_cas %x, %n, %n {gpu.scratch = 0 : i64}
// CHECK: func.func @volatile({{.*}}) attributes {gpu.shared = 128 : i64} {
// CHECK: tile.load %x 
// CHECK: func.func @threads({{.*}}) attributes {gpu.shared = 0 : i64} {
// CHECK: %a = tile.load %x : !
// CHECK-NEXT: %b = tile.atomic_rmw "add" %y, %n : tensor
// CHECK: func.func @told_copies({{.*}}) attributes {gpu.shared = 256 : i64} {
// CHECK-NEXT: tile.atomic_rmw "add" %x, %n {gpu.scratch = 0 : i64}
// CHECK: func.func @unused({{.*}}) attributes {gpu.shared = 0 : i64} {
