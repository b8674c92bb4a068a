// CHECK: tile.scan needs at least one tensor
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  "tile.scan"() <{axis = 0 : i64}> ({
  ^bb0:
    "tile.yield"() : () -> ()
  }) : () -> ()
  func.return
}

// -----

// CHECK: tile.scan: axis 2 is out of range for rank 2
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 2 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan: axis -1 is out of range for rank 2
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis -1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan: axis 0 is out of range for rank 0
func.func @scan(%x: f32) {
  %a = tile.scan %x axis 0 : f32 to f32 {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan of 1 tensors gives 2 results
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a, %b = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32>, tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan: shapes (2, 4) and (4,) differ
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a, %b = tile.scan %x, %y axis 0 reverse : tensor<2x4xf32>, tensor<4xi32> to tensor<2x4xf32>, tensor<4xi32> {
  ^bb0(%p: f32, %pi: i32, %q: f32, %qi: i32):
    tile.yield %p, %pi : f32, i32
  }
  func.return
}

// -----

// CHECK: tile.scan of tensor<2x4xf32>: expected tensor<2x4xf32>, found tensor<4xf32>
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan of tensor<2x4xf32>: expected tensor<2x4xf32>, found tensor<2x4xf16>
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf16> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan: the combine region takes the accumulators' types, then the elements'
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.scan: the combine region ends by yielding the accumulators' types
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    %g = tile.compare "lt" %p, %q : f32 to i1
    tile.yield %g : i1
  }
  func.return
}

// -----

// CHECK: tile.scan: the combine region ends by yielding the accumulators' types
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p, %q : f32, f32
  }
  func.return
}

// -----

// CHECK: 'scf.yield' expects parent op to be one of 'scf.for', 'scf.if', 'scf.execute_region', 'scf.while', 'scf.index_switch'
func.func @scan(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.scan %x axis 1 : tensor<2x4xf32> to tensor<2x4xf32> {
  ^bb0(%p: f32, %q: f32):
    scf.yield %p : f32
  }
  func.return
}
