// RUN: weft opt %s --pass 'widen-packs{vector_bits=128}'
// A panel of bytes is loaded by 16 of them, and so are its addresses and masks. The rows' tiles get as many lanes. A load that does not fill
// a panel stays, and so does one in whose address is a tile that has its layout for good. Where groups of a panel have 8 columns, it is 8.

func.func @f(%ptr: !tile.ptr<i8>, %n: i32, %at: i64, %kept: tensor<2x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>) {
  %base = tile.splat %ptr : !tile.ptr<i8> to tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %i = tile.arange 0 32 : tensor<32xi32, #tile.layout<"{register: [4,8,16], lane: [1,2]} -> [dim0: 32]">>
  %row = tile.expand_dims %i 0 : tensor<32xi32, #tile.layout<"{register: [4,8,16], lane: [1,2]} -> [dim0: 32]">> to tensor<1x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16)], lane: [(0,1),(0,2)]} -> [dim0: 1, dim1: 32]">>
  %rows = tile.broadcast %row : tensor<1x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16)], lane: [(0,1),(0,2)]} -> [dim0: 1, dim1: 32]">> to tensor<2x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %places = tile.addptr %base, %rows : tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>, tensor<2x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">> to tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %others = tile.addptr %base, %kept : tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>, tensor<2x32xi32, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">> to tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %b = tile.load %places {invariant, likely_runs} : tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">> to tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %c = tile.load %places {invariant} : tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">> to tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  %d = tile.load %others {invariant, likely_runs} : tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">> to tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  cpu.pack %b to %at[%at] of %at {axis = 0 : i64, depth = 32 : i64, width = 16 : i64, group = 2 : i64} : tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  cpu.pack %c to %at[%at] of %at {axis = 0 : i64, depth = 32 : i64, width = 8 : i64, group = 2 : i64} : tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  cpu.pack %d to %at[%at] of %at {axis = 0 : i64, depth = 32 : i64, width = 8 : i64, group = 2 : i64} : tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  cpu.pack %b to %at[%at] of %at {axis = 0 : i64, depth = 32 : i64, width = 8 : i64, group = 2 : i64} : tensor<2x32xi8, #tile.layout<"{register: [(0,4),(0,8),(0,16),(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 32]">>
  func.return
}

// CHECK:      %[[I:i.*]] = tile.arange 0 32 : tensor<32xi32, #tile.layout<"{register: [16], lane: [1,2,4,8]} -> [dim0: 32]">>
// CHECK:      %[[ROWS:rows.*]] = tile.broadcast %{{.*}} to tensor<2x32xi32, #tile.layout<"{register: [(0,16),(1,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 2, dim1: 32]">>
// CHECK:      %[[PLACES:places.*]] = tile.addptr %{{.*}}, %[[ROWS]] : {{.*}} to tensor<2x32x!tile.ptr<i8>, #tile.layout<"{register: [(0,16),(1,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 2, dim1: 32]">>
// CHECK:      %[[B:b.*]] = tile.load %[[PLACES]] {invariant, likely_runs} : {{.*}} to tensor<2x32xi8, #tile.layout<"{register: [(0,16),(1,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 2, dim1: 32]">>
// CHECK:      cpu.pack %[[B]] to {{.*}} : tensor<2x32xi8, #tile.layout<"{register: [(0,16),(1,0)], lane: [(0,1),(0,2),(0,4),(0,8)]} -> [dim0: 2, dim1: 32]">>
// CHECK-NEXT: cpu.pack %c to
// CHECK-NEXT: cpu.pack %d to
// CHECK-NEXT: cpu.pack %b{{.*}} to {{.*}} : tensor<2x32xi8, #tile.layout<"{register: [(0,8),(0,16),(1,0)], lane: [(0,1),(0,2),(0,4)]} -> [dim0: 2, dim1: 32]">>
