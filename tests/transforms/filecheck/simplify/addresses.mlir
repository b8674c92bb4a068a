// RUN: weft opt %s --pass simplify
// There are no constant pointers: the bits of a constant stay where they become an address.

func.func @k(%out: !tile.ptr<f32>) {
  %zero = tile.constant 0 : i64
  %p = tile.bitcast %zero : i64 to !tile.ptr<f32>
  %x = tile.load %p : !tile.ptr<f32> to f32
  tile.store %out, %x : !tile.ptr<f32>, f32
  func.return
}

// CHECK:      %zero = tile.constant 0 : i64
// CHECK-NEXT: %p = tile.bitcast %zero : i64 to !tile.ptr<f32>
// CHECK-NEXT: %x = tile.load %p : !tile.ptr<f32> to f32
