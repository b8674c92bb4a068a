// CHECK: tile.load: expected pointers, found i64
func.func @load(%p: i64) {
  %a = tile.load %p : i64 to i64
  func.return
}

// -----

// CHECK: tile.load: !tile.ptr<f32> holds f32, found i32
func.func @load(%p: !tile.ptr<f32>) {
  %a = tile.load %p : !tile.ptr<f32> to i32
  func.return
}

// -----

// CHECK: tile.load: the mask is i1, expected tensor<4xi1>
func.func @load(%p: tensor<4x!tile.ptr<f32>>, %m: i1) {
  %a = tile.load %p mask %m : i1 : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
  func.return
}

// -----

// CHECK: tile.load: !tile.ptr<f32> holds f32, found f16
func.func @load(%p: !tile.ptr<f32>, %m: i1, %o: f16) {
  %a = tile.load %p mask %m : i1 other %o : f16 : !tile.ptr<f32> to f32
  func.return
}

// -----

// CHECK: tile.load: 'other' needs a mask
func.func @load(%p: !tile.ptr<f32>, %o: f32) {
  %a = tile.load %p other %o : f32 : !tile.ptr<f32> to f32
  func.return
}

// -----

// CHECK: tile.load: unknown cache modifier '.wb', expected one of .ca, .cg, .cs, .cv
func.func @load(%p: !tile.ptr<f32>) {
  %a = tile.load %p cache ".wb" : !tile.ptr<f32> to f32
  func.return
}

// -----

// CHECK: tile.load: unknown eviction policy 'evict_normal', expected one of evict_first, evict_last
func.func @load(%p: !tile.ptr<f32>) {
  %a = tile.load %p evict "evict_normal" : !tile.ptr<f32> to f32
  func.return
}
