// RUN: weft opt %s --pass assign-layouts{lanes=4}
// A scan takes its source as it is where lanes hold elements in a row along the axis: so along both axes of a matrix by rows. Where
// registers are between lanes it is converted before. A gather takes both operands as they are; a histogram gives rows of counts.

func.func @k(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) {
  %i = tile.arange 0 16 : tensor<16xi32>
  %o = tile.reshape %i : tensor<16xi32> to tensor<4x4xi32>
  %xs = tile.splat %x : !tile.ptr<i32> to tensor<4x4x!tile.ptr<i32>>
  %p = tile.addptr %xs, %o : tensor<4x4x!tile.ptr<i32>>, tensor<4x4xi32> to tensor<4x4x!tile.ptr<i32>>
  %v = tile.load %p : tensor<4x4x!tile.ptr<i32>> to tensor<4x4xi32>
  %a = tile.scan %v axis 0 : tensor<4x4xi32> to tensor<4x4xi32> {
  ^bb0(%p0: i32, %q0: i32):
    %s0 = tile.binary "add" %p0, %q0 : i32
    tile.yield %s0 : i32
  }
  %b = tile.scan %a axis 1 reverse : tensor<4x4xi32> to tensor<4x4xi32> {
  ^bb0(%p1: i32, %q1: i32):
    %s1 = tile.binary "add" %p1, %q1 : i32
    tile.yield %s1 : i32
  }
  %t = tile.trans %b [1, 0] : tensor<4x4xi32> to tensor<4x4xi32>
  %g = tile.gather %b, %t axis 0 : tensor<4x4xi32>, tensor<4x4xi32> to tensor<4x4xi32>
  %f = tile.reshape %t : tensor<4x4xi32> to tensor<16xi32>
  %c = tile.scan %f axis 0 : tensor<16xi32> to tensor<16xi32> {
  ^bb0(%p2: i32, %q2: i32):
    %s2 = tile.binary "add" %p2, %q2 : i32
    tile.yield %s2 : i32
  }
  %h = tile.histogram %c : tensor<16xi32> to tensor<2xi32>
  tile.store %p, %g : tensor<4x4x!tile.ptr<i32>>, tensor<4x4xi32>
  %n = tile.arange 0 2 : tensor<2xi32>
  %ys = tile.splat %y : !tile.ptr<i32> to tensor<2x!tile.ptr<i32>>
  %q = tile.addptr %ys, %n : tensor<2x!tile.ptr<i32>>, tensor<2xi32> to tensor<2x!tile.ptr<i32>>
  tile.store %q, %h : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  func.return
}

// CHECK: %a = tile.scan %v axis 0 : tensor<4x4xi32, #tile.layout<"{register: [(1,0),(2,0)], lane: [(0,1),(0,2)]} -> [dim0: 4, dim1: 4]">> to
// CHECK: %b = tile.scan %a axis 1 reverse : tensor<4x4xi32, #tile.layout<"{register: [(1,0),(2,0)], lane: [(0,1),(0,2)]} -> [dim0: 4, dim1: 4]">> to
// CHECK: [[B:%.*]] = tile.convert_layout %b :
// CHECK: [[T:%.*]] = tile.trans [[B]] [1, 0] :
// CHECK: %g = tile.gather %b, %t axis 0 : {{.*}} to tensor<4x4xi32, #tile.layout<"{register: [(0,1),(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 4, dim1: 4]">>
// CHECK: [[F:%.*]] = tile.reshape [[T]] :
// CHECK: %c = tile.scan [[F]] axis 0 : tensor<16xi32, #tile.layout<"{register: [4,8], lane: [1,2]} -> [dim0: 16]">> to
// CHECK: %h = tile.histogram %c : {{.*}} to tensor<2xi32, #tile.layout<"{register: [], lane: [1,0]} -> [dim0: 2]">>
