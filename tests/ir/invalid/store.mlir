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

// -----

// CHECK: tile.store: tensor<4x8x!tile.ptr<f32>> holds tensor<4x8xf32>, found tensor<8xf32>
func.func @store(%p: tensor<4x8x!tile.ptr<f32>>, %v: tensor<8xf32>) {
  tile.store %p, %v : tensor<4x8x!tile.ptr<f32>>, tensor<8xf32>
  func.return
}

// -----

// CHECK: tile.store: the mask is tensor<8xi1>, expected tensor<4x8xi1>
func.func @store(%p: tensor<4x8x!tile.ptr<f32>>, %v: tensor<4x8xf32>, %m: tensor<8xi1>) {
  tile.store %p, %v mask %m : tensor<8xi1> : tensor<4x8x!tile.ptr<f32>>, tensor<4x8xf32>
  func.return
}

// -----

// CHECK: tile.store: unknown cache modifier '.ca', expected one of .wb, .cg, .cs, .wt
func.func @store(%p: !tile.ptr<f32>, %v: f32) {
  tile.store %p, %v cache ".ca" : !tile.ptr<f32>, f32
  func.return
}

// -----

// CHECK: tile.store: unknown eviction policy 'first', expected one of evict_first, evict_last
func.func @store(%p: !tile.ptr<f32>, %v: f32) {
  tile.store %p, %v evict "first" : !tile.ptr<f32>, f32
  func.return
}
