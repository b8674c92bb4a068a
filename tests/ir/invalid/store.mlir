// CHECK: tile.store: expected pointers, found f32
func.func @store(%p: f32) {
  tile.store %p, %p : f32, f32
  func.return
}

// -----

// CHECK: tile.store: tensor<4x!tile.ptr<f32>> holds tensor<4xf32>, found f32
func.func @store(%p: tensor<4x!tile.ptr<f32>>, %v: f32) {
  tile.store %p, %v : tensor<4x!tile.ptr<f32>>, f32
  func.return
}

// -----

// CHECK: tile.store: the mask is i8, expected i1
func.func @store(%p: !tile.ptr<f32>, %v: f32, %m: i8) {
  tile.store %p, %v mask %m : i8 : !tile.ptr<f32>, f32
  func.return
}
