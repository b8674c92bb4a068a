// RUN: weft opt %s --pass assign-thread-layouts{warps=4}
// The solver. Each warp loads 16 rows, eight lanes to a row. The rows' sums are scattered over the lanes that the reduction frees, and
// stored from there: no conversion, and no element twice.

func.func @k(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %rows = tile.arange 0 64 : tensor<64xi32>
  %columns = tile.arange 0 128 : tensor<128xi32>
  %r = tile.expand_dims %rows 1 : tensor<64xi32> to tensor<64x1xi32>
  %size = tile.constant 128 : tensor<64x1xi32>
  %first = tile.binary "mul" %r, %size : tensor<64x1xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<64x1x!tile.ptr<f32>>
  %starts = tile.addptr %xs, %first : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32> to tensor<64x1x!tile.ptr<f32>>
  %c = tile.expand_dims %columns 0 : tensor<128xi32> to tensor<1x128xi32>
  %all = tile.broadcast %starts : tensor<64x1x!tile.ptr<f32>> to tensor<64x128x!tile.ptr<f32>>
  %along = tile.broadcast %c : tensor<1x128xi32> to tensor<64x128xi32>
  %p = tile.addptr %all, %along : tensor<64x128x!tile.ptr<f32>>, tensor<64x128xi32> to tensor<64x128x!tile.ptr<f32>>
  %v = tile.load %p : tensor<64x128x!tile.ptr<f32>> to tensor<64x128xf32>
  %sums = tile.reduce %v axis 1 : tensor<64x128xf32> to tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = tile.binary "add" %a, %b : f32
    tile.yield %s : f32
  }
  %ys = tile.splat %y : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %ys, %rows : tensor<64x!tile.ptr<f32>>, tensor<64xi32> to tensor<64x!tile.ptr<f32>>
  tile.store %q, %sums : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
  func.return
}

// CHECK:      tile.load {{.*}} lane: [(0,4),(0,8),(0,16),(1,0),(2,0)], warp: [(16,0),(32,0)]} -> [dim0: 64, dim1: 128]">>
// CHECK-NOT:  tile.convert_layout
// CHECK:      tile.store {{.*}} tensor<64xf32, #tile.layout<"{register: [], lane: [8,4,2,1,0], warp: [16,32]} -> [dim0: 64]">>
