// CHECK: tile.splat keeps the element type, found f32 to tensor<4xf16>
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 to tensor<4xf16>
  func.return
}

// -----

// CHECK: tile.splat takes a scalar to a tensor, found f32 to f32
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 to f32
  func.return
}

// -----

// CHECK: tile.splat takes a scalar to a tensor, found tensor<4xf32> to tensor<4xf32>
func.func @splat(%x: tensor<4xf32>) {
  %a = tile.splat %x : tensor<4xf32> to tensor<4xf32>
  func.return
}

// -----

// CHECK: tile.splat: index is not an element type of tile IR
func.func @splat(%x: index) {
  %a = tile.splat %x : index to tensor<4xindex>
  func.return
}

// -----

// CHECK: tile.splat: tensor<f32> has no dimensions; a rank-0 tile is the scalar f32
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 to tensor<f32>
  func.return
}

// -----

// CHECK: tile.splat: tensor<?xf32> has a size below 1
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 to tensor<?xf32>
  func.return
}

// -----

// CHECK: tile.splat: the encoding of tensor<4xf32, 1 : i32> is not a layout
func.func @splat(%x: f32) {
  %a = tile.splat %x : f32 to tensor<4xf32, 1 : i32>
  func.return
}

// -----

// CHECK: tile.ptr points to numbers, found index
func.func @splat(%x: !tile.ptr<index>) {
  func.return
}
