// CHECK: tile.reduce needs at least one tensor
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  "tile.reduce"() <{axis = 0 : i64}> ({
  ^bb0:
    "tile.yield"() : () -> ()
  }) : () -> ()
  func.return
}

// -----

// CHECK: tile.reduce: axis 2 is out of range for rank 2
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 2 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce: axis -1 is out of range for rank 2
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis -1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce: axis 0 is out of range for rank 0
func.func @reduce(%x: f32) {
  %a = tile.reduce %x axis 0 : f32 to f32 {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce of 1 tensors gives 2 results
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a, %b = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32>, tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce: shapes (2, 4) and (4,) differ
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a, %b = tile.reduce %x, %y axis 0 : tensor<2x4xf32>, tensor<4xi32> to tensor<4xf32>, tensor<4xi32> {
  ^bb0(%p: f32, %pi: i32, %q: f32, %qi: i32):
    tile.yield %p, %pi : f32, i32
  }
  func.return
}

// -----

// CHECK: tile.reduce of tensor<2x4xf32>: expected tensor<2xf32>, found tensor<4xf32>
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce of tensor<2x4xf32>: expected tensor<2xf32>, found tensor<2xf16>
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf16> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce: the combine region takes the accumulators' types, then the elements'
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32):
    tile.yield %p : f32
  }
  func.return
}

// -----

// CHECK: tile.reduce: the combine region ends by yielding the accumulators' types
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    %g = tile.compare "lt" %p, %q : f32 to i1
    tile.yield %g : i1
  }
  func.return
}

// -----

// CHECK: tile.reduce: the combine region ends by yielding the accumulators' types
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p, %q : f32, f32
  }
  func.return
}

// -----

// CHECK: 'scf.yield' expects parent op to be one of 'scf.for', 'scf.if', 'scf.execute_region', 'scf.while', 'scf.index_switch'
func.func @reduce(%x: tensor<2x4xf32>, %y: tensor<4xi32>) {
  %a = tile.reduce %x axis 1 : tensor<2x4xf32> to tensor<2xf32> {
  ^bb0(%p: f32, %q: f32):
    scf.yield %p : f32
  }
  func.return
}
